//! A server that stands still: its connections stay, it answers nothing, and later it goes on where it was.

use backstop_gateway::cache::CacheError;

use super::fake::Fake;
use super::server::Server;
use super::support::{CONNECT, PAUSE, TIMEOUT, UnderWay, World, on_a_thread, settle, soon, value};

#[test]
fn commands_end_at_their_limit_and_not_a_nanosecond_earlier() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        server.freeze();
        let command = world.begin(&lane, "key");
        let nanosecond = std::time::Duration::from_nanos(1);
        world.hand.advance(TIMEOUT - nanosecond);
        settle().await;
        assert!(!command.has_ended());
        world.hand.advance(nanosecond);
        assert_eq!(command.outcome().await, Err(CacheError::Timeout));
        let counts = world.counts();
        assert_eq!((counts.ended, counts.connections, counts.in_flight), ([0, 1, 0, 0], 0, 0));
    });
}

#[test]
fn no_answer_of_an_earlier_command_is_given_to_a_later_one() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        for number in 0..100 {
            world.set(&lane, &format!("k{number}"), &format!("v{number}")).await;
        }
        server.freeze();
        // Some are given up for want of an answer, all at different places of the pipeline.
        let late: Vec<_> = (0..10).map(|_| world.begin(&lane, "k7")).collect();
        settle().await;
        world.hand.advance(TIMEOUT);
        for command in late {
            assert_eq!(command.outcome().await, Err(CacheError::Timeout));
        }
        server.thaw();
        world.reopen(&lane).await;
        for number in 0..100 {
            assert_eq!(world.get(&lane, &format!("k{number}")).await, value(&format!("v{number}")));
        }
        assert_eq!((world.counts().reconnects, world.counts().in_flight), (1, 0));
        assert_eq!(world.counts().ended, [0, 1, 0, 0]);
    });
}

#[test]
fn answers_to_commands_whose_callers_left_are_given_to_nobody() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        for number in 0..40 {
            world.set(&lane, &format!("k{number}"), &format!("v{number}")).await;
        }
        server.freeze();
        let mut commands: Vec<_> =
            (0..40).map(|number| Some(world.begin(&lane, &format!("k{number}")))).collect();
        settle().await;
        // Every third caller leaves, when all commands are already on their way.
        commands.iter_mut().step_by(3).for_each(|command| *command = None);
        server.thaw();
        for (number, command) in commands.into_iter().enumerate() {
            if let Some(command) = command {
                assert_eq!(command.outcome().await, value(&format!("v{number}")));
            }
        }
        world.until(|counts| counts.in_flight == 0).await;
        let counts = world.counts();
        assert_eq!((counts.abandoned, counts.opened, counts.connections), (14, 1, 1), "on one connection");
    });
}

#[test]
fn a_frozen_server_is_tried_ever_less_often_and_used_once_it_goes_on() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        server.freeze();
        let command = world.begin(&lane, "key");
        world.hand.advance(TIMEOUT);
        assert_eq!(command.outcome().await, Err(CacheError::Timeout));

        // Its system accepts connections, so only the missing greeting tells.
        for tries in 1..=4 {
            world.hand.advance(PAUSE);
            let command = world.begin(&lane, "key");
            settle().await;
            world.hand.advance(TIMEOUT);
            settle().await;
            assert!(command.has_ended());
            assert_eq!(command.outcome().await, Err(CacheError::Connect), "nothing was sent");
            world.hand.advance(CONNECT);
            world.until(|counts| counts.not_opened == tries).await;
            assert_eq!(world.get(&lane, "key").await, Err(CacheError::Paused));
        }
        server.thaw();
        world.reopen(&lane).await;
        assert_eq!(world.get(&lane, "key").await, value("value"));
    });
}

#[test]
fn a_write_without_an_answer_may_still_be_carried_out() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "before").await;
        server.freeze();
        let write = {
            let (lane, later) = (lane.clone(), world.later());
            UnderWay::begin(async move { lane.set(b"key", b"late", PAUSE * 60, later).await })
        };
        settle().await;
        world.hand.advance(TIMEOUT);
        let outcome = write.outcome().await.expect_err("no answer");
        assert!(outcome == CacheError::Timeout && outcome.may_have_been_sent());
        server.thaw();
        world.reopen(&lane).await;
        let carried_out = async {
            while world.get(&lane, "key").await != value("late") {
                tokio::task::yield_now().await;
            }
        };
        soon(carried_out).await;
    });
}

#[test]
fn those_under_way_are_not_ended_by_one_that_is_late() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let early = world.begin(&lane, "early");
        let mut peer = fake.greet().await;
        peer.command("early").await;
        world.hand.advance(TIMEOUT / 2);
        let late = world.begin(&lane, "late");
        peer.command("late").await;
        world.hand.advance(TIMEOUT / 2);
        assert_eq!(early.outcome().await, Err(CacheError::Timeout));
        assert_eq!((world.counts().ended, world.counts().in_flight), ([0, 1, 0, 0], 1));
        peer.say(b"$5\r\nfirst\r\n$6\r\nsecond\r\n").await;
        assert_eq!(late.outcome().await, value("second"));
        // Nobody needs it any more.
        peer.closed().await;
        assert_eq!(world.counts().in_flight, 0);
    });
}

#[test]
fn a_caller_with_less_time_gets_his_answer_earlier_and_the_connection_stays() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let hurried = world.begin_until(&lane, "hurried", world.clock.mono().after(TIMEOUT / 4));
        let mut peer = fake.greet().await;
        peer.command("hurried").await;
        world.hand.advance(TIMEOUT / 4);
        assert_eq!(hurried.outcome().await, Err(CacheError::Timeout));
        assert_eq!((world.counts().in_flight, world.counts().abandoned), (1, 1), "the server still has it");
        let next = world.begin(&lane, "next");
        peer.command("next").await;
        peer.say(b"$1\r\nh\r\n$1\r\nn\r\n").await;
        assert_eq!(next.outcome().await, value("n"));
        world.until(|counts| counts.in_flight == 0).await;
        assert_eq!((world.counts().opened, world.counts().connections), (1, 1));
        assert_eq!(soon(lane.get(b"x", world.clock.mono())).await, Err(CacheError::TooLate));
    });
}

#[test]
fn a_command_that_nobody_waits_for_ends_the_connection_at_its_limit_all_the_same() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let left = world.begin(&lane, "left");
        let mut peer = fake.greet().await;
        peer.command("left").await;
        drop(left);
        settle().await;
        assert_eq!((world.counts().in_flight, world.counts().abandoned), (1, 1));
        world.hand.advance(TIMEOUT);
        peer.closed().await;
        assert_eq!((world.counts().ended, world.counts().in_flight), ([0, 1, 0, 0], 0));
    });
}
