//! The knee of a service that has one, and the evidence that is written of it.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

use std::{sync::Arc, time::Duration};

use backstop_engine::policy::DependencyId;
use backstop_lab::{
    drill::capacity::{Evidence, Knee, Search, SearchError, Sign, Step, search},
    origin::{Answer, Behaviour, Matcher, Origin},
};
use backstop_policy::{Code, FileSource, parse};
use tokio::{sync::Semaphore, time::sleep};

/// Two at a time, 10 ms each: 200 a second and no more, whatever is offered (Little's law).
async fn service() -> Origin {
    let origin = Origin::start().await.unwrap();
    let places = Arc::new(Semaphore::new(2));
    origin.default(Behaviour::from_async_fn(move |_| {
        let places = Arc::clone(&places);
        async move {
            let _place = places.acquire().await.unwrap();
            sleep(Duration::from_millis(10)).await;
            Behaviour::from(Answer::json("{}"))
        }
    }));
    origin
}

async fn knee(origin: &Origin, baseline: u64, to: u64) -> Knee {
    let request = Search {
        target: origin.addr(),
        path: "/".to_owned(),
        fields: Vec::new(),
        from: 30,
        to,
        baseline,
        step: Duration::from_millis(600),
        connections: 100,
    };
    search(&request, |_| {}).await.unwrap()
}

#[tokio::test]
async fn the_search_ends_at_the_first_sign_and_claims_what_was_borne_before() {
    let origin = service().await;
    let found = knee(&origin, 0, 5000).await;
    let borne = found.borne.clone().unwrap();
    assert!((30..=200).contains(&borne.offered), "{found:#?}");
    let (last, before) = found.steps.split_last().unwrap();
    assert!(last.sign.is_some() && before.iter().all(|step| step.sign.is_none()), "{found:#?}");
    assert!(last.offered <= 342, "no step beyond the first that is too much: {found:#?}");
    assert!(borne.concurrency() <= 2, "two places: {found:#?}");
}

#[tokio::test]
async fn what_the_service_bears_besides_is_counted() {
    let origin = service().await;
    let alone = knee(&origin, 0, 5000).await.borne.unwrap().offered;
    let beside = knee(&origin, 100, 5000).await.borne.map_or(0, |step| step.offered);
    assert!(beside <= 100 && beside < alone, "{beside} beside 100 others, {alone} alone");
}

#[tokio::test]
async fn without_a_sign_no_more_is_claimed_than_was_offered() {
    let origin = service().await;
    let found = knee(&origin, 0, 60).await;
    assert_eq!(found.steps.iter().map(|step| step.offered).collect::<Vec<_>>(), [30, 45, 60]);
    assert_eq!(found.borne.unwrap().offered, 60);
}

struct Written(String);

impl FileSource for Written {
    fn read(&self, _path: &std::path::Path) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone().into())
    }
}

const POLICY: &str = r#"
    [gateway]
    listen    = "127.0.0.1:8080"
    in_flight = 100

    [resource.db]
    rate = "500/s"

    [dependency.catalog]
    url = "http://127.0.0.1:9001"

    [dependency.replica]
    url         = "http://127.0.0.1:9011"
    connections = 20
    uses        = ["db"]

    [route.description.public_read]
    match       = "GET /products/{product}"
    dependency  = "catalog"
    deadline    = "300ms"
    in_flight   = 20
    max_age     = "60s"
    key         = ["path.product"]
    correct     = { type = "application/json" }
    alternative = { dependency = "replica", verified = "replica.toml" }
"#;

