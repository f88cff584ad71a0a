//! What happens to the file: limits, damage, a full device, a path that is none, another process.
#![cfg(feature = "redb")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use backstop_store::testing::{block_on, copy, headers, key, now};
use backstop_store::{
    Copies, CopyKey, DiskState, Loaded, OpenReport, PutOutcome, StoreOptions, StoredCopy, Withdrawal,
    Withdrawn,
};
use http::HeaderMap;

const FLUSH: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;
/// How far the file may exceed its limit.
const TOLERANCE: u64 = 64 << 10;

fn options(path: &Path) -> StoreOptions {
    StoreOptions {
        retry_pause: (Duration::from_millis(1), Duration::from_millis(20)),
        commit_interval: Duration::from_millis(20),
        ..StoreOptions::new(path)
    }
}

fn open(options: StoreOptions) -> (Copies, OpenReport) {
    Copies::open(options, now(0))
}

/// Bytes that nothing compresses and that tell which copy they belong to.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn put(store: &Copies, key: &CopyKey, body: Vec<u8>, second: u64) -> PutOutcome {
    let ticket = store.begin_read(now(second));
    let copy = StoredCopy { headers: headers(&[("etag", "\"a\"")]), ..copy(body, ticket) };
    store.put(key, copy, ticket, now(second))
}

fn number(number: u64) -> CopyKey {
    key(&format!("/products/{number}"), None)
}

fn present(store: &Copies, key: &CopyKey) -> bool {
    store.peek(key, &HeaderMap::new()).is_some()
}

fn body(store: &Copies, key: &CopyKey) -> Option<Vec<u8>> {
    match store.load(key, &HeaderMap::new()) {
        Loaded::Ready(copy) => Some(copy.body.to_vec()),
        Loaded::Disk(pending) => block_on(pending).ok().map(|copy| copy.body.to_vec()),
        Loaded::Missing | Loaded::Unreadable => None,
    }
}

fn drain(store: &Copies) {
    until(|| store.health().writes_queued == 0);
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

fn file_bytes(path: &Path) -> u64 {
    fs::metadata(Copies::file_below(path)).unwrap().len()
}

/// Puts `rounds` times as much as the limit, of one size, and holds the file against its limit all the while.
fn fill(limit: u64, length: usize, rounds: u64) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { disk_bytes: limit, memory_bytes: MIB, ..options(folder.path()) };
    let (store, report) = open(options.clone());
    assert_eq!(report.disk, DiskState::Ok, "{report:?}");
    let total = (limit * rounds / length as u64).max(50);
    for at in 0..total {
        put(&store, &number(at), content(at, length - (at % 7) as usize * length / 20), at);
        if at % 64 == 0 {
            drain(&store);
            assert!(file_bytes(folder.path()) <= limit + TOLERANCE);
        }
    }
    drain(&store);
    let health = store.health();
    assert_eq!((health.writes_failed, &health.disk), (0, &DiskState::Ok), "{length}: {health:?}");
    assert!(store.close(FLUSH));
    let bytes = file_bytes(folder.path());
    assert!(bytes <= limit + TOLERANCE, "{length}: {bytes}");
    let (store, report) = open(options.clone());
    let held = report.copies;
    assert!(store.close(FLUSH));
    let (store, report) = open(options);
    assert_eq!(report.copies, held, "{length}: a restart keeps what was held");
    let kept: Vec<u64> = (0..total).filter(|at| present(&store, &number(*at))).collect();
    let newest = total - total / 10;
    assert!(
        kept.iter().filter(|at| **at >= newest).count() as u64 * 10
            >= (total - newest).min(kept.len() as u64) * 5
    );
    for at in kept.iter().step_by(kept.len() / 50 + 1) {
        assert_eq!(body(&store, &number(*at)), Some(content(*at, length - (*at % 7) as usize * length / 20)));
    }
    (held * length as u64, bytes)
}

#[test]
fn the_file_stays_within_its_limit() {
    for (limit, length, rounds) in
        [(MIB, 300, 4), (4 * MIB, 2048, 4), (10 * MIB, 20_000, 3), (16 * MIB, 400_000, 4)]
    {
        let (held, bytes) = fill(limit, length, rounds);
        println!("limit {limit} length {length}: {held} bytes held in a file of {bytes}");
    }
}

