//! Traces, read by the messages that the OpenTelemetry project publishes, and held against what the services saw.

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Origin};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::raw::direct;
use crate::support::shop::down;
use crate::support::{BOUND, Gateway, Policy, products, run};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

struct Traced {
    catalog: Origin,
    replica: Origin,
    sessions: Origin,
    collector: Origin,
    gateway: Gateway,
}

async fn traced(sample: &str) -> Traced {
    let start = || async { Origin::start().await.unwrap() };
    let (catalog, replica, sessions, collector) =
        (start().await, start().await, start().await, start().await);
    catalog.default(products("primary"));
    replica.default(products("replica"));
    sessions.default(Answer::new(200).header("X-Allowed", "yes"));
    collector.default(Answer::new(200));
    let read = "languages =\ncorrect =\nin_flight = 50\nretry = { attempts = 2 }\nalternative = { dependency = \"replica\", verified = \"replica.toml\" }";
    let description = Policy::description(read).replace("\"language\", ", "");
    let policy = Policy::empty()
        .dependency("catalog", catalog.addr(), "")
        .dependency("replica", replica.addr(), "")
        .table(
            "telemetry",
            &format!("traces = {{ url = \"{}/v1/traces\", sample = \"{sample}\" }}", collector.url()),
        )
        .table(
            "authorizer.sessions",
            &format!("url = \"{}/check\"\nallow = {{ header = \"x-allowed\" }}\ntimeout = \"200ms\"\nin_flight = 10", sessions.url()),
        )
        .route("description.public_read", &description)
        .route(
            "account.guarded",
            "match = \"POST /account/{id}\"\ndependency = \"catalog\"\nauthorizer = \"sessions\"\ndeadline = \"2s\"\nin_flight = 8",
        )
        .route("rest.direct", &direct("*", ""));
    let folder = crate::support::gateway::folder();
    let evidence = "dependency = \"replica\"\nrate = \"4000/s\"\nconcurrency = 8\np95 = \"20ms\"\nmeasured = 2026-01-01\nvalid_until = 2099-01-01\nload = \"none\"\n";
    std::fs::write(folder.join("replica.toml"), evidence).unwrap();
    let gateway = Gateway::start_in(&folder, &policy);
    gateway.hand().say("sync on");
    Traced { catalog, replica, sessions, collector, gateway }
}

impl Traced {
    /// What the collector was sent.
    fn received(&self) -> Vec<ExportTraceServiceRequest> {
        let requests = self.collector.requests();
        let posts = requests.iter().filter(|request| request.complete);
        posts
            .map(|request| {
                assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/traces"));
                assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
                ExportTraceServiceRequest::decode(&request.body[..]).expect("the published messages")
            })
            .collect()
    }

