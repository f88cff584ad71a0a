//! What would be answered in an outage is told of routes with a shared cache as of those without.

use super::cached_read::{World, read, review};
use crate::support::{expect, run};

/// Of four reads the first finds nothing; one is answered by the cache and two could be by the copy of one's own, of which the
/// last one is: it is 6 s old.
#[test]
fn a_cached_read_tells_its_coverage_and_the_ages_of_its_copies() {
    run(async {
        let mut world = World::open().await;
        let told = async |world: &World| {
            let metrics = world.shop.gateway.metrics().await;
            let of_route = |name: &str| metrics.sum(name, &["route=\"reviews\""]);
            let count = of_route("backstop_copy_age_seconds_count");
            (of_route("backstop_fallback_coverage_ratio"), count, of_route("backstop_copy_age_seconds_sum"))
        };
        read(&world.get("1").await, &review("1", "first"));
        assert_eq!(told(&world).await, (0.0, 0.0, 0.0));
        world.redis.values_until(1).await;
        assert_eq!(world.get("1").await.header("cache-status"), Some("edge; hit"));
        assert_eq!(told(&world).await.0, 0.5);
        world.shop.pass(6.0);
        read(&world.get("1").await, &review("1", "first"));
        world.redis.kill();
        world.shop.goes_down().await;
        world.shop.pass(6.0);
        expect::copy(&world.get("1").await, &review("1", "first"), 6, "connect");
        assert_eq!(told(&world).await, (0.75, 1.0, 6.0));
    });
}
