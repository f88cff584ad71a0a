//! The shadow of a request: the way that it would have gone.
//!
//! It is the route's own [`respond`], with the exchange that goes on for the client in place of a dependency. There is one of these
//! exchanges, so the shadow asks nobody a second time and nobody else.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop::clock::Clock;
use backstop::upload::UploadWatch;
use backstop::upstream::{BrokenOff, CallError, Progress, Upstream};
use backstop::{Incoming, ReplyBody, respond};
use backstop_engine::failure::{Cause, Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{Account, Attempt};
use backstop_engine::outcome::{Outcome, Source};
use backstop_engine::policy::RouteId;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, request};
use http_body::{Body, Frame};

use super::Unanswered;
use super::decoded::{Decoder, Undecodable};
use super::exchange::{Came, Exchange};
use crate::stack::Thread;

/// What a shadow is cast by.
pub(super) struct Casting {
    pub(super) route: RouteId,
    pub(super) head: request::Parts,
    /// Whether the request has no content.
    pub(super) ends: bool,
    pub(super) upload: Option<Arc<UploadWatch>>,
    pub(super) entropy: u64,
}

/// Decides about a request, and counts what came of it beside what would have come.
pub(super) async fn cast(thread: Rc<Thread>, casting: Casting, exchange: Rc<Exchange>) {
    let Casting { route: id, head, ends, upload, entropy } = casting;
    let shared = &*thread.shared;
    let Some(route) = shared.routes.get(usize::from(id.0)) else { return };
    let rules = &route.protected.state().rules;
    let looks_into = rules.class.read().is_some();
    let asked = Asked {
        exchange: Rc::clone(&exchange),
        clock: shared.clock.clone(),
        connect: route.observed.as_ref().map_or(Duration::MAX, |observed| observed.connect),
        looks_into: looks_into && head.method != Method::HEAD,
        decoded_bytes: rules.class.buffer_bytes(),
    };
    let request =
        Incoming { request: Request::from_parts(head, Likeness { ends }), upload: upload.as_ref(), entropy };
    let begun = shared.clock.mono();
    let response = until_left(&exchange, respond(&route.protected, request, &asked)).await;
    exchange.is_decided();
    let outcome = match response {
        None => Outcome::Abandoned,
        Some(Err(never)) => match never {},
        Some(Ok(response)) => {
            let account = response.extensions().get::<Account>().copied();
            if let Some(account) = account.filter(|account| account.outcome != Outcome::Normal) {
                shared.decisions.note(route.protected.state(), id, &account, shared.clock.mono());
            }
            let decided = account.map_or(Outcome::Normal, |account| account.outcome);
            let is_its_answer = account.is_none_or(|account| account.source == Source::Primary);
            if is_its_answer {
                take(&exchange, response.into_body(), decided).await
            } else {
                drain(response.into_body()).await;
                decided
            }
        }
    };
    exchange.shadow_has_enough();
    exchange.would(outcome);
    // Whoever was not answered in time goes on occupying the dependency, as on the way that it would have gone.
    let hold = rules.abandon_hold.map_or(begun.after(rules.deadline), |hold| shared.clock.mono().after(hold));
    let mut held = shared.clock.sleep_until(hold);
    poll_fn(|context| match exchange.poll_let_go(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => Pin::new(&mut held).poll(context),
    })
    .await;
    exchange.let_go();
    let _left_or_not = poll_fn(|context| exchange.poll_over(context)).await;
    exchange.count(&shared.observed);
}

/// Runs some work until it ends, or the client leaves or the shadow is lost, which end it.
async fn until_left<F: Future>(exchange: &Exchange, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        match (exchange.poll_over(context), exchange.poll_lost(context)) {
            (Poll::Ready(Err(())), _) | (_, Poll::Ready(())) => Poll::Ready(None),
            (Poll::Ready(Ok(())) | Poll::Pending, Poll::Pending) => Poll::Pending,
        }
    })
    .await
}

/// Takes an answer of our own: it is whole, and nobody would have kept it waiting.
async fn drain(body: ReplyBody<Seen>) {
    let mut body = pin!(body);
    while let Some(Ok(_)) = poll_fn(|context| body.as_mut().poll_frame(context)).await {}
}

