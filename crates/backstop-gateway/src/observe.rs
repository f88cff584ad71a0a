//! A route that is only observed (`mode = "observe"`).
//!
//! Its requests are forwarded as if nothing were decided, and everything is decided all the same: beside each request
//! runs its **shadow**, the same way with the same limits, breaker, copies and counters as on a route that enforces. In
//! place of a dependency the shadow asks the exchange that goes on for the client ([`shadow`]): it learns of its head, its
//! bytes and its end when they come, and what it answers is thrown away. So what is counted is what would have been.
//!
//! The rules:
//! 1. **The dependency gets what it would get from a plain reverse proxy**: one call for each request, whatever the shadow decides,
//!    over as many connections as that takes, and none of the fields that are changed for the sake of copies. The operator's own
//!    edits are made, and nothing is asked a second time or of another.
//! 2. **The client gets the dependency's answer**, unmarked, as it comes. Only where there is none is it told so by us: 502, or 504
//!    after [`PATIENCE`].
//! 3. **The shadow never holds anything up.** Of an answer so much is read ahead of the client as the route would have held back,
//!    so that a slow client looks to the shadow as it would to the route; then it waits for its client.
//! 4. **What a write changes is seen to**: it is carried out whatever its shadow decides, so the copies that it may have changed are
//!    withdrawn by what really came of it, also those of routes that enforce ([`ForwardedWrite`]). Copies that are made while a route
//!    observes are never served: they were not asked for in the way in which it would ask.
//! 5. **Nobody is let in and nothing is repeated by it**: the policy refuses to observe routes behind an authorizer and effects.
//!
//! What really came is counted beside what would have been ([`Counts`]).

mod counts;
mod decoded;
mod exchange;
mod passed;
mod shadow;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use backstop::fields::{Speaker, describe_failure};
use backstop::upload::UploadWatch;
use backstop::upstream::{BrokenOff, CallError, Progress, Upstream};
use backstop::walk::Recorder;
use backstop::{ForwardedWrite, problem};
use backstop_engine::failure::{Cause, Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{Account, Attempt, AttemptId, ClientFault, Places};
use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::policy::{DependencyId, Origin};
use backstop_engine::status::refusal;
use bytes::Bytes;
use http::{Method, Request, Response, request};
use http_body::Body;

use crate::client_body::RequestContent;
use crate::forward::{Answer, Forward};
use crate::stack::{RouteStack, Shared, Thread};

pub(crate) use counts::{Counts, Really};
pub(crate) use passed::Passed;

use exchange::{Came, Exchange};

/// How long a dependency may keep the client of an observed route waiting, for the head of its answer and between any two of its
/// pieces; where a route's own `deadline` or `idle` is longer, that long. What proxies commonly wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// So much is read ahead of a client where no answer is held back.
const AHEAD_BYTES: u64 = 64 * 1024;

/// A request of a route that is only observed, ready to be forwarded.
pub(crate) struct Observed<'a> {
    pub(crate) route: &'a RouteStack,
    pub(crate) head: request::Parts,
    pub(crate) content: RequestContent,
    pub(crate) upload: Option<&'a Arc<UploadWatch>>,
    pub(crate) number: u64,
}

/// Marks an answer that was decided about and not made of that decision. Where the dependency gave none it has the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnlyObserved(pub(crate) Option<Reason>);

/// What a route that is only observed has of its own.
#[derive(Debug)]
pub(crate) struct ObservedRoute {
    /// The way to its dependency, among the thread's: no bound of the policy holds there.
    pub(crate) lane: usize,
    /// The longest that the route would have waited for a connection to be established.
    pub(crate) connect: Duration,
}

/// Whether what is decided on a route is carried out.
pub(crate) fn is_observed(route: &RouteStack) -> bool {
    route.observed.is_some()
}

/// Forwards a request, and has its shadow decide about it.
pub(crate) async fn answer(
    thread: &Rc<Thread>,
    forward: &Forward<'_>,
    observed: Observed<'_>,
) -> Response<Passed> {
    let Observed { route, mut head, content, upload, number } = observed;
    // What its shadow does is not what was done.
    head.extensions.remove::<Recorder>();
    let shared = &*thread.shared;
    let method = head.method.clone();
    let exchange = Exchange::begin(route.id, read_ahead(route));
    // A client that leaves drops this.
    let leaving = exchange.leaving();
    let casting = shadow::Casting {
        route: route.id,
        head: head.clone(),
        ends: content.is_end_stream(),
        upload: upload.cloned(),
        entropy: thread.entropy(number, 0),
    };
    tokio::task::spawn_local(shadow::cast(Rc::clone(thread), casting, Rc::clone(&exchange)));

    let patience = patience(route);
    // It is carried out whatever is decided about it.
    let write = ForwardedWrite::begin(&route.protected, &head);
    let called =
        call(shared, forward, route, Request::from_parts(head, content), upload, patience, &exchange);
    let (mut response, ours) = match called.await {
        Ok(response) => {
            let (mut head, body) = response.into_parts();
            let write = match write {
                Some(write) => write.answered(head.status).await,
                None => None,
            };
            exchange.came(Came::Answer(Box::new(head.clone())));
            route.response_edits.apply(&mut head.headers);
            let hint = body.size_hint();
            let ended = body.is_end_stream();
            let pump = pump(body, Rc::clone(&exchange), shared.clock.clone(), patience);
            tokio::task::spawn_local(async move {
                if pump.await
                    && let Some(write) = write
                {
                    write.ended();
                }
            });
            (Response::from_parts(head, Passed::of(exchange, leaving, hint, ended)), None)
        }
        Err(unanswered) => {
            exchange.came(Came::Nothing(unanswered));
            let told = unanswered.told(shared, &method).map(|content| Passed::own(content, leaving));
            (told, Some(unanswered.reason()))
        }
    };
    response.extensions_mut().insert(OnlyObserved(ours));
    response
}

