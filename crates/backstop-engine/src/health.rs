//! One dependency's memory of failures, and its manners on the way back.
//!
//! | phase | what is let through | what ends it |
//! |---|---|---|
//! | closed | everything | a trip: too large a share of failed or slow calls, or ten failures in a row within 5 s |
//! | open | nothing | its time; then the first safe call is a probe |
//! | half open | as many probes at once as accepted | enough successes: ramp; one failure, slow or lost probe: open |
//! | ramp | a share of what there was before the incident | full traffic: watch; a trip, or three red ticks: open |
//! | watch | everything, for a minute | its time: closed; a trip: open |
//! | forced open | nothing | an operator |
//! | forced closed | everything | an operator |
//!
//! Without rules for the recovery, enough successes close it at once. Without rules for the breaker it is always closed
//! (unless forced) and still counts.
//!
//! **Generations.** Every change of phase begins a new generation. A call carries the one it was admitted under; what
//! comes of it after that generation changes nothing: an old failure does not open what has just closed, and an old
//! success does not close what has just opened.
//!
//! **What counts.** Calls count when they end. Failures are those of the dependency; an answer about the request (404,
//! 401, a schema error) is a call like any other. A call is slow if it lasted longer than accepted, whatever came of it.
//! A call that its client gave up says nothing, unless it was slow by then. Time in which the client keeps a call waiting
//! for the request's own content is none of the call's, and a request that is itself at fault says nothing at all. An
//! answer that streams counts when it ends or is slow; only one that may have no end counts when it begins. A refusal is
//! no call.
//!
//! **Probes** are safe requests only. A probe that gets no success (an answer about the request, a client that left)
//! decides nothing. Its slot comes back with the answer; a client that left gives none, so then it comes back when what
//! the call takes up at the dependency does. A probe that never ends is a failed one after ten seconds, or twice the time
//! that is slow if that is longer, whoever still waits for it.
//!
//! **Open times** double with each trip, up to a maximum, until it was closed for a minute without more errors than are
//! green in a recovery.
//!
//! Nothing here waits and nothing is locked. The state is one word; everything that is late, early or lost in
//! a race ends as if it had not been tried, and the next call tries again. Time is handed in and nothing happens by
//! itself: what is due is done by the next call, or by whoever asks for the [`Phase`].

mod bands;
mod gate;
mod latency;
mod machine;
mod opening;
mod probe_place;
mod probes;
mod ramp;
mod rate;
mod rules;
mod saved;
mod signals;
mod streak;
mod tagged;
mod tally;
mod ticket;
mod totals;
mod turned;
mod window;
mod word;

use std::sync::Arc;
use std::time::Duration;

use crate::failure::NotAsked;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

use latency::Latency;
use opening::Opening;
use probes::Probes;
use ramp::Ramp;
use rate::Rate;
use signals::Signals;
use streak::Streak;
use totals::Counters;
use window::Window;
use word::{Kind, Order, State, Word};

pub use probe_place::ProbePlace;
pub use rules::{Band, BreakerRules, Forced, PerMille, RecoveryRules};
pub use saved::{Saved, SavedPhase};
pub use signals::Signal;
pub use ticket::Ticket;
pub use totals::Totals;
pub(crate) use turned::Began;
pub use window::WindowCount;

/// How long full traffic is watched before an incident counts as over.
const WATCH: Duration = Duration::from_secs(60);
/// How long of that nothing is retried.
const WATCH_WITHOUT_RETRIES: Duration = Duration::from_secs(10);

/// What a dependency is in: exactly one at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In order.
    Closed,
    /// Not asked.
    Open {
        /// When the first probe may go.
        until: Mono,
    },
    /// Tried with a few calls.
    HalfOpen,
    /// Given a share of what it had.
    Ramp {
        /// The share.
        share: PerMille,
    },
    /// Given everything, and watched.
    Watch {
        /// When it counts as closed.
        until: Mono,
    },
    /// Not asked, by order.
    ForcedOpen,
    /// Asked whatever comes of it, by order.
    ForcedClosed,
}

/// The health of one dependency.
pub struct Health {
    is_breaking: bool,
    rules: BreakerRules,
    recovery: Option<RecoveryRules>,
    fallback_milli: u64,
    state: State,
    /// The latest moment that anybody came with: the time of a call that ends by being dropped.
    seen: AtomicU64,
    /// What the last probe brought along, for a trip that nobody brings any with.
    entropy: AtomicU64,
    /// When a call last failed or was slow.
    bad_at: AtomicU64,
    window: Window,
    streak: Streak,
    rate: Rate,
    latency: Latency,
    opening: Opening,
    /// Since when it is closed and green.
    green_since: AtomicU64,
    watch_until: AtomicU64,
    probes: Probes,
    ramp: Ramp,
    signals: Signals,
    counters: Counters,
}

