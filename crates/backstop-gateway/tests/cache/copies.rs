//! Copies in a server that works.

use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::{Now, Wall};
use backstop_gateway::cache::{Cached, Lane};
use backstop_store::{CopyKey, StoredCopy, Target, VaryField};
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::server::Server;
use super::support::{MINUTE, START, World, on_a_thread, settings, soon};

fn key(path: &str) -> CopyKey {
    CopyKey {
        target: Target::new("shop", path, None),
        route: "reviews".into(),
        partition: b"es".as_slice().into(),
    }
}

fn copy(body: &str, vary: Vec<VaryField>) -> StoredCopy {
    let now = Now { mono: START, wall: Wall::from_unix_ns(1), ..Now::default() };
    let observed_at = ObservedAt::new(now, MINUTE);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    StoredCopy {
        facts: CopyFacts { observed_at, origin_limit: OriginLimit::UpTo(MINUTE) },
        vary,
        status: 200,
        headers,
        body: body.to_owned().into(),
    }
}

fn encoding(value: &'static str) -> HeaderMap {
    let mut request = HeaderMap::new();
    request.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
    request
}

async fn get(world: &World, lane: &Lane, path: &str) -> Cached {
    soon(lane.get_copy(&key(path), &HeaderMap::new(), world.later())).await.expect("an answer")
}

/// The one key that the server has.
fn only_key(server: &Server) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut server.look()).expect("its keys");
    let [key] = keys.try_into().expect("one key");
    key
}

#[test]
fn a_copy_comes_back_whole_with_its_date() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        assert_eq!(get(&world, &lane, "/42").await, Cached::Absent);
        let stored = copy("{\"stars\":5}", Vec::new());
        soon(lane.set_copy(&key("/42"), &stored, MINUTE, world.later())).await.expect("it is stored");
        assert_eq!(only_key(&server), b"backstop:1:4:shop3:/42-7:reviews2:es");
        world.hand.advance(MINUTE);
        assert_eq!(get(&world, &lane, "/42").await, Cached::Hit(Box::new(stored)));
        assert_eq!(get(&world, &lane, "/43").await, Cached::Absent);
        assert_eq!(soon(lane.delete_copy(&key("/42"), world.later())).await, Ok(true));
        assert_eq!(get(&world, &lane, "/42").await, Cached::Absent);
        let counts = world.counts();
        assert_eq!((counts.hits, counts.misses, counts.stored, counts.deleted), (1, 3, 1, 1));
    });
}

#[test]
fn a_copy_of_another_variant_is_a_miss_until_it_is_replaced() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        for value in ["gzip", "br"] {
            let fields = vec![VaryField::of(ACCEPT_ENCODING, &encoding(value))];
            let stored = copy(value, fields);
            soon(lane.set_copy(&key("/"), &stored, MINUTE, world.later())).await.expect("it is stored");
            for asked in ["gzip", "br"] {
                let found = soon(lane.get_copy(&key("/"), &encoding(asked), world.later())).await;
                let expected = match asked == value {
                    true => Cached::Hit(Box::new(stored.clone())),
                    false => Cached::OtherVariant,
                };
                assert_eq!(found, Ok(expected), "{asked} of {value}");
            }
        }
        let counts = world.counts();
        assert_eq!((counts.hits, counts.other_variants, counts.misses), (2, 2, 0));
    });
}

#[test]
fn no_damage_is_ever_served() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        let stored = copy("body", Vec::new());
        soon(lane.set_copy(&key("/"), &stored, MINUTE, world.later())).await.expect("it is stored");
        let name = only_key(&server);
        let mut look = server.look();
        let whole: Vec<u8> = redis::cmd("GET").arg(&name).query(&mut look).expect("the value");
        let mut put = |value: &[u8]| redis::cmd("SET").arg(&name).arg(value).exec(&mut look).expect("put");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            put(&damaged);
            assert_eq!(get(&world, &lane, "/").await, Cached::Damaged, "byte {at}");
        }
        for value in [&whole[..whole.len() - 1], &whole[1..], b"{\"stars\":5}", b"x"] {
            put(value);
            assert_eq!(get(&world, &lane, "/").await, Cached::Damaged);
        }
        put(&whole);
        assert_eq!(get(&world, &lane, "/").await, Cached::Hit(Box::new(stored)));
        let counts = world.counts();
        assert_eq!((counts.damaged, counts.hits, counts.opened), (whole.len() as u64 + 4, 1, 1));
    });
}

#[test]
fn a_copy_of_another_key_is_never_served_and_the_connection_is_not_trusted_any_more() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        soon(lane.set_copy(&key("/a"), &copy("a", Vec::new()), MINUTE, world.later()))
            .await
            .expect("it is stored");
        let (name, moved) = (only_key(&server), b"backstop:1:4:shop2:/b-7:reviews2:es");
        redis::cmd("COPY").arg(&name).arg(moved).exec(&mut server.look()).expect("copied");
        assert_eq!(get(&world, &lane, "/b").await, Cached::Damaged);
        assert_eq!((world.counts().damaged, world.counts().ended), (1, [0, 0, 1, 0]));
        world.reopen(&lane).await;
        assert!(matches!(get(&world, &lane, "/a").await, Cached::Hit(found) if found.body == "a"));
        assert_eq!(world.counts().reconnects, 1);
    });
}

#[test]
fn a_copy_that_is_larger_than_allowed_is_neither_stored_nor_read() {
    let server = Server::start();
    on_a_thread(async {
        let (large, until) = (copy(&"x".repeat(10_000), Vec::new()), START.after(MINUTE));
        let before = World::new(server.address);
        soon(before.lane().set_copy(&key("/"), &large, MINUTE, until)).await.expect("it is stored");
        let mut smaller = settings(server.address);
        smaller.value_bytes = 5_000;
        let world = World::with(smaller);
        let lane = world.lane();
        assert_eq!(get(&world, &lane, "/").await, Cached::Damaged);
        let refused = soon(lane.set_copy(&key("/"), &large, MINUTE, until)).await;
        assert_eq!(refused.map_err(|error| error.token()), Err("too_large"));
        let small = copy("x", Vec::new());
        soon(lane.set_copy(&key("/"), &small, MINUTE, until)).await.expect("it is stored");
        assert_eq!(get(&world, &lane, "/").await, Cached::Hit(Box::new(small)));
        assert_eq!(world.counts().opened, 1, "the connection bore it");
    });
}
