//! What a drill must never do, and the drill of a file.

use std::time::Duration;

use backstop_lab::drill::{RunError, Scenario, Sending, Verdict, own, run};

use crate::{
    standin::StandIn,
    world::{World, failed, words},
};

const FILE: &str = r#"
duration = "1500ms"
load = [{ request = "GET /products/{key}", rate = "40/s", keys = 2, headers = { accept-language = "es", x-tenant = "a" } }]

[[fault]]
dependency = "catalog"
kind       = "refuse"
from       = "500ms"
to         = "1500ms"

[[expect]]
route  = "description"
from   = "600ms"
to     = "900ms"
source = "snapshot"

[[expect]]
dependency       = "catalog"
calls_per_second = 60
"#;

#[tokio::test]
async fn a_drill_file_is_played_and_its_own_expectations_can_fail() {
    let world = World::new().await;
    let read = |text: &str| backstop_policy::parse_drill(text, "drill.toml", world.facts.loaded()).unwrap();
    let scenario = own::scenario(&world.facts, "drill.toml", &read(FILE)).unwrap();
    let report = world.play(&scenario, None).await;
    assert_eq!(report.verdict, Verdict::Held, "{}", words(&report));
    // A policy whose copies may be older than what the operator promised elsewhere.
    let stricter = FILE.replace("source = \"snapshot\"", "max_age = \"0\"");
    let stricter = stricter.replace("calls_per_second = 60", "calls_per_second = 5");
    let scenario = own::scenario(&world.facts, "drill.toml", &read(&stricter)).unwrap();
    let report = world.play(&scenario, None).await;
    assert_eq!(failed(&report), ["calls", "max-age"].into(), "{}", words(&report));
}

/// The services count what reached them: without a sandbox no request that may write does, whatever is sent.
#[tokio::test]
async fn no_write_reaches_a_dependency_without_a_sandbox() {
    let world = World::new().await;
    let mut scenario = world.scenario("write-once");
    assert!(!scenario.sendings.is_empty() && !scenario.sandbox);
    let report = world.play(&scenario, None).await;
    assert_eq!(report.verdict, Verdict::Held, "{}", words(&report));
    let writes = || -> usize {
        world.services.iter().map(|service| service.count_where(|request| request.method == "POST")).sum()
    };
    assert_eq!(writes(), 0);
    // The same drill in a sandbox does reach it, so that it is known that there was something to hold back.
    scenario.sandbox = true;
    world.play(&scenario, None).await;
    assert!(writes() > 0);
}

#[tokio::test]
async fn a_route_with_effects_is_not_called_without_a_sandbox() {
    let service = backstop_lab::origin::Origin::start().await.unwrap();
    let text = include_str!("../../../../examples/payments.toml")
        .replace("127.0.0.1:9001", &service.addr().to_string());
    let facts = backstop_lab::drill::Facts::new(crate::world::policy(&text));
    let ask = backstop_lab::drill::Ask::new(&facts, 0, "POST", "/payments", Vec::new());
    let sendings = vec![Sending { at: Duration::ZERO, ask: 0 }];
    let scenario = Scenario { asks: vec![ask], sendings, ..Scenario::new("effect", "") };
    let refused = run(&facts, &scenario, &StandIn::new(None), 1, &mut |_| {}).await.unwrap_err();
    assert!(matches!(&refused, RunError::Effect(route) if route == "pay"), "{refused}");
    assert_eq!(service.connections_accepted(), 0);
    let file = "duration = \"1s\"\nload = [{ request = \"POST /payments\" }]";
    let settings = backstop_policy::parse_drill(file, "drill.toml", facts.loaded()).unwrap();
    let refused = own::scenario(&facts, "drill.toml", &settings).unwrap_err();
    assert!(matches!(refused, own::Impossible::Effect { .. }), "{refused}");
}

/// A dependency that is not there is told before anything is started.
#[tokio::test]
async fn what_cannot_be_reached_is_told_first() {
    let world = World::new().await;
    let scenario = world.scenario("no-copy");
    world.services.first().unwrap().refuse().await.unwrap();
    let refused = run(&world.facts, &scenario, &StandIn::new(None), 1, &mut |_| {}).await.unwrap_err();
    assert!(matches!(&refused, RunError::Unreachable { name, .. } if name == "catalog"), "{refused}");
}

/// A slip in an expectation must not look like a promise that was kept.
#[tokio::test]
async fn an_expectation_that_looked_at_nothing_has_not_held() {
    let world = World::new().await;
    for expect in [
        "route = \"stock\"\noutcome = \"normal\"",
        "from = \"30s\"\noutcome = \"normal\"",
        "route = \"stock\"\nlatency = \"300ms\"",
        "from = \"30s\"\ndependency = \"catalog\"\ncalls = 0",
        "max_age = \"600ms\"",
    ] {
        let file = format!(
            "duration = \"300ms\"\nload = [{{ request = \"GET /products/1\", rate = \"20/s\" }}]\n[[expect]]\n{expect}\n"
        );
        let settings = backstop_policy::parse_drill(&file, "drill.toml", world.facts.loaded()).unwrap();
        let scenario = own::scenario(&world.facts, "drill.toml", &settings).unwrap();
        let report = world.play(&scenario, None).await;
        assert_eq!(report.verdict, Verdict::Failed, "{expect}");
        assert_eq!(failed(&report).len(), 1, "{expect}: {}", words(&report));
        assert!(words(&report).contains("nothing to look at"), "{expect}: {}", words(&report));
    }
}