/// What a policy says of its alternative with evidence of this digest: whether it is used, and the codes of what is told.
fn judged(policy: &str, digest: &str) -> (bool, Vec<Code>) {
    let step = Step {
        offered: 120,
        answered: 120.0,
        p95: Duration::from_micros(12_300),
        errors: 0.0,
        at_once: 19.2,
        sign: None,
    };
    let evidence = Evidence {
        dependency: "replica",
        borne: &step,
        measured: "2020-01-01T00:00:00.000Z",
        valid_until: "2999-01-01T00:00:00.000Z",
        load: "the usual \"evening\"",
        policy: digest,
    };
    let read = parse(policy, "policy.toml", &Written(evidence.text())).unwrap();
    let codes = read.warnings.iter().map(|warning| warning.code);
    let alternative = read.policy.routes[0].alternative.unwrap();
    let codes =
        codes.filter(|code| *code == Code::EvidenceOfAnotherPolicy || *code == Code::NoEvidence).collect();
    if let Some(verified) = alternative.verified {
        // As it was written: 120 calls a second, and 19.2 at once rounded up.
        assert_eq!((verified.rate_per_second, verified.concurrency), (120, 20));
        assert_eq!(read.routes[0].evidence.as_ref().unwrap().p95, Duration::from_millis(13));
    }
    (alternative.verified.is_some(), codes)
}

#[test]
fn evidence_is_read_by_the_policy_and_counts_for_no_other() {
    let own = parse(POLICY, "policy.toml", &Written("dependency = \"x\"".to_owned()));
    assert!(own.is_err(), "an evidence file that is wrong refuses the policy");
    let without = POLICY.replace(", verified = \"replica.toml\"", "");
    let digest = parse(&without, "policy.toml", &Written(String::new())).unwrap().digest_of(DependencyId(1));
    assert_eq!(digest.len(), 64);
    assert_eq!(judged(POLICY, &digest), (true, vec![]));
    // What has nothing to do with the dependency leaves the evidence as it is.
    assert_eq!(judged(&POLICY.replace("in_flight = 100", "in_flight = 200 # more"), &digest), (true, vec![]));
    for (from, to) in [
        ("127.0.0.1:9011", "127.0.0.1:9012"),
        ("connections = 20", "connections = 21"),
        ("500/s", "400/s"),
        ("    uses        = [\"db\"]\n", ""),
    ] {
        let other = POLICY.replace(from, to);
        assert_eq!(judged(&other, &digest), (false, vec![Code::EvidenceOfAnotherPolicy]), "{to}");
    }
}

/// What is not there costs nothing to answer, so that it is borne is no evidence.
#[tokio::test]
async fn answers_that_are_not_in_order_are_no_evidence() {
    let origin = Origin::start().await.unwrap();
    let request = |path: &str| Search {
        target: origin.addr(),
        path: path.to_owned(),
        fields: Vec::new(),
        from: 20,
        to: 20,
        baseline: 0,
        step: Duration::from_millis(200),
        connections: 10,
    };
    for status in [400, 404, 429, 500] {
        origin.default(Answer::new(status).body("no"));
        let mut steps = 0;
        let refused = search(&request("/products/1"), |_| steps += 1).await.unwrap_err();
        let said = refused.to_string();
        assert!(matches!(refused, SearchError::NotInOrder { .. }), "{said}");
        assert!(
            said.contains(&format!("GET /products/1 with {status}")) && said.contains("--path"),
            "{said}"
        );
        assert_eq!(steps, 0, "nothing is measured");
    }
    // The first look is in order, and what follows is not.
    origin.default(Answer::new(404));
    origin.on(Matcher::any(), Answer::new(302).times(1));
    let found = search(&request("/products/1"), |_| {}).await.unwrap();
    assert_eq!((found.borne, found.steps[0].sign), (None, Some(Sign::Errors)));
}

#[tokio::test]
async fn a_path_that_is_none_is_refused_before_anything_is_asked() {
    let origin = Origin::start().await.unwrap();
    for path in ["", "products", "http://elsewhere/", "/a b", "/a\r\nX: y", "/a#b", "/\u{e9}"] {
        let request = Search {
            target: origin.addr(),
            path: path.to_owned(),
            fields: Vec::new(),
            from: 1,
            to: 1,
            baseline: 0,
            step: Duration::from_millis(200),
            connections: 1,
        };
        let refused = search(&request, |_| {}).await.unwrap_err();
        assert!(matches!(refused, SearchError::Path(_)), "{path:?}: {refused}");
    }
    assert_eq!(origin.connections_accepted(), 0);
}
