//! A late arrival after "not executed".

use super::support::{EPOCH, at, at_ns, begun, draw, rule, seconds};
use crate::operation::*;

const S: u64 = 1_000_000_000;

/// A record in this state at fence 5, as of this epoch.
fn in_state(state: State, epoch: Epoch) -> Record {
    let mut record = begun();
    let parts = Parts {
        state,
        epoch,
        fence: Fence::new(5),
        lease_until: (!state.is_decided()).then(|| at(35).mono),
        due: state.is_open().then(|| at(20).mono),
        ..*record.progress.parts()
    };
    record.progress = Progress::restore(parts).unwrap();
    record
}

fn every_state() -> Vec<State> {
    let mut states = vec![State::Dispatching];
    states.extend(Doubt::ALL.iter().copied().map(State::Unknown));
    states.extend(
        Evidence::all().into_iter().flat_map(|known| [State::Succeeded(known), State::Failed(known)]),
    );
    states.extend(NotExecuted::ALL.iter().copied().map(State::NotExecuted));
    states.extend(Attention::ALL.iter().copied().map(State::Attention));
    states
}

fn absent() -> Record {
    in_state(State::NotExecuted(NotExecuted::Absent), EPOCH)
}

/// What it is reported under fence 5, in a record of the same operation.
fn executed(next: Draw) -> Report {
    second_look(absent()).unwrap().executed(next)
}

#[test]
fn only_what_was_decided_by_absence_is_looked_at_again() {
    for state in every_state() {
        let look = second_look(in_state(state, EPOCH));
        assert_eq!(look.is_some(), state == State::NotExecuted(NotExecuted::Absent), "{state:?}");
    }
}

/// By the table: one state leads on, what else is decided stays, and nothing that is open is decided by it.
#[test]
fn a_late_success_calls_a_person_and_decides_nothing() {
    let mut changed = 0;
    for state in every_state() {
        let record = in_state(state, EPOCH);
        match (state, apply(&record, &executed(draw()), EPOCH, &at(5000))) {
            (State::NotExecuted(NotExecuted::Absent), Ok(change)) => {
                assert_eq!(change.to(), State::Attention(Attention::Contradicted));
                assert!(change.is_contradiction());
                assert_eq!(change.progress.fence(), Fence::new(6));
                let parts = change.progress.parts();
                assert_eq!((parts.changed, parts.asked_at), (at(5000).wall, at(5000).mono));
                assert_eq!((parts.lease_until, parts.was_absent, parts.absences), (None, false, 0));
                assert!(Progress::restore(*parts).is_ok());
                changed += 1;
            }
            (State::Succeeded(_) | State::Failed(_) | State::NotExecuted(_), result) => {
                assert_eq!(result, Err(Refused::Decided), "{state:?}");
            }
            (State::Dispatching | State::Unknown(_) | State::Attention(_), result) => {
                assert_eq!(result, Err(Refused::NotNow), "{state:?}");
            }
        }
    }
    assert_eq!(changed, 1);
}

#[test]
fn who_was_overtaken_while_looking_changes_nothing() {
    for state in every_state()
        .into_iter()
        .filter(|state| !state.is_decided() || *state == State::NotExecuted(NotExecuted::Absent))
    {
        for fence in [4, 6] {
            let mut record = in_state(state, EPOCH);
            let parts = Parts { fence: Fence::new(fence), ..*record.progress.parts() };
            record.progress = Progress::restore(parts).unwrap();
            assert_eq!(apply(&record, &executed(draw()), EPOCH, &at(5000)), Err(Refused::Stale), "{state:?}");
        }
    }
}

/// Two replicas look at once.
#[test]
fn of_two_who_see_it_one_calls_a_person() {
    let mut record = absent();
    let (first, second) = (executed(draw()), executed(draw()));
    record.progress = apply(&record, &first, EPOCH, &at(5000)).unwrap().progress;
    assert_eq!(apply(&record, &second, EPOCH, &at(5001)), Err(Refused::Stale));
}

/// A quarter of an hour at most, half of it at least. After a restart as before it: what was decided belongs to no life.
#[test]
fn while_a_person_has_it_its_status_is_asked_for_after_a_long_wait() {
    for epoch in [EPOCH, EPOCH.next()] {
        for (entropy, wait) in [(0, 450), (u64::MAX, 900)] {
            let report = executed(Schedule::default().draw(entropy));
            let change = apply(&absent(), &report, epoch, &at(5000)).unwrap();
            assert_eq!(change.progress.due(), Some(at(5000 + wait).mono));
            assert_eq!(change.progress.parts().epoch, epoch);
        }
    }
}

/// After it the upstream may say what it likes: its client may have heard that nothing was executed, so a person decides.
#[test]
fn after_a_late_success_only_a_person_decides() {
    let mut record = absent();
    record.progress = apply(&record, &executed(draw()), EPOCH, &at(5000)).unwrap().progress;
    let good = Standing { has_good_credentials: true, shows_recent: true };
    let claimed = |record: &Record| claim(record.clone(), seconds(2), EPOCH, &at(6000)).unwrap();
    let held = claimed(&record).record().clone();
    let ask = || claimed(&record).committed().ask(at(6000).mono);
    let to = |report: Report| apply(&held, &report, EPOCH, &at(6001)).unwrap().to();
    assert_eq!(to(ask().absent(Some(rule()), good, draw())), State::Attention(Attention::Contradicted));
    assert_eq!(to(ask().failed(draw())), State::Attention(Attention::Contradicted));
    assert_eq!(to(ask().succeeded(draw())), State::Attention(Attention::Contradicted));
    assert_eq!(to(ask().pending(draw())), State::Attention(Attention::Contradicted));
    let decided = resolve(&record, Decision::Succeeded, EPOCH, &at(6001)).unwrap();
    assert_eq!(decided.to(), State::Succeeded(Evidence::PERSON));
}

#[test]
fn it_is_looked_at_for_as_long_as_the_upstream_remembers() {
    let look = second_look(absent()).unwrap();
    let is_remembered = |now| look.is_remembered(seconds(100), &now);
    assert!(is_remembered(at(0)) && is_remembered(at_ns(100 * S - 1)));
    assert!(!is_remembered(at(100)) && !is_remembered(at(101)));
    let before_it_began = crate::time::Now { wall: crate::time::Wall::from_unix_ns(0), ..at(200) };
    assert!(is_remembered(before_it_began), "a date that ran back makes nothing old");
}
