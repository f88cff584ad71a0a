//! What is heard of a resource that several dependencies share.
//!
//! A dependency may tell how long its database kept it waiting. That says how the database is, for everybody who uses it;
//! a fast failure of one dependency does not say that its database is well, and neither do free places. So without a
//! recent word nothing is known.
//!
//! A call that was not answered in time may be one that the database keeps waiting. What was heard before says nothing about
//! that: a database that hangs says nothing more, and its last word was good. Only a call that began later and was answered
//! shows that it still answers, so until there is one nothing is known.

use std::time::Duration;

use crate::alternative::Signal;
use crate::health::Band;
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Mono, duration_ns};

/// A word older than this says nothing about now.
pub const RECENT: Duration = Duration::from_secs(10);

/// The last that was heard of one resource.
#[derive(Debug, Default)]
pub struct Watched {
    /// The longest wait that was told within the present second, in ns.
    wait_ns: AtomicU64,
    /// When it was told, in ns of the boot clock; 0 is never.
    told_ns: AtomicU64,
    /// When the latest call began whose answer told anything, as above.
    asked_ns: AtomicU64,
    /// When the latest call began that was not answered in time, as above.
    late_ns: AtomicU64,
}

impl Watched {
    /// A dependency tells, in the answer to a call that began at `asked`, how long the resource kept it waiting. Within a
    /// second the longest wait counts.
    pub fn set(&self, asked: Mono, now: Mono, wait: Duration) {
        const SECOND_NS: u64 = 1_000_000_000;
        let before = self.told_ns.swap(now.as_ns().max(1), Ordering::Relaxed);
        if before / SECOND_NS == now.as_ns() / SECOND_NS {
            self.wait_ns.fetch_max(duration_ns(wait), Ordering::Relaxed);
        } else {
            self.wait_ns.store(duration_ns(wait), Ordering::Relaxed);
        }
        self.asked_ns.fetch_max(asked.as_ns().max(1), Ordering::Relaxed);
    }

    /// A call that began at `asked` and uses the resource was not answered in time.
    pub fn late(&self, asked: Mono) {
        self.late_ns.fetch_max(asked.as_ns().max(1), Ordering::Relaxed);
    }

    /// What that says, by the bands of whoever asks.
    pub fn signal(&self, now: Mono, green: &Band, red: &Band) -> Signal {
        let told = self.told_ns.load(Ordering::Relaxed);
        if told == 0 || Mono::from_ns(told).until(now) > RECENT {
            return Signal::Unknown;
        }
        let late = self.late_ns.load(Ordering::Relaxed);
        if late > 0 && self.asked_ns.load(Ordering::Relaxed) <= late {
            return Signal::Unknown;
        }
        let wait = Duration::from_nanos(self.wait_ns.load(Ordering::Relaxed));
        match () {
            () if wait > red.db_wait => Signal::Red,
            () if wait > green.db_wait => Signal::Amber,
            () => Signal::Green,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::RecoveryRules;

    const MS: u64 = 1_000_000;

    /// By hand: green up to 5 ms, red above 20 ms, and nothing is known 10 s after the last word.
    #[test]
    fn a_word_counts_for_ten_seconds() {
        let RecoveryRules { green, red, .. } = RecoveryRules::default();
        let watched = Watched::default();
        let at = |ms: u64| Mono::from_ns(ms * MS);
        let signal = |ms| watched.signal(at(ms), &green, &red);
        assert_eq!(signal(0), Signal::Unknown);
        for (ms, wait_ms, expected) in [
            (1_000, 5, Signal::Green),
            (2_000, 6, Signal::Amber),
            (3_000, 20, Signal::Amber),
            (4_000, 21, Signal::Red),
        ] {
            watched.set(at(ms), at(ms), Duration::from_millis(wait_ms));
            assert_eq!(signal(ms), expected, "{wait_ms} ms");
        }
        watched.set(at(4_500), at(4_500), Duration::from_millis(1));
        assert_eq!(signal(4_500), Signal::Red, "the worst of a second counts");
        assert_eq!(signal(14_500), Signal::Red);
        assert_eq!(watched.signal(Mono::from_ns(14_500 * MS + 1), &green, &red), Signal::Unknown);
        watched.set(at(15_000), at(15_000), Duration::from_millis(1));
        assert_eq!(signal(15_000), Signal::Green);
    }

    /// A call of 2.0 s that is late takes away what was heard, also by an answer that comes after it to a call that began
    /// before it, or with it. One that began later, and was answered, says that it is well.
    #[test]
    fn after_a_late_call_only_a_later_one_counts() {
        let RecoveryRules { green, red, .. } = RecoveryRules::default();
        let watched = Watched::default();
        let at = |ms: u64| Mono::from_ns(ms * MS);
        let signal = |ms| watched.signal(at(ms), &green, &red);
        let well = Duration::from_millis(1);
        watched.set(at(1_900), at(1_950), well);
        assert_eq!(signal(2_100), Signal::Green);
        watched.late(at(2_000));
        assert_eq!(signal(2_200), Signal::Unknown);
        watched.set(at(1_990), at(2_250), well);
        watched.set(at(2_000), at(2_260), well);
        assert_eq!(signal(2_300), Signal::Unknown);
        watched.set(at(2_001), at(2_310), well);
        assert_eq!(signal(2_310), Signal::Green);
        watched.late(at(1_500));
        assert_eq!(signal(2_320), Signal::Green, "what began before is not later than what was heard");
    }
}
