//! A request that was handed over, and what becomes of it if nobody waits for its answer any more.
//!
//! - The dependency does not know that the client left or that the time is up: it goes on working. So the call goes on
//!   occupying its place at the dependency, the permit and the connection alike, until the answer has come and was
//!   read, or the other side closes, or the hold ends. Then the permit goes back. It makes no difference how far the
//!   answer has come: a call may be given up before its head or in the middle of its body.
//! - An answer that was read to its end, and is not too large for that, leaves the connection usable.
//! - The request's body goes on being sent meanwhile, as far as the client goes on providing it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop::upstream::Progress;
use backstop_engine::failure::Phase;
use backstop_engine::flow::Places;
use backstop_engine::time::Mono;
use backstop_store::ledger::checkpoint::{Checkpoint, pass};
use http::{Request, Response};

use super::counts::{Closed, Timed, add};
use super::exchange::{Answering, Broken, Received};
use super::lease::Lease;
use super::upload::{RequestBody, Upload, Watch};

/// How long an abandoned call may go on occupying the dependency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    length: Option<Duration>,
    end: Mono,
    /// When the request was handed over, and when it was sent.
    handed_over: Mono,
    sent: Mono,
}

impl Hold {
    /// So long, or until the request's own end. The request is handed over now.
    pub(super) fn new(length: Option<Duration>, end: Mono, now: Mono) -> Self {
        Self { length, end, handed_over: now, sent: now }
    }

    /// The request's end moves back while the client keeps us waiting for its own bytes, so the time that sending took
    /// is added to it.
    fn until(self, abandoned_at: Mono, watch: &Watch) -> Mono {
        let sent = if watch.is_sent() { self.sent } else { abandoned_at };
        self.length.map_or(self.end.after(self.handed_over.until(sent)), |length| abandoned_at.after(length))
    }
}

/// What a call occupies.
pub(super) struct Occupied<B> {
    pub(super) lease: Lease<B>,
    pub(super) places: Places,
}

/// What is still to come of an answer.
pub(super) enum Rest<B> {
    /// All of it.
    Answer(Answering<B>),
    /// Its body from here on.
    Body(Received),
}

/// A request under way.
pub(super) struct UnderWay<B> {
    pub(super) rest: Rest<B>,
    pub(super) watch: Watch,
    pub(super) hold: Hold,
    pub(super) occupied: Occupied<B>,
}

/// A request under way, up to the head of its answer.
pub(super) struct Handed<'p, B: RequestBody> {
    /// `None` once it is over.
    under_way: Option<UnderWay<B>>,
    progress: &'p Progress,
}

impl<'p, B: RequestBody> Handed<'p, B> {
    /// Hands a request over.
    pub(super) fn over(
        request: Request<Upload<B>>,
        mut occupied: Occupied<B>,
        hold: Hold,
        progress: &'p Progress,
    ) -> Self {
        progress.enter(Phase::Send);
        let watch = request.body().watch();
        let answering = occupied.lease.send(request);
        let under_way =
            answering.map(|answering| UnderWay { rest: Rest::Answer(answering), watch, hold, occupied });
        Self { under_way, progress }
    }
}

impl<B: RequestBody> Future for Handed<'_, B> {
    type Output = (Result<Response<Received>, Broken<B>>, Occupied<B>, Hold);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(UnderWay { rest: Rest::Answer(answering), watch, hold, occupied }) = &mut this.under_way
        else {
            return Poll::Pending;
        };
        let lane = occupied.lease.lane();
        if this.progress.phase() == Phase::Send && watch.poll_ended(context).is_ready() {
            this.progress.enter(Phase::Head);
            if watch.has_body() {
                pass(Checkpoint::ForwardSent);
                hold.sent = lane.shared().clock.mono();
                lane.tally().took(Timed::Send, hold.handed_over, hold.sent);
            }
        }
        let answer = ready!(occupied.lease.poll_answer(answering, watch, context));
        let now = lane.shared().clock.mono();
        lane.tally().took(Timed::Head, hold.sent, now);
        if !watch.is_sent() {
            // Answered before it was sent wholly: what it takes from here on is not told apart.
            hold.sent = now;
        }
        match this.under_way.take() {
            Some(over) => Poll::Ready((answer, over.occupied, over.hold)),
            None => Poll::Pending,
        }
    }
}

impl<B: RequestBody> Drop for Handed<'_, B> {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            under_way.abandon();
        }
    }
}

impl<B: RequestBody> UnderWay<B> {
    /// Nobody waits for it any more.
    pub(super) fn abandon(self) {
        let lane = self.occupied.lease.lane().clone();
        let until = self.hold.until(lane.shared().clock.mono(), &self.watch);
        lane.spawn(self.drain(until));
    }

    async fn drain(self, until: Mono) {
        let Self { rest, watch, occupied, .. } = self;
        let lane = occupied.lease.lane().clone();
        add(&lane.tally().abandoned);
        let limit = lane.shared().settings.drain_bytes;
        let reusable = tokio::select! {
            biased;
            reusable = read_to_end(rest, &watch, &occupied.lease, limit) => reusable,
            () = lane.shared().clock.sleep_until(until) => None,
        };
        let Occupied { lease, places } = occupied;
        match reusable {
            Some(reusable) => lease.finish(reusable),
            None => lease.close(Closed::Abandoned),
        }
        add(&lane.tally().abandoned_ended);
        drop(places);
    }
}

/// Whether the connection may be used again, or `None` if the answer did not come to its end.
async fn read_to_end<B: RequestBody>(
    rest: Rest<B>,
    watch: &Watch,
    lease: &Lease<B>,
    limit: u64,
) -> Option<bool> {
    let mut body = match rest {
        Rest::Answer(mut answering) => {
            poll_fn(|context| lease.poll_answer(&mut answering, watch, context)).await.ok()?.into_body()
        }
        Rest::Body(body) => body,
    };
    let mut read = 0_u64;
    while !body.is_end() {
        match poll_fn(|context| body.poll_frame(context)).await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) => return None,
            None => break,
        }
        if read > limit {
            return None;
        }
    }
    Some(body.is_reusable() && watch.is_sent())
}
