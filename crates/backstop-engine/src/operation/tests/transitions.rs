//! Every report in every state, and leases and deadlines at their boundaries.

use super::support::{EPOCH, at, at_ns, begun, draw, rule, seconds};
use crate::operation::begin::Forwarding;
use crate::operation::claim::Claim;
use crate::operation::*;

const S: u64 = 1_000_000_000;

fn state(token: &str, why: &str) -> State {
    State::parse(token, why).unwrap()
}

/// A record in this state, with a claim if it is open, at fence 5.
fn in_state(state: State) -> Record {
    let mut record = begun();
    let is_owned = !state.is_decided();
    let parts = Parts {
        state,
        fence: Fence::new(5),
        lease_until: is_owned.then(|| at(35).mono),
        due: state.is_open().then(|| at(20).mono),
        ..*record.progress.parts()
    };
    record.progress = Progress::restore(parts).unwrap();
    record
}

fn forwarding(fence: u64) -> Forwarding {
    Forwarding::held(begun().identity.id, Fence::new(fence))
}

fn asked(fence: u64) -> Asked {
    let mut record = in_state(state("unknown", "timeout"));
    let parts = Parts { fence: Fence::new(fence), ..*record.progress.parts() };
    record.progress = Progress::restore(parts).unwrap();
    Claim::held(record).ask(at(30).mono)
}

/// Reports under fence 5, in the order of the columns below.
fn reports(fence: u64) -> [Report; 10] {
    let answer = KeptAnswer::of_status;
    let good = Standing { has_good_credentials: true, shows_recent: true };
    [
        forwarding(fence).succeeded(answer(201)),
        forwarding(fence).refused(Refusal::of_status(402, false).unwrap(), answer(402)),
        forwarding(fence).unknown(Doubt::Reset, draw()),
        forwarding(fence).never_sent(NotExecuted::Tls),
        asked(fence).succeeded(draw()),
        asked(fence).failed(draw()),
        asked(fence).absent(Some(rule()), good, draw()),
        asked(fence).several_matches(draw()),
        asked(fence).pending(draw()),
        Claim::held(asked(fence).record().clone()).no_status_query(draw()),
    ]
}

/// Written by hand from the table of transitions: rows are states; columns are the forward's success, refusal, doubt, never sent;
/// the query's found, declined, absent (not settled), several matches, pending; that nobody can ask.
#[test]
fn every_report_in_every_state() {
    const STALE: &str = "stale";
    const DECIDED: &str = "decided";
    const NOT_NOW: &str = "not_now";
    let open = |words: [&'static str; 6]| -> [&'static str; 10] {
        let [absent, several, pending, nobody, direct, found] = words;
        let declined = if found == "succeeded status" { "failed status" } else { found };
        [direct, STALE, STALE, STALE, found, declined, absent, several, pending, nobody]
    };
    let undecided = |words: [&'static str; 4]| {
        let [absent, several, pending, nobody] = words;
        open([absent, several, pending, nobody, "succeeded direct", "succeeded status"])
    };
    const SEVERAL: &str = "attention several_matches";
    let of_decided = [
        "attention contradicted",
        DECIDED,
        DECIDED,
        DECIDED,
        DECIDED,
        DECIDED,
        DECIDED,
        DECIDED,
        DECIDED,
        DECIDED,
    ];
    let table = [
        (
            ("dispatching", ""),
            [
                "succeeded direct",
                "failed direct",
                "unknown reset",
                "not_executed tls",
                NOT_NOW,
                NOT_NOW,
                NOT_NOW,
                NOT_NOW,
                NOT_NOW,
                NOT_NOW,
            ],
        ),
        (
            ("unknown", "timeout"),
            undecided(["unknown timeout", SEVERAL, "unknown pending", "attention no_status_query"]),
        ),
        // What was seen under its name stays known, whatever sees nothing later.
        (
            ("unknown", "pending"),
            undecided(["unknown pending", SEVERAL, "unknown pending", "attention pending"]),
        ),
        (
            ("attention", "deadline"),
            undecided(["attention deadline", SEVERAL, "attention pending", "attention no_status_query"]),
        ),
        (
            ("attention", "pending"),
            undecided(["attention pending", SEVERAL, "attention pending", "attention pending"]),
        ),
        (
            ("attention", "mismatch"),
            undecided(["attention mismatch", SEVERAL, "attention mismatch", "attention mismatch"]),
        ),
        // A client may have heard the contrary: it is a person's, whatever is said now.
        (("attention", "contradicted"), open(["attention contradicted"; 6])),
        (("succeeded", "status"), [DECIDED; 10]),
        (("failed", "direct"), of_decided),
        (("not_executed", "absent"), of_decided),
    ];
    for ((token, why), expected) in table {
        let record = in_state(state(token, why));
        for (column, (report, expected)) in reports(5).iter().zip(expected).enumerate() {
            let became = match apply(&record, report, EPOCH, &at(31)) {
                Ok(change) => {
                    assert_eq!(change.progress.fence(), Fence::new(6), "{token} {column}");
                    assert_eq!(change.is_contradiction(), record.progress.state().is_decided());
                    format!("{} {}", change.to().token(), change.to().why())
                }
                Err(refused) => refused.token().to_owned(),
            };
            assert_eq!(became, expected, "{token} {why}, column {column}");
        }
    }
}

