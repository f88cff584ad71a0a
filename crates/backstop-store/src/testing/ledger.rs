//! What every ledger keeps.
#![expect(clippy::panic, reason = "a promise that is not kept stops the test")]

mod lifetimes;
mod replicas;
mod routes;
mod samples;
mod second_looks;

use std::time::Duration;

use backstop_engine::operation::{
    Attention, Decision, Doubt, Evidence, EvidenceKind, KeptAnswer, NotExecuted, OperationId, Refusal,
    Refused, Schedule, Scope, State, Told, answer,
};
use backstop_engine::time::Now;

use super::samples::now;
use crate::ledger::{Actor, Begun, Filter, Ledger, Recorded, Resolution};

pub use samples::{ROUTE, begin, forward, intent, kept, unknown, upkeep};

/// Something to keep a ledger on.
pub trait LedgerBackend {
    /// Opens an empty ledger, forgetting what was before.
    fn fresh(&mut self, now: Now) -> Box<dyn Ledger>;

    /// Opens it again after it was closed; `None` if nothing survives that.
    fn again(&mut self, now: Now) -> Option<Box<dyn Ledger>>;

    /// Opens another one beside that which was opened last, as a second replica does; `None` if one process has it alone.
    fn beside(&mut self) -> Option<Box<dyn Ledger>> {
        None
    }
}

/// Holds a ledger against the whole contract.
///
/// # Panics
/// At the first promise that is not kept.
pub fn ledger_contract(backend: &mut dyn LedgerBackend) {
    for check in [
        one_intent,
        answers_come_back,
        other_requests,
        callers_apart,
        overtaken,
        contradictions,
        one_claim,
        least_asked_first,
        woken,
        persons,
        listed,
        routes::claims,
        routes::retention,
        routes::schedules,
        routes::raised,
        routes::large,
        replicas::one_intent,
        replicas::leases_and_claims,
        second_looks::listed,
        second_looks::contradicted,
        lifetimes::leases,
        lifetimes::deadlines,
        lifetimes::retention,
        lifetimes::restart,
    ] {
        check(backend);
    }
}

/// Long enough for any disk.
const FLUSH: Duration = Duration::from_secs(60);

fn direct(recorded: &Recorded) -> State {
    match recorded {
        Recorded::Changed { record, .. } | Recorded::Refused { record, .. } => record.progress.state(),
        Recorded::Unheard => State::Dispatching,
    }
}

fn is_by(state: State, kind: EvidenceKind) -> bool {
    matches!(state, State::Succeeded(by) | State::Failed(by) if Evidence::kind(by) == kind)
}

/// However many ask at once.
fn one_intent(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let intents: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u8)
            .map(|thread| {
                let ledger = &*ledger;
                scope.spawn(move || {
                    // Each client draws a name of its own for the same key.
                    let mut intent = intent(1);
                    intent.id = OperationId::from_bytes([thread; 16]);
                    matches!(ledger.begin(intent, now(1)).wait(), Ok(Ok(Begun::New(_))))
                })
            })
            .collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap_or(false))).sum()
    });
    assert_eq!(intents, 1);
    assert_eq!(ledger.standing(now(1)).states.map(|state| state.count), [1, 0, 0, 0, 0, 0]);
}