#[test]
fn copies_of_every_size_share_a_file_within_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 8 * MIB;
    let (store, _) = open(StoreOptions { disk_bytes: limit, memory_bytes: MIB, ..options(folder.path()) });
    for at in 0..6_000u64 {
        let length = 1 << (at * 7919 % 18);
        put(&store, &number(at * 31 % 900), content(at, length), at);
        if at % 50 == 0 {
            drop(store.withdraw(Withdrawal::Target(number(at % 900).target), now(at)));
            assert!(file_bytes(folder.path()) <= limit + TOLERANCE);
        }
    }
    drain(&store);
    let health = store.health();
    assert_eq!((health.writes_failed, &health.disk), (0, &DiskState::Ok), "{health:?}");
    assert!(file_bytes(folder.path()) <= limit + TOLERANCE);
}

#[test]
fn a_withdrawn_route_gives_its_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(StoreOptions { disk_bytes: 8 * MIB, ..options(folder.path()) });
    for round in 0..10 {
        for at in 0..2_000 {
            put(&store, &number(at), content(at, 1_500), round);
        }
        let Withdrawn::Pending(done) = store.withdraw(Withdrawal::Route("r".into()), now(round)) else {
            panic!("copies were stored")
        };
        assert_eq!(block_on(done), Ok(()));
        until(|| store.health().entries == 0);
    }
    let health = store.health();
    assert_eq!((health.writes_failed, &health.disk), (0, &DiskState::Ok), "{health:?}");
}

#[test]
#[expect(clippy::disallowed_types, reason = "how long this process waits is what is promised")]
fn a_withdrawal_is_confirmed_within_fifty_milliseconds_while_copies_are_written() {
    // In memory where possible: what is held against the limit is the store's time, not the device's.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (store, _) = open(options(folder.path()));
    let mut waits: Vec<Duration> = (0..41)
        .map(|round| {
            for at in 0..200 {
                put(&store, &number(at), content(at, 4_000), round);
            }
            let begin = std::time::Instant::now();
            let Withdrawn::Pending(done) = store.withdraw(Withdrawal::Target(number(7).target), now(round))
            else {
                panic!("a copy was stored")
            };
            assert_eq!(block_on(done), Ok(()));
            begin.elapsed()
        })
        .collect();
    waits.sort();
    assert!(waits[20] < Duration::from_millis(50), "{waits:?}");
}

/// A closed file with copies in it.
fn filled(folder: &Path) -> Vec<u64> {
    let (store, _) = open(options(folder));
    let all: Vec<u64> = (0..300).collect();
    for at in &all {
        put(&store, &number(*at), content(*at, 3_000), *at);
    }
    assert!(store.close(FLUSH));
    all
}

/// Whatever is served must be what was stored; how much is lost does not matter.
fn serves_only_what_was_stored(folder: &Path, all: &[u64]) -> (u64, OpenReport) {
    let (store, report) = open(options(folder));
    let mut served = 0;
    for at in all {
        if let Some(body) = body(&store, &number(*at)) {
            assert_eq!(body, content(*at, 3_000));
            served += 1;
        }
    }
    // And the store goes on.
    let fresh = key("/fresh", None);
    assert_eq!(put(&store, &fresh, content(1, 100), 1_000), PutOutcome::Stored);
    assert!(present(&store, &fresh));
    // What is withdrawn from a damaged file does not come back with the next life.
    let gone = all.iter().step_by(3);
    for at in gone.clone() {
        drop(store.withdraw(Withdrawal::Target(number(*at).target), now(1_000)));
    }
    assert!(store.close(FLUSH));
    let (store, again) = open(options(folder));
    for at in gone {
        assert_eq!(body(&store, &number(*at)), None, "{at}");
    }
    match body(&store, &fresh) {
        Some(body) => assert_eq!(body, content(1, 100)),
        // Damage that was first met when this was written costs it as well, and is told.
        None => assert!(again.set_aside.is_some() || store.health().corrupt > 0, "lost without a word"),
    }
    assert!(store.close(FLUSH));
    (served, report)
}

#[test]
fn a_damaged_file_costs_copies_and_never_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let all = filled(folder.path());
    let whole = fs::read(Copies::file_below(folder.path())).unwrap();
    let mut lost = 0;
    let places = [0, 5, 9, 20, 64, 70, 130, 200, 4095, 4096, 4100];
    let spread = (0..30).map(|part| whole.len() / 30 * part + 17 * part);
    for at in places.into_iter().chain(spread).filter(|at| *at < whole.len()) {
        for width in [1, 600] {
            let damaged = tempfile::tempdir().unwrap();
            let mut bytes = whole.clone();
            for byte in bytes.iter_mut().skip(at).take(width) {
                *byte ^= 0x55;
            }
            fs::write(Copies::file_below(damaged.path()), &bytes).unwrap();
            let (served, report) = serves_only_what_was_stored(damaged.path(), &all);
            lost += u64::from(served < all.len() as u64);
            assert!(report.set_aside.is_none_or(|aside| aside.exists()));
        }
    }
    assert!(lost > 10, "the damage was noticed {lost} times");
}

