//! What was decided by absence is found again, and evidence against it calls a person.
#![expect(clippy::panic, reason = "what a test needs and does not get stops it")]

use std::time::Duration;

use backstop_engine::operation::{
    AbsenceRule, Attention, NotExecuted, OperationId, Refused, Schedule, SecondLook, Standing, State,
};
use backstop_engine::time::Now;

use super::super::samples::now;
use super::{FLUSH, LedgerBackend, ROUTE, begin, unknown, upkeep};
use crate::ledger::{Ledger, Raised, Recorded, SecondLooks};

const LAST: OperationId = OperationId::from_bytes([255; 16]);

/// Begins operations at these seconds, and has them decided by two absences at 1000 s.
fn absent(ledger: &dyn Ledger, begun: &[(u8, u64)]) {
    let second = Duration::from_secs(1);
    let Ok(rule) = AbsenceRule::new(second, 2, second, Duration::from_secs(86_400)) else { panic!("a rule") };
    let standing = Standing { has_good_credentials: true, shows_recent: true };
    let at_once = Schedule { first: Duration::ZERO, most: Duration::ZERO, ..Schedule::default() };
    for (number, at) in begun {
        unknown(ledger, *number, now(*at), at_once.draw(0));
    }
    for at in [900, 1000] {
        let claims = ledger.claim(ROUTE, 100, second, now(at)).wait().unwrap_or_default().claims;
        assert_eq!(claims.len(), begun.len(), "{at}");
        for claim in claims {
            let report = claim.ask(now(at).mono).absent(Some(rule), standing, at_once.draw(0));
            assert!(matches!(ledger.record(report, now(at)).wait(), Ok(Recorded::Changed { .. })));
        }
    }
}

fn looks(ledger: &dyn Ledger, which: SecondLooks) -> Vec<SecondLook> {
    ledger.second_looks(ROUTE, which).wait().unwrap_or_default()
}

/// All that began after this.
fn since(began_after: Now) -> SecondLooks {
    SecondLooks { began_after: began_after.wall, after: None, until: LAST, most: 100 }
}

fn numbers(looks: &[SecondLook]) -> Vec<u8> {
    looks.iter().map(|look| look.record().identity.id.as_bytes()[0]).collect()
}

/// By name and by when they began, page by page; nothing else that is decided, and no other route's.
pub(super) fn listed(backend: &mut dyn LedgerBackend) {
    let mut ledger = backend.fresh(now(0));
    absent(&*ledger, &[(9, 1), (3, 2), (5, 3), (255, 4), (0, 5)]);
    let never = begin(&*ledger, 7, now(3)).never_sent(NotExecuted::Dns);
    assert!(matches!(ledger.record(never, now(3)).wait(), Ok(Recorded::Changed { .. })));
    unknown(&*ledger, 8, now(3), Schedule::default().draw(0));
    for _life in 0..2 {
        let list = |which| numbers(&looks(&*ledger, which));
        assert_eq!(list(since(now(0))), [0, 3, 5, 9, 255]);
        assert_eq!(list(since(now(2))), [0, 5, 255], "what began then is left out");
        assert_eq!(list(since(now(5))), [0_u8; 0]);
        let name = |number| OperationId::from_bytes([number; 16]);
        let part = |after: Option<u8>, until, most| SecondLooks {
            after: after.map(name),
            until: name(until),
            most,
            ..since(now(0))
        };
        assert_eq!(list(part(None, 0, 9)), [0]);
        assert_eq!(list(part(Some(0), 5, 9)), [3, 5]);
        assert_eq!(list(part(Some(3), 255, 2)), [5, 9]);
        assert_eq!(list(part(Some(9), 254, 9)), [0_u8; 0]);
        assert_eq!(list(part(None, 255, 0)), [0_u8; 0]);
        assert_eq!(ledger.second_looks("nobody", since(now(0))).wait().map(|looks| looks.len()), Ok(0));
        assert!(ledger.close(FLUSH));
        match backend.again(now(2000)) {
            Some(again) => ledger = again,
            None => return,
        }
    }
}

/// It was executed after all: somebody is called, once, whoever else saw it too; and nobody looks again.
pub(super) fn contradicted(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    absent(&*ledger, &[(1, 0), (2, 0)]);
    let sweep = |at| ledger.sweep(upkeep(), 7, now(at)).wait().unwrap_or_default().raised;
    assert_eq!(sweep(1001), []);
    let look = || looks(&*ledger, SecondLooks { most: 1, ..since(Now::default()) }).pop();
    let (Some(first), Some(second)) = (look(), look()) else { panic!("two look at the first") };
    let draw = Schedule::default().draw(0);
    let recorded = ledger.record(first.executed(draw), now(1500)).wait();
    let Ok(Recorded::Changed { record, from, is_contradiction: true }) = recorded else {
        panic!("{recorded:?}")
    };
    assert_eq!(from, State::NotExecuted(NotExecuted::Absent));
    assert_eq!(record.progress.state(), State::Attention(Attention::Contradicted));
    let again = ledger.record(second.executed(draw), now(1501)).wait();
    assert!(matches!(again, Ok(Recorded::Refused { why: Refused::Stale, .. })), "{again:?}");
    let (id, created) = (record.identity.id, record.identity.created);
    let since_then = now(1500).wall;
    let raised = Raised { id, route: ROUTE.into(), why: Attention::Contradicted, created, since: since_then };
    assert_eq!(sweep(1502), [raised]);
    assert_eq!(sweep(1503), [], "once");
    assert_eq!(numbers(&looks(&*ledger, since(Now::default()))), [2]);
    let standing = ledger.standing(now(1503));
    assert_eq!(standing.contradicted, 1);
    assert_eq!(standing.states.map(|state| state.count), [0, 0, 0, 0, 1, 1]);
}