fn answers_come_back(backend: &mut dyn LedgerBackend) {
    let mut ledger = backend.fresh(now(0));
    let answers = [kept(201, Some(b"{\"id\":1}")), kept(200, None), KeptAnswer::of_status(201)];
    for (number, kept) in (1..).zip(&answers) {
        let report = forward(begin(&*ledger, number, now(1)), now(1)).succeeded(kept.clone());
        assert!(matches!(ledger.record(report, now(2)).wait(), Ok(Recorded::Changed { .. })));
    }
    let refused = Refusal::of_status(402, false).map(|refusal| {
        forward(begin(&*ledger, 4, now(1)), now(1)).refused(refusal, kept(402, Some(b"declined")))
    });
    assert!(refused.is_some_and(|report| is_by(
        ledger.record(report, now(2)).wait().map_or(State::Dispatching, |recorded| direct(&recorded)),
        EvidenceKind::Direct
    )));
    for life in 0..2 {
        for (number, expected) in (1..).zip(&answers) {
            let Ok(Ok(Begun::Again(record))) = ledger.begin(intent(number), now(3)).wait() else {
                panic!("{number} is not there, life {life}")
            };
            assert_eq!(record.answer.as_ref(), Some(expected));
            assert_eq!(record.identity.upstream_id.as_deref(), intent(number).upstream_id.as_deref());
            assert_eq!(record.identity.captured, intent(number).captured);
            match answer(&record) {
                Told::Replay(kept) => assert!(kept.body.is_some()),
                Told::StatusOnly(status) => assert_eq!(status, expected.status),
                other => panic!("{other:?}"),
            }
        }
        assert!(ledger.close(FLUSH));
        match backend.again(now(4)) {
            Some(again) => ledger = again,
            None => return,
        }
    }
}

fn other_requests(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let _intent = begin(&*ledger, 1, now(1));
    let mut other = intent(1);
    other.fingerprint = intent(2).fingerprint;
    assert!(matches!(ledger.begin(other, now(2)).wait(), Ok(Ok(Begun::OtherRequest))));
    assert!(matches!(ledger.begin(intent(1), now(2)).wait(), Ok(Ok(Begun::Again(_)))));
    let mut same_name = intent(3);
    same_name.id = intent(1).id;
    assert!(
        !matches!(ledger.begin(same_name, now(2)).wait(), Ok(Ok(Begun::New(_)))),
        "a name is one operation's"
    );
    let mut long = intent(5);
    long.route = "x".repeat(1000).into();
    assert!(matches!(ledger.begin(long, now(2)).wait(), Ok(Err(_))));
}

fn callers_apart(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let first = begin(&*ledger, 1, now(1));
    let mut second = intent(1);
    second.scope = Scope::from_bytes([9; 32]);
    second.id = OperationId::from_bytes([9; 16]);
    assert!(matches!(ledger.begin(second.clone(), now(1)).wait(), Ok(Ok(Begun::New(_)))));
    let look = |scope, id| ledger.look(scope, id, now(2)).wait().ok().flatten();
    assert!(look(intent(1).scope, first.id()).is_some());
    assert!(look(second.scope, first.id()).is_none());
    assert!(look(intent(1).scope, OperationId::from_bytes([8; 16])).is_none());
    let find = |scope, key| ledger.find(scope, key, now(2)).wait().ok().flatten();
    assert_eq!(find(intent(1).scope, intent(1).key).map(|record| record.identity.id), Some(first.id()));
    assert!(find(intent(1).scope, intent(9).key).is_none(), "nothing is begun by looking");
    assert_eq!(find(second.scope, second.key).map(|record| record.identity.id), Some(second.id));
    assert!(find(Scope::from_bytes([7; 32]), second.key).is_none());
}

/// Whoever was overtaken changes nothing, and is counted; the upstream's own success is believed.
fn overtaken(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let (late, lost) =
        (forward(begin(&*ledger, 1, now(1)), now(1)), forward(begin(&*ledger, 2, now(1)), now(1)));
    let swept = ledger.sweep(Default::default(), 7, now(100)).wait();
    assert_eq!(swept.map(|swept| swept.lapsed), Ok(2));
    let refusal = Refusal::of_status(402, false).map(|refusal| late.refused(refusal, kept(402, None)));
    let refused = refusal.map(|report| ledger.record(report, now(101)).wait());
    assert!(matches!(refused, Some(Ok(Recorded::Refused { why: Refused::Stale, .. }))), "{refused:?}");
    let recorded = ledger.record(lost.succeeded(kept(201, None)), now(101)).wait();
    assert!(matches!(recorded, Ok(Recorded::Changed { from: State::Unknown(Doubt::LeaseEnded), .. })));
    let stale = Refused::ALL.iter().position(|why| *why == Refused::Stale).unwrap_or(usize::MAX);
    assert_eq!(ledger.standing(now(101)).refused.get(stale), Some(&1));
    let other = super::ledger::samples::elsewhere();
    assert_eq!(ledger.record(other, now(101)).wait(), Ok(Recorded::Unheard));
}

