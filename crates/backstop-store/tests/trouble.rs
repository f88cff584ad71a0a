//! What happens when the disk is slow, fails, or lies. The store goes on, and says so.

use std::time::Duration;

use backstop_store::disk::DiskError;
use backstop_store::testing::{FakeMedium, block_on, copy, key, now};
use backstop_store::{
    Copies, CopyKey, DiskState, LoadError, Loaded, OpenReport, PutOutcome, StoreOptions, WithdrawError,
    Withdrawal, Withdrawn,
};
use http::HeaderMap;

const FLUSH: Duration = Duration::from_secs(60);

fn options() -> StoreOptions {
    StoreOptions {
        retry_pause: (Duration::from_millis(1), Duration::from_millis(4)),
        commit_interval: Duration::from_millis(5),
        ..StoreOptions::new("")
    }
}

fn open(disk: &FakeMedium, options: StoreOptions) -> (Copies, OpenReport) {
    Copies::open_on(Box::new(disk.clone()), options, now(0))
}

fn put(store: &Copies, key: &CopyKey) -> PutOutcome {
    let ticket = store.begin_read(now(1));
    store.put(key, copy(vec![1; 1000], ticket), ticket, now(1))
}

fn present(store: &Copies, key: &CopyKey) -> bool {
    store.peek(key, &HeaderMap::new()).is_some()
}

fn withdraw(store: &Copies, key: &CopyKey) -> Withdrawn {
    store.withdraw(Withdrawal::Target(key.target.clone()), now(2))
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

fn failed() -> Option<DiskError> {
    Some(DiskError::Failed("broken".into()))
}

#[test]
fn a_stalled_disk_costs_writes_and_never_a_call() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, StoreOptions { queue_len: 10, ..options() });
    disk.stall(true);
    let keys: Vec<_> = (0..200).map(|number| key(&format!("/{number}"), None)).collect();
    assert!(keys.iter().all(|key| put(&store, key) == PutOutcome::Stored));
    assert!(keys.iter().all(|key| present(&store, key)));
    let health = store.health();
    assert!(health.writes_queued <= 10 + 64, "{health:?}");
    assert_eq!(health.writes_dropped + health.writes_queued, 200);
    disk.stall(false);
    assert!(store.close(FLUSH));
    assert_eq!(disk.durable_copies() as u64, 200 - health.writes_dropped);
}

#[test]
fn the_queue_is_bounded_in_bytes_too() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, StoreOptions { queue_bytes: 10_000, ..options() });
    disk.stall(true);
    for number in 0..50 {
        put(&store, &key(&format!("/{number}"), None));
    }
    let health = store.health();
    assert!(health.writes_queued <= 8 && health.writes_dropped >= 42, "{health:?}");
    disk.stall(false);
    // The newest content of a variant replaces what waits, and the room is given back.
    for round in 0..20 {
        put(&store, &key("/again", None));
        until(|| store.health().writes_queued == 0);
        assert!(store.health().writes_dropped < 50, "round {round}");
    }
}

#[test]
fn a_withdrawal_waits_for_the_disk_and_is_never_lost() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, options());
    let key = key("/p", None);
    put(&store, &key);
    until(|| disk.durable_copies() == 1);
    disk.fail(failed());
    let Withdrawn::Pending(confirmation) = withdraw(&store, &key) else { panic!("a copy was stored") };
    assert!(!present(&store, &key), "gone from memory at once");
    until(|| matches!(store.health().disk, DiskState::Failed(_)));
    assert_eq!(store.health().withdrawals_unconfirmed, 1);
    assert_eq!(disk.durable_copies(), 1);
    disk.fail(None);
    assert_eq!(block_on(confirmation), Ok(()));
    assert_eq!(disk.durable_copies(), 0);
    assert_eq!(store.health().withdrawals_unconfirmed, 0);
    assert_eq!(store.health().disk, DiskState::Ok);
}

#[test]
fn withdrawals_of_a_stalled_disk_take_a_bounded_amount_of_memory() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, options());
    let key = key("/p", None);
    disk.stall(true);
    for _ in 0..20_000 {
        put(&store, &key);
        drop(withdraw(&store, &key));
    }
    assert!(store.health().withdrawals_unconfirmed > 19_000);
    disk.stall(false);
    until(|| store.health().withdrawals_unconfirmed == 0);
}

#[test]
fn a_queued_put_does_not_come_back_after_its_withdrawal() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, options());
    let key = key("/p", None);
    for _ in 0..200 {
        put(&store, &key);
        let Withdrawn::Pending(confirmation) = withdraw(&store, &key) else { panic!("a copy was stored") };
        assert_eq!(block_on(confirmation), Ok(()));
        assert_eq!(disk.durable_copies(), 0);
    }
    put(&store, &key);
    assert!(store.close(FLUSH));
    assert_eq!(disk.durable_copies(), 1);
}

