//! The rule of absence at its boundaries: settle 600 s, three confirmations 60 s apart, remembered for a day.

use super::support::{EPOCH, at, at_ns, begun, draw, intent, rule, seconds};
use crate::operation::*;
use crate::time::Now;

const S: u64 = 1_000_000_000;
const GOOD: Standing = Standing { has_good_credentials: true, shows_recent: true };

/// Unknown since 10 s. Its lease ends at 35 s, so that is when settling begins.
fn unknown() -> Record {
    let mut record = begun();
    let Ok(Begin::New(pending)) = begin(None, intent(), EPOCH, &at(0)) else { panic!("new") };
    let Ok(forwarding) = pending.committed().forward(at(1).mono) else { panic!("in time") };
    let report = forwarding.unknown(Doubt::Timeout, draw());
    record.progress = apply(&record, &report, EPOCH, &at(10)).unwrap().progress;
    record
}

/// Asks and is told that there is no such operation; the answer comes a second later.
fn absent(record: &mut Record, asked: Now, rule: Option<AbsenceRule>, standing: Standing) -> State {
    let claimed = claim(record.clone(), seconds(2), EPOCH, &asked).unwrap();
    record.progress = claimed.record().progress;
    let report = claimed.committed().ask(asked.mono).absent(rule, standing, draw());
    let answered = at_ns(asked.mono.as_ns() + S);
    record.progress = apply(record, &report, EPOCH, &answered).unwrap().progress;
    record.progress.state()
}

const UNKNOWN: State = State::Unknown(Doubt::Timeout);
const ABSENT: State = State::NotExecuted(NotExecuted::Absent);