fn patience(route: &RouteStack) -> Duration {
    let rules = &route.protected.state().rules;
    let idle = match &rules.class {
        backstop_engine::policy::RouteClass::Direct(direct) => direct.idle.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    PATIENCE.max(rules.deadline).max(idle)
}

fn read_ahead(route: &RouteStack) -> u64 {
    let class = &route.protected.state().rules.class;
    if class.keeps_copies() { class.buffer_bytes().max(AHEAD_BYTES) } else { AHEAD_BYTES }
}

/// Why the client gets no answer of the dependency.
#[derive(Clone, Copy, Debug)]
enum Unanswered {
    Cause(Cause),
    Client(ClientFault),
}

impl Unanswered {
    const fn reason(self) -> Reason {
        match self {
            Self::Cause(cause) => Reason::Cause(cause),
            Self::Client(ClientFault::Slow) => Reason::ClientSlow,
            Self::Client(ClientFault::TooLarge) => Reason::ClientTooLarge,
            Self::Client(ClientFault::Broken) => Reason::ClientLeft,
        }
    }

    fn told(self, shared: &Shared, method: &Method) -> Response<Bytes> {
        let cause = match self {
            Self::Cause(cause) => Some(cause),
            Self::Client(_) => None,
        };
        let reason = self.reason();
        let refused = refusal(reason, cause, Default::default());
        let account = Account {
            outcome: Outcome::Failed,
            source: Source::None,
            reason,
            cause,
            age: None,
            rule: Origin::NONE,
        };
        let speaker = Speaker { name: shared.name.clone(), is_gateway: true };
        let mut response = problem::response(&refused, &account);
        describe_failure(response.headers_mut(), &refused, &speaker);
        if *method == Method::HEAD {
            *response.body_mut() = Bytes::new();
        }
        response
    }
}

/// The one call. Only the client's own slowness moves its end back.
async fn call(
    shared: &Shared,
    forward: &Forward<'_>,
    route: &RouteStack,
    request: Request<RequestContent>,
    upload: Option<&Arc<UploadWatch>>,
    patience: Duration,
    exchange: &Exchange,
) -> Result<Response<Answer>, Unanswered> {
    let clock = &shared.clock;
    let until = clock.mono().after(patience);
    let attempt = Attempt {
        id: AttemptId(1),
        dependency: DependencyId(u16::try_from(route.dependency).unwrap_or(u16::MAX)),
        number: 1,
        places: Places::none(),
        until,
        end: until,
        // A client that leaves ends the call, as with any proxy.
        abandon_hold: Some(Duration::ZERO),
        is_once: false,
    };
    let progress = Progress::new();
    let mut calling = pin!(forward.call(attempt, request, &progress));
    let mut end = clock.sleep_until(until);
    let called = poll_fn(|context| {
        let called = calling.as_mut().poll(context);
        exchange.reached(progress.phase());
        if let Poll::Ready(called) = called {
            return Poll::Ready(Some(called));
        }
        loop {
            ready!(Pin::new(&mut end).poll(context));
            let now = clock.mono();
            let later = until.after(upload.map_or(Duration::ZERO, |upload| upload.waited(now)));
            if later <= now {
                return Poll::Ready(None);
            }
            end.reset(later);
        }
    });
    match called.await {
        Some(Ok(response)) => Ok(response),
        Some(Err(CallError::Failed(failure))) => Err(Unanswered::Cause(Cause::Failed(failure))),
        Some(Err(CallError::NotAsked(reason))) => Err(Unanswered::Cause(Cause::NotAsked(reason))),
        Some(Err(CallError::Client(fault))) => Err(Unanswered::Client(fault)),
        Some(Err(CallError::Unclassified(never))) => match never {},
        None => Err(Unanswered::Cause(progress.time_up())),
    }
}

/// Reads the answer for its client and its shadow alike. Whether it came to its end.
async fn pump(
    body: Answer,
    exchange: Rc<Exchange>,
    clock: backstop::clock::Clock,
    patience: Duration,
) -> bool {
    let mut body = pin!(body);
    loop {
        if !exchange.has_room().await {
            // The client left: the call is dropped with its body.
            return false;
        }
        let mut end = clock.sleep_until(clock.mono().after(patience));
        let frame = poll_fn(|context| {
            if exchange.poll_left(context) {
                return Poll::Ready(None);
            }
            if let Poll::Ready(frame) = body.as_mut().poll_frame(context) {
                return Poll::Ready(Some(frame));
            }
            Pin::new(&mut end).poll(context).map(|()| {
                let failure = Failure::new(FailureKind::ReadTimeout, Phase::Body, Sent::Maybe);
                Some(Some(Err(BrokenOff::from(failure))))
            })
        });
        match frame.await {
            None => return false,
            Some(Some(Ok(frame))) => exchange.piece(frame),
            Some(Some(Err(broken))) => {
                exchange.broke_off(broken);
                return false;
            }
            Some(None) => {
                exchange.ended();
                return true;
            }
        }
    }
}
