//! What is heard of a resource that several dependencies share.
//!
//! A dependency may tell how long its database kept it waiting. That says how the database is, for everybody who uses it;
//! a fast failure of one dependency does not say that its database is well, and neither do free places. So without a
//! recent word nothing is known. A dependency that uses several resources tells one wait for all of them: that may make
//! each of them look worse, and none of them better.
//!
//! A call that was not answered in time may be one that the database keeps waiting. What was heard before says nothing about
//! that: a database that hangs says nothing more, and its last word was good. Only a call that began later and was answered
//! shows that it still answers, so until there is one nothing is known.

use std::time::Duration;

use crate::alternative::Signal;
use crate::health::Band;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

/// A word older than this says nothing about now.
pub const RECENT: Duration = Duration::from_secs(10);

/// What was heard of one resource of late.
#[derive(Debug, Default)]
pub struct Watched {
    /// From whoever uses nothing else.
    certain: Heard,
    /// From those who use several resources and do not say which of them it was.
    suspected: Heard,
    /// When the latest call began whose answer was certain, in ns of the boot clock; 0 is never.
    asked_ns: AtomicU64,
    /// When the latest call began that was not answered in time, as above.
    late_ns: AtomicU64,
}

impl Watched {
    /// A dependency that uses this resource alone tells, in the answer to a call that began at `asked`, how long it kept it
    /// waiting.
    pub fn set(&self, asked: Mono, now: Mono, wait: Duration) {
        self.certain.tell(now, wait);
        self.asked_ns.fetch_max(asked.as_ns().max(1), Ordering::Relaxed);
    }

    /// A call that began at `asked` and uses the resource was not answered in time.
    pub fn late(&self, asked: Mono) {
        self.late_ns.fetch_max(asked.as_ns().max(1), Ordering::Relaxed);
    }

    /// A dependency tells how long it was kept waiting by one of its several resources. It may have been this one, so a
    /// long wait makes it look worse; a short one does not say that it is well, nor that anything is known of it.
    pub fn suspect(&self, now: Mono, wait: Duration) {
        self.suspected.tell(now, wait);
    }

    /// What that says, by the bands of whoever asks.
    pub fn signal(&self, now: Mono, green: &Band, red: &Band) -> Signal {
        let late = self.late_ns.load(Ordering::Relaxed);
        let is_answering = late == 0 || self.asked_ns.load(Ordering::Relaxed) > late;
        let light = |wait: Duration| Signal::of(wait > green.db_wait, wait > red.db_wait);
        let heard = self.certain.worst(now).filter(|_| is_answering);
        let certain = heard.map_or(Signal::Unknown, light);
        certain.or_worse(self.suspected.worst(now).map_or(Signal::Green, light))
    }
}

/// Seconds whose words are kept apart: one more than count, so that a new one empties none that still does.
const SECONDS: usize = 4;
/// Of the last second in which anything was heard and so many before it the worst word counts: two whole seconds at least,
/// so that a good word does not hide the bad one of a moment ago.
const SECONDS_BEFORE: u64 = 2;
const WAIT_BITS: u32 = 32;
const WAIT_MASK: u64 = (1 << WAIT_BITS) - 1;

/// The longest wait of each of the last seconds. A second and its wait are one word, so that neither is ever seen, or
/// overwritten, without the other.
#[derive(Debug, Default)]
struct Heard {
    // The second above, counted from 1; the wait in microseconds below, rounded up: never told to be better than it was.
    seconds: [AtomicU64; SECONDS],
}

impl Heard {
    fn tell(&self, now: Mono, wait: Duration) {
        let second = second_of(now);
        let Some(word) = self.seconds.get((second % SECONDS as u64) as usize) else { return };
        let told = (second << WAIT_BITS) | wait_us(wait);
        // The second comes first in the word: a later one is greater than any earlier, and within one the longer wait is.
        word.fetch_max(told, Ordering::Relaxed);
    }

    fn worst(&self, now: Mono) -> Option<Duration> {
        let words = || self.seconds.iter().map(|word| word.load(Ordering::Relaxed));
        let latest = words().map(|word| word >> WAIT_BITS).max().filter(|second| *second > 0)?;
        // Of a second it is not known when in it the word came: it counts from its beginning.
        if second_of(now).saturating_sub(latest) >= RECENT.as_secs() {
            return None;
        }
        let counts = |word: &u64| (word >> WAIT_BITS) + SECONDS_BEFORE >= latest && *word > 0;
        words().filter(counts).map(|word| Duration::from_micros(word & WAIT_MASK)).max()
    }
}

