//! A decision allocates nothing, whichever way it goes.
#![cfg(not(loom))]
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of a test")]

#[path = "common/decisions.rs"]
mod decisions;

use decisions::{fallback_from_a_copy, full_route, normal, policy, refused_at_the_route};

#[test]
fn no_decision_allocates() {
    let engine = policy();
    let allocations = |decide: &dyn Fn()| allocation_counter::measure(decide).count_total;
    assert_eq!(allocations(&|| normal(&engine)), 0, "normal");
    assert_eq!(allocations(&|| fallback_from_a_copy(&engine)), 0, "from a copy");
    let full = full_route(&engine);
    assert_eq!(allocations(&|| refused_at_the_route(&engine)), 0, "refused");
    drop(full);
    assert!(allocations(&|| drop(policy())) > 0, "allocations are seen at all");
}
