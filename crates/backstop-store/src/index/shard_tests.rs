use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::{BootId, Mono, Now, Wall};

use super::super::variant::{Stored, THIS_LIFE};
use super::*;
use crate::key::Target;

fn variant(id: u64) -> Variant {
    Variant {
        id,
        vary: Box::default(),
        facts: CopyFacts {
            observed_at: ObservedAt::new(Default::default(), Duration::ZERO),
            origin_limit: OriginLimit::Unlimited,
        },
        order: THIS_LIFE,
        generation: 0,
        resident: true,
        queued: None,
        stored: Stored::No,
    }
}

fn key(path: &str, query: Option<&str>) -> CopyKey {
    CopyKey { target: Target::new("h", path, query), route: "r".into(), partition: Box::default() }
}

/// Every key and every path has the same hash, so only full comparison tells them apart.
const SAME: Located = Located { site: 7, target: 7, key: 7 };
const BELOW: LocatedBelow = LocatedBelow { site: 7, target: Some(7) };

#[test]
fn keys_with_the_same_hash_are_told_apart() {
    let (mut shard, route, mut removed) = (Shard::default(), Arc::new(Route::default()), Vec::new());
    let keys: Vec<CopyKey> = (0..6).map(|number| key(&format!("/{number}"), None)).collect();
    for (id, key) in (0..).zip(&keys) {
        let place = shard.place_or_insert(SAME, key, &route);
        shard.push(place, variant(id), &mut removed);
        assert_eq!(shard.place_or_insert(SAME, key, &route), place);
    }
    // From the middle, the end and the beginning of the chain.
    for gone in [2, 0, 5, 1, 4, 3] {
        let place = shard.place(SAME, &keys[gone]).unwrap();
        shard.remove_variant(place, gone as u64, &mut removed);
        assert_eq!(shard.place(SAME, &keys[gone]), None);
        let ids = keys.iter().filter_map(|key| shard.select(SAME, key, &HeaderMap::new()));
        assert_eq!(ids.count(), shard.len());
    }
    assert_eq!((shard.bytes(), shard.len(), removed.len()), (0, 0, 6));
    assert!(shard.by_key.is_empty() && shard.by_path.is_empty() && shard.free.len() == shard.slots.len());
}

#[test]
fn paths_with_the_same_hash_are_told_apart() {
    let (mut shard, route, mut removed) = (Shard::default(), Arc::new(Route::default()), Vec::new());
    let keys = [key("/a", None), key("/a", Some("q")), key("/b", None), key("/b", Some("q"))];
    for (id, key) in (0..).zip(&keys) {
        let place = shard.place_or_insert(SAME, key, &route);
        shard.push(place, variant(id), &mut removed);
    }
    shard.remove_below(BELOW, keys[0].target.site(), Some(Some("q")), &mut removed);
    assert_eq!(removed.drain(..).map(|removed| removed.variant.id).collect::<Vec<_>>(), [1]);
    shard.remove_below(LocatedBelow { target: None, ..BELOW }, keys[2].target.site(), None, &mut removed);
    assert_eq!(removed.drain(..).map(|removed| removed.variant.id).sum::<u64>(), 2 + 3);
    assert_eq!(shard.len(), 1);
}

/// A date in the future, from a boot whose clock was wrong, does not make a copy stay for ever.
#[test]
fn what_an_earlier_boot_stored_leaves_first_whatever_its_date() {
    let (mut shard, route, mut removed) = (Shard::default(), Arc::new(Route::default()), Vec::new());
    let at = |boot: u8, wall: i64, mono: u64| {
        let now = Now {
            mono: Mono::from_ns(mono),
            wall: Wall::from_unix_ns(wall),
            boot: BootId([boot; 16]),
            ..Now::default()
        };
        CopyFacts { observed_at: ObservedAt::new(now, Duration::ZERO), origin_limit: OriginLimit::Unlimited }
    };
    let stored =
        [(at(1, 900, 9), 17), (at(2, 500, 5), 18), (at(3, 10, 1), THIS_LIFE), (at(3, 20, 2), THIS_LIFE)];
    for (id, (facts, order)) in (0..).zip(stored) {
        let key = key(&format!("/{id}"), None);
        let place = shard.place_or_insert(Located { key: id, ..SAME }, &key, &route);
        shard.push(place, Variant { facts, order, ..variant(id) }, &mut removed);
    }
    let keep = shard.place(Located { key: 3, ..SAME }, &key("/3", None)).unwrap();
    shard.shrink_to(0, keep, &mut removed);
    assert_eq!(removed.iter().map(|removed| removed.variant.id).collect::<Vec<_>>(), [0, 1, 2]);
}
