//! What goes wrong on the way to an answer, and what it is called.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backstop::upstream::{Progress, Upstream};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_gateway::upstream::{Address, Settings, Timed};
use socket2::{Domain, Socket, Type};
use tokio::sync::Semaphore;
use tokio::task::{spawn_local, yield_now};

use crate::origin::Origin;
use crate::support::{OK, SECOND, Whole, World, failure, get, on_a_thread, whole};

const REFUSED: Failure = Failure::new(FailureKind::Connect, Phase::Connect, Sent::No);
const TIMED_OUT: Failure = Failure::new(FailureKind::ConnectTimeout, Phase::Connect, Sent::No);
const RESET: Failure = Failure::new(FailureKind::Reset, Phase::Head, Sent::Maybe);
const INVALID: Failure = Failure::new(FailureKind::Protocol, Phase::Head, Sent::Maybe);

/// How an origin goes on after it has said something.
#[derive(Clone, Copy, Debug)]
enum Then {
    Closes,
    Resets,
    Waits,
}

fn saying(bytes: &str, then: Then) -> Origin {
    let bytes = bytes.to_owned();
    Origin::start(move |mut peer| {
        let bytes = bytes.clone();
        async move {
            peer.head().await;
            peer.say(&bytes).await;
            match then {
                Then::Closes => {}
                Then::Resets => peer.reset(),
                Then::Waits => peer.closed().await,
            }
        }
    })
}

/// A port that nobody listens on.
fn nowhere() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

/// A listener that accepts nothing and whose queue is full: connecting to it hangs.
struct Full {
    address: SocketAddr,
    _sockets: Vec<Socket>,
}

impl Full {
    fn new() -> Self {
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let listener = socket();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        listener.listen(0).expect("listening");
        let address = listener.local_addr().expect("an address").as_socket().expect("an IP address");
        let mut sockets = vec![listener];
        for _ in 0..4 {
            let queued = socket();
            queued.set_nonblocking(true).expect("non-blocking");
            let _in_progress = queued.connect(&address.into());
            sockets.push(queued);
        }
        Self { address, _sockets: sockets }
    }
}

#[test]
fn every_fault_before_the_head_has_its_name() {
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(40 * 1024));
    let cases: &[(&str, Then, Failure)] = &[
        ("", Then::Closes, RESET),
        ("", Then::Resets, RESET),
        ("HTTP/1.1 200 OK\r\nContent-Le", Then::Closes, RESET),
        ("HTTP/1.1 200 OK\r\nContent-Le", Then::Resets, RESET),
        ("HTTP/1.1 100 Continue\r\n\r\n", Then::Closes, RESET),
        ("what is this?\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/2.0 200 OK\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 2000 OK\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", Then::Waits, INVALID),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Then::Waits, INVALID),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok",
            Then::Waits,
            INVALID,
        ),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Then::Waits, INVALID),
        (&huge, Then::Waits, INVALID),
    ];
    on_a_thread(async {
        for (bytes, then, expected) in cases {
            let origin = saying(bytes, *then);
            let world = World::new(origin.address, 1);
            let lane = world.pool.lane();
            assert_eq!(world.fetch(&lane, get()).await, Err(*expected), "{then:?} after {bytes:.60?}");
            world.until(|counts| counts.open == 0).await;
            assert_eq!((world.limit.in_flight(), origin.seen().heads.len()), (0, 1));
        }
    });
}

#[test]
fn an_answer_that_breaks_off_is_incomplete() {
    let cases: &[(&str, Then, FailureKind)] = &[
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Then::Closes, FailureKind::Incomplete),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Then::Closes, FailureKind::Incomplete),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Then::Resets, FailureKind::Incomplete),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
            Then::Closes,
            FailureKind::Incomplete,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            Then::Closes,
            FailureKind::Incomplete,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
            Then::Closes,
            FailureKind::Incomplete,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            Then::Resets,
            FailureKind::Incomplete,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nabc", Then::Resets, FailureKind::Incomplete),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", Then::Waits, FailureKind::Protocol),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n",
            Then::Waits,
            FailureKind::Protocol,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n",
            Then::Waits,
            FailureKind::Protocol,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            Then::Waits,
            FailureKind::Protocol,
        ),
    ];
    on_a_thread(async {
        for (bytes, then, kind) in cases {
            // The origin breaks off only when the head has been read, or a reset might overtake it.
            let go = Arc::new(Semaphore::new(0));
            let origin = {
                let (bytes, then, go) = (bytes.to_owned(), *then, Arc::clone(&go));
                Origin::start(move |mut peer| {
                    let go = Arc::clone(&go);
                    async move {
                        peer.head().await;
                        peer.say(bytes).await;
                        go.acquire().await.expect("open").forget();
                        match then {
                            Then::Closes => {}
                            Then::Resets => peer.reset(),
                            Then::Waits => peer.closed().await,
                        }
                    }
                })
            };
            let world = World::new(origin.address, 1);
            let lane = world.pool.lane();
            let answer = lane.call(world.attempt(), get(), &Progress::new()).await.expect("a head");
            go.add_permits(1);
            let expected = Failure::new(*kind, Phase::Body, Sent::Maybe);
            assert_eq!(whole(answer).await, Err(expected), "{then:?} after {bytes:?}");
            world.until(|counts| counts.open == 0).await;
            assert_eq!(world.limit.in_flight(), 0);
        }
    });
}

