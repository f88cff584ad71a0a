//! When the status of an open operation is asked for.
//!
//! While it is unknown the waits grow: drawn evenly between nothing and 1, 2, 4 ... 60 s ("full jitter"), so that what became
//! unknown in one outage is not asked for in one moment. While it waits for a person the waits are long: between half and all
//! of a quarter of an hour. A client that asks again wakes it, at most once in a second.

use std::time::Duration;

/// The waits between status queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The longest wait before the first query. 1 s.
    pub first: Duration,
    /// The longest wait before any query. 60 s.
    pub most: Duration,
    /// The longest wait while it needs a person. 15 min.
    pub attention: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
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
        schedule: Schedule { first: Duration::ZERO, most: Duration::ZERO, attention: Duration::ZERO },
        entropy: 0,
    };

    /// The usual wait for a person, where nobody drew another.
    pub(super) const A_LONG_WAIT: Draw = Draw {
        schedule: Schedule {
            first: Duration::from_secs(60),
            most: Duration::from_secs(60),
            attention: Duration::from_secs(15 * 60),
        },
        entropy: u64::MAX,
    };

    /// The wait before the next query, after so many.
    pub(super) fn unknown(self, asked: u32) -> Duration {
        // More doublings than that could only overflow; any schedule has reached its end by then.
        const DOUBLINGS: u32 = 20;
        let Schedule { first, most, .. } = self.schedule;
        spread(first.saturating_mul(1 << asked.min(DOUBLINGS)).min(most), self.entropy)
    }

    /// The wait before the next query while a person is needed.
    pub(super) fn attention(self) -> Duration {
        let half = self.schedule.attention / 2;
        half + spread(self.schedule.attention - half, self.entropy)
    }
}

/// Evenly drawn between nothing and `most`, by 64 random bits.
pub(super) fn spread(most: Duration, entropy: u64) -> Duration {
    // The upper half of a product of two words of 64 bits. Waits are far below 584 years, which 64 bits of nanoseconds hold.
    let most_ns = most.as_nanos().min(u128::from(u64::MAX - 1));
    Duration::from_nanos(((u128::from(entropy) * (most_ns + 1)) >> 64) as u64)
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

    #[test]
    fn waits_for_a_person_are_between_half_and_all_of_a_quarter_of_an_hour() {
        let wait = |entropy| Schedule::default().draw(entropy).attention();
        assert_eq!(wait(0), Duration::from_secs(450));
        assert_eq!(wait(u64::MAX), Duration::from_secs(900));
        assert_eq!(Draw::AT_ONCE.attention(), Duration::ZERO);
    }
}
