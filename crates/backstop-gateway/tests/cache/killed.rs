//! A server that is gone, and one that is back.

use backstop_gateway::cache::CacheError;

use super::server::Server;
use super::support::{PAUSE, World, on_a_thread, settings, settle, value};

#[test]
fn commands_under_way_fail_at_once_when_the_server_is_killed() {
    let mut server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        // Frozen first, so that no answer comes before it is killed.
        server.freeze();
        let commands: Vec<_> = (0..10).map(|_| world.begin(&lane, "key")).collect();
        settle().await;
        server.kill();
        // The clock stands still: nothing here is a time limit.
        for command in commands {
            assert_eq!(command.outcome().await, Err(CacheError::Reset));
        }
        let counts = world.counts();
        assert_eq!((counts.ended, counts.connections, counts.in_flight), ([1, 0, 0, 0], 0, 0));
        assert_eq!(counts.errors_of(CacheError::Reset), 10);
    });
}

#[test]
fn a_server_that_is_back_is_used_again_after_the_pause_and_not_before() {
    let mut server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        server.kill();
        world.until(|counts| counts.connections == 0).await;

        // Refused at once, first without a try, then with one each time that the pause is over.
        assert_eq!(world.get(&lane, "key").await, Err(CacheError::Paused));
        assert_eq!(world.counts().not_opened, 0);
        for tries in 1..=10 {
            world.hand.advance(PAUSE);
            assert_eq!(world.get(&lane, "key").await, Err(CacheError::Connect));
            assert_eq!(world.get(&lane, "key").await, Err(CacheError::Paused));
            assert_eq!(world.counts().not_opened, tries);
        }

        server.start_again();
        assert_eq!(world.get(&lane, "key").await, Err(CacheError::Paused));
        world.hand.advance(PAUSE);
        assert_eq!(world.get(&lane, "key").await, Ok(None), "it is back, and it is empty");
        world.set(&lane, "key", "again").await;
        assert_eq!(world.get(&lane, "key").await, value("again"));
        let counts = world.counts();
        assert_eq!((counts.opened, counts.reconnects, counts.connections), (2, 1, 1));
    });
}

#[test]
fn an_idle_connection_that_the_server_closes_costs_no_command() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        let killed = redis::cmd("CLIENT")
            .arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"][..])
            .exec(&mut server.look());
        killed.expect("they are closed");
        world.until(|counts| counts.connections == 0).await;
        world.hand.advance(PAUSE);
        assert_eq!(world.get(&lane, "key").await, value("value"));
        assert_eq!(world.counts().errors, [0; CacheError::KINDS]);
    });
}

#[test]
fn the_next_address_is_used_when_one_does_not_answer() {
    let (mut first, second) = (Server::start(), Server::start());
    on_a_thread(async {
        let mut both = settings(first.address);
        both.addresses.push(second.address.into());
        let world = World::with(both);
        let lane = world.lane();
        world.set(&lane, "key", "first").await;
        first.kill();
        world.until(|counts| counts.connections == 0).await;
        world.reopen(&lane).await;
        world.set(&lane, "key", "second").await;
        assert_eq!((first.address != second.address, second.clients()), (true, 1));
        // The one that answered last is tried first from now on, also by other threads.
        assert_eq!(world.get(&world.lane(), "key").await, value("second"));
        assert_eq!(world.counts().not_opened, 0);
    });
}

#[test]
fn a_name_is_looked_up() {
    let server = Server::start();
    on_a_thread(async {
        let mut named = settings(server.address);
        named.addresses = vec![backstop_gateway::upstream::Address::new("localhost", server.address.port())];
        let world = World::with(named);
        assert_eq!(world.get(&world.lane(), "key").await, Ok(None));
    });
}
