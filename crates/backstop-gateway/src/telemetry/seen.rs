//! A request as it is told of: from its head to the last byte of its answer.
//!
//! What is told is put together when the answer's body has ended, or was dropped. Where nobody wants to know, a body is passed
//! through with nothing beside it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as Waking, Poll, ready};
use std::time::Duration;

use backstop::request::Observed;
use backstop_engine::flow::Account;
use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::policy::RouteId;
use backstop_engine::time::Now;
use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;

use super::context::{Context, Told};
use crate::interim;
use crate::observe::OnlyObserved;
use crate::stack::{Shared, Thread, handle};
use crate::strict::Fault;

/// What is told of a request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) began_unix_ns: i64,
    pub(crate) peer: SocketAddr,
    pub(crate) method: &'a Method,
    /// As it was sent: the path, and a query if there is one.
    pub(crate) target: &'a str,
    pub(crate) version: Version,
    /// 499 where the client left before there was an answer.
    pub(crate) status: u16,
    /// Of the content.
    pub(crate) bytes: u64,
    pub(crate) duration: Duration,
    pub(crate) route: Option<&'a str>,
    pub(crate) outcome: &'static str,
    pub(crate) source: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) age: Option<Duration>,
    pub(crate) trace_id: Option<String>,
}

/// No status of HTTP: the client left before there was one. nginx writes it too.
const LEFT: u16 = 499;

/// A request under way. It is told of when this is dropped.
struct Open {
    thread: Rc<Thread>,
    began: Now,
    peer: SocketAddr,
    method: Method,
    uri: Uri,
    version: Version,
    route: Option<RouteId>,
    status: u16,
    bytes: u64,
    account: Option<Account>,
    fault: Option<Fault>,
    /// What it would have come to is counted elsewhere.
    only_observed: Option<OnlyObserved>,
    end: End,
    /// Its own span, and the caller's.
    trace: Option<(Context, Option<Context>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client left, or its answer was not taken.
    Left,
    /// The dependency broke the answer off.
    Broken,
    Whole,
}

/// Answers a request, and tells of it to whoever wants to know.
pub(crate) async fn observe(
    thread: &Rc<Thread>,
    peer: SocketAddr,
    client: Option<&interim::Writer>,
    mut request: HttpRequest<Incoming>,
) -> Response<Seen<crate::stack::ReplyContent>> {
    let (telemetry, route) = (&thread.shared.telemetry, Cell::new(None));
    if !telemetry.is_on() {
        let response = handle(thread, peer, client, request, &route).await;
        return response.map(|body| Seen { body, open: None });
    }
    request.extensions_mut().insert(Observed);
    let mut open = Box::new(Open {
        thread: Rc::clone(thread),
        began: thread.shared.clock.now(),
        peer,
        method: request.method().clone(),
        uri: request.uri().clone(),
        version: request.version(),
        route: None,
        status: LEFT,
        bytes: 0,
        account: None,
        fault: None,
        only_observed: None,
        end: End::Left,
        trace: None,
    });
    if let Some(spans) = &telemetry.spans {
        let caller = Context::of(request.headers());
        let own = spans.begin(caller.as_ref(), thread);
        request.extensions_mut().insert(Told(own));
        open.trace = Some((own, caller));
    }
    let mut routed = Routed { route: &route, open: Some(open) };
    let response = handle(thread, peer, client, request, &route).await;
    let Some(mut open) = routed.open.take() else { return response.map(|body| Seen { body, open: None }) };
    open.route = route.get();
    open.status = response.status().as_u16();
    open.account = response.extensions().get().copied();
    open.fault = response.extensions().get().copied();
    open.only_observed = response.extensions().get().copied();
    if response.body().is_end_stream() {
        open.end = End::Whole;
    }
    response.map(|body| Seen { body, open: Some(open) })
}

/// The request while it has no answer: dropped, its client has left, and its route is known all the same.
struct Routed<'a> {
    route: &'a Cell<Option<RouteId>>,
    open: Option<Box<Open>>,
}

impl Drop for Routed<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.open {
            open.route = self.route.get();
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let shared: &Shared = &self.thread.shared;
        let now = shared.clock.now();
        let (outcome, source, reason) = self.words();
        let account = self.account;
        let target = self.uri.path_and_query().map_or_else(|| self.uri.path(), |target| target.as_str());
        let stack = self.route.and_then(|route| shared.routes.get(usize::from(route.0)));
        let request = Request {
            began_unix_ns: self.began.wall.as_unix_ns(),
            peer: self.peer,
            method: &self.method,
            target,
            version: self.version,
            status: self.status,
            bytes: self.bytes,
            duration: self.began.mono.until(now.mono),
            route: stack.map(|stack| &*stack.protected.state().rules.name),
            outcome,
            source,
            reason,
            age: account.and_then(|account| account.age),
            trace_id: self.trace.as_ref().map(|(own, _)| own.trace()),
        };
        if let Some(log) = &shared.telemetry.access_log {
            log.note(&request);
        }
        if let (Some(spans), Some((own, caller))) = (&shared.telemetry.spans, &self.trace) {
            spans.answered(own, caller.as_ref(), &request, stack.and_then(|stack| stack.template.as_deref()));
        }
    }
}

impl Open {
    /// What it came to, as it is counted.
    fn words(&self) -> (&'static str, &'static str, &'static str) {
        if let (Some(OnlyObserved(ours)), End::Whole) = (self.only_observed, self.end) {
            // Where there was no answer, what was said in its place is ours.
            let source = if ours.is_some() { Source::None } else { Source::Primary };
            return ("observed", source.token(), ours.unwrap_or(Reason::None).token());
        }
        if let Some(fault) = self.fault {
            return (Outcome::Rejected.token(), Source::None.token(), fault.token());
        }
        let (outcome, source, reason) =
            self.account.map_or((Outcome::Normal, Source::Primary, Reason::None), |account| {
                (account.outcome, account.source, account.reason)
            });
        match self.end {
            End::Whole => (outcome.token(), source.token(), reason.token()),
            End::Broken => (Outcome::Failed.token(), source.token(), "incomplete"),
            End::Left => (Outcome::Abandoned.token(), source.token(), Reason::ClientLeft.token()),
        }
    }
}

pin_project! {
    /// An answer's body, and whom it is told of at its end.
    pub(crate) struct Seen<B> {
        #[pin]
        body: B,
        open: Option<Box<Open>>,
    }
}

impl<B: Body<Data = Bytes>> Body for Seen<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        waking: &mut Waking<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(waking));
        if let Some(open) = this.open {
            match &frame {
                Some(Ok(frame)) => {
                    open.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
                    // Whoever sends the body need not ask once more after its last frame.
                    if this.body.is_end_stream() {
                        open.end = End::Whole;
                    }
                }
                Some(Err(_)) => open.end = End::Broken,
                None => open.end = End::Whole,
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