    /// Every span, once there are so many.
    async fn spans(&self, count: usize) -> Vec<Span> {
        let spans = || -> Vec<Span> {
            let resources = self.received().into_iter().flat_map(|request| request.resource_spans);
            resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
        };
        let waiting = async {
            while spans().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _compared_below = tokio::time::timeout(BOUND, waiting).await;
        let spans = spans();
        assert_eq!(spans.len(), count, "{spans:#?}\n{:#?}", self.gateway.log());
        spans
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &Option<Value>| match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    span.attributes
        .iter()
        .map(|attribute| (attribute.key.as_str(), text(&attribute.value.as_ref().unwrap().value)))
        .collect()
}

/// 1 is internal, 2 a server's, 3 a client's.
fn of_kind(spans: &[Span], kind: i32) -> Vec<&Span> {
    let mut spans: Vec<&Span> = spans.iter().filter(|span| span.kind == kind).collect();
    spans.sort_by_key(|span| span.start_time_unix_nano);
    spans
}

fn status(span: &Span) -> i32 {
    span.status.as_ref().map_or(0, |status| status.code)
}

/// A request whose first call fails, whose second fails too, and which another dependency answers: one span of it, three of its
/// calls, and each service saw the name of its own.
#[test]
fn a_request_and_each_of_its_calls_have_a_span_of_their_own() {
    run(async {
        let traced = traced("0%").await;
        // Successes pay for retries.
        for _ in 0..40 {
            assert_eq!(traced.gateway.get("/p/1", &[]).await.status(), 200);
        }
        traced.catalog.forget();
        traced.catalog.on(Matcher::any(), Answer::new(503));
        let fields = [("traceparent", PARENT), ("tracestate", "vendor=1"), ("Host", "shop.example")];
        let answer = traced.gateway.get("/p/7?token=secret", &fields).await;
        assert_eq!(
            answer.header("backstop"),
            Some("outcome=fallback, source=alternative, reason=unavailable")
        );
        let calls = traced.catalog.count() as usize + traced.replica.count() as usize;
        assert!((2..=3).contains(&calls), "a retry is allowed, and the replica is asked: {calls}");
        let spans = traced.spans(1 + calls).await;
        let servers = of_kind(&spans, 2);
        let [server] = servers[..] else { panic!("{spans:#?}") };
        assert_eq!(
            (hex(&server.trace_id), hex(&server.parent_span_id)),
            (TRACE.into(), "b7ad6b7169203331".into())
        );
        assert_eq!((server.name.as_str(), status(server)), ("GET /p/{id}", 0));
        let told = attributes(server);
        let expected = [
            ("http.request.method", "GET"),
            ("url.scheme", "http"),
            ("url.path", "/p/7"),
            ("http.route", "/p/{id}"),
            ("http.response.status_code", "200"),
            ("backstop.route", "description"),
            ("backstop.outcome", "fallback"),
            ("backstop.source", "alternative"),
            ("backstop.reason", "unavailable"),
        ];
        for (key, value) in expected {
            assert_eq!(told.get(key).map(String::as_str), Some(value), "{key}");
        }
        assert!(!told.contains_key("error.type"), "it was answered with a success");
        let clients = of_kind(&spans, 3);
        let seen = |origin: &Origin| -> Vec<String> {
            let told = origin.requests().into_iter();
            told.map(|request| {
                assert_eq!(request.header("tracestate"), Some("vendor=1"));
                request.header("traceparent").expect("it takes part").to_owned()
            })
            .collect()
        };
        let told: Vec<String> = [seen(&traced.catalog), seen(&traced.replica)].concat();
        let sent: Vec<String> = clients
            .iter()
            .map(|span| format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)))
            .collect();
        assert_eq!(told, sent, "each call has a parent of its own, the one that its service saw");
        for (number, client) in clients.iter().enumerate() {
            assert_eq!(client.parent_span_id, server.span_id);
            let told = attributes(client);
            let is_last = number + 1 == clients.len();
            let (dependency, code) = if is_last { ("replica", "200") } else { ("catalog", "503") };
            assert_eq!(
                (told["backstop.dependency"].as_str(), told["http.response.status_code"].as_str()),
                (dependency, code)
            );
            assert_eq!(told.get("error.type").map(String::as_str), (!is_last).then_some("503"));
            assert_eq!(status(client), if is_last { 0 } else { 2 });
            let resend = (number > 0).then(|| number.to_string());
            assert_eq!(told.get("http.request.resend_count"), resend.as_ref());
            assert_eq!(told["url.full"], "http://shop.example/p/7", "without the query");
            assert!(server.start_time_unix_nano <= client.start_time_unix_nano);
            assert!(client.end_time_unix_nano <= server.end_time_unix_nano);
        }
        assert!(!format!("{spans:?}").contains("secret"));
        let resource = traced.received()[0].resource_spans[0].resource.clone().unwrap();
        assert!(format!("{resource:?}").contains("\"edge\""), "the gateway's name: {resource:?}");
    });
}

