//! Routes that write operations: read, completed and lowered as they are written.

mod support;

use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::policy::effect::{
    AbsenceVerdict, CalibrationRules, EchoSource, EffectRules, Fingerprint, KeyForm, KeySource, Literal,
    RetentionRules, Scope, StoredBody, UnknownAnswer,
};
use backstop_engine::policy::{RouteClass, RouteId};
use backstop_policy::{Code, Ledger, Loaded};
use support::{effect, errors, loaded, says_exactly};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[track_caller]
fn rules(fragment: &str) -> EffectRules {
    effects_of(&loaded(fragment)).remove(0)
}

/// The rules of every route that writes operations, in the order of the file.
fn effects_of(loaded: &Loaded) -> Vec<EffectRules> {
    loaded.policy.routes.iter().filter_map(|route| route.class.effect().cloned()).collect()
}

/// What is wrong with one is told as with any other route.
#[test]
fn an_effect_route_is_accepted_as_any_other_is() {
    let by_header = "[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\ntrusted = [\"10.0.0.0/8\"]\n"
        .to_owned()
        + &effect("authorizer =\nscope = \"header.x-tenant\"");
    assert_eq!(errors(&by_header), []);
    assert_eq!(errors(&effect("")), []);
    assert_eq!(errors(&by_header.replace("in_flight = 10\n", "in_flight = 0\n")), [Code::Zero]);
}

const WHOLE: &str = r#"
[gateway]
listen    = "127.0.0.1:8080"
in_flight = 1000
trusted   = ["10.0.0.0/8"]
[dependency.catalog]
url = "http://127.0.0.1:9001"
[dependency.payments]
url = "http://127.0.0.1:9002"
[route.account.public_read]
match      = "GET /account/{id}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20
max_age    = "60s"
key        = []
correct    = { has = ["/id"] }
[route.pay.effect]
match        = "POST /payments"
dependency   = "payments"
deadline     = "10s"
in_flight    = 50
limits       = { body = "64 KiB" }
operation_id = "body:/orderId"
send         = { header = "X-Request-Id", as = "derived" }
scope        = "header.X-Tenant"
withdraws    = ["account"]
upstream_retention = "48h"
unknown_answer     = "accepted"
fingerprint  = { ignore = ["/nonce", "/sent"] }
redact       = ["/card/number"]
retention    = { body = "12h", tombstone = "960h" }
[route.pay.effect.outcome]
succeeded = [{ status = [200, 201], json = { "/status" = ["succeeded", "captured"], "/live" = true } }]
pending   = [{ status = 202 }, { status = 200, json = { "/status" = "processing" } }]
refused   = [{ status = [400, 402] }, { status = 409, json = { "/code" = 17 }, no_effect = true }]
[route.pay.effect.status_query]
path        = "/v1/operations/{operation_id}?expand=all"
timeout     = "3s"
rate        = "7/m"
concurrency = 2
echo        = { "/reference" = "operation_id", "/amount" = "body:/amount" }
succeeded   = [{ status = 200, json = { "/status" = "succeeded" } }]
failed      = [{ status = 200, json = { "/status" = ["declined", "canceled"] } }]
pending     = [{ status = 200, json = { "/status" = "processing" } }]
absent      = [{ status = 404, json = { "/error/code" = "resource_missing" } }]
[route.pay.effect.absence]
settle        = "20m"
confirmations = 4
spacing       = "90s"
verdict       = "not_executed"
calibrate     = { sample = "2.5%", must_see_within = "5m" }
not_after     = { header = "X-Execute-Before" }
[route.pay.effect.verify]
first          = "2s"
factor         = 1.5
cap            = "2m"
deadline       = "24h"
attention_poll = "30m"
"#;