impl Health {
    /// Closed, unless the rules force it. `fallback_rate_per_s` stands for the calls per second of good times while they are unknown.
    pub fn new(
        breaker: Option<BreakerRules>,
        recovery: Option<RecoveryRules>,
        fallback_rate_per_s: u64,
    ) -> Self {
        let rules = breaker.unwrap_or_default();
        let begins = match rules.forced {
            None => Kind::Closed,
            Some(Forced::Open) => Kind::ForcedOpen,
            Some(Forced::Closed) => Kind::ForcedClosed,
        };
        Self {
            is_breaking: breaker.is_some(),
            rules,
            recovery,
            fallback_milli: fallback_rate_per_s.saturating_mul(1000),
            state: State::new(begins),
            seen: AtomicU64::new(0),
            entropy: AtomicU64::new(0),
            bad_at: AtomicU64::new(0),
            window: Window::new(rules.window),
            streak: Streak::new(),
            rate: Rate::new(),
            latency: Latency::new(),
            opening: Opening::new(),
            green_since: AtomicU64::new(0),
            watch_until: AtomicU64::new(0),
            probes: Probes::new(rules.slow),
            ramp: Ramp::new(),
            signals: Signals::new(),
            counters: Counters::new(),
        }
    }

    /// Whether a call would be refused now, without taking anything. A refusal found here is counted as one: who only
    /// wants to know asks for the [`phase`](Self::phase).
    pub fn refuses(&self, now: Mono, safe: bool) -> Option<NotAsked> {
        self.see(now);
        self.advance(now);
        let word = self.state.load();
        match word.kind() {
            Kind::Closed | Kind::Watch | Kind::ForcedClosed => None,
            Kind::Open if safe && now >= self.opening.until() => None,
            Kind::HalfOpen if safe && word.free_slot(self.slots()).is_some() => None,
            Kind::Ramp if self.ramp.gate.is_open(now, self.interval_ns()) => None,
            Kind::Ramp => Some(self.refused_ramping()),
            Kind::Open | Kind::HalfOpen | Kind::ForcedOpen => Some(self.refused_open()),
        }
    }

    /// Lets a call through, or refuses it at once. Only a `safe` one may be a probe.
    pub fn admit(self: &Arc<Self>, now: Mono, safe: bool, entropy: u64) -> Result<Ticket, NotAsked> {
        self.see(now);
        self.advance(now);
        loop {
            let word = self.state.load();
            let ticket = |generation, slot| Ticket::new(self, generation, slot, now, entropy);
            match word.kind() {
                Kind::Closed => {
                    self.rate.count(now);
                    return Ok(ticket(word.generation(), None));
                }
                Kind::Watch | Kind::ForcedClosed => return Ok(ticket(word.generation(), None)),
                Kind::Ramp if self.ramp.gate.pass(now, self.interval_ns()) => {
                    return Ok(ticket(word.generation(), None));
                }
                Kind::Ramp => return Err(self.refused_ramping()),
                Kind::Open | Kind::HalfOpen | Kind::ForcedOpen => {
                    let Some((slot, to)) = self.next_probe(word, now, safe) else {
                        return Err(self.refused_open());
                    };
                    // Somebody else's change is looked at again: each of them moved something on.
                    if self.state.replace(word, to) {
                        self.probes.begin(to.generation(), slot, now);
                        self.entropy.store(entropy, Ordering::Relaxed);
                        self.counters.probes.add();
                        return Ok(ticket(to.generation(), Some(slot)));
                    }
                }
            }
        }
    }

    /// The slot that a call may take as a probe, and the word with it.
    fn next_probe(&self, word: Word, now: Mono, safe: bool) -> Option<(u32, Word)> {
        if !safe || word.is_moving() {
            return None;
        }
        let word = match word.kind() {
            Kind::HalfOpen => word,
            Kind::Open if now >= self.opening.until() => word.next(Kind::HalfOpen),
            _ => return None,
        };
        let slot = word.free_slot(self.slots())?;
        Some((slot, word.with_slot(slot)))
    }

