//! Any order of calls, restarts included, leaves the same in SQLite as in memory: every answer, every record, every history.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use backstop_engine::operation::{
    AbsenceRule, Claim, Decision, Doubt, Fingerprint, Forwarding, NotExecuted, Refusal, Schedule, Standing,
};
use backstop_engine::time::Now;
use backstop_store::ledger::sqlite::SqliteRows;
use backstop_store::ledger::{
    Begun, Filter, Ledger, LedgerOptions, MemoryRows, Resolution, SecondLooks, ThreadLedger,
};
use backstop_store::testing::{ROUTE, intent, kept, now, upkeep};
use proptest::prelude::*;

const KEYS: u8 = 4;

#[derive(Clone, Copy, Debug)]
enum Op {
    Begin(u8, bool),
    Report(usize, u8),
    Claim(usize),
    Answer(usize, u8),
    Sweep,
    Look(u8),
    Resolve(u8),
    LookAgain(u8),
    Wait(u64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..KEYS, prop::bool::weighted(0.9)).prop_map(|(key, same)| Op::Begin(key, same)),
        6 => (any::<usize>(), 0..4_u8).prop_map(|(which, what)| Op::Report(which, what)),
        3 => (1..4_usize).prop_map(Op::Claim),
        3 => (any::<usize>(), 0..9_u8).prop_map(|(which, what)| Op::Answer(which, what)),
        3 => Just(Op::Sweep),
        2 => (0..KEYS).prop_map(Op::Look),
        1 => (0..KEYS).prop_map(Op::Resolve),
        2 => (0..KEYS).prop_map(Op::LookAgain),
        4 => prop_oneof![0..50_u64, Just(3600), Just(86_400), Just(30 * 86_400)].prop_map(Op::Wait),
        1 => Just(Op::Restart),
    ]
}

/// Two absences a second apart decide.
fn rule() -> AbsenceRule {
    let second = Duration::from_secs(1);
    AbsenceRule::new(second, 2, second, Duration::from_secs(86_400)).unwrap()
}

/// One of the two, with what it gave out.
struct Side {
    ledger: ThreadLedger,
    forwardings: Vec<Forwarding>,
    claims: Vec<Claim>,
}

impl Side {
    fn new(ledger: ThreadLedger) -> Self {
        Self { ledger, forwardings: Vec::new(), claims: Vec::new() }
    }

    /// What it answers, as text. What was given out in an earlier life is gone with it.
    fn act(&mut self, op: Op, now: Now) -> String {
        let draw = Schedule::default().draw(1 << 62);
        match op {
            Op::Begin(key, is_same) => {
                let mut intent = intent(key);
                if !is_same {
                    intent.fingerprint = Fingerprint::from_bytes([99; 32]);
                }
                match self.ledger.begin(intent, now).wait().unwrap().unwrap() {
                    Begun::New(intent) => {
                        self.forwardings.extend(intent.forward(now.mono));
                        "new".into()
                    }
                    other => format!("{other:?}"),
                }
            }
            Op::Report(which, what) => {
                let Some(at) = which.checked_rem(self.forwardings.len()) else { return String::new() };
                let forwarding = self.forwardings.swap_remove(at);
                let report = match what {
                    0 => forwarding.succeeded(kept(201, Some(b"content"))),
                    1 => forwarding.refused(Refusal::of_status(402, false).unwrap(), kept(402, None)),
                    2 => forwarding.never_sent(NotExecuted::Connect),
                    _ => forwarding.unknown(Doubt::Timeout, draw),
                };
                format!("{:?}", self.ledger.record(report, now).wait())
            }
            Op::Claim(most) => {
                let claimed = self.ledger.claim(ROUTE, most, Duration::from_secs(2), now).wait().unwrap();
                let text = format!("{claimed:?}");
                self.claims.extend(claimed.claims);
                text
            }
            Op::Answer(which, what) => {
                let Some(at) = which.checked_rem(self.claims.len()) else { return String::new() };
                let claim = self.claims.swap_remove(at);
                let standing = Standing { has_good_credentials: true, shows_recent: true };
                let report = match what {
                    0 => claim.ask(now.mono).succeeded(draw),
                    1 => claim.ask(now.mono).failed(draw),
                    2 => claim.ask(now.mono).absent(None, standing, draw),
                    3 => claim.ask(now.mono).mismatch(draw),
                    4 | 5 => claim.ask(now.mono).absent(Some(rule()), standing, draw),
                    6 => claim.ask(now.mono).pending(draw),
                    7 => claim.ask(now.mono).several_matches(draw),
                    _ => claim.put_back(draw),
                };
                format!("{:?}", self.ledger.record(report, now).wait())
            }
            Op::Sweep => format!("{:?}", self.ledger.sweep(upkeep(), 3, now).wait()),
            Op::Look(key) => {
                let intent = intent(key);
                format!("{:?}", self.ledger.look(intent.scope, intent.id, now).wait())
            }
            Op::Resolve(key) => {
                let by = Resolution::new("ada", "because").unwrap();
                format!("{:?}", self.ledger.resolve(intent(key).id, Decision::Failed, by, now).wait())
            }
            Op::LookAgain(after) => {
                let (after, until) = (Some(intent(after).id), intent(u8::MAX).id);
                let which = SecondLooks { began_after: self::now(0).wall, after, until, most: 2 };
                let mut looks = self.ledger.second_looks(ROUTE, which).wait().unwrap();
                let text = format!("{looks:?}");
                let recorded = looks.pop().map(|look| self.ledger.record(look.executed(draw), now).wait());
                format!("{text} {recorded:?}")
            }
            Op::Wait(_) | Op::Restart => String::new(),
        }
    }

    /// All that it holds.
    fn all(&self, at: Now) -> String {
        let filter = Filter { state: None, from: now(0).wall, after: None, most: 100 };
        let mut records = self.ledger.list(filter).wait().unwrap();
        records.sort_by_key(|record| record.identity.id);
        let shown = (0..KEYS).map(|key| self.ledger.show(intent(key).id).wait().unwrap());
        let shown: Vec<_> = shown.collect();
        format!("{records:?} {shown:?} {:?}", self.ledger.standing(at).states)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_and_memory_hold_the_same_after_any_order_of_calls(ops in prop::collection::vec(op(), 1..80)) {
        let (folder, memory) = (tempfile::tempdir().unwrap(), MemoryRows::default());
        let open = |at: Now| {
            let rows = SqliteRows::open(folder.path(), 0).unwrap();
            let sqlite = ThreadLedger::open(Box::new(rows), LedgerOptions::default(), 5, at).unwrap();
            let memory =
                ThreadLedger::open(Box::new(memory.clone()), LedgerOptions::default(), 5, at).unwrap();
            [Side::new(sqlite), Side::new(memory)]
        };
        let mut second = 1;
        let mut sides = open(now(second));
        for op in ops {
            match op {
                Op::Wait(seconds) => second += seconds,
                Op::Restart => {
                    for side in &sides {
                        prop_assert!(side.ledger.close(Duration::from_secs(60)));
                    }
                    drop(sides);
                    sides = open(now(second));
                }
                op => {
                    let [sqlite, memory] = &mut sides;
                    let at = now(second);
                    prop_assert_eq!(sqlite.act(op, at), memory.act(op, at), "{:?} at {} s", op, second);
                }
            }
        }
        let [sqlite, memory] = &sides;
        prop_assert_eq!(sqlite.all(now(second)), memory.all(now(second)));
        for side in &sides {
            prop_assert!(side.ledger.close(Duration::from_secs(60)));
        }
    }
}