/// What the writer has in its hands will be on disk, whatever became of the content that came after it.
#[test]
fn a_put_that_is_being_written_does_not_come_back_after_its_withdrawal() {
    for dropped in [false, true] {
        let disk = FakeMedium::default();
        let (store, _) = open(&disk, StoreOptions { queue_len: 1, index_bytes: 64 * 4_000, ..options() });
        let key = key("/p", None);
        disk.stall(true);
        put(&store, &key);
        disk.wait_stalled();
        let other = |number: u32| backstop_store::testing::key(&format!("/other/{number}"), None);
        put(&store, &other(0));
        put(&store, &key);
        assert_eq!(store.health().writes_dropped, 1, "the lane is full");
        if dropped {
            // The index is full as well, and the copy leaves it.
            (1..5_000).for_each(|number| assert_eq!(put(&store, &other(number)), PutOutcome::Stored));
            assert!(!present(&store, &key));
        }
        let Withdrawn::Pending(confirmation) = withdraw(&store, &key) else { panic!("a copy was stored") };
        disk.stall(false);
        assert_eq!(block_on(confirmation), Ok(()));
        assert!(store.close(FLUSH));
        let (store, report) = open(&disk, options());
        assert!(!present(&store, &key), "{report:?}");
    }
}

/// Whoever withdraws again what is not yet gone for good is not told that there is nothing.
#[test]
fn what_is_still_leaving_the_disk_is_not_nothing() {
    let route = || Withdrawal::Route("r".into());
    let key = key("/p", None);
    for (first, second) in [
        (Withdrawal::Target(key.target.clone()), Withdrawal::Target(key.target.clone())),
        (route(), route()),
        (route(), Withdrawal::Target(key.target.clone())),
    ] {
        let disk = FakeMedium::default();
        let (store, _) = open(&disk, options());
        put(&store, &key);
        until(|| disk.durable_copies() == 1);
        disk.stall(true);
        let Withdrawn::Pending(one) = store.withdraw(first, now(2)) else { panic!("a copy was stored") };
        let Withdrawn::Pending(other) = store.withdraw(second.clone(), now(3)) else {
            panic!("the disk still holds it")
        };
        assert_eq!(disk.durable_copies(), 1);
        disk.stall(false);
        assert_eq!((block_on(one), block_on(other)), (Ok(()), Ok(())));
        until(|| disk.durable_copies() == 0 && store.health().entries == 0);
        until(|| matches!(store.withdraw(second.clone(), now(4)), Withdrawn::NothingStored));
    }
}

/// Records leave the disk all the time for want of room. Only who withdraws one of those waits for it, and what never had a
/// copy is answered at once.
#[test]
fn a_withdrawal_of_nothing_waits_for_no_record_of_something_else() {
    let disk = FakeMedium::default();
    // Room for a few copies in each of the 64 shards.
    let (store, _) = open(&disk, StoreOptions { index_bytes: 64 * 1_200, ..options() });
    let keys = |letter: &str| -> Vec<_> {
        (0..300).map(|number| key(&format!("/{letter}/{number}"), None)).collect()
    };
    let first = keys("a");
    assert!(first.iter().all(|key| put(&store, key) == PutOutcome::Stored));
    until(|| store.health().writes_queued == 0);
    let held: Vec<_> = first.iter().filter(|key| present(&store, key)).collect();
    until(|| disk.durable_copies() == held.len());
    disk.stall(true);
    assert!(keys("b").iter().all(|key| put(&store, key) == PutOutcome::Stored));
    let evicted: Vec<_> = held.into_iter().filter(|key| !present(&store, key)).collect();
    assert!(evicted.len() > 10, "{} left the index", evicted.len());
    for never in keys("c") {
        assert!(matches!(withdraw(&store, &never), Withdrawn::NothingStored), "{never:?}");
    }
    let pending: Vec<_> = evicted
        .iter()
        .map(|key| match withdraw(&store, key) {
            Withdrawn::Pending(confirmation) => confirmation,
            Withdrawn::NothingStored => panic!("the disk still holds {key:?}"),
        })
        .collect();
    disk.stall(false);
    assert!(pending.into_iter().all(|confirmation| block_on(confirmation) == Ok(())));
    for key in evicted {
        assert!(matches!(withdraw(&store, key), Withdrawn::NothingStored), "gone for good");
    }
}

