//! Values in a server that works.

use backstop_gateway::cache::{CacheError, Refusal};

use super::server::Server;
use super::support::{MINUTE, World, on_a_thread, settings, soon, value};

#[test]
fn a_value_is_found_as_it_was_stored_until_it_is_removed() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let (key, until) = (b"key \r\n\0\xff", world.later());
        assert_eq!(soon(lane.get(key, until)).await, Ok(None));
        assert_eq!(soon(lane.set(key, &bytes, MINUTE, until)).await, Ok(()));
        assert_eq!(soon(lane.get(key, until)).await.expect("an answer").expect("a value"), bytes);
        assert_eq!(soon(lane.delete(key, until)).await, Ok(true));
        assert_eq!(soon(lane.delete(key, until)).await, Ok(false));
        assert_eq!(soon(lane.get(key, until)).await, Ok(None));
        let counts = world.counts();
        assert_eq!((counts.hits, counts.misses, counts.stored, counts.deleted), (1, 2, 1, 2));
        assert_eq!((counts.opened, counts.reconnects, counts.connections, counts.in_flight), (1, 0, 1, 0));
        assert_eq!(counts.errors, [0; CacheError::KINDS]);
    });
}

#[test]
fn the_server_forgets_a_value_when_its_time_is_over() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "long", "x").await;
        let left: i64 = redis::cmd("PTTL").arg("long").query(&mut server.look()).expect("its time");
        assert!((50_000..=60_000).contains(&left), "{left} ms");

        let short = std::time::Duration::from_millis(30);
        soon(lane.set(b"short", b"y", short, world.later())).await.expect("it is stored");
        let forgotten = async {
            while lane.get(b"short", world.later()).await.expect("an answer").is_some() {
                tokio::task::yield_now().await;
            }
        };
        soon(forgotten).await;
        assert_eq!(world.get(&lane, "long").await, value("x"));
    });
}

#[test]
fn an_emptied_server_has_nothing_and_goes_on() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "before").await;
        redis::cmd("FLUSHALL").exec(&mut server.look()).expect("it is emptied");
        assert_eq!(world.get(&lane, "key").await, Ok(None));
        world.set(&lane, "key", "after").await;
        assert_eq!(world.get(&lane, "key").await, value("after"));
        assert_eq!(world.counts().opened, 1);
    });
}

#[test]
fn what_is_no_string_is_told_and_the_connection_goes_on() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        redis::cmd("LPUSH").arg("list").arg("x").exec(&mut server.look()).expect("a list");
        assert_eq!(world.get(&lane, "list").await, Err(CacheError::Server(Refusal::WrongType)));
        assert!(!CacheError::Server(Refusal::WrongType).is_failure(), "it is one key's fault");
        world.set(&lane, "list", "replaced").await;
        assert_eq!(world.get(&lane, "list").await, value("replaced"));
        let counts = world.counts();
        assert_eq!((counts.opened, counts.errors_of(CacheError::Server(Refusal::WrongType))), (1, 1));
    });
}

#[test]
fn a_server_that_takes_no_writes_says_why_and_is_still_read() {
    let (full, replica) = (Server::start(), Server::start_with(&["--replicaof", "127.0.0.1 1"]));
    on_a_thread(async {
        for (server, why) in [(&full, Refusal::OutOfMemory), (&replica, Refusal::ReadOnly)] {
            let world = World::new(server.address);
            let lane = world.lane();
            if why == Refusal::OutOfMemory {
                let set = ["SET", "maxmemory", "1"];
                redis::cmd("CONFIG").arg(&set[..]).exec(&mut server.look()).expect("no memory");
            }
            let refused = soon(lane.set(b"key", b"value", MINUTE, world.later())).await;
            assert_eq!(refused, Err(CacheError::Server(why)));
            assert_eq!(world.get(&lane, "key").await, Ok(None));
            assert_eq!(world.counts().opened, 1);
        }
    });
}

#[test]
fn a_database_has_keys_of_its_own() {
    let server = Server::start();
    on_a_thread(async {
        let mut third = settings(server.address);
        third.database = 3;
        let (world, other) = (World::with(third), World::new(server.address));
        let (lane, lane_of_other) = (world.lane(), other.lane());
        world.set(&lane, "key", "three").await;
        assert_eq!(world.get(&lane, "key").await, value("three"));
        assert_eq!(other.get(&lane_of_other, "key").await, Ok(None));
        let mut none = settings(server.address);
        none.database = 99;
        let world = World::with(none);
        assert_eq!(world.get(&world.lane(), "key").await, Err(CacheError::Server(Refusal::Other)));
    });
}

#[test]
fn who_asks_is_said_and_who_may_not_is_told() {
    let user = "--requirepass secret --user edge on >pass ~backstop:* +@all";
    let server = Server::start_with(&user.split(' ').collect::<Vec<_>>());
    on_a_thread(async {
        let with = |username: Option<&str>, password: Option<&str>| {
            let mut settings = settings(server.address);
            settings.username = username.map(Into::into);
            settings.password = password.map(Into::into);
            World::with(settings)
        };
        let no_auth = || Err(CacheError::Server(Refusal::NoAuth));
        for (username, password, key, expected) in [
            (None, None, "key", no_auth()),
            (None, Some("wrong"), "key", no_auth()),
            (Some("edge"), Some("secret"), "backstop:key", no_auth()),
            (None, Some("secret"), "key", Ok(None)),
            (Some("edge"), Some("pass"), "backstop:key", Ok(None)),
            (Some("edge"), Some("pass"), "key", Err(CacheError::Server(Refusal::NoPermission))),
        ] {
            let world = with(username, password);
            assert_eq!(world.get(&world.lane(), key).await, expected, "{username:?} {password:?} {key}");
        }
    });
}