/// Evidence against a decision calls a person.
fn contradictions(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let forwarding = forward(begin(&*ledger, 1, now(1)), now(1));
    assert_eq!(ledger.sweep(Default::default(), 7, now(100)).wait().map(|swept| swept.lapsed), Ok(1));
    assert_eq!(ledger.sweep(Default::default(), 7, now(4000)).wait().map(|swept| swept.overdue), Ok(1));
    let Ok(by) = Resolution::new("ada", "the bank says no") else { panic!("a name and a reason") };
    let id = forwarding.id();
    assert!(matches!(
        ledger.resolve(id, Decision::NotExecuted, by, now(4001)).wait(),
        Ok(Recorded::Changed { .. })
    ));
    let recorded = ledger.record(forwarding.succeeded(kept(201, None)), now(4002)).wait();
    assert!(matches!(
        recorded,
        Ok(Recorded::Changed { from: State::NotExecuted(NotExecuted::Person), is_contradiction: true, .. })
    ));
    assert_eq!(ledger.standing(now(4002)).contradicted, 1);
    let states = ledger.standing(now(4002)).states.map(|state| state.count);
    assert_eq!(states, [0, 0, 0, 0, 0, 1]);
}

fn one_claim(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let timeout = Duration::from_secs(2);
    let claim = |most, at| ledger.claim(ROUTE, most, timeout, at).wait().unwrap_or_default().claims;
    for number in 1..=5 {
        unknown(&*ledger, number, now(1), Schedule::default().draw(0));
    }
    assert!(claim(10, now(0)).is_empty(), "none is due");
    let first = claim(3, now(10));
    let second = claim(10, now(10));
    assert_eq!((first.len(), second.len()), (3, 2));
    assert!(claim(10, now(16)).is_empty(), "leases of 2 s and 5 s of grace");
    let third = claim(10, now(17));
    assert_eq!(third.len(), 5, "leases are over");
    for (number, overtaken) in first.into_iter().enumerate() {
        let recorded =
            ledger.record(overtaken.ask(now(11).mono).failed(Schedule::default().draw(0)), now(18)).wait();
        assert!(matches!(recorded, Ok(Recorded::Refused { why: Refused::Stale, .. })), "{number}");
    }
    for claim in third {
        let recorded =
            ledger.record(claim.ask(now(17).mono).succeeded(Schedule::default().draw(0)), now(18)).wait();
        assert!(recorded.is_ok_and(|recorded| is_by(direct(&recorded), EvidenceKind::Status)));
    }
    assert!(claim(10, now(1000)).is_empty());
}

/// What was asked for in vain keeps nothing waiting that was not asked for yet, however long it has been due.
fn least_asked_first(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let at_once = Schedule::default().draw(0);
    let claim = |at| ledger.claim(ROUTE, 1, Duration::from_secs(2), at).wait().unwrap_or_default().claims;
    unknown(&*ledger, 1, now(1), at_once);
    for claim in claim(now(10)) {
        let recorded = ledger.record(claim.ask(now(10).mono).inconclusive(at_once), now(11)).wait();
        assert!(matches!(recorded, Ok(Recorded::Changed { .. })));
    }
    unknown(&*ledger, 2, now(12), at_once);
    let ids: Vec<_> = claim(now(20)).iter().map(|claim| claim.record().identity.id).collect();
    assert_eq!(ids, [intent(2).id]);
}

/// The same client again makes the next query come sooner.
fn woken(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let late =
        Schedule { first: Duration::from_secs(500), most: Duration::from_secs(500), ..Schedule::default() };
    for number in 1..=2 {
        unknown(&*ledger, number, now(1), late.draw(u64::MAX));
    }
    let due = |record: &backstop_engine::operation::Record| record.progress.due();
    let Ok(Ok(Begun::Again(record))) = ledger.begin(intent(1), now(10)).wait() else { panic!("again") };
    assert_eq!(due(&record), Some(now(10).mono));
    let looked = ledger.look(intent(2).scope, intent(2).id, now(20)).wait().ok().flatten();
    assert_eq!(looked.and_then(|record| due(&record)), Some(now(20).mono));
    let claimed = ledger.claim(ROUTE, 10, Duration::from_secs(2), now(20)).wait();
    assert_eq!(claimed.map(|claimed| claimed.claims.len()), Ok(2));
}

