//! The ledger of a gateway that has stopped, as the oracle reads it.

use std::collections::BTreeMap;
use std::path::Path;

use backstop::clock::Clock;
use backstop_engine::operation::Record;
use backstop_engine::time::{Now, Wall};
use backstop_lab::payments::oracle::LedgerEntry;
use backstop_store::ledger::{Filter, Ledger, LedgerOptions, sqlite};

use crate::support::BOUND;

fn now() -> Now {
    Clock::system().expect("the machine's clock").now()
}

/// Every operation in the ledger of a folder. Opening it begins a life: what was on its way is unknown from then on, and neither
/// is an end.
pub fn entries(folder: &Path) -> Vec<LedgerEntry> {
    let ledger = sqlite::open(folder, LedgerOptions::default(), 1, now()).expect("a ledger that nobody uses");
    let mut found = BTreeMap::new();
    let mut from = Wall::from_unix_ns(0);
    loop {
        let filter = Filter { state: None, from, after: None, most: Filter::MOST };
        let page = ledger.list(filter).wait().expect("the ledger's operations");
        let (known, is_last) = (found.len(), page.len() < Filter::MOST);
        from = page.last().map_or(from, |last| last.identity.created);
        found.extend(page.into_iter().map(|record| (record.identity.id, entry(&record))));
        // A page begins with those of the moment at which the last one ended.
        if is_last || found.len() == known {
            break;
        }
    }
    assert!(ledger.close(BOUND), "the ledger closes in time");
    found.into_values().collect()
}

fn entry(record: &Record) -> LedgerEntry {
    let identity = &record.identity;
    let told = identity.upstream_id.as_ref().map(|id| String::from_utf8_lossy(id).into_owned());
    let state = record.progress.state();
    LedgerEntry {
        key: told.unwrap_or_else(|| identity.id.to_string()),
        state: state.token().to_owned(),
        why: state.why().to_owned(),
    }
}

mod tests {
    use std::time::Duration;

    use backstop_engine::operation::{
        ClientKey, Doubt, Fingerprint, Intent, KeptAnswer, NotExecuted, OperationId, Schedule, Scope,
    };
    use backstop_store::ledger::{Begun, Ledger, LedgerOptions, Recorded, sqlite};

    use super::{entries, now};
    use crate::support::{BOUND, gateway::folder};

    fn numbered(number: u64) -> Intent {
        let mut bytes = [0; 32];
        bytes[8..16].copy_from_slice(&number.to_be_bytes());
        Intent {
            id: OperationId::from_bytes(*bytes.first_chunk().unwrap()),
            scope: Scope::from_bytes([1; 32]),
            key: ClientKey::from_bytes(bytes),
            fingerprint: Fingerprint::from_bytes(bytes),
            route: "pay".into(),
            upstream_id: Some(format!("k-{number}").into_bytes().into()),
            captured: Vec::new(),
            deadline: Duration::from_secs(30),
            verify_for: Duration::from_secs(3600),
        }
    }

    /// More than one page of them, in four states; the one that was on its way is unknown in the next life.
    #[test]
    fn every_operation_is_listed_with_its_state() {
        let folder = folder();
        let ledger = sqlite::open(&folder, LedgerOptions::default(), 1, now()).unwrap();
        let count = 1100_u64;
        // All at once, so that many share a commit.
        let begun: Vec<_> = (0..count).map(|number| ledger.begin(numbered(number), now())).collect();
        let begun: Vec<_> = begun.into_iter().map(|begun| begun.wait().unwrap().unwrap()).collect();
        let mut recorded = Vec::new();
        for (number, begun) in (0..).zip(begun) {
            let Begun::New(intent) = begun else { panic!("{number} is new") };
            let report = match number % 4 {
                0 => continue,
                1 => intent.never_sent(NotExecuted::Connect),
                2 => {
                    let first = Schedule::default().draw(1);
                    intent.forward(now().mono).unwrap().unknown(Doubt::Timeout, first)
                }
                _ => {
                    let answer = KeptAnswer { status: 201, fields: Vec::new(), body: None };
                    intent.forward(now().mono).unwrap().succeeded(answer)
                }
            };
            recorded.push(ledger.record(report, now()));
        }
        for recorded in recorded {
            assert!(matches!(recorded.wait(), Ok(Recorded::Changed { .. })));
        }
        assert!(ledger.close(BOUND));

        let found = entries(&folder);
        assert_eq!(found.len() as u64, count);
        for entry in found {
            let number: u64 = entry.key.strip_prefix("k-").unwrap().parse().unwrap();
            let expected = match number % 4 {
                0 => ("unknown", "restarted"),
                1 => ("not_executed", "connect"),
                2 => ("unknown", "timeout"),
                _ => ("succeeded", "direct"),
            };
            assert_eq!((entry.state.as_str(), entry.why.as_str()), expected, "{number}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
