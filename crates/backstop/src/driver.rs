//! The only place where a flow's steps become waiting.
//!
//! [`drive`] asks the [`Flow`] what to do, has the [`Hands`] do it within its time, and reports what came of it, until the
//! flow has decided. Hands know what a request is (an HTTP exchange, a plain function call); they decide nothing.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backstop_engine::admission::{ClassShare, OnRelease};
use backstop_engine::engine::Engine;
use backstop_engine::failure::{Cause, Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{
    Attempt, AttemptId, Authorization, Cached, Came, Consulted, Decision, Event, Filled, Flow, Recorded, Step,
};
use backstop_engine::policy::DependencyId;
use backstop_engine::snapshot::CopyFacts;
use backstop_engine::time::Mono;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::upload::UploadWatch;
use crate::upstream::Progress;

/// What a driver needs done. Whatever runs over its time is dropped.
pub(crate) trait Hands {
    /// Finds out whether the caller may.
    fn authorize(
        &mut self,
        _attempt: Option<Attempt>,
        _progress: &Progress,
    ) -> impl Future<Output = Authorization> {
        async { Authorization::Unclear }
    }

    /// What is known of the copy, from memory alone.
    fn peek(&mut self) -> Option<CopyFacts>;

    /// Asks the route's cache.
    fn lookup(&mut self, _until: Mono) -> impl Future<Output = Event> {
        async { Event::Cached(Cached::NotAsked) }
    }

    /// Has the dependency read for everybody who asks for the same, or waits for such a read.
    fn join(&mut self, _waiters: u32) -> impl Future<Output = Event> {
        async { Event::Filled(Filled::Apart) }
    }

    /// Whether the read that [`Hands::join`] waited for has reached the dependency, or still waited for its turn.
    fn was_sent(&self) -> bool {
        false
    }

    /// Calls the dependency.
    fn call(&mut self, attempt: Attempt, progress: &Progress) -> impl Future<Output = Event>;

    /// Lets go of an answer that is not used. Its place at the dependency comes back with its last byte, so a short rest is
    /// read; dropped before, the call is an abandoned one.
    fn let_go(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Holds the answer back until it is complete.
    fn collect(&mut self, attempt: AttemptId, limit_bytes: u64) -> impl Future<Output = Event>;

    /// Begins what parts there are, on its first call, and waits for the next that comes.
    fn parts(&mut self, _until: Mono) -> impl Future<Output = Event> {
        std::future::ready(Event::TimeUp(None))
    }

    /// What the ledger has for the operation.
    fn consult(&mut self) -> impl Future<Output = Consulted> {
        std::future::ready(Consulted::Nothing)
    }

    /// Writes down what came of the operation's one forward.
    fn record(&mut self, _came: Came) -> impl Future<Output = Recorded> {
        std::future::ready(Recorded::Nothing)
    }

    /// That was not done in time.
    fn not_recorded(&self) -> Recorded {
        Recorded::Nothing
    }

    /// Fetches the copy.
    fn load(&mut self) -> impl Future<Output = Event>;
}

/// A flow under way. Dropped with a call under way, its client has left: the call ends with that moment.
struct UnderWay<'a> {
    flow: &'a mut Flow,
    clock: &'a Clock,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.flow.is_calling() {
            self.flow.given_up(self.clock.now().mono);
        }
    }
}

/// A read for many that was sent and not answered in the time of one of those who wait for it.
const UNANSWERED: Failure = Failure::new(FailureKind::ReadTimeout, Phase::Head, Sent::Maybe);

/// The least time for which a failed answer is read to its end before its call is made again, which may need its place.
const LET_GO: Duration = Duration::from_millis(10);