// From 1, so that an untouched word is no second's; 136 years fit.
fn second_of(now: Mono) -> u64 {
    (now.as_ns() / 1_000_000_000 + 1) & WAIT_MASK
}

fn wait_us(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(WAIT_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::RecoveryRules;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Mono {
        Mono::from_ns(ms * MS)
    }

    fn signal(watched: &Watched, ms: u64) -> Signal {
        let RecoveryRules { green, red, .. } = RecoveryRules::default();
        watched.signal(at(ms), &green, &red)
    }

    fn wait(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// By hand: green up to 5 ms, red above 20 ms.
    #[test]
    fn a_wait_is_told_from_its_neighbours() {
        let cases = [
            (wait(5), Signal::Green),
            (wait(5) + Duration::from_nanos(1), Signal::Amber),
            (wait(20), Signal::Amber),
            (wait(20) + Duration::from_nanos(1), Signal::Red),
            (Duration::MAX, Signal::Red),
        ];
        for (wait, expected) in cases {
            let watched = Watched::default();
            assert_eq!(signal(&watched, 0), Signal::Unknown);
            watched.set(at(0), at(0), wait);
            assert_eq!(signal(&watched, 0), expected, "{wait:?}");
        }
    }

    /// By hand: a word of second 4 counts until second 14 begins; it is less than ten seconds old until then.
    #[test]
    fn a_word_counts_for_ten_seconds() {
        let watched = Watched::default();
        watched.set(at(4_000), at(4_000), wait(1));
        watched.set(at(4_500), at(4_500), wait(21));
        assert_eq!(signal(&watched, 4_500), Signal::Red, "the worst of a second counts");
        let before = Mono::from_ns(14_000 * MS - 1);
        let RecoveryRules { green, red, .. } = RecoveryRules::default();
        assert_eq!(watched.signal(before, &green, &red), Signal::Red);
        assert_eq!(signal(&watched, 14_000), Signal::Unknown);
        watched.set(at(15_000), at(15_000), wait(1));
        assert_eq!(signal(&watched, 15_000), Signal::Green);
    }

    /// By hand: red at the very end of second 3; good words from then on. Two seconds later it is still red, and from second
    /// 6 on, 2 s and 1 ms later, it is green.
    #[test]
    fn a_good_word_does_not_hide_the_bad_one_of_a_moment_ago() {
        let watched = Watched::default();
        watched.set(at(3_999), at(3_999), wait(21));
        for ms in [4_000, 4_500, 5_000, 5_999] {
            watched.set(at(ms), at(ms), wait(1));
            assert_eq!(signal(&watched, ms), Signal::Red, "{ms}");
        }
        watched.set(at(6_000), at(6_000), wait(1));
        assert_eq!(signal(&watched, 6_000), Signal::Green);
    }

    /// Two threads tell at the same moment, one of them a second late: neither order loses the bad word.
    #[test]
    fn a_bad_word_is_never_overwritten_by_a_good_one_of_the_same_moment() {
        for order in [[(4_000, 1), (3_999, 21)], [(3_999, 21), (4_000, 1)]] {
            let watched = Watched::default();
            for (ms, told) in order {
                watched.set(at(ms), at(ms), wait(told));
            }
            assert_eq!(signal(&watched, 4_000), Signal::Red);
        }
    }

    /// Who uses several resources does not say which kept it waiting: a long wait makes each look worse, a short one none
    /// better.
    #[test]
    fn one_word_about_several_resources_makes_none_of_them_green() {
        let watched = Watched::default();
        watched.suspect(at(1_000), wait(1));
        assert_eq!(signal(&watched, 1_000), Signal::Unknown);
        watched.set(at(1_000), at(1_000), wait(1));
        assert_eq!(signal(&watched, 1_000), Signal::Green);
        watched.suspect(at(1_000), wait(6));
        assert_eq!(signal(&watched, 1_000), Signal::Amber);
        watched.suspect(at(1_000), wait(21));
        assert_eq!(signal(&watched, 1_000), Signal::Red);
        let unknown = Watched::default();
        unknown.suspect(at(1_000), wait(6));
        assert_eq!(signal(&unknown, 1_000), Signal::Unknown);
        unknown.suspect(at(1_000), wait(21));
        assert_eq!(signal(&unknown, 1_000), Signal::Red);
    }

    /// A call of 2.0 s that is late takes away what was heard, also by an answer that comes after it to a call that began
    /// before it, or with it. One that began later, and was answered, says that it is well.
    #[test]
    fn after_a_late_call_only_a_later_one_counts() {
        let watched = Watched::default();
        let signal = |ms| signal(&watched, ms);
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