/// Ownership is lost with the fence; a success in the upstream's own answer is believed all the same.
#[test]
fn a_stale_fence_writes_nothing_but_a_success() {
    for record in [in_state(State::Dispatching), in_state(state("unknown", "timeout"))] {
        for fence in [4, 6] {
            for (column, report) in reports(fence).iter().enumerate() {
                let result = apply(&record, report, EPOCH, &at(31));
                if column == 0 {
                    assert_eq!(result.unwrap().to(), state("succeeded", "direct"));
                } else {
                    assert_eq!(result, Err(Refused::Stale), "{column}");
                }
            }
        }
    }
}

/// Deadline 30 s and 5 s of grace.
#[test]
fn a_lease_is_over_exactly_at_its_end() {
    let ended = |now| lease_ended(&begun(), draw(), EPOCH, &now).map(|change| change.to());
    assert_eq!(ended(at_ns(35 * S - 1)), Err(Refused::Leased));
    assert_eq!(ended(at_ns(35 * S)), Ok(State::Unknown(Doubt::LeaseEnded)));
    assert_eq!(ended(at_ns(35 * S + 1)), Ok(State::Unknown(Doubt::LeaseEnded)));
    let restarted = lease_ended(&begun(), draw(), EPOCH.next(), &at(0)).map(|change| change.to());
    assert_eq!(restarted, Ok(State::Unknown(Doubt::Restarted)), "a lease ends with its epoch");
    for open in ["unknown", "attention"]
        .map(|token| in_state(state(token, if token == "unknown" { "reset" } else { "absent" })))
    {
        assert_eq!(lease_ended(&open, draw(), EPOCH, &at(99)), Err(Refused::NotNow));
    }
}

/// A query of 2 s and 5 s of grace: claimed at 40 s, free again at 47 s.
#[test]
fn a_claim_is_one_persons_until_its_lease_is_over() {
    let mut record = in_state(state("unknown", "timeout"));
    let parts = *record.progress.parts();
    let due = Some(at(40).mono);
    record.progress = Progress::restore(Parts { lease_until: None, due, ..parts }).unwrap();
    let claim_at = |record: &Record, now| claim(record.clone(), seconds(2), EPOCH, &now);
    assert_eq!(claim_at(&record, at_ns(40 * S - 1)).unwrap_err(), Refused::NotNow);
    let first = claim_at(&record, at(40)).unwrap();
    assert_eq!(claim_at(first.record(), at_ns(47 * S - 1)).unwrap_err(), Refused::Leased);
    let second = claim_at(first.record(), at(47)).unwrap();
    assert_eq!(second.record().progress.fence(), Fence::new(7));
    let record = second.record().clone();
    let overtaken = first.committed().ask(at(41).mono).failed(draw());
    assert_eq!(apply(&record, &overtaken, EPOCH, &at(48)), Err(Refused::Stale));
    let found = second.committed().ask(at(47).mono).succeeded(draw());
    assert_eq!(apply(&record, &found, EPOCH, &at(48)).unwrap().to(), state("succeeded", "status"));
}

/// Verified for an hour from the beginning.
#[test]
fn the_deadline_calls_a_person_exactly_when_it_is_reached() {
    let mut record = in_state(state("unknown", "timeout"));
    let late = |record: &Record, now| overdue(record, draw(), EPOCH, &now).map(|change| change.to());
    assert_eq!(
        late(&record, at(3600)),
        Ok(State::Attention(Attention::Deadline)),
        "a lease that is over holds nothing up"
    );
    let parts = *record.progress.parts();
    record.progress = Progress::restore(Parts { lease_until: None, ..parts }).unwrap();
    assert_eq!(late(&record, at_ns(3600 * S - 1)), Err(Refused::NotNow));
    assert_eq!(late(&record, at_ns(3600 * S)), Ok(State::Attention(Attention::Deadline)));
    let leased = Parts { lease_until: Some(at(3601).mono), was_absent: true, ..parts };
    record.progress = Progress::restore(leased).unwrap();
    assert_eq!(late(&record, at(3600)), Err(Refused::Leased));
    assert_eq!(late(&record, at(3601)), Ok(State::Attention(Attention::Absent)));
    // The report of whoever is asking does the same.
    let report = asked(5).inconclusive(draw());
    let to = |now| apply(&record, &report, EPOCH, &now).unwrap().to();
    assert_eq!(to(at_ns(3600 * S - 1)), state("unknown", "timeout"));
    assert_eq!(to(at(3600)), State::Attention(Attention::Deadline), "the last answer was no absence");
}