    /// What it is in.
    pub fn phase(&self, now: Mono) -> Phase {
        self.see(now);
        self.advance(now);
        loop {
            let word = self.state.load();
            let phase = match word.kind() {
                Kind::Closed => Phase::Closed,
                Kind::Open => Phase::Open { until: self.opening.until() },
                Kind::HalfOpen => Phase::HalfOpen,
                Kind::Ramp => Phase::Ramp { share: self.ramp.share() },
                Kind::Watch => Phase::Watch { until: self.watch_until() },
                Kind::ForcedOpen => Phase::ForcedOpen,
                Kind::ForcedClosed => Phase::ForcedClosed,
            };
            // A fact of a later generation does not go with the kind of an earlier one. Each further round has seen a
            // change of phase, or an order.
            let after = self.state.load();
            if (after.generation(), after.kind()) == (word.generation(), word.kind()) {
                return phase;
            }
        }
    }

    /// The present generation.
    pub fn generation(&self) -> u64 {
        u64::from(self.state.load().generation())
    }

    /// Whether a failed call may be tried again: not while it is open or comes back.
    pub fn retries_allowed(&self, now: Mono) -> bool {
        match self.phase(now) {
            Phase::Closed | Phase::ForcedClosed => true,
            Phase::Watch { until } => now.until(until) <= WATCH - WATCH_WITHOUT_RETRIES,
            Phase::Open { .. } | Phase::HalfOpen | Phase::Ramp { .. } | Phase::ForcedOpen => false,
        }
    }

    /// When the next probe may go, if it is open.
    pub fn known_up(&self, now: Mono) -> Option<Mono> {
        match self.phase(now) {
            Phase::Open { until } => Some(until),
            _ => None,
        }
    }

    /// Calls per second before the incident, or as its recovery showed to be wanted since, while it is held back because of
    /// one and that is known.
    pub fn usual_rate(&self) -> Option<f64> {
        match self.state.load().kind() {
            Kind::Open | Kind::HalfOpen | Kind::Ramp | Kind::ForcedOpen => {
                self.rate.frozen_milli().map(|milli| milli as f64 / 1000.0)
            }
            Kind::Closed | Kind::Watch | Kind::ForcedClosed => None,
        }
    }

    /// What of [`Signal::TOKENS`], in that order, is no longer waited for: it came once, and has been missing for a minute
    /// in the present recovery.
    pub fn missing_signals(&self, now: Mono) -> [bool; Signal::TOKENS.len()] {
        match self.phase(now) {
            Phase::Ramp { .. } => self.signals.missing(now),
            _ => [false; Signal::TOKENS.len()],
        }
    }

    /// What the dependency says about itself. Only a recovery looks at it.
    pub fn signal(&self, now: Mono, signal: Signal) {
        self.see(now);
        self.signals.set(now, signal);
    }

    /// The dependency asked not to be called until then. That alone opens nothing; a breaker that is open, or opens
    /// before, stays so at least until then, but no longer than 60 s from now.
    pub fn raise_open(&self, now: Mono, until: Mono) {
        self.see(now);
        self.opening.ask(now, until);
    }

    /// Refuses everything until released.
    pub fn force_open(&self, now: Mono) {
        self.order(now, Order::Open);
    }

    /// Lets everything through until released.
    pub fn force_closed(&self, now: Mono) {
        self.order(now, Order::Closed);
    }

    /// Ends what was forced: closed, with empty counters. What was not forced stays as it is.
    pub fn release(&self, now: Mono) {
        self.order(now, Order::Release);
    }

    /// What the window of the present generation holds.
    pub fn counts(&self, now: Mono) -> WindowCount {
        self.window.count(self.state.load().generation(), now)
    }

    /// What came of everything so far.
    pub fn totals(&self) -> Totals {
        self.counters.totals()
    }

    fn see(&self, now: Mono) {
        if self.seen.load(Ordering::Relaxed) < now.as_ns() {
            self.seen.fetch_max(now.as_ns(), Ordering::Relaxed);
        }
    }

    fn slots(&self) -> u32 {
        self.rules.probes.clamp(1, word::SLOTS)
    }

    fn watch_until(&self) -> Mono {
        Mono::from_ns(self.watch_until.load(Ordering::Acquire))
    }

    /// Between two calls in the ramp.
    fn interval_ns(&self) -> u64 {
        self.ramp.interval_ns(self.baseline_milli())
    }

    /// What is everything in a ramp, in thousandths of a call per second.
    fn baseline_milli(&self) -> u64 {
        self.rate.frozen_milli().unwrap_or(self.fallback_milli)
    }

    fn refused_open(&self) -> NotAsked {
        self.counters.refused_open.add();
        NotAsked::BreakerOpen
    }

    fn refused_ramping(&self) -> NotAsked {
        self.counters.refused_ramping.add();
        NotAsked::Ramping
    }
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health")
            .field("generation", &self.generation())
            .field("kind", &self.state.load().kind())
            .field("totals", &self.totals())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
