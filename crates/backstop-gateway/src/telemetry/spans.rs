//! Spans: one of each request, and one of each call that it led to.
//!
//! Their attributes are those of the semantic conventions for HTTP
//! (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>), and `backstop.*` for what those cannot say: a copy is a
//! success to them. A span of a request ends with its last byte. A span of a call ends with the head of its answer, or with what
//! came instead of one.

mod export;
mod proto;

use std::time::Duration;

use backstop::authorize::Verdict;
use backstop::clock::Clock;
use backstop::upstream::CallError;
use backstop_engine::failure::Cause;
use backstop_engine::flow::Attempt;
use backstop_engine::time::{Mono, Now};
use backstop_policy::TraceSettings;
use http::header::HOST;
use http::{HeaderMap, Method, Response, request};

use super::CannotTell;
use super::context::{self, Context, Told};
use super::queue::{Counts, Queue};
use super::seen::Request;
use crate::stack::Thread;

use export::{Collector, Item};
use proto::{KeyValue, Span, Status, number, text};

/// Spans that may wait.
const WAITING: usize = 4096;
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

/// Where spans go.
pub(crate) struct Spans {
    queue: Queue<Item>,
    sample_per_mille: u16,
}

impl Spans {
    pub(super) fn start(settings: &TraceSettings, name: &str, clock: &Clock) -> Result<Self, CannotTell> {
        let (queue, items) = Queue::new(WAITING);
        let collector = Collector::new(settings, name, clock, queue.counts()).ok_or(CannotTell::Collector)?;
        std::thread::Builder::new()
            .name("backstop-traces".into())
            .spawn(move || collector.run(&items))
            .map_err(CannotTell::Thread)?;
        Ok(Self { queue, sample_per_mille: settings.sample_per_mille })
    }

    /// The span of a request: of its caller's trace, who then decides whether it is recorded, or of one that begins here.
    pub(super) fn begin(&self, caller: Option<&Context>, thread: &Thread) -> Context {
        let number = thread.next_number();
        let random = |part| thread.entropy(number, part);
        match caller {
            Some(caller) => caller.child(random(0)),
            None => {
                let drawn = (u128::from(random(3)) * 1000) >> 64;
                Context::root([random(0), random(1), random(2)], drawn < u128::from(self.sample_per_mille))
            }
        }
    }

    /// A request was answered, or its client left.
    pub(super) fn answered(
        &self,
        own: &Context,
        caller: Option<&Context>,
        request: &Request<'_>,
        template: Option<&str>,
    ) {
        if !own.is_sampled() {
            return;
        }
        let path = request.target.split('?').next().unwrap_or_default();
        let mut attributes = of_method(request.method);
        attributes.extend([
            text("url.scheme", "http"),
            text("url.path", path),
            text("network.protocol.version", version(request.version)),
            text("client.address", request.peer.ip().to_string()),
            number("http.response.status_code", request.status.into()),
            text("backstop.outcome", request.outcome),
            text("backstop.source", request.source),
            text("backstop.reason", request.reason),
        ]);
        attributes.extend(template.map(|template| text("http.route", template)));
        attributes.extend(request.route.map(|route| text("backstop.route", route)));
        attributes.extend(
            request
                .age
                .map(|age| number("backstop.copy_age_s", age.as_secs().try_into().unwrap_or(i64::MAX))),
        );
        // 4xx is the client's matter and leaves a server's span as it is.
        let is_error = request.status >= 500;
        if is_error {
            attributes.push(text("error.type", request.status.to_string()));
        }
        let method = known(request.method).unwrap_or("HTTP");
        let name = template.map_or_else(|| method.to_owned(), |template| format!("{method} {template}"));
        self.queue.offer(Item::of(Span {
            trace_id: own.trace_id.to_vec(),
            span_id: own.span_id.to_vec(),
            parent_span_id: caller.map(|caller| caller.span_id.to_vec()).unwrap_or_default(),
            name,
            kind: SERVER,
            start_time_unix_nano: unix_ns(request.began_unix_ns),
            end_time_unix_nano: after(request.began_unix_ns, request.duration),
            attributes,
            status: is_error.then(Status::error),
            flags: own.flags.into(),
        }));
    }

    pub(super) fn counts(&self) -> &Counts {
        self.queue.counts()
    }

    /// What waits is sent; `false` if that was not done within the time. Blocks.
    pub(super) fn close(&self, within: Duration) -> bool {
        let (ended, end) = std::sync::mpsc::channel();
        self.queue.offer(Item::End(ended));
        end.recv_timeout(within).is_ok()
    }
}

/// A call under way. Dropped, nobody waits for it any more.
pub(crate) struct Calling(Option<Box<Open>>);

struct Open {
    queue: Queue<Item>,
    own: Context,
    parent: Context,
    method: Method,
    attributes: Vec<KeyValue>,
    began: Now,
    clock: Clock,
    until: Mono,
}

impl Calling {
    /// A call that is about to be made. It is told whose part it is.
    pub(crate) fn begin<B>(thread: &Thread, attempt: &Attempt, request: &mut http::Request<B>) -> Self {
        let Some(open) = Open::of(thread, attempt, request.headers(), request.method()) else {
            return Self(None);
        };
        let (mut open, own) = open;
        context::tell(request.headers_mut(), &own, true);
        if let Some(open) = &mut open {
            let path = request.uri().path();
            let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            open.attributes.push(text("url.full", format!("http://{host}{path}")));
        }
        Self(open.map(Box::new))
    }