#[test]
fn everything_is_lowered_as_it_is_written() {
    let loaded = loaded(WHOLE);
    assert_eq!(
        loaded.warnings.iter().map(|found| found.code).collect::<Vec<_>>(),
        [Code::Unmeasured, Code::AlwaysAccepted]
    );
    assert_eq!(loaded.store.ledger, Some(Ledger::Sqlite));
    let RouteClass::Effect(rules) = &loaded.policy.routes[1].class else { panic!("{:?}", loaded.policy) };
    assert_eq!(effects_of(&loaded).len(), 1);
    assert_eq!(loaded.routes[1].withdraws, [RouteId(0)]);
    assert_eq!((rules.body_bytes, loaded.routes[1].limits.body_bytes), (64 << 10, 64 << 10));
    let line = |origin| loaded.sources.get(origin).unwrap().path.clone();
    assert_eq!(line(rules.origin), "route.pay.effect");

    assert_eq!(rules.key, KeySource::Body("/orderId".into()));
    assert_eq!((&*rules.send.header, rules.send.form), ("x-request-id", KeyForm::Derived));
    assert_eq!(rules.scope, Scope::Header("x-tenant".into()));
    assert_eq!(rules.unknown_answer, UnknownAnswer::Accepted);
    assert_eq!(rules.fingerprint, Fingerprint::Without(vec!["/nonce".into(), "/sent".into()]));
    assert_eq!(rules.stored_body, StoredBody::Redacted(vec!["/card/number".into()]));
    assert_eq!(rules.retention, RetentionRules { body: secs(12 * 3600), tombstone: secs(960 * 3600) });

    let outcome = &rules.outcome;
    assert_eq!((outcome.succeeded.len(), outcome.pending.len(), outcome.refused.len()), (1, 2, 2));
    let succeeded = &outcome.succeeded[0];
    assert!(
        succeeded.status.contains(200) && succeeded.status.contains(201) && !succeeded.status.contains(202)
    );
    let text = |text: &str| Literal::Text(text.into());
    let members = [
        ("/status".into(), vec![text("succeeded"), text("captured")]),
        ("/live".into(), vec![Literal::Boolean(true)]),
    ];
    assert_eq!(succeeded.json, members);
    assert!(succeeded.reads_body() && !outcome.pending[0].reads_body());
    assert_eq!(outcome.refused[1].json, [("/code".into(), vec![Literal::Integer(17)])]);

    let verification = rules.verification.as_ref().unwrap();
    let query = &verification.query;
    assert_eq!((&*query.before_key, &*query.after_key), ("/v1/operations/", "?expand=all"));
    assert_eq!((query.timeout, query.concurrency), (secs(3), 2));
    // A seventh of a minute, rounded up.
    assert_eq!(query.interval, Duration::from_nanos(8_571_428_572));
    let echo = [
        ("/reference".into(), EchoSource::OperationId),
        ("/amount".into(), EchoSource::Body("/amount".into())),
    ];
    assert_eq!(query.echo, echo);
    assert_eq!(query.failed[0].json, [("/status".into(), vec![text("declined"), text("canceled")])]);
    assert_eq!((query.succeeded.len(), query.pending.len(), query.absent.len()), (1, 1, 1));
    assert_eq!(verification.upstream_retention, secs(48 * 3600));
    let schedule = verification.schedule;
    assert_eq!((schedule.first, schedule.factor, schedule.cap), (secs(2), PerMille(1500), secs(120)));
    assert_eq!((schedule.deadline, schedule.attention_poll), (secs(24 * 3600), secs(1800)));
    let absence = verification.absence.as_ref().unwrap();
    assert_eq!((absence.settle, absence.confirmations, absence.spacing), (secs(1200), 4, secs(90)));
    assert_eq!(absence.not_after.as_deref(), Some("x-execute-before"));
    let calibration = CalibrationRules { sample: PerMille(25), must_see_within: secs(300) };
    assert_eq!(absence.verdict, AbsenceVerdict::NotExecuted(calibration));
}

#[test]
fn what_is_left_out_has_its_default() {
    let rules = rules(&effect("unknown_answer ="));
    assert_eq!(rules.key, KeySource::Header("idempotency-key".into()));
    assert_eq!((&*rules.send.header, rules.send.form), ("idempotency-key", KeyForm::Client));
    assert_eq!((rules.scope, rules.unknown_answer), (Scope::Principal, UnknownAnswer::Auto));
    assert_eq!(
        (rules.fingerprint, rules.stored_body),
        (Fingerprint::Whole, StoredBody::Redacted(Vec::new()))
    );
    assert_eq!((rules.body_bytes, rules.retention.body), (256 << 10, secs(24 * 3600)));
    assert_eq!(rules.retention.tombstone, secs(30 * 24 * 3600));
    let verification = rules.verification.unwrap();
    let query = &verification.query;
    assert_eq!((query.timeout, query.interval, query.concurrency), (secs(2), Duration::from_millis(200), 4));
    let schedule = verification.schedule;
    assert_eq!((schedule.first, schedule.factor, schedule.cap), (secs(1), PerMille(2000), secs(60)));
    assert_eq!((schedule.deadline, schedule.attention_poll), (secs(12 * 3600), secs(900)));
    assert_eq!(verification.absence, None, "absence proves nothing unless its rule is written");
}

