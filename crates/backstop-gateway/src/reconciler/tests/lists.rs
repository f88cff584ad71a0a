//! A status query that is a search.

use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::operation::{Attention, Doubt, NotExecuted, State};
use backstop_engine::policy::effect::{
    AbsenceRules, AbsenceVerdict, CalibrationRules, EchoSource, ListRules, VerificationRules,
};

use super::upstream::{Reply, Upstream, answer};
use super::world::{World, count, eventually, query, route, verification};

/// The list at `/data`, with the full rule of absence.
fn rules() -> VerificationRules {
    let mut search = query();
    search.list = Some(ListRules { items: "/data".into(), matching: vec!["/key".into()], more: None });
    search.echo = vec![("/key".into(), EchoSource::OperationId)];
    search.absent = Vec::new();
    let calibration = CalibrationRules { sample: PerMille(1000), must_see_within: Duration::from_secs(10) };
    let absence = AbsenceRules {
        settle: Duration::from_secs(10),
        confirmations: 2,
        spacing: Duration::from_secs(2),
        not_after: None,
        verdict: AbsenceVerdict::NotExecuted(calibration),
    };
    VerificationRules { absence: Some(absence), ..verification(search) }
}

fn paid(keys: &[&str]) -> Reply {
    let item = |key: &&str| format!(r#"{{"key":"{key}","status":"paid"}}"#);
    let items: Vec<_> = keys.iter().map(item).collect();
    answer(200, &format!(r#"{{"data":[{}]}}"#, items.join(",")))
}

/// Asked about `k1`, it lists these; of the success that is sampled it shows one item.
fn state_with(keys: &'static [&'static str]) -> (World, State) {
    let upstream = Upstream::start(move |line| match line.contains("key=known&") {
        true => paid(&["known"]),
        false => paid(keys),
    });
    let mut world = World::new(vec![route("pay", &upstream, Some(rules()))]);
    let id = world.unknown("pay", 1);
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    world.start();
    eventually(|| count(&world.counts().routes[0].samples_seen) == 1);
    for _second in 0..60 {
        if !matches!(world.state(id), State::Unknown(_)) {
            break;
        }
        let asked = world.record(id).progress.parts().asked;
        world.pass(Duration::from_secs(1));
        eventually(|| {
            let record = world.record(id);
            !matches!(record.progress.state(), State::Unknown(_)) || record.progress.parts().asked > asked
        });
    }
    let state = world.state(id);
    (world, state)
}

#[test]
fn an_item_decides_none_is_absence_and_two_need_a_person() {
    assert!(matches!(state_with(&["k1"]).1, State::Succeeded(_)));
    assert_eq!(state_with(&[]).1, State::NotExecuted(NotExecuted::Absent));
    assert_eq!(state_with(&["k1", "k1"]).1, State::Attention(Attention::SeveralMatches));
}

/// Whether the operation is on another page nobody knows.
#[test]
fn a_list_that_ignores_its_filter_proves_nothing() {
    let (world, state) = state_with(&["k7", "k8"]);
    assert_eq!(state, State::Unknown(Doubt::Timeout));
    assert!(world.queries("unmatched") > 50);
    let (_, state) = state_with(&["k7", "k1"]);
    assert!(matches!(state, State::Succeeded(_)), "{state:?}");
}
