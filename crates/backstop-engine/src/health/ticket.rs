//! One admitted call.
//!
//! It ends exactly once: with what came of it, by being given up, or by being dropped. The latter is a call that was given
//! up at the latest moment that anybody came with.

use std::sync::Arc;
use std::time::Duration;

use super::Health;
use super::machine::{Call, End};
use super::probe_place::ProbePlace;
use super::turned::Began;
use crate::time::Mono;

/// The right to make one call, and the duty to say what came of it.
#[must_use = "a ticket that is dropped is a call that was given up"]
pub struct Ticket {
    health: Arc<Health>,
    call: Call,
    has_ended: bool,
}

impl Ticket {
    pub(super) fn new(
        health: &Arc<Health>,
        generation: u32,
        slot: Option<u32>,
        admitted: Mono,
        entropy: u64,
    ) -> Self {
        let probe = slot.map(|slot| ProbePlace::new(health, generation, slot, admitted));
        let call = Call { generation, probe, admitted, client_waited: Duration::ZERO, entropy };
        Self { health: Arc::clone(health), call, has_ended: false }
    }

    /// So far the client has kept it waiting this long for the request's own content: time that is not the dependency's.
    pub fn client_waited(&mut self, waited: Duration) {
        self.call.client_waited = waited;
    }

    /// It was answered.
    pub fn answered(mut self, now: Mono) {
        self.end(End::Answered, now);
    }

    /// The dependency failed.
    pub fn failed(mut self, now: Mono, entropy: u64) {
        self.call.entropy = entropy;
        self.end(End::Failed, now);
    }

    /// It was answered with something about the request (404, 401, a schema error): no failure, and no success of a
    /// probe.
    pub fn neutral(mut self, now: Mono) {
        self.end(End::Neutral, now);
    }

    /// Its answer has begun, and the rest of it goes to the client as it comes. It counts when it ends ([`Health::completed`],
    /// [`Health::broke_off`]) or is slow ([`Health::waited`]); `well`: as answered, else as neutral.
    ///
    /// Not for a probe, whose place would come back only with the client's last byte.
    pub(crate) fn began(mut self, now: Mono, well: bool) -> Began {
        debug_assert!(!self.is_probe());
        self.has_ended = true;
        let mut began = self.call.began(now, well);
        // Its head may have taken too long already.
        self.health.waited(&mut began, Duration::ZERO, now);
        began
    }

    /// The same, of an answer whose end says nothing: it counts now, and only [`Health::broke_off`] may change that.
    pub(crate) fn counts_now(mut self, now: Mono, well: bool) -> Began {
        let began = self.call.counted(now, well);
        self.end(if well { End::Answered } else { End::Neutral }, now);
        began
    }

    /// The client's own request was at fault: however long it took, nothing is known of the dependency.
    pub fn says_nothing(mut self) {
        self.has_ended = true;
    }

    /// It was given up: whoever waited for it left.
    pub fn given_up(mut self, now: Mono) {
        self.end(End::Abandoned, now);
    }

    /// The call was not made: its place goes back and nothing is counted.
    pub fn unused(mut self) {
        self.has_ended = true;
        self.health.unused(&self.call);
    }

    /// Whether it tries a dependency that was open.
    pub fn is_probe(&self) -> bool {
        self.call.probe.is_some()
    }

    /// A probe's place, to be kept for as long as the dependency works for the call. An answer gives it back at once.
    pub fn probe_place(&self) -> Option<ProbePlace> {
        self.call.probe.clone()
    }

    /// The generation that it was admitted under. What comes of it in a later one changes nothing.
    pub fn generation(&self) -> u64 {
        u64::from(self.call.generation)
    }

    fn end(&mut self, end: End, now: Mono) {
        self.has_ended = true;
        self.health.settle(&self.call, end, now);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.has_ended {
            let now = self.health.latest();
            self.end(End::Abandoned, now);
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("generation", &self.call.generation)
            .field("is_probe", &self.is_probe())
            .field("admitted", &self.call.admitted)
            .finish_non_exhaustive()
    }
}