    /// A question to an authorizer on behalf of the request with this head, and the head by which it is asked.
    pub(crate) fn begin_asking(
        thread: &Thread,
        attempt: Option<&Attempt>,
        head: &request::Parts,
    ) -> Option<(Self, request::Parts)> {
        let (open, own) = Open::of(thread, attempt?, &head.headers, &Method::GET)?;
        let mut head = head.clone();
        head.extensions.insert(Told(own));
        Some((Self(open.map(Box::new)), head))
    }

    /// What the authorizer said. A no is an answer.
    pub(crate) fn was_told(mut self, verdict: &Verdict) {
        let Some(mut open) = self.0.take() else { return };
        let error = match verdict {
            Verdict::Allowed(_) => None,
            Verdict::Denied(answer) => {
                open.attributes.push(number("http.response.status_code", answer.status().as_u16().into()));
                None
            }
            Verdict::Unclear => Some("unclear"),
            Verdict::Failed(failure) => Some(Cause::Failed(*failure).token()),
            Verdict::NotAsked(reason) => Some(Cause::NotAsked(*reason).token()),
        };
        open.end(error.map(str::to_owned));
    }

    /// What came of it.
    pub(crate) fn ended<B, E>(mut self, came: Result<&Response<B>, &CallError<E>>) {
        let Some(mut open) = self.0.take() else { return };
        let error = match came {
            Ok(response) => {
                let status = response.status().as_u16();
                open.attributes.push(number("http.response.status_code", status.into()));
                (status >= 400).then(|| status.to_string())
            }
            Err(CallError::Failed(failure)) => Some(Cause::Failed(*failure).token().to_owned()),
            Err(CallError::NotAsked(reason)) => Some(Cause::NotAsked(*reason).token().to_owned()),
            Err(CallError::Client(_)) => Some("client".to_owned()),
            Err(CallError::Unclassified(_)) => Some("_OTHER".to_owned()),
        };
        open.end(error);
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let is_late = open.clock.mono() >= open.until;
            open.end(Some(if is_late { "timeout" } else { "cancelled" }.to_owned()));
        }
    }
}

impl Open {
    /// The part of a call in the trace that the request's fields name, and, where it is recorded, its span.
    fn of(
        thread: &Thread,
        attempt: &Attempt,
        headers: &HeaderMap,
        method: &Method,
    ) -> Option<(Option<Self>, Context)> {
        let spans = thread.shared.telemetry.spans.as_ref()?;
        let parent = Context::of(headers)?;
        let own = parent.child(thread.entropy(thread.next_number(), 0));
        if !parent.is_sampled() {
            return Some((None, own));
        }
        let clock = thread.shared.clock.clone();
        let dependency = &thread.shared.engine.dependency(attempt.dependency).rules.name;
        let mut attributes = of_method(method);
        attributes.extend([text("url.scheme", "http"), text("backstop.dependency", &**dependency)]);
        if let Some((address, port)) = thread.shared.addresses.get(usize::from(attempt.dependency.0)) {
            attributes.extend([text("server.address", &**address), number("server.port", (*port).into())]);
        }
        if attempt.id.0 > 1 {
            attributes.push(number("http.request.resend_count", i64::from(attempt.id.0 - 1)));
        }
        let open = Self {
            queue: spans.queue.clone(),
            own,
            parent,
            method: method.clone(),
            attributes,
            began: clock.now(),
            clock,
            until: attempt.until,
        };
        Some((Some(open), own))
    }

    fn end(mut self, error: Option<String>) {
        let took = self.began.mono.until(self.clock.mono());
        let is_error = error.is_some();
        self.attributes.extend(error.map(|error| text("error.type", error)));
        self.queue.offer(Item::of(Span {
            trace_id: self.own.trace_id.to_vec(),
            span_id: self.own.span_id.to_vec(),
            parent_span_id: self.parent.span_id.to_vec(),
            name: known(&self.method).unwrap_or("HTTP").to_owned(),
            kind: CLIENT,
            start_time_unix_nano: unix_ns(self.began.wall.as_unix_ns()),
            end_time_unix_nano: after(self.began.wall.as_unix_ns(), took),
            attributes: std::mem::take(&mut self.attributes),
            status: is_error.then(Status::error),
            flags: self.own.flags.into(),
        }));
    }
}

/// A method of HTTP by its name; any other is `_OTHER`, so that a client cannot make up values.
fn known(method: &Method) -> Option<&str> {
    let all = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
        Method::CONNECT,
    ];
    all.contains(method).then(|| method.as_str())
}

fn of_method(method: &Method) -> Vec<KeyValue> {
    match known(method) {
        Some(name) => vec![text("http.request.method", name)],
        None => {
            vec![text("http.request.method", "_OTHER"), text("http.request.method_original", method.as_str())]
        }
    }
}

const fn version(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_10 => "1.0",
        http::Version::HTTP_2 => "2",
        _ => "1.1",
    }
}

fn unix_ns(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

fn after(began: i64, took: Duration) -> u64 {
    unix_ns(began).saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
}
