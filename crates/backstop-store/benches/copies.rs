//! What the calls on a request's path cost, with 200 000 copies in the index. `cargo bench -p backstop-store`.
//!
//! Medians of batches on one thread; only ratios within one run are worth comparing.
#![expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![expect(
    clippy::disallowed_types,
    reason = "what is measured here is the time of this process, not of a request"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use backstop_store::testing::{copy, headers, key, now};
use backstop_store::{Copies, CopyKey, Loaded, StoreOptions, StoredCopy, VaryField, Withdrawal};
use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

const ENTRIES: u64 = 200_000;
const BATCH: usize = 1_000;

fn main() {
    let large = StoreOptions { memory_bytes: 1 << 30, index_bytes: 1 << 30, ..StoreOptions::new("") };
    println!("a plain map, for comparison");
    control();
    println!("memory");
    run(&Copies::memory_with(large.clone()));
    #[cfg(feature = "redb")]
    {
        let folder = std::env::temp_dir().join(format!("backstop-bench-{}", std::process::id()));
        println!("redb");
        let (store, report) = Copies::open(StoreOptions { path: folder.clone(), ..large }, now(0));
        println!("  {report:?}");
        run(&store);
        confirmations(&store);
        println!("  {:?}", store.health());
        let start = Instant::now();
        store.close(Duration::from_secs(60));
        println!("  close: {:?}", start.elapsed());
        reopen(&folder);
        drop(std::fs::remove_dir_all(folder));
    }
}

fn numbered(number: u64) -> CopyKey {
    CopyKey { partition: b"es"[..].into(), ..key(&format!("/products/{number}/description"), None) }
}

#[cfg(feature = "redb")]
fn keys() -> Vec<CopyKey> {
    (0..ENTRIES).map(numbered).collect()
}

fn answer(store: &Copies, request: &HeaderMap, second: u64) -> (StoredCopy, backstop_store::ReadTicket) {
    let ticket = store.begin_read(now(second));
    let vary = vec![VaryField::of(ACCEPT_LANGUAGE, request)];
    (StoredCopy { vary, ..copy(vec![7; 1024], ticket) }, ticket)
}

/// The median time of one call, over batches of [`BATCH`]. Each call is given a key of its own, made shortly before, as
/// a request makes it.
fn measure(name: &str, batches: usize, key: impl Fn(usize) -> CopyKey, mut call: impl FnMut(CopyKey)) {
    let mut times: Vec<Duration> = (0..batches)
        .map(|batch| {
            let keys: Vec<CopyKey> = (0..BATCH).map(|at| key(batch * BATCH + at)).collect();
            let start = Instant::now();
            keys.into_iter().for_each(&mut call);
            start.elapsed() / BATCH as u32
        })
        .collect();
    times.sort();
    println!("  {name}: {:?} (worst batch {:?})", times[batches / 2], times[batches - 1]);
}

/// What the simplest map costs here and now: no lock, no variants, no bound.
fn control() {
    let map: std::collections::HashMap<CopyKey, u64> = (0..ENTRIES).map(|at| (numbered(at), at)).collect();
    measure(
        "get",
        200,
        |at| numbered(at as u64 * 7919 % ENTRIES),
        |key| {
            black_box(map.get(&key).copied());
        },
    );
    measure(
        "get, always the same",
        200,
        |_| numbered(1),
        |key| {
            black_box(map.get(&key).copied());
        },
    );
}

fn run(store: &Copies) {
    let request = headers(&[("accept-language", "es"), ("accept", "application/json")]);
    // In order, and in no order, as requests come.
    let (ordered, scattered) = (|at| numbered(at as u64), |at| numbered(at as u64 * 7919 % ENTRIES));
    let (stored, ticket) = answer(store, &request, 1);
    measure("put, new", 200, ordered, |key| {
        black_box(store.put(&key, stored.clone(), ticket, now(1)));
    });
    measure("begin_read", 200, ordered, |_| {
        black_box(store.begin_read(now(1)));
    });
    measure("peek", 200, scattered, |key| {
        black_box(store.peek(&key, &request));
    });
    measure(
        "peek, always the same",
        200,
        |_| numbered(1),
        |key| {
            black_box(store.peek(&key, &request));
        },
    );
    measure("peek, another variant", 200, scattered, |key| {
        black_box(store.peek(&key, &HeaderMap::new()));
    });
    measure("load", 200, scattered, |key| {
        if let Loaded::Ready(copy) = store.load(&key, &request) {
            black_box(copy);
        }
    });
    let (stored, ticket) = answer(store, &request, 2);
    measure("clone of the copy alone", 200, scattered, |key| {
        black_box((key, stored.clone()));
    });
    measure("put, again", 200, scattered, |key| {
        black_box(store.put(&key, stored.clone(), ticket, now(2)));
    });
    measure(
        "withdraw, nothing stored",
        20,
        |at| key(&format!("/none/{at}"), None),
        |key| {
            black_box(store.withdraw(Withdrawal::Target(key.target), now(3))).forget();
        },
    );
}

#[cfg(feature = "redb")]
fn confirmations(store: &Copies) {
    use backstop_store::Withdrawn;
    use backstop_store::testing::block_on;

    while store.health().writes_queued > 0 {
        std::thread::yield_now();
    }
    let keys = keys();
    let mut times: Vec<Duration> = Vec::new();
    for key in keys.iter().rev().step_by(97).take(500) {
        let start = Instant::now();
        if let Withdrawn::Pending(confirmation) =
            store.withdraw(Withdrawal::Target(key.target.clone()), now(4))
        {
            block_on(confirmation).forget();
            times.push(start.elapsed());
        }
    }
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("  withdrawal confirmed: median {:?}, p99 {:?}, of {}", at(50), at(99), times.len());
}

#[cfg(feature = "redb")]
fn reopen(folder: &std::path::Path) {
    use backstop_store::testing::block_on;

    let start = Instant::now();
    let (store, report) =
        Copies::open(StoreOptions { index_bytes: 1 << 30, ..StoreOptions::new(folder) }, now(5));
    println!("  open: {:?} for {} copies", start.elapsed(), report.copies);
    let request = headers(&[("accept-language", "es")]);
    let mut times: Vec<Duration> = Vec::new();
    for key in keys().iter().step_by(37) {
        let start = Instant::now();
        if let Loaded::Disk(pending) = store.load(key, &request)
            && block_on(pending).is_ok()
        {
            times.push(start.elapsed());
        }
    }
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("  read from disk: median {:?}, p99 {:?}, of {}", at(50), at(99), times.len());
}

/// Results that are of no interest here.
trait Forget {
    fn forget(self);
}

impl<T> Forget for T {
    fn forget(self) {}
}
