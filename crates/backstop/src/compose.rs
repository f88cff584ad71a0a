//! One JSON object from the answers of other routes.
//!
//! The parts are asked side by side, each a request of its own under its own route's whole policy; whoever calls
//! [`compose`] makes those requests. What the whole comes to is decided in the engine
//! ([`composed`](backstop_engine::composed)); here the parts are awaited, looked into and put together.
//!
//! - A part is read whole, up to the `buffer` of its route and what all held-back answers may take. It counts twice there:
//!   once for itself, once for its place in the whole.
//! - The values stand in the object byte for byte as they came.
//! - Parts that are not waited for any more are dropped, and so are their calls, as those of a client that left.

mod answer;
mod fields;
mod object;
mod part;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use backstop_engine::flow::{Attempt, AttemptId, Authorization, Event, Flow, RequestFacts};
use backstop_engine::policy::RouteClass;
use backstop_engine::snapshot::CopyFacts;
use backstop_engine::time::Mono;
use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, Method, Response};
use http_body::Body;

use crate::authorize::Verdict;
use crate::body::ReplyBody;
use crate::driver::{Hands, drive};
use crate::protected::ProtectedRoute;
use crate::upstream::{BrokenOff, Progress};
use crate::walk::{Role, Walking};

pub(crate) use fields::{is_private, varies_by};
pub use object::NotAPlace;
pub(crate) use object::Object;
use part::{Came, gather};

/// What is asked of a composed route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    is_head: bool,
    explain: bool,
}

impl Asked {
    /// Reads it from a request's head. A HEAD request is answered as the GET is, without the content.
    pub fn of(head: &Parts) -> Self {
        Self { is_head: head.method == Method::HEAD, explain: crate::fields::asks_to_explain(&head.headers) }
    }
}

/// Answers a request on a `composed` route. `ask` is called once, after the request was admitted: it begins the requests of
/// the parts, in the policy's order, each a GET marked as a [`PartOf`](crate::request::PartOf) what ends at the given
/// moment. `authorize` finds out before whether the caller may have the whole, on a route that names an authorizer. 64 random bits that no other request got are the `entropy`.
/// Among the request's `extensions` there may be a [`Recorder`](crate::walk::Recorder).
///
/// Dropping the future, or the body before its end, means that the client left. The extensions of an answer that is not
/// normal hold its [`Account`](backstop_engine::flow::Account).
pub async fn compose<B, F>(
    route: &ProtectedRoute,
    asked: Asked,
    extensions: &Extensions,
    entropy: u64,
    authorize: impl AsyncFnOnce(Option<Attempt>, &Progress) -> Verdict,
    ask: impl FnOnce(Mono) -> Vec<F>,
) -> Response<ReplyBody<B>>
where
    F: Future<Output = Response<ReplyBody<B>>>,
    B: Body<Data = Bytes, Error = BrokenOff> + Unpin,
{
    let shared = &route.inner.shared;
    let begin = |until| {
        let begun = ask(until).into_iter().enumerate();
        begun.map(|(number, answer)| gather(answer, limit_bytes(route, number), shared)).collect()
    };
    let (id, now) = (route.inner.id, shared.clock.now());
    let mut walking = Walking::begin(extensions, id, Role::Request, |trace| {
        Flow::begin(&shared.engine, id, RequestFacts::GET, now, entropy, trace)
    });
    let authorize = Some(authorize);
    let mut parts =
        Awaited { authorize, denial: None, begin: Some(begin), under_way: Vec::new(), came: Vec::new() };
    let mut decision = drive(&mut walking.flow, &mut parts, &shared.clock, &shared.waiters, None).await;
    let Awaited { under_way, came, denial, .. } = parts;
    // Whoever is still asked is not waited for any more.
    drop(under_way);
    walking.decided(&mut decision);
    answer::answer(route, asked, decision, came, denial)
}

/// The largest content that a part may have.
fn limit_bytes(route: &ProtectedRoute, number: usize) -> u64 {
    let RouteClass::Composed(rules) = &route.state().rules.class else { return 0 };
    let of = |part: &backstop_engine::composed::Part| {
        route.inner.shared.engine.route(part.route).rules.class.buffer_bytes()
    };
    rules.parts.get(number).map_or(0, of)
}

/// Parts under way, and those that came.
struct Awaited<A, S, G> {
    authorize: Option<A>,
    denial: Option<Response<Bytes>>,
    begin: Option<S>,
    under_way: Vec<Option<Pin<Box<G>>>>,
    came: Vec<Option<Came>>,
}

impl<A, S, G> Hands for Awaited<A, S, G>
where
    A: AsyncFnOnce(Option<Attempt>, &Progress) -> Verdict,
    S: FnOnce(Mono) -> Vec<G>,
    G: Future<Output = Came>,
{
    async fn authorize(&mut self, attempt: Option<Attempt>, progress: &Progress) -> Authorization {
        let Some(authorize) = self.authorize.take() else { return Authorization::Unclear };
        let verdict = authorize(attempt, progress).await;
        let came = verdict.came();
        if let Verdict::Denied(denial) = verdict {
            self.denial = Some(denial);
        }
        came
    }

    fn peek(&mut self) -> Option<CopyFacts> {
        None
    }

    async fn call(&mut self, attempt: Attempt, _: &Progress) -> Event {
        Event::Propagated { attempt: attempt.id }
    }

    async fn collect(&mut self, _: AttemptId, _: u64) -> Event {
        Event::TimeUp(None)
    }

    async fn load(&mut self) -> Event {
        Event::Copy(Ok(None))
    }

    async fn parts(&mut self, until: Mono) -> Event {
        if let Some(begin) = self.begin.take() {
            self.under_way = begin(until).into_iter().map(|part| Some(Box::pin(part))).collect();
            self.came = self.under_way.iter().map(|_| None).collect();
        }
        // Each is polled whenever any of them moves: there are few.
        poll_fn(|context| {
            for (number, (slot, came)) in self.under_way.iter_mut().zip(&mut self.came).enumerate() {
                if let Some(part) = slot
                    && let Poll::Ready(part) = part.as_mut().poll(context)
                {
                    *slot = None;
                    let facts = part.facts;
                    *came = Some(part);
                    return Poll::Ready(Event::Part { number, facts });
                }
            }
            Poll::Pending
        })
        .await
    }
}
