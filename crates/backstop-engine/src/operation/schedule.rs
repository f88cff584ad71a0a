//! When the status of an open operation is asked for.
//!
//! While it is unknown the waits grow: drawn evenly between nothing and 1, 2, 4 ... 60 s ("full jitter"; a route may say
//! otherwise), so that what became unknown in one outage is not asked for in one moment. While it waits for a person the waits are long: between half and all
//! of a quarter of an hour. A client that asks again wakes it, at most once in a second.

use std::time::Duration;

use crate::entropy::spread;
use crate::health::PerMille;
use crate::policy::effect::{EffectRules, ScheduleRules};

/// For so long an operation is followed, if its route says nothing else; then a person has to look at it.
pub const VERIFY_FOR: Duration = Duration::from_secs(12 * 3600);

/// The waits between status queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The longest wait before the first query. 1 s.
    pub first: Duration,
    /// By what the longest wait grows after each query. 2; less than 1 counts as 1.
    pub factor: PerMille,
    /// The longest wait before any query. 60 s.
    pub most: Duration,
    /// The longest wait while it needs a person. 15 min.
    pub attention: Duration,
}

const TWICE: PerMille = PerMille(2000);

impl From<&ScheduleRules> for Schedule {
    fn from(rules: &ScheduleRules) -> Self {
        let ScheduleRules { first, factor, cap, attention_poll, .. } = *rules;
        Self { first, factor, most: cap, attention: attention_poll }
    }
}

/// When the status of a route's operations is asked for.
impl From<&EffectRules> for Schedule {
    fn from(rules: &EffectRules) -> Self {
        let verification = rules.verification.as_ref();
        verification.map_or_else(Self::default, |verification| Self::from(&verification.schedule))
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            factor: TWICE,
            most: Duration::from_secs(60),
            attention: Duration::from_secs(15 * 60),
        }
    }
}

/// A schedule and 64 random bits to draw from it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draw {
    schedule: Schedule,
    entropy: u64,
}

impl Schedule {
    /// A draw with these random bits.
    pub const fn draw(self, entropy: u64) -> Draw {
        Draw { schedule: self, entropy }
    }
}

impl Draw {
    /// No wait.
    pub(super) const AT_ONCE: Draw = Draw {
        schedule: Schedule {
            first: Duration::ZERO,
            factor: TWICE,
            most: Duration::ZERO,
            attention: Duration::ZERO,
        },
        entropy: 0,
    };

    /// The usual wait for a person, where nobody drew another.
    pub(super) const A_LONG_WAIT: Draw = Draw {
        schedule: Schedule {
            first: Duration::from_secs(60),
            factor: TWICE,
            most: Duration::from_secs(60),
            attention: Duration::from_secs(15 * 60),
        },
        entropy: u64::MAX,
    };

    /// The wait before the next query, after so many.
    pub(super) fn unknown(self, asked: u32) -> Duration {
        let Schedule { first, factor, most, .. } = self.schedule;
        spread(grown(first, factor, asked).min(most), self.entropy)
    }

    /// The wait before the next query while a person is needed.
    pub(super) fn attention(self) -> Duration {
        let half = self.schedule.attention / 2;
        half + spread(self.schedule.attention - half, self.entropy)
    }
}

/// `first`, grown so many times by `factor`; without end where that cannot be named.
fn grown(first: Duration, factor: PerMille, times: u32) -> Duration {
    let once = f64::from(factor.0.max(1000)) / 1000.0;
    // Not infinite, because nothing times that is no number.
    let all = once.powi(i32::try_from(times).unwrap_or(i32::MAX)).min(f64::MAX);
    Duration::try_from_secs_f64(first.as_secs_f64() * all).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1, 2, 4, 8, 16, 32 s, then 64 s are cut to 60.
    #[test]
    fn waits_double_from_a_second_to_a_minute() {
        let seconds =
            [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (40, 60), (u32::MAX, 60)];
        for (asked, most) in seconds {
            assert_eq!(
                Schedule::default().draw(u64::MAX).unknown(asked),
                Duration::from_secs(most),
                "{asked}"
            );
            assert_eq!(Schedule::default().draw(0).unknown(asked), Duration::ZERO, "{asked}");
        }
        assert_eq!(
            Schedule::default().draw(1 << 63).unknown(3),
            Duration::from_secs(4),
            "half of all entropy"
        );
    }

    /// By hand: 2 s times 1.5 each time is 2, 3, 4.5, 6.75 s, then 10.125 s are cut to 10.
    #[test]
    fn a_route_says_by_what_its_waits_grow() {
        let rules = ScheduleRules {
            first: Duration::from_secs(2),
            factor: PerMille(1500),
            cap: Duration::from_secs(10),
            deadline: Duration::from_secs(3600),
            attention_poll: Duration::from_secs(600),
        };
        let draw = Schedule::from(&rules).draw(u64::MAX);
        for (asked, ms) in [(0, 2000), (1, 3000), (2, 4500), (3, 6750), (4, 10_000), (u32::MAX, 10_000)] {
            assert_eq!(draw.unknown(asked), Duration::from_millis(ms), "{asked}");
        }
        assert_eq!(draw.attention(), Duration::from_secs(600));
    }

    #[test]
    fn waits_that_do_not_grow_stay_as_they_are() {
        for factor in [0, 999, 1000] {
            let schedule = Schedule { factor: PerMille(factor), ..Schedule::default() };
            assert_eq!(schedule.draw(u64::MAX).unknown(u32::MAX), Duration::from_secs(1), "{factor}");
        }
        let at_once = Schedule { first: Duration::ZERO, ..Schedule::default() };
        assert_eq!(at_once.draw(u64::MAX).unknown(u32::MAX), Duration::ZERO);
    }

    #[test]
    fn waits_for_a_person_are_between_half_and_all_of_a_quarter_of_an_hour() {
        let wait = |entropy| Schedule::default().draw(entropy).attention();
        assert_eq!(wait(0), Duration::from_secs(450));
        assert_eq!(wait(u64::MAX), Duration::from_secs(900));
        assert_eq!(Draw::AT_ONCE.attention(), Duration::ZERO);
    }
}