/// 200 from a copy is a success to the conventions; the span says what it was. A refusal is a server's error, and a question to an
/// authorizer a call like any other.
#[test]
fn copies_refusals_and_authorizers_are_told_as_what_they_are() {
    run(async {
        let traced = traced("100%").await;
        let mut hand = traced.gateway.hand();
        assert_eq!(traced.gateway.get("/p/1", &[]).await.status(), 200);
        traced.spans(2).await;
        down(&traced.catalog).await;
        down(&traced.replica).await;
        hand.advance(Duration::from_secs(30));
        let served = traced.gateway.get("/p/1", &[]).await;
        let age = served.header("age").expect("a copy's age").to_owned();
        assert!(age.parse::<u64>().unwrap() >= 30, "{age}");
        let refused = traced.gateway.request("POST", "/account/1", &[("traceparent", PARENT)], b"x").await;
        assert_eq!(refused.status(), 502);
        let spans: Vec<Span> = {
            let waiting = async {
                loop {
                    let servers = traced.received().into_iter().flat_map(|request| request.resource_spans);
                    let spans: Vec<Span> = servers
                        .flat_map(|resource| resource.scope_spans)
                        .flat_map(|scope| scope.spans)
                        .collect();
                    if of_kind(&spans, 2).len() == 3 {
                        return spans;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(BOUND, waiting).await.expect("three requests")
        };
        let of_route = |route: &str, outcome: &str| -> &Span {
            let found = spans.iter().find(|span| {
                let told = attributes(span);
                told.get("backstop.route").is_some_and(|told| told == route)
                    && told["backstop.outcome"] == outcome
            });
            found.unwrap_or_else(|| panic!("{route} {outcome}: {spans:#?}"))
        };
        let copy = of_route("description", "fallback");
        let told = attributes(copy);
        assert_eq!(
            (told["backstop.source"].as_str(), told["backstop.copy_age_s"].as_str()),
            ("snapshot", &*age)
        );
        assert_eq!((status(copy), told.get("error.type")), (0, None));
        let failed = of_route("account", "failed");
        let told = attributes(failed);
        assert_eq!((status(failed), told["error.type"].as_str()), (2, "502"));
        assert_eq!(
            (hex(&failed.trace_id), hex(&failed.parent_span_id)),
            (TRACE.into(), "b7ad6b7169203331".into())
        );
        let asked: Vec<&Span> =
            of_kind(&spans, 3).into_iter().filter(|span| span.parent_span_id == failed.span_id).collect();
        let of_dependency: Vec<String> =
            asked.iter().map(|span| attributes(span)["backstop.dependency"].clone()).collect();
        assert_eq!(of_dependency, ["sessions", "catalog"]);
        assert_eq!((status(asked[0]), attributes(asked[1])["error.type"].as_str()), (0, "connect"));
        let seen = traced.sessions.requests()[0].header("traceparent").map(str::to_owned);
        assert_eq!(seen, Some(format!("00-{TRACE}-{}-01", hex(&asked[0].span_id))));
    });
}

/// A caller's word decides whether its request is recorded; without one the share does. The trace goes on in any case.
#[test]
fn what_is_not_sampled_is_not_recorded_and_goes_on() {
    run(async {
        let traced = traced("100%").await;
        let unsampled = PARENT.replace("-01", "-00");
        for _ in 0..20 {
            assert_eq!(traced.gateway.get("/rest", &[("traceparent", &unsampled)]).await.status(), 200);
        }
        let mut parents: Vec<String> = traced
            .catalog
            .requests()
            .iter()
            .map(|request| request.header("traceparent").unwrap().to_owned())
            .collect();
        for parent in &parents {
            assert!(parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-00"), "{parent}");
        }
        parents.sort_unstable();
        parents.dedup();
        assert_eq!(parents.len(), 20, "each call has a parent of its own");
        traced.catalog.forget();
        // What is not valid is none, and what belongs to it is left out.
        let fields = [("traceparent", "00-zz-1-01"), ("tracestate", "a=1")];
        assert_eq!(traced.gateway.get("/rest", &fields).await.status(), 200);
        let anew = traced.catalog.requests()[0].clone();
        let parent = anew.header("traceparent").unwrap();
        assert!(!parent.contains(TRACE) && parent.ends_with("-03"), "{parent}");
        assert_eq!(anew.header("tracestate"), None);
        let spans = traced.spans(2).await;
        assert!(of_kind(&spans, 2)[0].parent_span_id.is_empty(), "it begins here");
        let none = self::traced("0%").await;
        for _ in 0..20 {
            assert_eq!(none.gateway.get("/rest", &[]).await.status(), 200);
        }
        assert!(
            none.catalog
                .requests()
                .iter()
                .all(|request| request.header("traceparent").unwrap().ends_with("-02"))
        );
        assert_eq!(none.gateway.get("/rest", &[("traceparent", PARENT)]).await.status(), 200);
        none.spans(2).await;
    });
}

/// Without traces both fields are passed on as they came, whatever they are (section 3.2 of the recommendation).
#[test]
fn without_traces_nothing_is_changed() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(Answer::new(200));
        let policy =
            Policy::empty().dependency("catalog", origin.addr(), "").route("rest.direct", &direct("*", ""));
        let gateway = Gateway::start(&policy);
        let fields = [("traceparent", PARENT), ("tracestate", "a=1,b=2")];
        assert_eq!(gateway.get("/", &fields).await.status(), 200);
        let seen = origin.requests()[0].clone();
        assert_eq!((seen.header("traceparent"), seen.header("tracestate")), (Some(PARENT), Some("a=1,b=2")));
    });
}

/// A collector that is away, and one that hangs: spans are lost and counted, and not one request waits.
#[test]
fn a_collector_that_is_away_costs_spans_and_no_request() {
    run(async {
        let traced = traced("100%").await;
        down(&traced.collector).await;
        for _ in 0..50 {
            assert_eq!(traced.gateway.get("/rest", &[]).await.status(), 200);
        }
        let dropped = |metrics: &crate::support::Metrics| {
            metrics.sum("backstop_telemetry_dropped_total", &["signal=\"traces\""])
        };
        traced.gateway.metrics_until(|metrics| dropped(metrics) == 100.0).await;
        let said = traced.gateway.log();
        assert_eq!(
            said.iter().filter(|line| line.contains("backstop::telemetry")).count(),
            1,
            "once: {said:#?}"
        );
        let hanging = self::traced("100%").await;
        let gate = Gate::new();
        hanging.collector.on(Matcher::any(), Behaviour::status(200).gate(&gate));
        assert_eq!(hanging.gateway.get("/rest", &[]).await.status(), 200);
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        let mut connection =
            backstop_lab::client::Connection::open(hanging.gateway.addr).await.unwrap().bound(BOUND);
        // Two spans each, and 4096 may wait.
        for _ in 0..2500 {
            connection.send(b"GET /rest HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            assert_eq!(connection.read_response().await.unwrap().status(), 200);
        }
        let metrics = hanging.gateway.metrics().await;
        assert!(dropped(&metrics) >= 900.0, "{}", dropped(&metrics));
        gate.open();
    });
}