fn persons(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    unknown(&*ledger, 1, now(1), Schedule::default().draw(0));
    let (id, Ok(by)) = (intent(1).id, Resolution::new(" ada ", "seen in the bank's portal")) else {
        panic!("a name and a reason")
    };
    let resolve = |at| ledger.resolve(id, Decision::Succeeded, by.clone(), at).wait();
    assert!(
        matches!(resolve(now(2)), Ok(Recorded::Refused { why: Refused::NotNow, .. })),
        "it is verified still"
    );
    assert_eq!(ledger.sweep(Default::default(), 7, now(4000)).wait().map(|swept| swept.overdue), Ok(1));
    assert!(resolve(now(4001)).is_ok_and(|recorded| is_by(direct(&recorded), EvidenceKind::Person)));
    assert!(matches!(resolve(now(4002)), Ok(Recorded::Refused { why: Refused::Decided, .. })));
    let shown = ledger.show(id).wait().ok().flatten();
    let history = shown.map(|shown| shown.history).unwrap_or_default();
    let seen: Vec<_> = history.iter().map(|event| (event.actor.token(), event.from, event.to)).collect();
    let expected = [
        ("reporter", State::Dispatching, State::Unknown(Doubt::Timeout)),
        ("time", State::Unknown(Doubt::Timeout), State::Attention(Attention::Deadline)),
    ];
    assert_eq!(seen.get(..2), Some(&expected[..]));
    assert_eq!(history.len(), 3);
    assert_eq!(
        history.last().map(|event| (&event.actor, event.at)),
        Some((&Actor::Person(by), now(4001).wall))
    );
    assert_eq!(ledger.show(OperationId::from_bytes([8; 16])).wait(), Ok(None));
}

fn listed(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    for number in 1..=3 {
        unknown(&*ledger, number, now(u64::from(number) * 10), Schedule::default().draw(0));
    }
    let _intent = begin(&*ledger, 4, now(50));
    let page = |state, from: Now, after, most| {
        let listed = ledger.list(Filter { state, from: from.wall, after, most }).wait().unwrap_or_default();
        listed.iter().map(|record| record.identity.id.as_bytes()[0]).collect::<Vec<_>>()
    };
    let list = |state, from, most| page(state, from, None, most);
    assert_eq!(list(None, now(0), 10), [1, 2, 3, 4]);
    assert_eq!(list(Some("unknown"), now(0), 10), [1, 2, 3]);
    assert_eq!(list(Some("unknown"), now(20), 1), [2]);
    assert_eq!(list(Some("failed"), now(0), 10), [0_u8; 0]);
    // Two that began in the same moment are told apart by their names, wherever a page ends.
    let _twin = begin(&*ledger, 5, now(50));
    let after = |number| Some(OperationId::from_bytes([number; 16]));
    assert_eq!(list(None, now(50), 1), [4]);
    assert_eq!(page(None, now(50), after(4), 10), [5]);
    assert_eq!(page(None, now(50), after(5), 10), [0_u8; 0]);
    assert_eq!(page(None, now(20), after(2), 10), [3, 4, 5]);
    assert_eq!(page(Some("unknown"), now(20), after(2), 10), [3]);
    assert!(ledger.sweep(Default::default(), 7, now(52)).wait().is_ok());
    let standing = ledger.standing(now(60));
    assert_eq!(standing.states.map(|state| state.count), [2, 3, 0, 0, 0, 0]);
    assert_eq!(standing.states.map(|state| state.state), State::TOKENS);
    assert_eq!(standing.oldest_unknown, Some(Duration::from_secs(50)), "since 10 s");
    assert_eq!(standing.oldest_attention, None);
}
