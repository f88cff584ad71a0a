//! Whose call tries a dependency that was open. A GET whose content never came held a probe's place for ten seconds, was a
//! failed probe then, and a few of them kept a dependency shut that was well.

use crate::flow::{Method, RequestFacts};

use super::super::support::{GET, OK, SECOND, START, direct, public, route, words};
use super::{World, dependency, engine, first, mono, open};

#[test]
fn a_request_with_content_tries_nothing_out() {
    for class in [direct(), public()] {
        let engine = engine(vec![route(class)], vec![dependency("catalog", &[])], vec![]);
        open(first(&engine), START);
        let up = START + 5 * SECOND;
        for method in [Method::Get, Method::Head, Method::OtherSafe] {
            let with_content = RequestFacts { has_content: true, repeatable: false, method, ..GET };
            let decision = World::of(OK, OK).ask(&engine, 0, with_content, up);
            assert_eq!(words(&decision).0, "rejected", "{method:?}");
            assert_eq!(first(&engine).health.totals().probes, 0);
        }
        drop(World::of(OK, OK).ask(&engine, 0, GET, up));
        assert_eq!(first(&engine).health.totals().probes, 1);
        assert!(first(&engine).health.known_up(mono(up)).is_none());
    }
}