/// Runs a request to its decision.
pub(crate) async fn drive<H: Hands>(
    flow: &mut Flow,
    hands: &mut H,
    clock: &Clock,
    waiters: &Waiters,
    upload: Option<&UploadWatch>,
) -> Decision {
    let under_way = UnderWay { flow, clock };
    let flow = &mut *under_way.flow;
    loop {
        let event = match flow.step(clock.now()) {
            Step::Done(decision) => return decision,
            Step::Authorize { until, attempt } => {
                let progress = Progress::new();
                let came = within(hands.authorize(attempt, &progress), clock, until).await;
                Event::Authorized(came.unwrap_or_else(|| match progress.time_up() {
                    Cause::Failed(failure) => Authorization::Failed(failure),
                    Cause::NotAsked(reason) => Authorization::NotAsked(reason),
                }))
            }
            Step::Peek => Event::Known(hands.peek()),
            Step::Lookup { until } => {
                within(hands.lookup(until), clock, until).await.unwrap_or(Event::TimeUp(None))
            }
            Step::Join { until, waiters } => {
                let event = within(hands.join(waiters), clock, until).await;
                event.unwrap_or_else(|| Event::TimeUp(hands.was_sent().then_some(UNANSWERED)))
            }
            Step::Wait { until, dependency, class } => {
                let released = within(waiters.released(dependency, class), clock, until).await;
                released.map_or(Event::TimeUp(None), |()| Event::Released)
            }
            Step::Attempt(attempt) => {
                let (id, progress) = (attempt.id, Progress::new());
                let call = hands.call(attempt, &progress);
                let event = within_attempt(call, flow, clock, upload).await;
                event.unwrap_or_else(|| match progress.time_up() {
                    Cause::Failed(failure) => Event::TimeUp(Some(failure)),
                    Cause::NotAsked(reason) => Event::NotAsked { attempt: id, reason },
                })
            }
            Step::Collect { attempt, limit_bytes, .. } => {
                // What answers before it has the whole request waits for the client too, to its answer's end.
                let event = within_attempt(hands.collect(attempt, limit_bytes), flow, clock, upload).await;
                event.unwrap_or(Event::TimeUp(None))
            }
            Step::Pause { until } => {
                let patience = until.max(clock.mono().after(LET_GO));
                let _else_it_goes_on_occupying = within(hands.let_go(), clock, patience).await;
                clock.sleep_until(until).await;
                Event::TimeUp(None)
            }
            Step::Parts { until } => {
                let event = within(hands.parts(until), clock, until).await;
                event.unwrap_or(Event::TimeUp(None))
            }
            Step::Load { until } => {
                let event = within(hands.load(), clock, until).await;
                event.unwrap_or(Event::Copy(Err(())))
            }
            Step::Consult { until } => {
                let known = within(hands.consult(), clock, until).await;
                known.map_or(Event::TimeUp(None), Event::Consulted)
            }
            Step::Record { came, until } => {
                let recorded = within(hands.record(came), clock, until).await;
                Event::Recorded(recorded.unwrap_or_else(|| hands.not_recorded()))
            }
            // Steps that this version's flows never take.
            _ => Event::TimeUp(None),
        };
        flow.on(event, clock.now());
    }
}

/// Runs some work until it ends or its time is over. What needs no waiting is done even at the last moment.
pub(crate) async fn within<F: Future>(work: F, clock: &Clock, until: Mono) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut end = clock.sleep_until(until);
    poll_fn(|context| {
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        Pin::new(&mut end).poll(context).map(|()| None)
    })
    .await
}

/// As [`within`], until the flow's attempt must be over. That moment moves back while the client keeps us waiting for its
/// own bytes, which is no fault of the dependency.
async fn within_attempt(
    work: impl Future<Output = Event>,
    flow: &mut Flow,
    clock: &Clock,
    upload: Option<&UploadWatch>,
) -> Option<Event> {
    let mut uploading = Uploading { flow, clock, upload };
    let mut work = pin!(work);
    let mut end = clock.sleep_until(uploading.flow.attempt_end());
    let mut has_waited = false;
    poll_fn(|context| {
        // The flow has just allowed the first step. After any wait the clock is asked first: work that is polled once
        // its time is over could still begin something.
        let looks_first = std::mem::replace(&mut has_waited, true);
        if !looks_first && let Poll::Ready(event) = work.as_mut().poll(context) {
            return Poll::Ready(Some(event));
        }
        while Pin::new(&mut end).poll(context).is_ready() {
            let now = uploading.report();
            let later = uploading.flow.attempt_end();
            if later <= now {
                return Poll::Ready(None);
            }
            end.reset(later);
        }
        if looks_first { work.as_mut().poll(context).map(Some) } else { Poll::Pending }
    })
    .await
}

/// An attempt during which the client may still be sending the request's content. However it ends, with an answer, at its
/// time, or dropped because the client left, the flow learns how long it was the client who kept it waiting.
struct Uploading<'a> {
    flow: &'a mut Flow,
    clock: &'a Clock,
    upload: Option<&'a UploadWatch>,
}

impl Uploading<'_> {
    fn report(&mut self) -> Mono {
        let now = self.clock.now();
        let waited = self.upload.map_or(Duration::ZERO, |upload| upload.waited(now.mono));
        self.flow.on(Event::ClientWaited(waited), now);
        now.mono
    }
}

impl Drop for Uploading<'_> {
    fn drop(&mut self) {
        if self.upload.is_some() {
            self.report();
        }
    }
}

/// Those who wait for a place at a dependency, one queue for each class of each.
#[derive(Debug)]
pub(crate) struct Waiters(Box<[Arc<Queues>]>);

#[derive(Debug, Default)]
struct Queues([Notify; ClassShare::ALL.len()]);

impl Queues {
    fn of(&self, class: ClassShare) -> Option<&Notify> {
        self.0.get(class as usize)
    }
}

impl OnRelease for Queues {
    fn released(&self, class: ClassShare) {
        if let Some(queue) = self.of(class) {
            queue.notify_one();
        }
    }
}

impl Waiters {
    pub(crate) fn of(engine: &Engine) -> Self {
        let queue = |limit: &Arc<backstop_engine::admission::Limit>| {
            let queues = Arc::new(Queues::default());
            limit.notify_with(Arc::clone(&queues) as Arc<dyn OnRelease>);
            queues
        };
        Self(engine.dependencies().iter().map(|dependency| queue(&dependency.in_flight)).collect())
    }

    /// Ends when a place may be free. A release that comes before anybody listens is kept for the next who does.
    async fn released(&self, dependency: DependencyId, class: ClassShare) {
        let queues = self.0.get(usize::from(dependency.0));
        if let Some(queue) = queues.and_then(|queues| queues.of(class)) {
            queue.notified().await;
        }
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
