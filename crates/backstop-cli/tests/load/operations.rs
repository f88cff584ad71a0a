//! Operations by the thousand: each key from eight clients at once, and one effect each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backstop_lab::client::{Connection, RequestBytes};
use backstop_lab::origin::Origin;
use tokio::sync::Barrier;

use crate::alone;
use crate::support::Gateway;
use crate::support::bank::{PAY, keyed, paid, policy};

const KEYS: usize = 10_000;
const AT_ONCE: usize = 8;
/// Keys that are fired side by side.
const GROUPS: usize = 6;

/// What each client heard of each key.
async fn fire(gateway: &Gateway, statuses: &Arc<Heard>) {
    let mut clients = tokio::task::JoinSet::new();
    for group in 0..GROUPS {
        let barrier = Arc::new(Barrier::new(AT_ONCE));
        for _ in 0..AT_ONCE {
            let (addr, barrier, statuses) = (gateway.addr, Arc::clone(&barrier), Arc::clone(statuses));
            clients.spawn(async move {
                let mut connection = Connection::open(addr).await.unwrap();
                for key in (group..KEYS).step_by(GROUPS) {
                    let name = format!("k-{key}");
                    let request = RequestBytes::new("pay.example", "POST", PAY, &keyed(&name), b"{}");
                    barrier.wait().await;
                    connection.send(&request.0).await.unwrap();
                    statuses.count(connection.read_response_to("POST").await.unwrap().status());
                }
            });
        }
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
}

#[derive(Default)]
struct Heard {
    answered: AtomicU64,
    conflicts: AtomicU64,
    others: AtomicU64,
}

impl Heard {
    fn count(&self, status: u16) {
        let counter = match status {
            201 => &self.answered,
            409 => &self.conflicts,
            _ => &self.others,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn ten_thousand_keys_from_eight_at_once_have_one_effect_each() {
    alone(async {
        let origin = Origin::start().await.unwrap();
        origin.default(paid());
        let gateway = Gateway::start(&policy(origin.addr(), ""));
        let statuses = Arc::new(Heard::default());
        let begun = tokio::time::Instant::now();
        fire(&gateway, &statuses).await;
        let (took, count) = (begun.elapsed(), |counter: &AtomicU64| counter.load(Ordering::Relaxed));
        println!(
            "{KEYS} keys from {AT_ONCE} at once in {:.1} s: {} answers, {} conflicts",
            took.as_secs_f64(),
            count(&statuses.answered),
            count(&statuses.conflicts)
        );
        assert_eq!(count(&statuses.others), 0);
        assert_eq!(count(&statuses.answered) + count(&statuses.conflicts), (KEYS * AT_ONCE) as u64);
        assert!(count(&statuses.answered) >= KEYS as u64);
        let mut effects: HashMap<String, usize> = HashMap::new();
        for request in origin.requests() {
            *effects.entry(request.header("idempotency-key").unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!(effects.len(), KEYS);
        assert!(effects.values().all(|times| *times == 1), "one effect each");
    });
}

mod timing {
    use std::path::Path;
    use std::process::Command;

    use crate::alone;
    use crate::support::gateway::folder;
    use crate::support::preload::{SLOW_SYNC, library};

    /// Whoever else uses the processors only adds to what an intent waits: of so many runs one has to hold.
    const RUNS: usize = 5;

    /// What the binary measures: a flush, and the median of the intents of 64 clients, in milliseconds.
    fn measured(folder: &Path, preload: &Path) -> (f64, f64) {
        let bench = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .args(["ledger", "bench", "--seconds", "1", "."])
            .env("LD_PRELOAD", preload)
            .current_dir(folder)
            .output()
            .unwrap();
        let told = String::from_utf8(bench.stdout).unwrap();
        assert!(bench.status.success(), "{told}{}", String::from_utf8_lossy(&bench.stderr));
        // "flush     4.21 ms for a page of 4 KiB", then a heading, then clients, operations per second, and p50 of the intents.
        let figure = |line: usize, word: usize| -> f64 {
            let text = told.lines().nth(line).and_then(|line| line.split_whitespace().nth(word));
            text.and_then(|text| text.parse().ok()).expect(&told)
        };
        assert_eq!(figure(4, 0), 64.0, "{told}");
        (figure(0, 1), figure(4, 2))
    }

    /// Whoever comes waits for the sync that is under way, and for the one after it, with whoever else came meanwhile. The disk's
    /// sync takes 4 ms here, so that this is about the ledger and not about the disk.
    #[test]
    fn at_sixty_four_clients_half_of_the_intents_wait_for_two_and_a_half_syncs_at_most() {
        alone(async {
            let folder = folder();
            let preload = library(&folder, SLOW_SYNC);
            let mut waits = Vec::new();
            while waits.len() < RUNS && waits.last().is_none_or(|syncs| *syncs > 2.5) {
                let (flush_ms, p50_ms) = measured(&folder, &preload);
                println!(
                    "flush {flush_ms:.2} ms, intent p50 {p50_ms:.2} ms: {:.2} flushes",
                    p50_ms / flush_ms
                );
                assert!(flush_ms >= 4.0 && p50_ms >= 4.0, "no sync takes less: {flush_ms}, {p50_ms}");
                waits.push(p50_ms / flush_ms);
            }
            assert!(waits.last().is_some_and(|syncs| *syncs <= 2.5), "{waits:.2?}");
            std::fs::remove_dir_all(&folder).unwrap();
        });
    }
}