/// redb keeps two commits in its file and goes back to the older one if the newer looks damaged: one bit of the header is
/// enough. What was withdrawn in between must not come back, whichever bit it is.
#[test]
fn a_file_that_went_back_to_an_earlier_commit_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(options(folder.path()));
    for at in 0..3 {
        put(&store, &number(at), content(at, 300), at);
    }
    drain(&store);
    until(|| store.health().writes_done >= 3);
    let withdrawn = store.withdraw(Withdrawal::Target(number(1).target), now(10));
    let Withdrawn::Pending(done) = withdrawn else { panic!("there was a copy") };
    assert!(block_on(done).is_ok());
    assert!(store.close(FLUSH));
    let copies = Copies::file_below(folder.path());
    let whole = fs::read(&copies).unwrap();
    let commits = fs::read(copies.with_extension("commits")).unwrap();
    let mut noticed = 0;
    // All of the byte that chooses the commit, and samples of both commits' headers.
    for bit in (9 * 8..10 * 8).chain((64 * 8..320 * 8).step_by(37)) {
        let life = tempfile::tempdir().unwrap();
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(Copies::file_below(life.path()), bytes).unwrap();
        fs::write(Copies::file_below(life.path()).with_extension("commits"), &commits).unwrap();
        let (store, report) = open(options(life.path()));
        assert_eq!(body(&store, &number(1)), None, "bit {bit}: {report:?}");
        noticed += u64::from(report.set_aside.is_some());
        assert!(store.close(FLUSH));
    }
    assert!(noticed > 0, "one of these bits chooses the commit");
    // A file without its number beside it cannot be believed either.
    fs::remove_file(copies.with_extension("commits")).unwrap();
    let (_store, report) = open(options(folder.path()));
    assert!(report.set_aside.is_some() && report.copies == 0, "{report:?}");
}

#[test]
fn a_truncated_or_foreign_file_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let all = filled(folder.path());
    let whole = fs::read(Copies::file_below(folder.path())).unwrap();
    let halves =
        [whole.len() - 1, whole.len() / 2, 5_000, 4_096, 100, 1].map(|length| whole[..length].to_vec());
    for bytes in halves.into_iter().chain([b"something else entirely".repeat(1_000)]) {
        let damaged = tempfile::tempdir().unwrap();
        fs::write(Copies::file_below(damaged.path()), &bytes).unwrap();
        let (_, report) = serves_only_what_was_stored(damaged.path(), &all);
        assert!(
            report.set_aside.is_some_and(|aside| fs::read(aside).unwrap().len() >= bytes.len()),
            "{}",
            bytes.len()
        );
    }
}

#[test]
fn damaged_files_are_numbered_and_do_not_pile_up() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..10 {
        fs::write(Copies::file_below(folder.path()), b"not a database at all").unwrap();
        let (store, report) = open(options(folder.path()));
        assert!(report.set_aside.is_some() && report.disk == DiskState::Ok);
        assert!(store.close(FLUSH));
    }
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 6, "the file, its number and four damaged ones: {names:?}");
    assert!(names.contains(&"copies.redb.corrupt-10".to_owned()), "{names:?}");
}

#[test]
fn a_path_below_a_file_is_reported_and_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"x").unwrap();
    let (store, report) = open(options(&file.join("store")));
    let DiskState::Failed(trouble) = &report.disk else { panic!("{report:?}") };
    assert!(trouble.message.contains("file/store"), "{trouble:?}");
    let key = number(1);
    assert!(matches!(
        store.withdraw(Withdrawal::Target(key.target.clone()), now(1)),
        Withdrawn::NothingStored
    ));
    assert_eq!(put(&store, &key, content(1, 100), 2), PutOutcome::Stored);
    assert_eq!(body(&store, &key), Some(content(1, 100)));
    // Once the path can be made, the disk is used.
    fs::remove_file(&file).unwrap();
    until(|| store.health().disk == DiskState::Ok);
    assert!(store.close(FLUSH));
    let (store, report) = open(options(&file.join("store")));
    assert_eq!((report.copies, present(&store, &key)), (1, true));
}