/// Each default that depends on something else, on both sides.
#[test]
fn defaults_follow_what_is_written_beside_them() {
    let send = |lines: &str| rules(&effect(lines)).send.header;
    assert_eq!(&*send("operation_id = \"header.X-Order\""), "x-order");
    assert_eq!(&*send("operation_id = \"body:/order\""), "idempotency-key");
    let deadline = |known: &str| {
        let rules = rules(&effect(&format!("upstream_retention = {known:?}")));
        rules.verification.unwrap().schedule.deadline
    };
    assert_eq!(
        [deadline("15h"), deadline("14h"), deadline("100s")],
        [secs(12 * 3600), secs(40_320), secs(80)]
    );
    for lines in ["card_data = true", "authorizer =\nscope = \"route\"", "store_body = \"none\""] {
        assert_eq!(rules(&effect(lines)).stored_body, StoredBody::Nothing, "{lines}");
    }
    let of_gateway =
        "[gateway]\nlisten = \"[::1]:1\"\nin_flight = 100\nlimits = { body = \"8 KiB\" }\n".to_owned();
    let small = loaded(&(of_gateway.clone() + &effect("")));
    assert_eq!((effects_of(&small)[0].body_bytes, small.routes[0].limits.body_bytes), (8 << 10, 8 << 10));
    let own = loaded(&(of_gateway + &effect("limits = { body = \"1 MiB\" }")));
    assert_eq!((effects_of(&own)[0].body_bytes, own.routes[0].limits.body_bytes), (1 << 20, 1 << 20));
    let absence = |lines: &str| rules(&effect(lines)).verification.unwrap().absence.unwrap();
    let written = absence("absence = { settle = \"15m\" }");
    assert_eq!((written.confirmations, written.spacing, written.not_after), (3, secs(60), None));
    assert_eq!(written.verdict, AbsenceVerdict::Attention(None));
    let calibrated = absence("absence = { settle = \"15m\", calibrate = { must_see_within = \"1m\" } }");
    let calibration = CalibrationRules { sample: PerMille(10), must_see_within: secs(60) };
    assert_eq!(calibrated.verdict, AbsenceVerdict::Attention(Some(calibration)));
}

#[test]
fn a_ledger_is_kept_where_a_route_has_operations() {
    assert_eq!(loaded("").store.ledger, None);
    assert_eq!(loaded(&effect("")).store.ledger, Some(Ledger::Sqlite));
    says_exactly(&("[store]\nledger = \"sqlite\"\n".to_owned() + &effect("")), &[]);
    says_exactly("[store]\nledger = \"sqlite\"\n", &[Code::UnusedLedger]);
}

/// Who is called is the process's to say: a person looks at all routes.
#[test]
fn a_webhook_is_told_of_operations_that_need_a_person() {
    let webhook = |url: &str| {
        let gateway = "[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\n";
        loaded(&format!("{gateway}attention = {{ webhook = \"{url}\" }}\n{}", effect(""))).gateway.webhook
    };
    let told = webhook("http://pager.internal:9100/hooks/backstop?team=pay").unwrap();
    assert_eq!((&*told.address.host, told.address.port), ("pager.internal", 9100));
    assert_eq!(&*told.path, "/hooks/backstop?team=pay");
    assert_eq!(&*webhook("http://pager.internal").unwrap().path, "/");
    assert_eq!(loaded(&effect("")).gateway.webhook, None);
}

#[test]
fn a_search_finds_the_operation_in_its_list() {
    let query = |list: &str| {
        let written = "path = \"/payments?reference={operation_id}\", succeeded = [{ status = 200 }]";
        let query = format!("status_query = {{ {written}, list = {{ {list} }} }}");
        rules(&effect(&query)).verification.unwrap().query.list.unwrap()
    };
    let listed = query("items = \"/data\", match = { \"/reference\" = \"operation_id\" }");
    assert_eq!(
        (&*listed.items, &listed.matching[..], listed.more),
        ("/data", &["/reference".into()][..], None)
    );
    let paged = query(
        "items = \"\", match = { \"/a\" = \"operation_id\", \"/b\" = \"operation_id\" }, more = \"/next\"",
    );
    assert_eq!((&*paged.items, paged.matching.len(), paged.more.as_deref()), ("", 2, Some("/next")));
}
