//! A gateway behind this one withdrew copies with what it said in place of the origin.

use std::time::Duration;

use crate::flow::{CopyAction, HeadFacts};

use super::super::support::{
    Body, GOOD, START, Script, Upstream, copy_read_at, engine_of, get, head, public, route, words,
};

#[test]
fn what_is_said_in_place_of_the_origin_withdraws_nothing() {
    let engine = engine_of(route(public()));
    for status in [401, 403, 404, 410] {
        for (degraded, expected) in
            [(Some(Duration::from_secs(1)), CopyAction::Keep), (None, CopyAction::Withdraw)]
        {
            let upstream = Upstream::Answers(HeadFacts { degraded, ..head(status) }, Body::Is(GOOD));
            let decision = get(&engine, &Script::new(upstream).with_copy(copy_read_at(START)), START);
            assert_eq!(decision.copy, expected, "{status}");
            let outcome = if degraded.is_some() { "fallback" } else { "normal" };
            assert_eq!(words(&decision).0, outcome, "{status}");
        }
    }
}