#[test]
fn a_file_in_use_is_taken_over_once_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = open(options(folder.path()));
    put(&first, &number(1), content(1, 100), 1);
    put(&first, &number(2), content(2, 100), 1);
    drain(&first);
    let (second, report) = open(options(folder.path()));
    assert!(matches!(&report.disk, DiskState::Failed(_)), "{report:?}");
    assert!(!present(&second, &number(1)));
    let withdrawn = second.withdraw(Withdrawal::Target(number(2).target), now(3));
    assert!(first.close(FLUSH));
    let Withdrawn::Pending(done) = withdrawn else { panic!("the file may hold a copy") };
    assert_eq!(block_on(done), Ok(()));
    assert_eq!(body(&second, &number(1)), Some(content(1, 100)));
    assert!(!present(&second, &number(2)));
}

#[test]
fn a_limit_that_is_too_small_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = open(StoreOptions { disk_bytes: 1_000, ..options(folder.path()) });
    assert!(matches!(report.disk, DiskState::Failed(_)), "{report:?}");
}

/// A small file system of its own, unmounted at the end.
struct SmallDevice(tempfile::TempDir);

/// Set where file systems cannot be mounted: skips the tests that need one of their own.
const WITHOUT_MOUNT: &str = "BACKSTOP_WITHOUT_MOUNT";

impl SmallDevice {
    fn mount(size: &str) -> Option<Self> {
        if std::env::var_os(WITHOUT_MOUNT).is_some() {
            println!("skipped: {WITHOUT_MOUNT} is set");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(mounted.status.success(), "a tmpfs is needed, or {WITHOUT_MOUNT}=1: {mounted:?}");
        Some(Self(folder))
    }
}

impl Drop for SmallDevice {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_device_costs_copies_and_is_said() {
    let Some(device) = SmallDevice::mount("3m") else { return };
    let ballast = device.0.path().join("ballast");
    let store_path = device.0.path().join("store");
    let options = StoreOptions { disk_bytes: 64 * MIB, memory_bytes: 32 * MIB, ..options(&store_path) };
    let (store, report) = open(options.clone());
    assert_eq!(report.disk, DiskState::Ok, "{report:?}");
    let mut full = false;
    for at in 0..2_000 {
        assert_eq!(put(&store, &number(at), content(at, 3_000), at), PutOutcome::Stored);
        drain(&store);
        full |= matches!(store.health().disk, DiskState::Full(_));
    }
    assert!(full && store.health().writes_failed > 0, "{:?}", store.health());
    assert!((0..2_000).all(|at| present(&store, &number(at))), "memory goes on");
    // Another one takes what is left; withdrawals wait for it and are not lost.
    let _ = fs::write(&ballast, vec![0; 3 << 20]);
    let withdrawn = store.withdraw(Withdrawal::Target(number(1_999).target), now(5_000));
    fs::remove_file(&ballast).unwrap();
    let Withdrawn::Pending(done) = withdrawn else { panic!("a copy was stored") };
    assert_eq!(block_on(done), Ok(()));
    until(|| store.health().disk == DiskState::Ok);
    assert!(store.close(FLUSH));
    let (store, report) = open(options);
    assert!(report.copies > 50, "the disk keeps what fits: {report:?}");
    assert!(!present(&store, &number(1_999)));
    assert!(store.close(FLUSH));
}

/// Another user of the device goes, and the file is not kept small for the rest of its life.
#[test]
fn a_device_that_has_room_again_is_used_again() {
    let Some(device) = SmallDevice::mount("6m") else { return };
    let ballast = device.0.path().join("ballast");
    fs::write(&ballast, vec![0; 5 << 20]).unwrap();
    let store_path = device.0.path().join("store");
    let options =
        StoreOptions { disk_bytes: 3 * MIB + MIB / 2, memory_bytes: 32 * MIB, ..options(&store_path) };
    let (store, report) = open(options.clone());
    assert_eq!(report.disk, DiskState::Ok, "{report:?}");
    let mut full = false;
    for at in 0..600 {
        assert_eq!(put(&store, &number(at), content(at, 3_000), at), PutOutcome::Stored);
        drain(&store);
        full |= matches!(store.health().disk, DiskState::Full(_));
    }
    assert!(full, "{:?}", store.health());
    until(|| store.health().disk == DiskState::Ok);
    // What each of the copies takes is 4 KiB and more, so 1 MiB holds no 256 of them.
    let evicted = store.health().disk_evictions;
    assert!(evicted > 600 - 256, "{:?}", store.health());
    fs::remove_file(&ballast).unwrap();
    for at in 600..1_200 {
        put(&store, &number(at), content(at, 3_000), at);
        drain(&store);
    }
    assert!(store.close(FLUSH));
    let (store, report) = open(options);
    assert!(report.copies > 300, "{report:?}");
    assert!(store.close(FLUSH));
}
