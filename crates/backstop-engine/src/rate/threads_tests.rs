//! 64 threads at one rate.

use std::sync::Barrier;
use std::thread;

use super::*;

const SECOND: u64 = 1_000_000_000;
const THREADS: usize = 64;

fn at(ns: u64) -> Mono {
    Mono::from_ns(ns)
}

fn on_all_threads(work: impl Fn(usize) + Sync) {
    let start = Barrier::new(THREADS);
    let (start, work) = (&start, &work);
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                start.wait();
                work(number);
            });
        }
    });
}

/// In one moment there is the burst and nothing else, to the last one.
#[test]
fn sixty_four_threads_share_one_burst() {
    let rate = Rate::new(1_000, 777);
    let admitted = AtomicU64::new(0);
    on_all_threads(|_| {
        for _ in 0..100 {
            admitted.fetch_add(u64::from(rate.try_take(at(5))), Ordering::Relaxed);
        }
    });
    assert_eq!(admitted.into_inner(), 777);
}

/// The same while one of them changes the rate: changes give nothing and lose nothing that is whole.
#[test]
fn a_change_under_way_adds_nothing_to_the_burst() {
    let rate = Rate::new(100, 6_000);
    let admitted = AtomicU64::new(0);
    on_all_threads(|number| {
        for round in 0..200 {
            if number == 0 {
                rate.set(at(5), if round % 2 == 0 { 10_000 } else { 100 });
            } else {
                admitted.fetch_add(u64::from(rate.try_take(at(5))), Ordering::Relaxed);
            }
        }
    });
    assert_eq!(admitted.into_inner(), 6_000, "of 12 600 that asked");
}

/// Each thread reads a clock that all of them move, and may be held up after it; whatever stretch one looks at, from any
/// admission to any other, it holds no more than it should.
#[test]
fn sixty_four_threads_never_exceed_the_rate_in_any_stretch() {
    const BURST: u64 = 10;
    const INTERVAL: u64 = 1_000;
    let rate = Rate::new(SECOND / INTERVAL, BURST);
    let clock = AtomicU64::new(0);
    let admitted = [const { std::sync::OnceLock::new() }; THREADS];
    on_all_threads(|number| {
        let mut mine: Vec<u64> = Vec::new();
        for _ in 0..3_000 {
            let now = clock.fetch_add(37, Ordering::Relaxed);
            if rate.try_take(at(now)) {
                mine.push(now);
            }
        }
        admitted[number].set(mine).unwrap();
    });
    let mut admitted: Vec<u64> = admitted.into_iter().flat_map(|mine| mine.into_inner().unwrap()).collect();
    admitted.sort_unstable();
    // From i to j: (j - i + 1 - burst) * interval <= t(j) - t(i), for the worst i each time.
    let mut worst = i64::MIN;
    for (number, &now) in admitted.iter().enumerate() {
        let lead = now as i64 - (number as u64 * INTERVAL) as i64;
        worst = worst.max(lead);
        assert!(worst - lead <= ((BURST - 1) * INTERVAL) as i64, "too many before {now}");
    }
    // 64 * 3000 * 37 ns are 7.1 ms: 7104 and the burst at most, and nearly that many.
    let count = admitted.len();
    assert!((6_000..=7_114).contains(&count), "{count}");
}
