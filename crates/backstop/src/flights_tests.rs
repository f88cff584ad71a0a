use std::panic::{AssertUnwindSafe, catch_unwind};

use backstop_engine::failure::NotAsked;
use backstop_store::Target;

use super::*;

fn at(ms: u64) -> Mono {
    Mono::from_ns(ms * 1_000_000)
}

fn key(path: &str) -> CopyKey {
    CopyKey { target: Target::new("h", path, None), route: "reviews".into(), partition: [].into() }
}

fn lead(flights: &Arc<Flights>, path: &str, now: Mono) -> Lead {
    match flights.join(&key(path), now, 2, |_| false) {
        Seat::Lead(lead) => lead,
        seat => panic!("{seat:?}"),
    }
}

fn follow(flights: &Arc<Flights>, path: &str) -> Follow {
    match flights.join(&key(path), at(0), 2, |_| false) {
        Seat::Follow(follow) => follow,
        seat => panic!("{seat:?}"),
    }
}

fn under_way(flights: &Flights) -> usize {
    flights.shards.iter().map(|shard| shard.lock().unwrap().under_way.len()).sum()
}

const FULL: Cause = Cause::NotAsked(NotAsked::ResourceFull);

/// One read per key, for those on other threads too, and none is left once it has landed.
#[tokio::test]
async fn a_key_is_read_once_for_all_who_ask_meanwhile() {
    let flights = Arc::new(Flights::new());
    let leading = lead(&flights, "/p/1", at(0));
    let other = lead(&flights, "/p/2", at(0));
    let followers = [follow(&flights, "/p/1"), follow(&flights, "/p/1")];
    let waiting = followers.map(|follow| tokio::spawn(async move { follow.landed().await }));
    leading.land(Landed::Failed(FULL), at(1));
    for waiter in waiting {
        assert!(matches!(waiter.await.unwrap(), Landed::Failed(FULL)));
    }
    drop(other);
    assert_eq!(under_way(&flights), 0);
}

/// A change ends at 5 ms. Who came before it gets what was read from 0 ms on; who comes after it is answered by a read of
/// its own time, and the end of the first read is not that of the second.
#[tokio::test]
async fn nobody_follows_a_read_from_before_a_change() {
    let flights = Arc::new(Flights::new());
    let changed = |began: Mono| began <= at(5);
    let first = lead(&flights, "/p", at(0));
    let before = follow(&flights, "/p");
    let Seat::Lead(second) = flights.join(&key("/p"), at(6), 2, changed) else { panic!("a new read") };
    let Seat::Follow(after) = flights.join(&key("/p"), at(7), 2, changed) else {
        panic!("follows the new one")
    };
    first.land(Landed::Failed(FULL), at(8));
    assert!(matches!(before.landed().await, Landed::Failed(FULL)));
    assert_eq!(under_way(&flights), 1, "the second goes on");
    second.land(Landed::Failed(LOST), at(9));
    assert!(matches!(after.landed().await, Landed::Failed(LOST)));
    assert_eq!(under_way(&flights), 0);
}

/// The failure of a read is that of those who waited for it.
#[tokio::test]
async fn a_failed_read_fails_nobody_who_comes_later() {
    let flights = Arc::new(Flights::new());
    lead(&flights, "/p", at(0)).land(Landed::Failed(FULL), at(0));
    drop(lead(&flights, "/p", at(0)));
    drop(lead(&flights, "/p", at(0)));
}

/// Whoever leads and whoever follows see the call for their own read, and not that of the one before.
#[test]
fn those_who_wait_see_whether_their_read_was_sent() {
    let flights = Arc::new(Flights::new());
    let seats = || [(); 2].map(|()| flights.join(&key("/p"), at(0), 2, |_| false));
    let watches = |seats: &[Seat; 2]| {
        seats.each_ref().map(|seat| {
            let watch = Watch::default();
            watch.look_at(seat);
            watch
        })
    };
    let first = seats();
    let of_first = watches(&first);
    assert!(of_first.iter().all(|watch| !watch.was_sent()));
    let [Seat::Lead(lead), _follow] = &first else { panic!("{first:?}") };
    lead.sent();
    assert!(of_first.iter().all(Watch::was_sent));
    lead.land(Landed::Failed(FULL), at(0));
    assert!(watches(&seats()).iter().all(|watch| !watch.was_sent()));
    assert!(!Watch::default().was_sent());
}