/// What was read before the failure must not be taken for something else the next time.
#[test]
fn a_first_reading_that_breaks_off_loses_nothing_and_leaves_nothing_behind() {
    let keys: Vec<_> = (0..5).map(|number| key(&format!("/{number}"), None)).collect();
    for panics in [false, true] {
        let disk = FakeMedium::default();
        let (store, _) = open(&disk, options());
        for key in &keys {
            put(&store, key);
        }
        assert!(store.close(FLUSH));
        let patient = StoreOptions { retry_pause: (Duration::from_millis(50), FLUSH), ..options() };
        disk.break_next_scan(3, panics);
        let (store, report) = open(&disk, patient);
        assert_eq!(report.copies, 0);
        if panics {
            // Damage: the file is set aside, and nothing of it is left in the index.
            assert!(report.set_aside.is_some());
            assert_eq!(store.health().entries, 0);
            continue;
        }
        assert!(matches!(report.disk, DiskState::Failed(_)), "{report:?}");
        until(|| store.health().disk == DiskState::Ok);
        assert!(keys.iter().all(|key| present(&store, key)));
        assert!(store.close(FLUSH));
        assert_eq!(disk.durable_copies(), 5);
    }
}

/// The file went back to an earlier commit: what is known of the copy goes back with it.
#[test]
fn a_commit_that_was_lost_leaves_the_version_before_it_with_its_date() {
    let disk = FakeMedium::default();
    let key = key("/p", None);
    let (store, _) = open(&disk, options());
    put(&store, &key);
    let date = |store: &Copies| store.peek(&key, &HeaderMap::new()).map(|facts| facts.observed_at.mono);
    assert!(store.close(FLUSH));
    let slow = StoreOptions { memory_bytes: 20_000, commit_interval: Duration::from_secs(600), ..options() };
    let (store, _) = open(&disk, slow);
    let again = |key: &CopyKey| {
        let ticket = store.begin_read(now(5));
        store.put(key, copy(vec![2; 1000], ticket), ticket, now(5));
        until(|| store.health().writes_queued == 0);
    };
    again(&key);
    // The new version is on disk, not yet for good, and leaves memory.
    for number in 0..200 {
        again(&backstop_store::testing::key(&format!("/other/{number}"), None));
    }
    assert_eq!(date(&store), Some(now(5).mono));
    disk.fail(failed());
    let lost = backstop_store::testing::key("/lost", None);
    put(&store, &lost);
    until(|| matches!(store.health().disk, DiskState::Failed(_)));
    disk.fail(None);
    let Withdrawn::Pending(confirmation) = withdraw(&store, &lost) else { panic!("a copy was stored") };
    assert_eq!(block_on(confirmation), Ok(()));
    assert_eq!(date(&store), Some(now(1).mono));
    let Loaded::Disk(pending) = store.load(&key, &HeaderMap::new()) else { panic!("in memory") };
    assert_eq!(block_on(pending).unwrap().body[0], 1);
}

#[test]
fn a_closed_store_says_that_it_cannot_confirm() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, options());
    let key = key("/p", None);
    put(&store, &key);
    disk.fail(failed());
    let Withdrawn::Pending(confirmation) = withdraw(&store, &key) else { panic!("a copy was stored") };
    store.close(FLUSH);
    assert_eq!(block_on(confirmation), Err(WithdrawError::Closed));
}

#[test]
fn what_was_withdrawn_before_the_disk_could_be_read_stays_withdrawn() {
    let disk = FakeMedium::default();
    let keys =
        [key("/a", None), key("/b", None), CopyKey { route: "s".into(), ..key("/c", None) }, key("/d", None)];
    let (store, _) = open(&disk, options());
    for key in &keys {
        put(&store, key);
    }
    assert!(store.close(FLUSH));
    disk.fail(failed());
    let (store, report) = open(&disk, options());
    assert!(matches!(report.disk, DiskState::Failed(_)) && report.copies == 0);
    let confirmations = [
        withdraw(&store, &keys[0]),
        store.withdraw(Withdrawal::Path { host: "h".into(), path: "/b".into() }, now(3)),
        store.withdraw(Withdrawal::Route("s".into()), now(3)),
    ];
    disk.fail(None);
    for withdrawn in confirmations {
        let Withdrawn::Pending(confirmation) = withdrawn else { panic!("the file may hold a copy") };
        assert_eq!(block_on(confirmation), Ok(()));
    }
    let left = || keys.iter().map(|key| present(&store, key)).collect::<Vec<_>>();
    assert_eq!(left(), [false, false, false, true]);
    until(|| disk.durable_copies() == 1);
}

