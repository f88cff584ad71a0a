//! Servers that speak otherwise.

use backstop_gateway::cache::{CacheError, Counts, Refusal};

use super::fake::Fake;
use super::support::{Answer, PAUSE, TIMEOUT, World, on_a_thread, settings, settle, value};

/// What a command gets when the server says this to it and then either closes or goes on listening.
async fn answer(said: &[u8], closes: bool) -> (Answer, Counts) {
    let fake = Fake::listen().await;
    let mut small = settings(fake.address);
    small.value_bytes = 1_000;
    let world = World::with(small);
    let lane = world.lane();
    let command = world.begin(&lane, "key");
    let mut peer = fake.greet().await;
    peer.command("key").await;
    peer.say(said).await;
    if closes {
        drop(peer);
        return (command.outcome().await, world.counts());
    }
    let outcome = command.outcome().await;
    let counts = world.counts();
    // A connection that is not trusted any more is closed.
    if matches!(outcome, Err(CacheError::Protocol)) {
        peer.closed().await;
    }
    (outcome, counts)
}

#[test]
fn what_is_no_answer_ends_the_connection() {
    on_a_thread(async {
        let too_long = format!("${}\r\n", 1_002);
        let sayings: [&[u8]; 16] = [
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            b"\0\0\0\0",
            b"+OK\r\n",
            b":1\r\n",
            b"$-1\r\n",
            b"*1\r\n$1\r\nx\r\n",
            b"%1\r\n+a\r\n+b\r\n",
            b">2\r\n+message\r\n+x\r\n",
            b"|1\r\n+a\r\n+b\r\n",
            b"$abc\r\n",
            b"$3\r\nabcde",
            b":1x\r\n",
            b"$9223372036854775807\r\n",
            b"$99999999999999999999\r\n",
            b"*2147483647\r\n",
            too_long.as_bytes(),
        ];
        for said in sayings {
            let (outcome, counts) = answer(said, false).await;
            assert_eq!(outcome, Err(CacheError::Protocol), "{}", said.escape_ascii());
            assert_eq!((counts.ended, counts.in_flight), ([0, 0, 1, 0], 0), "{}", said.escape_ascii());
        }
    });
}

#[test]
fn half_an_answer_is_none() {
    on_a_thread(async {
        let halves: [&[u8]; 5] = [b"", b"$", b"$5\r\n", b"$5\r\nab", b"$2\r\nab\r"];
        for said in halves {
            let (outcome, counts) = answer(said, true).await;
            assert_eq!(outcome, Err(CacheError::Reset), "{}", said.escape_ascii());
            assert_eq!(counts.ended, [1, 0, 0, 0]);
        }
    });
}

#[test]
fn an_answer_that_comes_byte_by_byte_ends_at_the_limit() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let command = world.begin(&lane, "key");
        let mut peer = fake.greet().await;
        peer.command("key").await;
        peer.say(b"$100\r\n").await;
        for _ in 0..19 {
            peer.say(b"x").await;
            world.hand.advance(TIMEOUT / 20);
            settle().await;
            assert!(!command.has_ended());
        }
        peer.say(b"x").await;
        world.hand.advance(TIMEOUT / 20);
        assert_eq!(command.outcome().await, Err(CacheError::Timeout));
        peer.closed().await;
    });
}

#[test]
fn one_answer_too_many_is_never_given_to_the_next_command() {
    on_a_thread(async {
        // Together with the one that was asked for.
        let (outcome, _) = answer(b"$1\r\na\r\n$1\r\nb\r\n", false).await;
        assert_eq!(outcome, Err(CacheError::Protocol));

        // While nothing is under way.
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let command = world.begin(&lane, "key");
        let mut peer = fake.greet().await;
        peer.command("key").await;
        peer.say(b"$1\r\na\r\n").await;
        assert_eq!(command.outcome().await, value("a"));
        peer.say(b"$1\r\nb\r\n").await;
        world.until(|counts| counts.ended == [0, 0, 1, 0]).await;
        peer.closed().await;
        assert_eq!(world.get(&lane, "key").await, Err(CacheError::Paused));
        world.hand.advance(PAUSE);
        let command = world.begin(&lane, "key");
        let mut peer = fake.greet().await;
        peer.command("key").await;
        peer.say(b"$1\r\nc\r\n").await;
        assert_eq!(command.outcome().await, value("c"));
    });
}

#[test]
fn an_endless_line_costs_no_memory() {
    on_a_thread(async {
        let fake = Fake::listen().await;
        let world = World::new(fake.address);
        let lane = world.lane();
        let command = world.begin(&lane, "key");
        let mut peer = fake.greet().await;
        peer.command("key").await;
        let endless = async {
            let mut said = 0_u64;
            while peer.try_say(&[b'-'; 65_536]).await.is_ok() {
                said += 65_536;
            }
            said
        };
        let (said, outcome) = tokio::join!(endless, command.outcome());
        assert_eq!(outcome, Err(CacheError::Protocol));
        // What the sockets' own buffers hold, and nothing beyond.
        assert!(said < 32 << 20, "{said} bytes");
    });
}

#[test]
fn a_refusal_is_the_commands_and_the_connection_goes_on() {
    on_a_thread(async {
        for (said, why) in [
            (&b"-LOADING Redis is loading the dataset in memory\r\n"[..], Refusal::Loading),
            (b"-BUSY Redis is busy running a script\r\n", Refusal::Busy),
            (b"-MASTERDOWN Link with MASTER is down\r\n", Refusal::PrimaryDown),
            (b"-MOVED 3999 127.0.0.1:6381\r\n", Refusal::Cluster),
            (b"-MISCONF Errors writing to the disk\r\n", Refusal::NoWrites),
            (b"-ERR unknown command\r\n", Refusal::Other),
            (b"-ERR unknown command 'GETRANGE', with args beginning with: '\xff\xfe'\r\n", Refusal::Other),
            (b"-\r\n", Refusal::Other),
        ] {
            let (outcome, counts) = answer(said, false).await;
            assert_eq!(outcome, Err(CacheError::Server(why)));
            assert_eq!((counts.connections, counts.errors_of(CacheError::Server(why))), (1, 1));
        }
    });
}
