//! Whether another dependency may stand in for one that fails.

use crate::time::Wall;

/// What a measurement showed that a dependency can take besides its usual load, and for how long that may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Calls per second.
    pub rate_per_second: u64,
    /// Calls under way at once.
    pub concurrency: u32,
    /// The last moment at which it counts.
    pub valid_until: Wall,
    /// A digest of the policy that it was measured under.
    pub policy: [u8; 32],
}