#[test]
fn a_client_wakes_a_query_at_most_once_in_a_second() {
    let mut record = in_state(state("unknown", "timeout"));
    let parts = Parts {
        lease_until: None,
        due: Some(at(100).mono),
        asked_at: at(50).mono,
        ..*record.progress.parts()
    };
    record.progress = Progress::restore(parts).unwrap();
    let due = |record: &Record, now| wake(record, EPOCH, &now).and_then(|progress| progress.due());
    assert_eq!(due(&record, at_ns(50 * S)), Some(at(51).mono), "a second after it was asked");
    assert_eq!(due(&record, at(60)), Some(at(60).mono));
    assert_eq!(due(&record, at(100)), None, "it is due anyhow");
    record.progress = wake(&record, EPOCH, &at(60)).unwrap();
    assert_eq!(record.progress.fence(), Fence::new(5), "whoever claims it is not overtaken by that");
    assert_eq!(due(&record, at(60)), None, "woken already");
    assert_eq!(due(&in_state(state("unknown", "timeout")), at(10)), None, "it is being asked for");
    assert_eq!(due(&in_state(state("attention", "deadline")), at(10)), None, "a client calls no person");
}

#[test]
fn a_person_decides_only_what_needs_a_person() {
    let decide =
        |state, decision| resolve(&in_state(state), decision, EPOCH, &at(40)).map(|change| change.to());
    let attention = state("attention", "contradicted");
    assert_eq!(decide(attention, Decision::Succeeded), Ok(state("succeeded", "person")));
    assert_eq!(decide(attention, Decision::Failed), Ok(state("failed", "person")));
    assert_eq!(decide(attention, Decision::NotExecuted), Ok(state("not_executed", "person")));
    assert_eq!(decide(State::Dispatching, Decision::Failed), Err(Refused::NotNow));
    assert_eq!(decide(state("unknown", "timeout"), Decision::Failed), Err(Refused::NotNow));
    assert_eq!(decide(state("failed", "direct"), Decision::Succeeded), Err(Refused::Decided));
}

/// Every one that is not decided; all within 30 s.
#[test]
fn recovery_makes_what_was_under_way_unknown_and_spreads_its_queries() {
    let epoch = EPOCH.next();
    let now = at(1000);
    for (before, after) in [
        (State::Dispatching, Some(state("unknown", "restarted"))),
        (state("unknown", "timeout"), Some(state("unknown", "timeout"))),
        (state("attention", "absent"), Some(state("attention", "absent"))),
        (state("succeeded", "direct"), None),
        (state("failed", "status"), None),
        (state("not_executed", "dns"), None),
    ] {
        let record = in_state(before);
        let change = recover(&record, u64::MAX, epoch, &now);
        assert_eq!(change.map(|change| change.to()), after);
        assert_eq!(recover(&record, 0, EPOCH, &now), None, "its own life is no earlier one");
        let Some(change) = change else { continue };
        let parts = change.progress.parts();
        assert_eq!((parts.due, parts.lease_until, parts.fence.number()), (Some(at(1030).mono), None, 6));
        let soonest = recover(&record, 0, epoch, &now).unwrap();
        assert_eq!(soonest.progress.due(), Some(now.mono));
    }
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let parts = *begun().progress.parts();
    let restored = |parts| Progress::restore(parts).is_ok();
    assert!(restored(parts));
    assert!(!restored(Parts { lease_until: None, ..parts }), "under way, and nobody's");
    assert!(!restored(Parts { due: Some(at(1).mono), ..parts }), "under way, and to be asked for");
    assert!(!restored(Parts { fence: Fence::new(0), ..parts }));
    assert!(!restored(Parts { state: state("unknown", "timeout"), ..parts }), "never asked for");
    assert!(!restored(Parts { state: state("succeeded", "direct"), ..parts }), "decided, and owned");
}