#[test]
fn nobody_listens() {
    on_a_thread(async {
        let world = World::new(nowhere(), 1);
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Err(REFUSED));
        assert_eq!((world.counts().open, world.limit.in_flight()), (0, 0));
    });
}

#[test]
fn a_connect_that_hangs_ends_at_its_own_limit() {
    on_a_thread(async {
        let full = Full::new();
        let world = World::new(full.address, 1);
        let call = spawn_local({
            let (world, lane) = (world.clone(), world.pool.lane());
            async move { failure(lane.call(world.attempt(), get(), &Progress::new()).await) }
        });
        world.until(|counts| counts.open == 1).await;
        world.hand.advance(SECOND - Duration::from_nanos(1));
        for _ in 0..10 {
            yield_now().await;
        }
        assert!(!call.is_finished(), "one nanosecond is left");
        world.hand.advance(Duration::from_nanos(1));
        assert_eq!(call.await.expect("it ends"), TIMED_OUT);
        assert_eq!((world.counts().open, world.limit.in_flight()), (0, 0));
    });
}

#[test]
fn a_connect_that_nobody_waits_for_is_cancelled() {
    on_a_thread(async {
        let full = Full::new();
        let world = World::new(full.address, 1);
        let lane = world.pool.lane();
        {
            let progress = Progress::new();
            let mut call = Box::pin(lane.call(world.attempt(), get(), &progress));
            let begun = poll_fn(|context| Poll::Ready(Pin::new(&mut call).poll(context).is_pending())).await;
            assert!(begun);
            assert_eq!((progress.phase(), world.counts().open), (Phase::Connect, 1));
        }
        assert_eq!((world.counts().open, world.limit.in_flight()), (0, 0));
    });
}

#[test]
fn another_address_is_asked_if_the_first_cannot_be_connected_to() {
    on_a_thread(async {
        let origin = Origin::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        let full = Full::new();
        for (dead, advance) in [(nowhere(), false), (full.address, true)] {
            let world = World::with(Settings::new(vec![dead.into(), origin.address.into()], 1, SECOND));
            let lane = world.pool.lane();
            let call = spawn_local({
                let (world, lane) = (world.clone(), lane.clone());
                async move { world.fetch(&lane, get()).await }
            });
            if advance {
                world.until(|counts| counts.open == 1).await;
                world.hand.advance(SECOND);
            }
            assert_eq!(call.await.expect("it ends"), Ok(Whole::ok()));
            // The dead one is passed over now.
            for _ in 0..3 {
                assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            }
            let counts = world.counts();
            assert!(counts.addresses[0].passed_over_until.is_some());
            assert_eq!(counts.durations[Timed::Connect as usize].count(), 5, "four and the one that failed");
        }
    });
}

#[test]
fn no_other_address_is_asked_once_something_may_have_been_sent() {
    on_a_thread(async {
        let breaking = saying("", Then::Resets);
        let good = Origin::answering(OK);
        let world = World::with(Settings::new(vec![breaking.address.into(), good.address.into()], 8, SECOND));
        let lane = world.pool.lane();
        let mut failed = 0;
        for _ in 0..8 {
            match world.fetch(&lane, get()).await {
                Ok(answer) => assert_eq!(answer, Whole::ok()),
                Err(failure) => {
                    assert_eq!(failure, RESET);
                    failed += 1;
                }
            }
        }
        assert!(failed > 0);
        assert_eq!((breaking.seen().heads.len(), good.seen().heads.len()), (failed, 8 - failed));
    });
}

#[test]
fn names_are_looked_up() {
    on_a_thread(async {
        let origin = Origin::answering(OK);
        let world = World::new(Address::new("localhost", origin.address.port()), 1);
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        assert!(world.counts().addresses[0].resolved_at.is_some());

        // Longer than any label may be, so that no name service is ever asked.
        let world = World::new(Address::new(&"x".repeat(300), 80), 1);
        let lane = world.pool.lane();
        let dns = Failure::new(FailureKind::Dns, Phase::Resolve, Sent::No);
        assert_eq!(world.fetch(&lane, get()).await, Err(dns));
    });
}
