//! Keys, intents and the one forward, at their boundaries.

use super::support::{EPOCH, at, at_ns, begun, draw, intent, rule, seconds};
use crate::operation::*;
use crate::time::WallTrust;

fn pending() -> PendingIntent {
    match begin(None, intent(), EPOCH, &at(0)) {
        Ok(Begin::New(pending)) => pending,
        other => panic!("{other:?}"),
    }
}

/// A lease of 30 s and 5 s of grace, of which the last 5 s are no time to begin: 30 s are left, exclusive.
#[test]
fn a_forward_begins_within_its_deadline_and_not_a_nanosecond_later() {
    const DEADLINE: u64 = 30_000_000_000;
    let is_forwarded = |ns| pending().committed().forward(at_ns(ns).mono).is_ok();
    assert!(is_forwarded(0) && is_forwarded(DEADLINE - 1));
    assert!(!is_forwarded(DEADLINE) && !is_forwarded(DEADLINE + 1));
}

#[test]
fn an_intent_that_is_too_late_is_recorded_as_never_sent() {
    let Err(late) = pending().committed().forward(at(30).mono) else { panic!("it is not too late") };
    let change = apply(&begun(), &late.report(), EPOCH, &at(30)).unwrap();
    assert_eq!(change.to(), State::NotExecuted(NotExecuted::TooLate));
}

#[test]
fn a_reason_that_does_not_say_that_nothing_was_sent_leaves_it_unknown() {
    for why in [NotExecuted::Absent, NotExecuted::Person] {
        let report = pending().committed().never_sent(why);
        let change = apply(&begun(), &report, EPOCH, &at(1)).unwrap();
        assert_eq!(change.to(), State::Unknown(Doubt::Unmatched));
    }
}

/// The other request is named before anything that the operation may be in.
#[test]
fn a_key_belongs_to_one_request() {
    let existing = begun();
    let again = begin(Some(&existing), intent(), EPOCH, &at(1));
    assert!(matches!(again, Ok(Begin::Again)));
    let other = Intent { fingerprint: Fingerprint::from_bytes([4; 32]), ..intent() };
    assert!(matches!(begin(Some(&existing), other, EPOCH, &at(1)), Ok(Begin::OtherRequest)));
}

#[test]
fn every_part_of_an_intent_has_a_limit() {
    let check = |intent| begin(None, intent, EPOCH, &at(0)).map(|_| ());
    let name = |length: usize| -> Box<str> { "x".repeat(length).into() };
    let pair = |length| (name(1), name(length));
    assert_eq!(check(Intent { route: name(128), ..intent() }), Ok(()));
    assert_eq!(check(Intent { route: name(129), ..intent() }), Err(IntentError::Route));
    let upstream = |length| Intent { upstream_id: Some(vec![b'x'; length].into()), ..intent() };
    assert_eq!(check(upstream(1024)), Ok(()));
    assert_eq!(check(upstream(0)), Err(IntentError::UpstreamId));
    assert_eq!(check(upstream(1025)), Err(IntentError::UpstreamId));
    let captured = |count, length| Intent { captured: vec![pair(length); count], ..intent() };
    assert_eq!(check(captured(16, 256)), Ok(()));
    assert_eq!(check(captured(17, 1)), Err(IntentError::Captured));
    assert_eq!(check(captured(1, 257)), Err(IntentError::Captured));
}

/// What the same client hears, by hand from the table of `answer`.
#[test]
fn a_new_key_is_offered_only_for_what_was_never_sent() {
    let told = |state: State, answer: Option<KeptAnswer>| {
        let mut record = begun();
        let open = state.is_open().then(|| at(1).mono);
        let parts = *record.progress.parts();
        let lease_until = parts.lease_until.filter(|_| state == State::Dispatching);
        record.progress = Progress::restore(Parts { state, due: open, lease_until, ..parts }).unwrap();
        record.answer = answer;
        let told = answer_of(&record);
        (told, super::super::answer(&record).next_try())
    };
    let whole = KeptAnswer { body: Some(Box::default()), ..KeptAnswer::of_status(201) };
    let state = |token, why| State::parse(token, why).unwrap();
    let cases = [
        (State::Dispatching, None, "in progress", NextTry::SameKey),
        (state("unknown", "timeout"), None, "unknown", NextTry::SameKey),
        (state("succeeded", "direct"), Some(whole.clone()), "replay 201", NextTry::Never),
        (state("succeeded", "direct"), Some(KeptAnswer::of_status(201)), "status 201", NextTry::Never),
        (state("succeeded", "direct"), None, "executed", NextTry::Never),
        (state("succeeded", "status"), Some(whole), "executed", NextTry::Never),
        (state("succeeded", "person"), None, "executed", NextTry::Never),
        (state("failed", "direct"), Some(KeptAnswer::of_status(402)), "status 402", NextTry::Never),
        (state("failed", "status"), None, "declined", NextTry::Never),
        (state("not_executed", "connect"), None, "not executed", NextTry::NewKey),
        (state("not_executed", "refused_stream"), None, "not executed", NextTry::NewKey),
        (state("not_executed", "absent"), None, "not executed", NextTry::SameKey),
        (state("not_executed", "person"), None, "not executed", NextTry::SameKey),
        (state("attention", "deadline"), None, "attention", NextTry::SameKey),
    ];
    for (state, kept, expected, next) in cases {
        assert_eq!(told(state, kept), (expected.to_owned(), next), "{state:?}");
    }
}

