//! Keeps the pace: hands over each request when its intended time has come.
//!
//! Runs on a thread that does nothing else. The intended times are computed from the start of the run, so a late
//! wake-up hands over everything that is due and shifts nothing.

use std::{sync::atomic::Ordering, thread, time::Duration};

use crate::clock::monotonic_ns;

use super::{kind::Turns, queue::Job, run::Shared};

/// Longest sleep, so that a run that is stopped ends soon.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// Offers every request of the run, then returns.
pub(crate) fn keep(shared: &Shared) {
    let mut turns = Turns::new(&shared.plan.kinds);
    let mut taken = vec![0_usize; shared.prepared.len()];
    for sequence in 0..shared.plan.requests() {
        let intended_ns = shared.started_ns + nanoseconds(shared.plan.intended(sequence));
        while let Some(left) = intended_ns.checked_sub(monotonic_ns()).filter(|&left| left > 0) {
            if shared.stopped.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(Duration::from_nanos(left).min(SLEEP_MAX));
        }
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let kind = turns.next();
        let request = taken[kind] % shared.prepared[kind].requests.len();
        taken[kind] = taken[kind].wrapping_add(1);
        shared.tally().offered(kind);
        if !shared.queue.push(Job { sequence, kind, request, intended_ns }) {
            shared.tally().excess(kind);
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
