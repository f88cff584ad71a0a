//! Any order of requests, forwards, late arrivals, status queries, waits, syncs and crashes, in virtual time, on a ledger that
//! loses what it had not synced. What comes of it is held against what really happened at the upstream, which the code under
//! test never sees.

mod truth;
mod world;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use world::{Op, World};

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..3_u8).prop_map(Op::Submit),
        8 => Just(Op::Sync),
        1 => (0..4_usize).prop_map(Op::Crash),
        3 => (0..40_u64).prop_map(Op::Wait),
        2 => prop_oneof![Just(35_u64), Just(60), Just(400), Just(600), Just(3600)].prop_map(Op::Wait),
        5 => any::<usize>().prop_map(Op::Forward),
        5 => (any::<usize>(), 0..5_u8).prop_map(|(which, what)| Op::Upstream(which, what)),
        2 => any::<usize>().prop_map(Op::GiveUp),
        1 => any::<usize>().prop_map(Op::NotSent),
        3 => Just(Op::Sweep),
        4 => (0..3_u8).prop_map(Op::Claim),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(which, is_heard)| Op::Query(which, is_heard)),
        1 => (0..3_u8).prop_map(Op::Person),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..120)
}

/// Runs them, then lets everything come to rest.
fn run(ops: &[Op], is_early: bool) -> Result<(), TestCaseError> {
    let mut world = World::new(is_early);
    for op in ops {
        world.act(*op);
        world.truth.check().map_err(TestCaseError::fail)?;
    }
    world.come_to_rest();
    world.truth.check().map_err(TestCaseError::fail)?;
    world.is_at_rest().map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_order_of_events_and_crashes_keeps_one_effect_and_the_truth(ops in ops()) {
        run(&ops, false)?;
    }
}

/// The same search finds a ledger that acknowledges what a crash may still take.
#[test]
fn a_ledger_that_acknowledges_before_it_syncs_is_caught() {
    let config = Config { cases: 5000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&ops(), |ops| run(&ops, true));
    assert!(result.is_err(), "nothing is found");
}