fn answer_of(record: &Record) -> String {
    match answer(record) {
        Told::InProgress => "in progress".into(),
        Told::Unknown(_) => "unknown".into(),
        Told::Replay(kept) => format!("replay {}", kept.status),
        Told::StatusOnly(status) => format!("status {status}"),
        Told::Executed(_) => "executed".into(),
        Told::Declined(_) => "declined".into(),
        Told::NotExecuted(_) => "not executed".into(),
        Told::NeedsAttention(_) => "attention".into(),
    }
}

/// Decided at 1 s. Content a day, tombstone 30 days: at the limit it goes.
#[test]
fn what_is_decided_is_kept_for_its_time_and_what_is_not_for_ever() {
    const DAY: u64 = 86_400;
    let mut record = begun();
    let report = pending().committed().never_sent(NotExecuted::Dns);
    record.progress = apply(&record, &report, EPOCH, &at(1)).unwrap().progress;
    let kept = |record: &Record, now| retained(record, &Retention::default(), &now);
    let ns = |seconds: u64| seconds * 1_000_000_000;
    assert_eq!(kept(&record, at_ns(ns(DAY + 1) - 1)), Keep::Whole);
    assert_eq!(kept(&record, at(DAY + 1)), Keep::Tombstone);
    assert_eq!(kept(&record, at_ns(ns(30 * DAY + 1) - 1)), Keep::Tombstone);
    assert_eq!(kept(&record, at(30 * DAY + 1)), Keep::Nothing);
    assert_eq!(kept(&begun(), at(400 * DAY)), Keep::Whole, "under way");
    for wall_trust in [WallTrust::Unsynchronised, WallTrust::RanBack] {
        let now = crate::time::Now { wall_trust, ..at(31 * DAY) };
        assert_eq!(kept(&record, now), Keep::Whole, "{wall_trust:?}");
    }
}

/// Heartbeat 10 s, lag 60 s, deadline an hour: each on both sides of its boundary.
#[test]
fn in_verification_is_said_only_of_what_is_followed() {
    let mut record = begun();
    let pending = pending().committed();
    let Ok(forwarding) = pending.forward(at(1).mono) else { panic!("in time") };
    let report = forwarding.unknown(Doubt::Timeout, draw());
    record.progress = apply(&record, &report, EPOCH, &at(30)).unwrap().progress;
    let follower = Follower {
        has_status_query: true,
        heartbeat: Some(at(30).mono),
        oldest_due: None,
        heartbeat_limit: seconds(10),
        lag_limit: seconds(60),
    };
    let follow = |follower, now| tracked(&record, &follower, EPOCH, &now);
    assert_eq!(follow(follower, at(30)), Ok(seconds(0)));
    assert_eq!(follow(follower, at(40)), Ok(seconds(0)));
    assert_eq!(follow(follower, at_ns(40_000_000_001)), Err(Untracked::Silent));
    let beats = Follower { heartbeat: Some(at(90).mono), ..follower };
    assert_eq!(follow(beats, at(90)), Ok(seconds(0)));
    assert_eq!(follow(beats, at_ns(90_000_000_001)), Err(Untracked::Behind), "due since 30 s");
    let behind = Follower { oldest_due: Some(at(20).mono), ..beats };
    assert_eq!(follow(behind, at(81)), Err(Untracked::Behind));
    let at_the_end = Follower { heartbeat: Some(at(3600).mono), lag_limit: seconds(9999), ..follower };
    assert_eq!(follow(at_the_end, at_ns(3_599_999_999_999)), Ok(seconds(0)));
    assert_eq!(follow(at_the_end, at(3600)), Err(Untracked::Deadline));
    let blind = Follower { has_status_query: false, ..follower };
    assert_eq!(follow(blind, at(30)), Err(Untracked::NoStatusQuery));
    assert_eq!(follow(Follower { heartbeat: None, ..follower }, at(30)), Err(Untracked::Silent));
    let other_epoch = tracked(&record, &follower, EPOCH.next(), &at(30));
    assert_eq!(other_epoch, Err(Untracked::NotDue), "not taken over yet");
    assert_eq!(tracked(&begun(), &follower, EPOCH, &at(30)), Err(Untracked::NotUnknown));
    assert!(rule().confirmations > 1);
}