#[test]
fn a_failure_brings_nothing_back_and_loses_what_only_the_disk_had_begun() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, StoreOptions { commit_interval: Duration::from_secs(600), ..options() });
    let (kept, gone) = (key("/kept", None), key("/gone", None));
    put(&store, &kept);
    put(&store, &gone);
    let Withdrawn::Pending(confirmation) = withdraw(&store, &gone) else { panic!("a copy was stored") };
    assert_eq!(block_on(confirmation), Ok(()));
    disk.fail(failed());
    put(&store, &key("/lost", None));
    until(|| matches!(store.health().disk, DiskState::Failed(_)));
    assert_eq!(store.health().writes_failed, 1);
    assert!(present(&store, &kept) && present(&store, &key("/lost", None)), "memory goes on");
    disk.fail(None);
    assert!(matches!(withdraw(&store, &gone), Withdrawn::Pending(_)), "nobody knows what the disk holds");
    until(|| store.health().withdrawals_unconfirmed == 0);
    assert!(matches!(withdraw(&store, &gone), Withdrawn::NothingStored));
    assert!(!present(&store, &gone) && present(&store, &kept));
}

#[test]
fn a_damaged_record_is_dropped_counted_and_never_served() {
    for entries in [true, false] {
        let disk = FakeMedium::default();
        let (store, _) = open(&disk, options());
        let key = key("/p", None);
        put(&store, &key);
        assert!(store.close(FLUSH));
        disk.damage(entries);
        let (store, report) = open(&disk, options());
        if entries {
            assert_eq!((report.copies, report.corrupt), (0, 1));
        } else {
            let Loaded::Disk(pending) = store.load(&key, &HeaderMap::new()) else { panic!("not on disk") };
            assert_eq!(block_on(pending), Err(LoadError::Unreadable));
        }
        assert_eq!(store.health().corrupt, 1);
        assert!(!present(&store, &key));
        until(|| disk.durable_copies() == 0);
    }
}

#[test]
fn too_many_reads_are_refused_at_once() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, options());
    let key = key("/p", None);
    put(&store, &key);
    assert!(store.close(FLUSH));
    let (store, _) = open(&disk, StoreOptions { read_queue_len: 4, ..options() });
    disk.stall_reads(true);
    let reads: Vec<_> = (0..20).map(|_| store.load(&key, &HeaderMap::new())).collect();
    let refused = reads.iter().filter(|read| matches!(read, Loaded::Unreadable)).count();
    assert!((15..=16).contains(&refused), "{refused}");
    // What waits while its copy is withdrawn is not served.
    drop(withdraw(&store, &key));
    disk.stall_reads(false);
    for read in reads {
        if let Loaded::Disk(pending) = read {
            assert_eq!(block_on(pending), Err(LoadError::Gone));
        }
    }
}

#[test]
fn a_copy_that_left_memory_is_read_from_disk() {
    let disk = FakeMedium::default();
    let (store, _) = open(&disk, StoreOptions { memory_bytes: 20_000, ..options() });
    let keys: Vec<_> = (0..100).map(|number| key(&format!("/{number}"), None)).collect();
    for key in &keys {
        put(&store, key);
        until(|| store.health().writes_queued == 0);
    }
    let health = store.health();
    assert!(
        health.memory_evictions > 50 && health.memory_bytes <= 20_000 && health.entries == 100,
        "{health:?}"
    );
    for key in &keys {
        let read = match store.load(key, &HeaderMap::new()) {
            Loaded::Ready(copy) => Ok(copy),
            Loaded::Disk(pending) => block_on(pending),
            other => panic!("{other:?}"),
        };
        assert_eq!(read.unwrap().body.len(), 1000);
    }
}

#[test]
fn memory_alone_forgets_what_left_it() {
    let store = Copies::memory(20_000);
    let keys: Vec<_> = (0..100).map(|number| key(&format!("/{number}"), None)).collect();
    for key in &keys {
        put(&store, key);
    }
    let health = store.health();
    assert!(
        health.entries < 20 && health.memory_bytes <= 20_000 && health.index_bytes < 20_000,
        "{health:?}"
    );
    assert_eq!(keys.iter().filter(|key| present(&store, key)).count() as u64, health.entries);
}

#[test]
fn the_index_is_bounded() {
    let disk = FakeMedium::default();
    let limit = 64 * 4_000;
    let (store, _) = open(&disk, StoreOptions { index_bytes: limit, ..options() });
    for number in 0..5_000 {
        put(&store, &key(&format!("/{number}"), None));
    }
    let health = store.health();
    assert!(health.index_bytes <= limit && health.index_evictions > 3_000, "{health:?}");
    assert!(store.close(FLUSH));
    assert_eq!(disk.durable_copies() as u64, health.entries);
}