#[tokio::test]
async fn no_more_follow_than_may_and_a_seat_comes_back() {
    let flights = Arc::new(Flights::new());
    let _leading = lead(&flights, "/p", at(0));
    let (first, _second) = (follow(&flights, "/p"), follow(&flights, "/p"));
    assert!(matches!(flights.join(&key("/p"), at(0), 2, |_| false), Seat::Full));
    drop(first);
    let _third = follow(&flights, "/p");
    assert!(matches!(flights.join(&key("/p"), at(0), 2, |_| false), Seat::Full));
}

/// Whoever leads may panic or be dropped: those who wait get an error, and the next who asks leads.
#[tokio::test]
async fn a_lost_read_ends_for_those_who_wait() {
    let flights = Arc::new(Flights::new());
    let leading = lead(&flights, "/p", at(0));
    let waiter = follow(&flights, "/p");
    let waiting = tokio::spawn(async move { waiter.landed().await });
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _leading = leading;
        panic!("in the middle of a read");
    }));
    assert!(panicked.is_err());
    assert!(matches!(waiting.await.unwrap(), Landed::Failed(LOST)));
    drop(lead(&flights, "/p", at(0)));
}

/// By hand: apart for 10 s, from the landing on; the nanosecond decides.
#[tokio::test]
async fn what_is_one_callers_own_is_asked_for_apart_for_a_while() {
    let flights = Arc::new(Flights::new());
    let leading = lead(&flights, "/p", at(0));
    let waiter = follow(&flights, "/p");
    leading.land(Landed::Apart, at(0));
    assert!(matches!(waiter.landed().await, Landed::Apart));
    let end = at(10_000);
    assert!(matches!(
        flights.join(&key("/p"), end.before(Duration::from_nanos(1)), 2, |_| false),
        Seat::Apart
    ));
    assert!(matches!(flights.join(&key("/p"), end, 2, |_| false), Seat::Lead(_)));
}

/// One request's fault says nothing of the key: who waited begins the next read, and others may follow that one.
#[tokio::test]
async fn what_is_about_one_request_leaves_its_key_shared() {
    let flights = Arc::new(Flights::new());
    let leading = lead(&flights, "/p", at(0));
    let waiter = follow(&flights, "/p");
    leading.land(Landed::Again, at(0));
    assert!(matches!(waiter.landed().await, Landed::Again));
    let _anew = lead(&flights, "/p", at(0));
    let _follows = follow(&flights, "/p");
}

#[test]
fn keys_kept_apart_are_bounded() {
    let flights = Arc::new(Flights::new());
    for number in 0..4 * SHARDS * APART_PER_SHARD {
        lead(&flights, &format!("/{number}"), at(0)).land(Landed::Apart, at(0));
    }
    let apart: usize = flights.shards.iter().map(|shard| shard.lock().unwrap().apart.len()).sum();
    assert_eq!(apart, SHARDS * APART_PER_SHARD);
    // What has ended makes room.
    let later = at(20_000);
    for number in 0..SHARDS * APART_PER_SHARD {
        lead(&flights, &format!("/later/{number}"), later).land(Landed::Apart, later);
    }
    let apart: usize = flights.shards.iter().map(|shard| shard.lock().unwrap().apart.len()).sum();
    assert!(apart <= SHARDS * APART_PER_SHARD && apart > SHARDS * APART_PER_SHARD / 2, "{apart}");
}

/// 64 threads at one key: exactly one of them leads at a time.
#[test]
fn many_threads_lead_one_at_a_time() {
    let flights = Arc::new(Flights::new());
    let (leading, led) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Seat::Lead(lead) = flights.join(&key("/p"), at(0), u32::MAX, |_| false) {
                        assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0);
                        led.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(leading.fetch_sub(1, Ordering::SeqCst), 1);
                        lead.land(Landed::Failed(FULL), at(0));
                    }
                }
            });
        }
    });
    assert!(led.load(Ordering::SeqCst) > 0);
    assert_eq!(under_way(&flights), 0);
}
