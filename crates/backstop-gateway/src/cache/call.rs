//! One command, from its caller to its outcome.
//!
//! - It has a place among the commands under way on its thread, or is refused at once.
//! - It ends with its own time, whatever the server, the network or the library does.
//! - It is sent once. After that the server has it, whoever still waits: so a command whose caller left, or had less time
//!   than a command has, keeps its place until the answer comes or a command's time is over.
//! - A command that had no answer in its whole time ends the connection for new commands. Those that are under way on it
//!   may still be answered; none of them ends earlier for that.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use backstop::clock::Clock;
use backstop_engine::time::Mono;
use redis::{Cmd, RedisError, Value};

use super::connection::{Answering, Connection};
use super::counts::add;
use super::error::CacheError;
use super::link::Found;
use super::open::open;
use super::thread::{Lane, Thread};

/// An answer, and the connection on which it came.
pub(super) type Answered = (Value, Rc<Connection>);

impl Lane {
    /// Sends a command and waits for its answer, at most until the given moment.
    pub(super) async fn command(&self, command: Cmd, until: Mono) -> Result<Answered, CacheError> {
        let shared = self.shared();
        let began = shared.clock.mono();
        if began >= until {
            return Err(CacheError::TooLate);
        }
        let place = Place::take(&self.0).ok_or(CacheError::Full)?;
        let end = until.min(began.after(shared.settings.timeout));
        let (connection, sent) = self.connection(began, end).await?;
        let limit = sent.after(shared.settings.timeout);
        let under_way = UnderWay { answering: connection.ask(command), connection, limit, _place: place };
        let call = Call { lane: self.clone(), under_way: Some(under_way) };
        within(call, &shared.clock, end).await.unwrap_or(Err(CacheError::Timeout))
    }

    /// A connection on which a command may be sent now, and what time it is now.
    async fn connection(&self, now: Mono, end: Mono) -> Result<(Rc<Connection>, Mono), CacheError> {
        let found = self.0.link.borrow_mut().find(now);
        let openings = match found {
            Found::Connection(connection) => return Ok((connection, now)),
            Found::Paused => return Err(CacheError::Paused),
            Found::Wait(openings) => openings,
            Found::Open(openings) => {
                self.spawn(open(self.clone()));
                openings
            }
        };
        let clock = &self.shared().clock;
        let outcome = within(self.0.outcome(openings), clock, end).await;
        let connection = outcome.unwrap_or(Err(CacheError::Connect))?;
        let now = clock.mono();
        if now < end { Ok((connection, now)) } else { Err(CacheError::Connect) }
    }
}

impl Thread {
    async fn outcome(&self, openings: u64) -> Result<Rc<Connection>, CacheError> {
        loop {
            let mut opened = pin!(self.opened.notified());
            opened.as_mut().enable();
            if let Some(outcome) = self.link.borrow().outcome(openings) {
                return outcome;
            }
            opened.await;
        }
    }

    /// A command's answer came, or the connection is lost.
    fn settle(
        &self,
        connection: &Rc<Connection>,
        answer: Result<Value, RedisError>,
    ) -> Result<Value, CacheError> {
        let read = connection.read(answer);
        match read {
            Err(why @ (CacheError::Reset | CacheError::Protocol)) => self.end(connection, why),
            Ok(_) | Err(_) => self.link.borrow_mut().answered(connection),
        }
        read
    }
}

/// A command that is sent when this is first polled. If it is dropped before its answer, the answer is waited for
/// without it.
struct Call {
    lane: Lane,
    /// `None` once it is over.
    under_way: Option<UnderWay>,
}

struct UnderWay {
    answering: Answering,
    connection: Rc<Connection>,
    /// When the connection is given up for want of an answer.
    limit: Mono,
    _place: Place,
}

impl Future for Call {
    type Output = Result<Answered, CacheError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(under_way) = &mut this.under_way else { return Poll::Pending };
        let answer = ready!(under_way.answering.as_mut().poll(context));
        let Some(UnderWay { connection, .. }) = this.under_way.take() else { return Poll::Pending };
        let read = this.lane.0.settle(&connection, answer);
        Poll::Ready(read.map(|value| (value, connection)))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some(under_way) = self.under_way.take() else { return };
        let thread = &self.lane.0;
        if thread.now() >= under_way.limit {
            thread.end(&under_way.connection, CacheError::Timeout);
        } else {
            add(&thread.tally.abandoned);
            let lane = self.lane.clone();
            self.lane.spawn(async move { under_way.abandoned(&lane).await });
        }
    }
}

impl UnderWay {
    async fn abandoned(self, lane: &Lane) {
        match within(self.answering, &lane.shared().clock, self.limit).await {
            Some(answer) => {
                let _nobody_waits = lane.0.settle(&self.connection, answer);
            }
            None => lane.0.end(&self.connection, CacheError::Timeout),
        }
    }
}

/// A place among the commands under way on a thread.
struct Place(Rc<Thread>);

impl Place {
    fn take(thread: &Rc<Thread>) -> Option<Self> {
        // Only this thread writes the number, so nothing comes between.
        let in_flight = &thread.tally.in_flight;
        let most = u64::from(thread.shared.settings.max_in_flight);
        (in_flight.load(Ordering::Relaxed) < most).then(|| {
            add(in_flight);
            Self(Rc::clone(thread))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.tally.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs some work until it ends or its time is over. What needs no waiting is done even at the last moment.
pub(super) async fn within<F: Future>(work: F, clock: &Clock, until: Mono) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = work => Some(output),
        () = clock.sleep_until(until) => None,
    }
}
