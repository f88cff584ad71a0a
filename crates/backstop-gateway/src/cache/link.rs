//! Whether there is a connection, and when the next one may be opened.
//!
//! One link per thread. Its states, and what leads from one to the next:
//!
//! ```text
//!             wanted, pause over            the server answered
//!   Closed -----------------------> Opening -------------------> Open
//!     ^                                |                           |
//!     +--------------------------------+---------------------------+
//!        it failed (pause begins)            it ended (pause begins)
//! ```
//! - A connection is opened only when a command needs it. Whoever needs it while it is being opened waits for the
//!   outcome; whoever comes during the pause is refused at once.
//! - The pause begins at 10 ms and doubles up to 1 s, each time shortened at random by up to a half, so that gateways
//!   that lost a server together do not come back together. It begins anew once a *command* was answered: a server that
//!   accepts connections and answers nothing else is asked ever less often.
//! - What a connection of earlier does (answers, ends) changes nothing about the present one.

use std::rc::Rc;
use std::time::Duration;

use backstop_engine::time::Mono;

use super::error::CacheError;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A thread's link to the cache; `C` is a connection.
pub(super) struct Link<C> {
    state: State<C>,
    /// Openings that failed and connections that ended since a command was answered last.
    failures: u32,
    /// Openings that have ended.
    openings: u64,
    /// Why the last opening failed.
    why: CacheError,
    /// For the pauses: any number will do, as long as other threads and gateways have other ones.
    entropy: u64,
}

enum State<C> {
    Closed { until: Mono },
    Opening,
    Open(Rc<C>),
}

/// What there is for a command.
pub(super) enum Found<C> {
    /// This.
    Connection(Rc<C>),
    /// The caller is to open one, and to tell the outcome. Then as for [`Found::Wait`].
    Open(u64),
    /// One is being opened: wait until more than so many openings have ended.
    Wait(u64),
    /// Nothing, and nothing is to be tried now.
    Paused,
}

impl<C> Link<C> {
    pub(super) fn new(entropy: u64) -> Self {
        let state = State::Closed { until: Mono::from_ns(0) };
        Self { state, failures: 0, openings: 0, why: CacheError::Connect, entropy }
    }

    pub(super) fn find(&mut self, now: Mono) -> Found<C> {
        match &self.state {
            State::Open(connection) => Found::Connection(Rc::clone(connection)),
            State::Opening => Found::Wait(self.openings),
            State::Closed { until } if now < *until => Found::Paused,
            State::Closed { .. } => {
                self.state = State::Opening;
                Found::Open(self.openings)
            }
        }
    }

    /// What became of an opening, or `None` while it is under way.
    pub(super) fn outcome(&self, openings: u64) -> Option<Result<Rc<C>, CacheError>> {
        match &self.state {
            State::Open(connection) => Some(Ok(Rc::clone(connection))),
            _ if self.openings > openings => Some(Err(self.why)),
            _ => None,
        }
    }

    /// An opening ended.
    pub(super) fn opened(&mut self, opened: Result<Rc<C>, CacheError>, now: Mono) {
        self.openings += 1;
        match opened {
            Ok(connection) => self.state = State::Open(connection),
            Err(why) => {
                self.why = why;
                self.close(now);
            }
        }
    }

    /// A command was answered.
    pub(super) fn answered(&mut self, on: &Rc<C>) {
        if self.is_present(on) {
            self.failures = 0;
        }
    }

    /// A connection is not to be used for new commands any more. Whether it was the present one.
    pub(super) fn ended(&mut self, connection: &Rc<C>, why: CacheError, now: Mono) -> bool {
        let is_present = self.is_present(connection);
        if is_present {
            self.why = why;
            self.close(now);
        }
        is_present
    }

    /// The present connection, which is then no longer there.
    pub(super) fn stop(&mut self) -> Option<Rc<C>> {
        match std::mem::replace(&mut self.state, State::Closed { until: Mono::MAX }) {
            State::Open(connection) => Some(connection),
            State::Opening | State::Closed { .. } => None,
        }
    }

    fn is_present(&self, connection: &Rc<C>) -> bool {
        matches!(&self.state, State::Open(present) if Rc::ptr_eq(present, connection))
    }

    fn close(&mut self, now: Mono) {
        self.failures = self.failures.saturating_add(1);
        self.entropy = scrambled(self.entropy);
        self.state = State::Closed { until: now.after(pause(self.failures, self.entropy)) };
    }
}

fn pause(failures: u32, entropy: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(10);
    let most = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    let half_ns = u64::try_from(most.as_nanos() / 2).unwrap_or(u64::MAX);
    most.saturating_sub(Duration::from_nanos(entropy % half_ns.max(1)))
}

/// The next number of SplitMix64.
fn scrambled(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
