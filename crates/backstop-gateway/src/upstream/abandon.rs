//! A request that was handed over, and what becomes of it if nobody waits for its answer any more.
//!
//! - The dependency does not know that the client left or that the time is up: it goes on working. So the call goes on
//!   occupying its place at the dependency, the permit and the connection alike, until the answer has come and was
//!   read, or the other side closes, or the hold ends. Then the permit goes back.
//! - An answer that was read to its end, and is not too large for that, leaves the connection usable.
//! - The request's body goes on being sent meanwhile, as far as the client goes on providing it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop::upstream::Progress;
use backstop_engine::failure::Phase;
use backstop_engine::flow::Places;
use backstop_engine::time::Mono;
use http::{Request, Response};

use super::counts::{Closed, Timed, add};
use super::exchange::{Answering, Broken, Received};
use super::lease::Lease;
use super::upload::{RequestBody, Upload, Watch};

/// How long an abandoned call may go on occupying the dependency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) length: Option<Duration>,
    pub(super) end: Mono,
}

impl Hold {
    /// The request's end moves back while the client keeps us waiting for its own bytes, so the time that sending took
    /// is added to it.
    fn until(self, abandoned_at: Mono, sending: Duration) -> Mono {
        self.length.map_or(self.end.after(sending), |length| abandoned_at.after(length))
    }
}

/// What a call occupies.
pub(super) struct Occupied<B> {
    pub(super) lease: Lease<B>,
    pub(super) places: Places,
}

/// A request under way, up to the head of its answer.
pub(super) struct Handed<'p, B: RequestBody> {
    /// `None` once it is over.
    under_way: Option<UnderWay<B>>,
    progress: &'p Progress,
    handed_over: Mono,
    sent: Mono,
}

struct UnderWay<B> {
    answering: Answering<B>,
    watch: Watch,
    hold: Hold,
    occupied: Occupied<B>,
}

impl<'p, B: RequestBody> Handed<'p, B> {
    /// Hands a request over.
    pub(super) fn over(
        request: Request<Upload<B>>,
        mut occupied: Occupied<B>,
        hold: Hold,
        progress: &'p Progress,
        now: Mono,
    ) -> Self {
        progress.enter(Phase::Send);
        let watch = request.body().watch();
        let answering = occupied.lease.send(request);
        let under_way = answering.map(|answering| UnderWay { answering, watch, hold, occupied });
        Self { under_way, progress, handed_over: now, sent: now }
    }
}

impl<B: RequestBody> Future for Handed<'_, B> {
    type Output = (Result<Response<Received>, Broken<B>>, Occupied<B>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(UnderWay { answering, watch, occupied, .. }) = &mut this.under_way else {
            return Poll::Pending;
        };
        let lane = occupied.lease.lane();
        if this.progress.phase() == Phase::Send && watch.poll_ended(context).is_ready() {
            this.progress.enter(Phase::Head);
            if watch.has_body() {
                this.sent = lane.shared().clock.mono();
                lane.tally().took(Timed::Send, this.handed_over, this.sent);
            }
        }
        let answer = ready!(occupied.lease.poll_answer(answering, watch, context));
        lane.tally().took(Timed::Head, this.sent, lane.shared().clock.mono());
        match this.under_way.take() {
            Some(over) => Poll::Ready((answer, over.occupied)),
            None => Poll::Pending,
        }
    }
}

impl<B: RequestBody> Drop for Handed<'_, B> {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            let lane = under_way.occupied.lease.lane().clone();
            let now = lane.shared().clock.mono();
            let sent = if under_way.watch.is_sent() { self.sent } else { now };
            let until = under_way.hold.until(now, self.handed_over.until(sent));
            lane.spawn(under_way.drain(until));
        }
    }
}

impl<B: RequestBody> UnderWay<B> {
    async fn drain(mut self, until: Mono) {
        let lane = self.occupied.lease.lane().clone();
        add(&lane.tally().abandoned);
        let reusable = tokio::select! {
            biased;
            reusable = self.read_to_end(lane.shared().settings.drain_bytes) => reusable,
            () = lane.shared().clock.sleep_until(until) => None,
        };
        let Occupied { lease, places } = self.occupied;
        match reusable {
            Some(reusable) => lease.finish(reusable),
            None => lease.close(Closed::Abandoned),
        }
        add(&lane.tally().abandoned_ended);
        drop(places);
    }

    /// Whether the connection may be used again, or `None` if the answer did not come to its end.
    async fn read_to_end(&mut self, limit: u64) -> Option<bool> {
        let Self { answering, watch, occupied, .. } = self;
        let answer = std::future::poll_fn(|context| occupied.lease.poll_answer(answering, watch, context));
        let mut body = answer.await.ok()?.into_body();
        let mut read = 0_u64;
        while !body.is_end() {
            match std::future::poll_fn(|context| body.poll_frame(context)).await {
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
}
