//! When who was refused may come back: one slot each, so that the answer to an outage is no second one.
//!
//! Telling everybody the moment of recovery brings everybody at that moment. So each refusal gets a *slot* of its own,
//! one after the other, at the pace of what can be served *besides* the usual demand: of the capacity that is spare,
//! [half](SHARE_OF_SPARE) is given to those who come back, and the rest is left for what nobody foresaw.
//!
//! ```text
//! start = max(now + 1 s, known moment of recovery)
//! next  = max(next, start) + 1 / (spare / 2)
//! Retry-After = whole seconds until next, rounded up
//! ```
//! Rounding up never brings anybody before its slot, and less than one second after it. It also brings those who were
//! refused close together back close together, within the same second: the pace holds over seconds, not within one,
//! and the limits take care of the rest.
//!
//! A slot more than [two minutes](LATEST) away is not given, nor one without spare capacity: then the field is left out,
//! as RFC 9110 section 10.2.3 allows. The field is advice: it takes the place of no limit.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

/// The share of spare capacity that is promised to those who come back.
pub const SHARE_OF_SPARE: f64 = 0.5;

/// The furthest slot that is given.
pub const LATEST: Duration = Duration::from_secs(120);

const SECOND_NS: u64 = 1_000_000_000;

/// The slots of one resource: what it has to spare is promised once, whoever of its users refuses.
#[derive(Debug)]
pub struct Slots {
    next_ns: AtomicU64,
}

impl Slots {
    /// No slot given yet.
    pub fn new() -> Self {
        Self { next_ns: AtomicU64::new(0) }
    }

    /// The `Retry-After` of one refusal, in seconds (at least 2), or `None` where it is left out.
    ///
    /// `known_up` is when service is expected: the end of a break, or `now` where a limit refused. `spare_per_second`
    /// is the verified capacity less the usual demand; where several gateways share it, this one's part.
    pub fn assign(&self, now: Mono, known_up: Mono, spare_per_second: f64) -> Option<u32> {
        let slot = self.slot(now, known_up, spare_per_second)?;
        u32::try_from(slot.as_ns().saturating_sub(now.as_ns()).div_ceil(SECOND_NS)).ok()
    }

    fn slot(&self, now: Mono, known_up: Mono, spare_per_second: f64) -> Option<Mono> {
        let step = step_ns(spare_per_second)?;
        let start = now.after(Duration::from_secs(1)).max(known_up).as_ns();
        let latest = now.after(LATEST).as_ns();
        let mut slot = 0;
        let given = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            slot = next.max(start).checked_add(step)?;
            // A slot that nobody is told must not push those behind it further away.
            (slot <= latest).then_some(slot)
        });
        given.is_ok().then_some(Mono::from_ns(slot))
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::new()
    }
}

/// From one slot to the next; at least 1 ns, so that no two are the same.
fn step_ns(spare_per_second: f64) -> Option<u64> {
    if !spare_per_second.is_finite() || spare_per_second <= 0.0 {
        return None;
    }
    let step = SECOND_NS as f64 / (SHARE_OF_SPARE * spare_per_second);
    Some((step.ceil() as u64).max(1))
}

#[cfg(test)]
#[path = "retry_after_tests.rs"]
mod tests;
