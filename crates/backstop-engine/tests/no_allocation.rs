//! A decision allocates nothing, whichever way it goes.
#![cfg(not(loom))]
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of a test")]

#[path = "common/decisions.rs"]
mod decisions;

use std::sync::Arc;

use backstop_engine::admission::Excess;
use backstop_engine::policy::Origin;
use backstop_engine::resource::{ClassShare, INLINE, Resource, ResourceRules, acquire_all};
use backstop_engine::time::Mono;
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

#[test]
fn up_to_four_resources_are_taken_without_an_allocation() {
    let resource = |_| {
        let name = "db".into();
        let rules = ResourceRules { name, concurrency: Some(1), rate: Some(1_000_000), origin: Origin::NONE };
        Arc::new(Resource::new(rules))
    };
    let resources: Vec<_> = (0..=INLINE).map(resource).collect();
    let allocations = |count| {
        let take = || {
            let permits =
                acquire_all(&resources[..count], Mono::from_ns(0), ClassShare::Read, Excess::Refuse);
            assert!(permits.is_ok());
            let refused =
                acquire_all(&resources[..count], Mono::from_ns(0), ClassShare::Read, Excess::Refuse);
            assert_eq!(refused.is_err(), count > 0);
        };
        allocation_counter::measure(take).count_total
    };
    assert_eq!((allocations(0), allocations(1), allocations(INLINE)), (0, 0, 0));
    assert!(allocations(INLINE + 1) > 0, "allocations are seen at all");
}
