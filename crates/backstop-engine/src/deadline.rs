//! One deadline for the whole request, with shares that only later phases may use.
//!
//! ```text
//! head complete                                                          deadline
//! |---- attempt: queue, connect, send, head, body ----|-- alternative --|-- reply --|
//! ```
//! The attempt ends where the reserved shares begin, so an alternative can always still be looked up and sent in time.
//! No phase starts once its share is over ([`Deadline::may_start`]): a timer that polls the work first and the clock
//! second would start work after the end.

use std::time::Duration;

use crate::time::Mono;

/// Part of the deadline kept for sending the answer: 1 % of it, from 1 ms to 10 ms.
///
/// Small on purpose: an answer that comes shortly before the end is still a normal answer.
pub fn reply_share(total: Duration) -> Duration {
    share(total)
}

/// Part of the deadline kept for an alternative, on routes that have one: 1 % of it, from 1 ms to 10 ms.
///
/// A copy in memory takes microseconds, one on disk a fraction of a millisecond.
pub fn alternative_share(total: Duration) -> Duration {
    share(total)
}

/// Part of the deadline kept for writing down what came of an operation: 5 % of it, from 1 ms to 100 ms.
///
/// A sync takes from a tenth of a millisecond to tens of them, and whoever waits for its answer waits for that too.
pub fn record_share(total: Duration) -> Duration {
    (total / 20).clamp(Duration::from_millis(1), Duration::from_millis(100)).min(total / 4)
}

fn share(total: Duration) -> Duration {
    (total / 100).clamp(Duration::from_millis(1), Duration::from_millis(10)).min(total / 4)
}

/// The end of one request, and the shares before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    end: Mono,
    alternative_end: Mono,
    attempt_end: Mono,
}

impl Deadline {
    /// A deadline `total` after `start`, with the alternative's share reserved if there is an alternative.
    pub fn new(start: Mono, total: Duration, has_alternative: bool) -> Self {
        let reserved = if has_alternative { alternative_share(total) } else { Duration::ZERO };
        Self::with_reserve(start, total, reserved)
    }

    /// A deadline `total` after `start`, with so much of it kept for what comes after the attempt.
    pub fn with_reserve(start: Mono, total: Duration, reserved: Duration) -> Self {
        let end = start.after(total);
        let alternative_end = end.before(reply_share(total));
        Self { end, alternative_end, attempt_end: alternative_end.before(reserved) }
    }

    /// The moment at which the client must have its last byte.
    pub const fn end(&self) -> Mono {
        self.end
    }

    /// The moment until which an alternative may be waited for: what is left then is for sending it.
    pub const fn alternative_end(&self) -> Mono {
        self.alternative_end
    }

    /// The moment at which the call of the dependency must be over.
    pub const fn attempt_end(&self) -> Mono {
        self.attempt_end
    }

    /// Whether a phase of the attempt may still start.
    pub fn may_start(&self, now: Mono) -> bool {
        now < self.attempt_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// By hand: 300 ms leaves 3 ms for the reply and 3 ms for the alternative.
    #[test]
    fn shares_are_reserved_from_the_end() {
        let start = Mono::from_ns(1000 * MS);
        let total = Duration::from_millis(300);
        let with = Deadline::new(start, total, true);
        assert_eq!((with.end().as_ns(), with.attempt_end().as_ns()), (1300 * MS, 1294 * MS));
        assert_eq!(with.alternative_end().as_ns(), 1297 * MS);
        let without = Deadline::new(start, total, false);
        assert_eq!((without.end().as_ns(), without.attempt_end().as_ns()), (1300 * MS, 1297 * MS));
    }

    /// By hand: a twentieth, from 1 ms to 100 ms, and no more than a quarter.
    #[test]
    fn a_record_has_a_twentieth_within_limits() {
        for (total_us, share_us) in
            [(10_000_000, 100_000), (300_000, 15_000), (20_000, 1000), (2000, 500), (0, 0)]
        {
            let share = record_share(Duration::from_micros(total_us));
            assert_eq!(share, Duration::from_micros(share_us), "{total_us}");
        }
    }

    #[test]
    fn nothing_starts_at_the_end_of_its_share() {
        let deadline = Deadline::new(Mono::from_ns(0), Duration::from_millis(300), true);
        assert!(deadline.may_start(Mono::from_ns(294 * MS - 1)));
        assert!(!deadline.may_start(Mono::from_ns(294 * MS)));
        assert!(!deadline.may_start(Mono::MAX));
    }

    /// A tiny or huge deadline keeps an attempt share of at least half of it.
    #[test]
    fn shares_never_eat_the_deadline() {
        for total_ns in [1, 2, 3, 1000, MS, 10 * MS, 1000 * MS, u64::MAX / 2] {
            let total = Duration::from_nanos(total_ns);
            let deadline = Deadline::new(Mono::from_ns(0), total, true);
            assert!(deadline.attempt_end().as_ns() >= total_ns / 2, "{total_ns}");
            assert!(deadline.attempt_end() <= deadline.end());
            assert!(deadline.end().as_ns() - deadline.attempt_end().as_ns() <= 20 * MS);
        }
    }
}
