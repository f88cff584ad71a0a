//! The wait before a retry.

use std::time::Duration;

/// The longest wait before the first retry.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(25);

/// The longest wait before any retry.
pub const BACKOFF_MOST: Duration = Duration::from_millis(250);

/// The wait before retry number `retry` (from 1): evenly drawn between nothing and 25 ms, doubled for each further
/// retry, 250 ms at most. `entropy` is 64 random bits.
///
/// Anything between nothing and the ceiling ("full jitter"), so that callers whose calls failed in the same moment do
/// not come back in the same moment.
pub fn backoff(retry: u32, entropy: u64) -> Duration {
    /// 25 ms doubled so often are more than 250 ms; counting further could only overflow.
    const DOUBLINGS: u32 = 4;
    let doublings = retry.saturating_sub(1).min(DOUBLINGS);
    let ceiling = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MOST);
    // The upper half of a product of two words of 64 bits is even over the range but for less than one in 10^11.
    let ns = (u128::from(entropy) * (ceiling.as_nanos() + 1)) >> 64;
    Duration::from_nanos(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 25, 50, 100, 200 ms, then 400 ms are cut to 250. No retry, and one too many to double, included.
    #[test]
    fn the_ceiling_doubles_up_to_a_quarter_of_a_second() {
        let ceilings = [(0, 25), (1, 25), (2, 50), (3, 100), (4, 200), (5, 250), (6, 250), (1100, 250)];
        for (retry, ms) in ceilings.into_iter().chain([(u32::MAX, 250)]) {
            assert_eq!(backoff(retry, u64::MAX), Duration::from_millis(ms), "{retry}");
            assert_eq!(backoff(retry, 0), Duration::ZERO, "{retry}");
        }
    }

    /// By hand: half of all entropy is half of 25 ms.
    #[test]
    fn the_wait_is_even_over_its_range() {
        assert_eq!(backoff(1, 1 << 63), Duration::from_nanos(12_500_000));
        let draws = 1_000_u64;
        let below_a_tenth = (0..draws).filter(|draw| {
            let entropy = draw.wrapping_mul(u64::MAX / draws);
            backoff(2, entropy) < Duration::from_millis(5)
        });
        assert_eq!(below_a_tenth.count(), 100, "5 of 50 ms");
    }
}
