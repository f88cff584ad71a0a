//! Connections that do not come about, or late.

use backstop_gateway::cache::{CacheError, Refusal};

use super::fake::Fake;
use super::support::{CONNECT, TIMEOUT, World, on_a_thread, settings, settle, value};

#[test]
fn a_connection_is_used_only_after_an_answer_on_it() {
    on_a_thread(async {
        for (said, why) in [
            (
                &b"-LOADING Redis is loading the dataset in memory\r\n"[..],
                CacheError::Server(Refusal::Loading),
            ),
            (b"-DENIED Redis is running in protected mode\r\n", CacheError::Server(Refusal::Other)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", CacheError::Protocol),
            (b"+OK\r\n", CacheError::Protocol),
            (b"$4\r\nPONG\r\n", CacheError::Protocol),
            (b"", CacheError::Connect),
        ] {
            let fake = Fake::listen().await;
            let world = World::new(fake.address);
            let lane = world.lane();
            let commands: Vec<_> = (0..3).map(|_| world.begin(&lane, "key")).collect();
            let mut peer = fake.accept().await;
            peer.command("PING").await;
            peer.say(said).await;
            drop(peer);
            for command in commands {
                assert_eq!(command.outcome().await, Err(why), "all learn why: {}", said.escape_ascii());
            }
            assert_eq!(world.get(&lane, "key").await, Err(CacheError::Paused));
            let counts = world.counts();
            assert_eq!((counts.opened, counts.not_opened, counts.in_flight), (0, 1, 0));
        }
    });
}

#[test]
fn a_server_that_greets_too_late_is_given_up() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let mut patient = settings(fake.address);
        patient.timeout = 4 * CONNECT;
        let world = World::with(patient);
        let lane = world.lane();
        let command = world.begin(&lane, "key");
        let mut peer = fake.accept().await;
        peer.command("PING").await;
        world.hand.advance(CONNECT - TIMEOUT / 20);
        settle().await;
        assert!(!command.has_ended());
        world.hand.advance(TIMEOUT / 20);
        assert_eq!(command.outcome().await, Err(CacheError::Connect));
        peer.closed().await;
    });
}

#[test]
fn opening_goes_on_for_those_who_come_later() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let impatient = world.begin(&lane, "first");
        let leaving = world.begin(&lane, "second");
        let mut peer = fake.accept().await;
        peer.command("PING").await;
        drop(leaving);
        world.hand.advance(TIMEOUT);
        assert_eq!(impatient.outcome().await, Err(CacheError::Connect));
        let later = world.begin(&lane, "third");
        peer.say(b"+PONG\r\n").await;
        peer.command("third").await;
        peer.say(b"$1\r\n3\r\n").await;
        assert_eq!(later.outcome().await, value("3"));
        let counts = world.counts();
        assert_eq!((counts.opened, counts.not_opened, counts.abandoned), (1, 0, 0), "nothing else was sent");
    });
}

#[test]
fn without_an_address_there_is_no_connection() {
    on_a_thread(async {
        let mut none = settings(([127, 0, 0, 1], 1).into());
        none.addresses.clear();
        let world = World::with(none);
        assert_eq!(world.get(&world.lane(), "key").await, Err(CacheError::Connect));
    });
}
