//! Requests on many threads: nothing that was read before a withdrawal is ever found after it.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use backstop_store::testing::{FakeMedium, block_on, copy, key, now};
use backstop_store::{Copies, CopyKey, Loaded, StoreOptions, Withdrawal, Withdrawn};
use http::HeaderMap;

const CHANGES: u64 = 400;

/// Readers store what the origin says, a writer changes the origin and withdraws, and observers hold every copy
/// against the version that was current when they began to look.
fn race(store: &Copies, withdrawal: impl Fn(&CopyKey) -> Withdrawal, confirmed: bool) {
    let (key, other) = (key("/p", Some("q")), key("/other", None));
    // What the origin would answer, and the version before which everything was withdrawn.
    let (origin, floor) = (AtomicU64::new(0), AtomicU64::new(0));
    let (running, seen) = (AtomicU64::new(1), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while running.load(Ordering::SeqCst) == 1 {
                    let ticket = store.begin_read(now(1));
                    let version = origin.load(Ordering::SeqCst);
                    thread::yield_now();
                    let body = version.to_be_bytes().to_vec();
                    store.put(&key, copy(body.clone(), ticket), ticket, now(1));
                    // Where memory is short, this one pushes the other out.
                    store.put(&other, copy(body, ticket), ticket, now(1));
                    drop(store.load(&other, &HeaderMap::new()));
                }
            });
            scope.spawn(|| {
                while running.load(Ordering::SeqCst) == 1 {
                    let floor = floor.load(Ordering::SeqCst);
                    let found = match store.load(&key, &HeaderMap::new()) {
                        Loaded::Ready(copy) => Some(copy),
                        Loaded::Disk(pending) => block_on(pending).ok(),
                        Loaded::Missing | Loaded::Unreadable => None,
                    };
                    if let Some(copy) = found {
                        let version = u64::from_be_bytes(copy.body[..].try_into().unwrap());
                        assert!(version >= floor, "version {version} was withdrawn at {floor}");
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for version in 1.. {
            // At least so many changes, and until something was seen of them.
            if version > CHANGES && seen.load(Ordering::Relaxed) > 100 {
                break;
            }
            origin.store(version, Ordering::SeqCst);
            let withdrawn = match version % 3 {
                // Holds until now, so it refuses nothing that begins now.
                0 => store.withdraw_until(withdrawal(&key), now(1), now(1).mono),
                _ => store.withdraw(withdrawal(&key), now(1)),
            };
            if let Withdrawn::Pending(confirmation) = withdrawn
                && confirmed
            {
                block_on(confirmation).unwrap();
            }
            floor.store(version, Ordering::SeqCst);
            thread::yield_now();
        }
        running.store(0, Ordering::SeqCst);
    });
    assert!(seen.load(Ordering::Relaxed) > 0);
}

fn target(key: &CopyKey) -> Withdrawal {
    Withdrawal::Target(key.target.clone())
}

fn path(_: &CopyKey) -> Withdrawal {
    Withdrawal::Path { host: "h".into(), path: "/p".into() }
}

fn route(_: &CopyKey) -> Withdrawal {
    Withdrawal::Route("r".into())
}

#[test]
fn memory_never_shows_what_was_withdrawn() {
    race(&Copies::memory(1 << 20), target, true);
    race(&Copies::memory(1 << 20), path, true);
    race(&Copies::memory(1 << 20), route, true);
}

#[test]
fn neither_does_a_store_with_a_disk_whether_or_not_it_is_waited_for() {
    for confirmed in [false, true] {
        // So little memory that copies leave it at once and are read back from disk; or a queue so short that most of them
        // are not written.
        for (memory_bytes, queue_len) in [(1 << 20, 8192), (900, 8192), (1 << 20, 1)] {
            for withdrawal in [target, path, route] {
                let disk = FakeMedium::default();
                let options = StoreOptions { memory_bytes, queue_len, ..StoreOptions::new("") };
                let (store, _) = Copies::open_on(Box::new(disk.clone()), options, now(0));
                race(&store, withdrawal, confirmed);
                // Told that there is nothing, nobody waits: then the disk has nothing of it now.
                if let Withdrawn::Pending(confirmation) = store.withdraw(route(&key("/p", None)), now(2)) {
                    block_on(confirmation).unwrap();
                }
                assert!(store.close(Duration::from_secs(60)));
                let (store, report) = Copies::open_on(Box::new(disk), StoreOptions::new(""), now(0));
                assert_eq!(report.corrupt, 0);
                assert!(store.peek(&key("/p", Some("q")), &HeaderMap::new()).is_none());
            }
        }
    }
}