/// 35 s and 600 s, then 60 s and 60 s more.
#[test]
fn three_settled_and_spaced_absences_prove_it_to_the_nanosecond() {
    let mut record = unknown();
    assert_eq!(absent(&mut record, at_ns(635 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(695 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(755 * S), Some(rule()), GOOD), ABSENT);
}

#[test]
fn an_absence_asked_a_nanosecond_before_it_settled_counts_for_nothing() {
    let mut record = unknown();
    assert_eq!(absent(&mut record, at_ns(635 * S - 1), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(record.progress.parts().absences, 0);
    assert_eq!(absent(&mut record, at_ns(695 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(755 * S), Some(rule()), GOOD), UNKNOWN, "the second");
    assert_eq!(absent(&mut record, at_ns(815 * S), Some(rule()), GOOD), ABSENT);
}

/// One that comes too soon is not counted, and takes nothing away.
#[test]
fn absences_less_than_their_spacing_apart_are_one() {
    let mut record = unknown();
    assert_eq!(absent(&mut record, at_ns(635 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(695 * S - 1), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(record.progress.parts().absences, 1);
    assert_eq!(absent(&mut record, at_ns(697 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(757 * S), Some(rule()), GOOD), ABSENT);
}

#[test]
fn another_answer_between_them_begins_anew() {
    let mut record = unknown();
    assert_eq!(absent(&mut record, at_ns(635 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(695 * S), Some(rule()), GOOD), UNKNOWN);
    let claimed = claim(record.clone(), seconds(2), EPOCH, &at(700)).unwrap();
    record.progress = claimed.record().progress;
    let report = claimed.committed().ask(at(700).mono).inconclusive(draw());
    record.progress = apply(&record, &report, EPOCH, &at(701)).unwrap().progress;
    assert_eq!(absent(&mut record, at_ns(755 * S), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(record.progress.parts().absences, 1);
}

/// While the upstream does not show what it surely has, or refuses the credentials, its absences say nothing.
#[test]
fn a_suspended_absence_voids_what_was_counted() {
    for standing in
        [Standing { shows_recent: false, ..GOOD }, Standing { has_good_credentials: false, ..GOOD }]
    {
        let mut record = unknown();
        assert_eq!(absent(&mut record, at(635), Some(rule()), GOOD), UNKNOWN);
        assert_eq!(absent(&mut record, at(695), Some(rule()), standing), UNKNOWN);
        assert_eq!(record.progress.parts().absences, 0);
    }
}

/// Without a rule it is attention at the deadline, an hour after it began; and says why.
#[test]
fn without_a_rule_absences_lead_to_a_person() {
    let mut record = unknown();
    for asked in [635, 1000, 2000, 3000] {
        assert_eq!(absent(&mut record, at(asked), None, GOOD), UNKNOWN);
    }
    assert_eq!(absent(&mut record.clone(), at_ns(3599 * S - 1), None, GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at_ns(3599 * S), None, GOOD), State::Attention(Attention::Absent));
    assert_eq!(absent(&mut record, at(5000), None, GOOD), State::Attention(Attention::Absent));
}

/// An upstream forgets: what it does not know after a day it may have executed.
#[test]
fn what_the_upstream_may_have_forgotten_is_never_proven_absent() {
    let verified_long = || {
        let mut record = unknown();
        let parts = *record.progress.parts();
        record.progress = Progress::restore(Parts { verify_until: at(10 * 86_400).wall, ..parts }).unwrap();
        record
    };
    // The third is answered one nanosecond before the day is over, or exactly when it is.
    for (last, expected) in [(86_399 * S - 1, ABSENT), (86_399 * S, UNKNOWN)] {
        let mut record = verified_long();
        assert_eq!(absent(&mut record, at(700), Some(rule()), GOOD), UNKNOWN);
        assert_eq!(absent(&mut record, at(800), Some(rule()), GOOD), UNKNOWN);
        assert_eq!(absent(&mut record, at_ns(last), Some(rule()), GOOD), expected, "{last}");
    }
    // The date ran back behind the beginning: nobody knows how old it is.
    let mut record = verified_long();
    record.identity.created = at(2_000_000).wall;
    for asked in [700, 800, 900, 1000] {
        assert_eq!(absent(&mut record, at(asked), Some(rule()), GOOD), UNKNOWN);
    }
}

/// A process that starts again begins to wait again: what it saw before may have been the old requests' last seconds.
#[test]
fn settling_begins_anew_with_the_process() {
    let mut record = unknown();
    assert_eq!(absent(&mut record, at(635), Some(rule()), GOOD), UNKNOWN);
    assert_eq!(absent(&mut record, at(695), Some(rule()), GOOD), UNKNOWN);
    let epoch = EPOCH.next();
    record.progress = recover(&record, 0, epoch, &at(700)).unwrap().progress;
    let parts = record.progress.parts();
    assert_eq!((parts.absences, parts.settle_from), (0, at(700).mono));
}

#[test]
fn what_was_seen_under_its_name_is_never_absent_again() {
    type Saw = fn(Asked) -> Report;
    let kinds: [(Saw, State); 3] = [
        (|asked| asked.mismatch(draw()), State::Attention(Attention::Mismatch)),
        (|asked| asked.several_matches(draw()), State::Attention(Attention::SeveralMatches)),
        (|asked| asked.pending(draw()), State::Unknown(Doubt::Pending)),
    ];
    for (saw, state) in kinds {
        let mut record = unknown();
        let claimed = claim(record.clone(), seconds(2), EPOCH, &at(20)).unwrap();
        record.progress = claimed.record().progress;
        let report = saw(claimed.committed().ask(at(20).mono));
        record.progress = apply(&record, &report, EPOCH, &at(21)).unwrap().progress;
        assert_eq!(record.progress.state(), state);
        for asked in [1500, 2500, 3500] {
            assert_eq!(absent(&mut record, at(asked), Some(rule()), GOOD), state);
        }
        // The time for verification is an hour.
        let late =
            if matches!(state, State::Unknown(_)) { State::Attention(Attention::Pending) } else { state };
        for asked in [4500, 5500] {
            assert_eq!(absent(&mut record, at(asked), Some(rule()), GOOD), late);
        }
        // A route that loses its status query for a while: nobody sees anything then.
        let claimed = claim(record.clone(), seconds(2), EPOCH, &at(7000)).unwrap();
        record.progress = claimed.record().progress;
        let report = claimed.committed().no_status_query(draw());
        record.progress = apply(&record, &report, EPOCH, &at(7001)).unwrap().progress;
        let State::Attention(why) = record.progress.state() else { panic!("{state:?}: a person has it") };
        assert_ne!(why, Attention::NoStatusQuery);
        for asked in [8500, 9500, 10_500, 11_500] {
            assert_eq!(absent(&mut record, at(asked), Some(rule()), GOOD), State::Attention(why));
        }
    }
}

/// By hand: what could never hold, or would hold at once, is no rule.
#[test]
fn a_rule_that_could_never_or_too_easily_hold_is_none() {
    let new = |settle, confirmations, spacing, remembered| {
        AbsenceRule::new(seconds(settle), confirmations, seconds(spacing), seconds(remembered)).map(|_| ())
    };
    assert_eq!(new(900, 3, 60, 86_400), Ok(()));
    assert_eq!(new(0, 3, 60, 86_400), Err(AbsenceRuleError::Settle));
    assert_eq!(new(900, 1, 60, 86_400), Err(AbsenceRuleError::Confirmations));
    assert_eq!(new(900, 1001, 60, u64::MAX), Err(AbsenceRuleError::Confirmations));
    assert_eq!(new(900, 3, 0, 86_400), Err(AbsenceRuleError::Spacing));
    assert_eq!(new(900, 3, 60, 1080), Err(AbsenceRuleError::Remembered));
    assert_eq!(new(900, 3, 60, 1081), Ok(()));
}
