//! Random bits from one draw of the system's: what is spread by them are waits, nothing that has to be secret.

use std::time::Duration;

/// A sequence of random bits from 64 of them (SplitMix64, <https://doi.org/10.1145/2714064.2660195>).
#[derive(Clone, Copy, Debug)]
pub struct Entropy(u64);

impl Entropy {
    /// From these bits.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 further ones.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Evenly drawn between nothing and `most`, by 64 random bits.
pub fn spread(most: Duration, entropy: u64) -> Duration {
    // The upper half of a product of two words of 64 bits. Waits are far below 584 years, which 64 bits of nanoseconds hold.
    let most_ns = most.as_nanos().min(u128::from(u64::MAX - 1));
    Duration::from_nanos(((u128::from(entropy) * (most_ns + 1)) >> 64) as u64)
}
