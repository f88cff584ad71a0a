//! Many operations share a sync.

use std::time::Duration;

use backstop_store::ledger::sqlite::{SqliteRows, flush_time};
use backstop_store::ledger::{BenchReport, Ledger, LedgerOptions, ThreadLedger, bench};
use backstop_store::testing::now;

use super::faulty::Faulty;
use super::support::{clock, close, open};

/// Medians of so many rounds, one client and 64 in turn, because disks and neighbours change from second to second.
const ROUNDS: u64 = 5;

fn medians(ledger: &dyn Ledger) -> (BenchReport, BenchReport) {
    let (mut ones, mut crowds) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let run = |clients, seed| bench(ledger, clients, Duration::from_millis(500), seed, &clock).unwrap();
        ones.push(run(1, 2 * round));
        crowds.push(run(64, 2 * round + 1));
    }
    let median = |mut reports: Vec<BenchReport>| {
        reports.sort_by(|one, other| one.operations_per_s.total_cmp(&other.operations_per_s));
        reports[reports.len() / 2]
    };
    let (one, crowd) = (median(ones), median(crowds));
    println!("{one}\n{crowd}\n{:.1} times", crowd.operations_per_s / one.operations_per_s);
    (one, crowd)
}

/// One client is bound by two syncs, 64 by the processor. How far that is apart is the disk's doing, so it is shown on one
/// whose sync takes 4 ms, as on common virtual disks: at most 125 operations per second for one client.
#[test]
fn sixty_four_clients_get_through_ten_times_as_much_as_one_where_a_sync_is_slow() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Faulty::slow(SqliteRows::open(folder.path(), 0).unwrap(), Duration::from_millis(4));
    let ledger = ThreadLedger::open(Box::new(rows), LedgerOptions::default(), 1, now(0)).unwrap();
    let (one, crowd) = medians(&ledger);
    assert!(one.operations_per_s <= 125.0, "{one}");
    assert!(crowd.operations_per_s >= 10.0 * one.operations_per_s, "{one}; {crowd}");
    close(&ledger);
}

/// On the disk that is there, whatever it is.
#[test]
fn clients_share_syncs_on_this_disk() {
    let folder = tempfile::tempdir().unwrap();
    let flush = flush_time(folder.path(), 100, &clock).unwrap();
    println!("a flush takes {:.2} ms", flush.as_secs_f64() * 1000.0);
    let ledger = open(folder.path());
    let (one, crowd) = medians(&ledger);
    assert!(crowd.operations_per_s >= 2.0 * one.operations_per_s, "{one}; {crowd}");
    let standing = ledger.standing(now(0));
    println!("{} commits of {} commands", standing.commits, standing.committed);
    close(&ledger);
}