/// Takes the answer as its client does: no faster than the client asks for it, and not to its end before the client has it. What it
/// comes to.
async fn take(exchange: &Exchange, body: ReplyBody<Seen>, decided: Outcome) -> Outcome {
    let mut body = pin!(body);
    let taken = until_left(exchange, async {
        while !body.is_end_stream() {
            poll_fn(|context| exchange.poll_wanted(context)).await;
            match poll_fn(|context| body.as_mut().poll_frame(context)).await {
                Some(Ok(_)) => {}
                Some(Err(BrokenOff::Dependency(..))) => return Err(Outcome::Failed),
                Some(Err(BrokenOff::Client(_))) => return Err(Outcome::Abandoned),
                None => break,
            }
        }
        Ok(())
    });
    match taken.await {
        None => Outcome::Abandoned,
        Some(Err(outcome)) => outcome,
        Some(Ok(())) => match poll_fn(|context| exchange.poll_over(context)).await {
            Ok(()) => decided,
            Err(()) => Outcome::Abandoned,
        },
    }
}

/// The exchange as a dependency that is called.
struct Asked {
    exchange: Rc<Exchange>,
    clock: Clock,
    /// The longest that the route would have waited for a connection to be established.
    connect: Duration,
    /// Whether the route would have asked for answers that can be looked into.
    looks_into: bool,
    decoded_bytes: u64,
}

impl Asked {
    /// What came of the exchange, or of the time for connecting.
    async fn came(&self, progress: &Progress) -> Came {
        let mut connecting = None;
        poll_fn(|context| {
            let (phase, came) = self.exchange.poll_came(context);
            progress.enter(phase);
            if came.is_ready() || phase != Phase::Connect {
                connecting = None;
                return came;
            }
            let end = self.clock.mono().after(self.connect);
            let time = connecting.get_or_insert_with(|| self.clock.sleep_until(end));
            Pin::new(time).poll(context).map(|()| {
                let failure = Failure::new(FailureKind::ConnectTimeout, Phase::Connect, Sent::No);
                Came::Nothing(Unanswered::Cause(Cause::Failed(failure)))
            })
        })
        .await
    }
}

impl Upstream<Likeness> for Asked {
    type Body = Seen;
    type Error = Infallible;

    async fn call(
        &self,
        attempt: Attempt,
        _request: Request<Likeness>,
        progress: &Progress,
    ) -> Result<Response<Seen>, CallError<Infallible>> {
        self.exchange.hold(attempt.places);
        match self.came(progress).await {
            Came::Answer(mut head) => {
                let has_content = !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
                let looks_into = self.looks_into && has_content;
                let decoder = looks_into.then(|| Decoder::of(&head.headers, self.decoded_bytes)).flatten();
                if decoder.is_some() {
                    Decoder::undress(&mut head.headers);
                }
                let seen = Seen { exchange: Rc::clone(&self.exchange), decoder };
                Ok(Response::from_parts(*head, seen))
            }
            Came::Nothing(Unanswered::Cause(Cause::Failed(failure))) => Err(CallError::Failed(failure)),
            Came::Nothing(Unanswered::Cause(Cause::NotAsked(reason))) => Err(CallError::NotAsked(reason)),
            Came::Nothing(Unanswered::Client(fault)) => Err(CallError::Client(fault)),
        }
    }

    fn fills_its_buffers(&self) -> bool {
        true
    }
}

/// The content of a request as far as the shadow needs it: whether there is any.
struct Likeness {
    ends: bool,
}

impl Body for Likeness {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.ends
    }
}

/// The content of the answer as it comes.
struct Seen {
    exchange: Rc<Exchange>,
    decoder: Option<Decoder>,
}

impl Body for Seen {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let piece = ready!(self.exchange.poll_piece(context));
        let Some(decoder) = &mut self.decoder else {
            return Poll::Ready(piece.map(|piece| piece.map(Frame::data)));
        };
        let decoded = match piece {
            Some(Ok(piece)) => decoder.decode(piece).map(Some),
            Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
            None => decoder.end(),
        };
        match decoded {
            Ok(piece) => Poll::Ready(piece.map(|piece| Ok(Frame::data(piece)))),
            Err(Undecodable) => {
                // The route would have asked for another one, and nobody knows what that would have been.
                self.exchange.lose();
                Poll::Pending
            }
        }
    }
}
