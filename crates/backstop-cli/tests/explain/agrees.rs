//! What `backstop explain` says is what the built gateway does: for several hundred requests, made of every kind of failure,
//! age of a copy, method and field, on routes of every class.
//!
//! Each is played to the running gateway first, in front of origins that really fail so, its clock moved to the moment. What it
//! answers is what `explain`, asked in the same words, has to say: status, `Backstop` field, whether the answer is cut, and how
//! many requests the dependencies received. And what the gateway has counted in the end, by outcome, source and reason, is the
//! sum of what was explained.

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use serde_json::Value;

use crate::stage::{AGES, Case, FAILURES, FIELDS, Got, LONG, READ, Stage, right};
use crate::support::gateway::output;
use crate::support::guarded::yes;
use crate::support::{BOUND, Gateway, run};

/// How long a call of this route hangs, if it does.
fn hangs(failure: &str, time: Duration) -> Option<Duration> {
    match failure {
        "read_timeout" => Some(time),
        "connect_timeout" => Some(Duration::from_millis(100)),
        _ => None,
    }
}

/// How old a copy is, from how it is said.
fn age(text: &str) -> Duration {
    match (text.strip_suffix("ns"), text.strip_suffix('s')) {
        (Some(ns), _) => Duration::from_nanos(ns.parse().unwrap()),
        (None, Some(seconds)) => Duration::from_secs(seconds.parse().unwrap()),
        (None, None) => panic!("{text}"),
    }
}

impl Stage {
    /// Reads with every failure, age and field, by GET and by HEAD.
    async fn reads(&mut self, route: &str, path: &str, methods: &[&str], fields: &[&[(&str, &str)]]) {
        for failure in FAILURES {
            for copy in AGES {
                for method in methods {
                    // Connects that hang cost 300 ms of real time each.
                    let fields = if failure == "connect_timeout" { &fields[..1] } else { fields };
                    for fields in fields {
                        let target = format!("{path}/{}", self.name().await);
                        if let Some(copy) = copy {
                            self.prepare(route, &target, FIELDS[0]).await;
                            self.hand.pass(age(copy));
                        }
                        Self::breaks(&self.catalog, failure).await;
                        let got = self.play((method, &target), fields, b"", hangs(failure, READ)).await;
                        Self::heals(&self.catalog, failure, Behaviour::from_fn(right)).await;
                        let request = format!("{method} {target}");
                        let when = format!("catalog={failure}");
                        let copy = copy.unwrap_or("none");
                        self.explained(&[&request, "--when", &when, "--copy-age", copy], fields, got);
                    }
                }
            }
        }
    }

    /// Requests on a route without copies, with every failure.
    async fn others(&mut self, path: &str, methods: &[&str]) {
        for failure in FAILURES.into_iter().filter(|failure| *failure != "incorrect") {
            for method in methods {
                let target = format!("{path}/{}", self.name().await);
                Self::breaks(&self.catalog, failure).await;
                let got = self.play((method, &target), FIELDS[1], b"", hangs(failure, LONG)).await;
                Self::heals(&self.catalog, failure, Behaviour::from_fn(right)).await;
                let (request, when) = (format!("{method} {target}"), format!("catalog={failure}"));
                self.explained(&[&request, "--when", &when], FIELDS[1], got);
            }
        }
    }

    /// Every word of the authorizer, before every kind of answer.
    async fn guarded(&mut self) {
        for says in ["allow", "deny", "unclear", "503", "500", "reset", "incomplete", "read_timeout"] {
            for failure in ["ok", "500", "503", "reset"] {
                let target = format!("/account/{}", self.name().await);
                Self::breaks(&self.catalog, failure).await;
                Self::breaks(&self.authorizer, says).await;
                let got = self.play(("POST", &target), FIELDS[1], b"", hangs(says, LONG)).await;
                Self::heals(&self.catalog, failure, Behaviour::from_fn(right)).await;
                Self::heals(&self.authorizer, says, yes("ana")).await;
                let (request, when) = (format!("POST {target}"), format!("catalog={failure}"));
                self.explained(&[&request, "--when", &when, "--authorizer", says], FIELDS[1], got);
            }
        }
    }

    /// Operations: each failure of the one forward, and what is known of an earlier one.
    async fn operations(&mut self) {
        let earlier = [
            ("none", "ok"),
            ("succeeded", "ok"),
            ("refused", "422"),
            ("unknown", "500"),
            ("not_executed", "connect"),
        ];
        for (operation, before) in earlier {
            for failure in FAILURES.into_iter().filter(|failure| *failure != "connect_timeout") {
                let (target, key) = (format!("/pay/{}", self.name().await), format!("key-{}", self.asked));
                let fields = [("Idempotency-Key", key.as_str()), ("Backstop-Explain", "?1")];
                if operation == "unknown" {
                    self.nothing_is_unknown().await;
                }
                if operation != "none" {
                    Self::breaks(&self.catalog, before).await;
                    self.play(("POST", &target), &fields, b"{}", hangs(before, LONG)).await;
                    Self::heals(&self.catalog, before, Behaviour::from_fn(right)).await;
                }
                Self::breaks(&self.catalog, failure).await;
                let got = self.play(("POST", &target), &fields, b"{}", hangs(failure, LONG)).await;
                Self::heals(&self.catalog, failure, Behaviour::from_fn(right)).await;
                let (request, when) = (format!("POST {target}"), format!("catalog={failure}"));
                let words = [&*request, "--when", &when, "--operation", operation, "--data", "{}"];
                self.explained(&words, &fields, got);
            }
        }
    }

    /// Nobody asks for the status of operations here, so what is unknown waits for a person as soon as it is looked after, which
    /// is once a second. Waits until that was done; then the clock stands still.
    async fn nothing_is_unknown(&mut self) {
        self.hand.pass(Duration::from_secs(2));
        let unknown = |metrics: &crate::support::Metrics| {
            metrics.sum("backstop_operations", &["state=\"unknown\""]) == 0.0
        };
        let metrics = self.gateway.metrics_until(unknown).await;
        assert!(unknown(&metrics), "what is unknown is looked after");
    }

    /// Full limits, with and without a copy.
    async fn full(&mut self) {
        for (limit, path, holder) in [("route=2", "/p", "/p/hold"), ("catalog=3", "/d", "/plain/hold")] {
            let places = if limit == "route=2" { 2 } else { 3 };
            let mut targets = Vec::new();
            for copy in AGES {
                let target = format!("{path}/{}", self.name().await);
                if copy == Some("0s") || copy.is_none() {
                    targets.push((copy, target));
                }
            }
            for (_, target) in targets.iter().filter(|(copy, _)| copy.is_some()) {
                let route = if path == "/p" { "description" } else { "declared" };
                self.prepare(route, target, FIELDS[0]).await;
            }
            let gate = Gate::new();
            self.catalog.on(Matcher::prefix(holder), Answer::json("{}").gate(&gate));
            let gateway = &self.gateway;
            // What may change something may have the last place.
            let by = if limit == "route=2" { "GET" } else { "POST" };
            let holding = (0..places).map(|_| gateway.request(by, holder, FIELDS[0], b""));
            let holding = futures_util::future::join_all(holding);
            let mut got = Vec::new();
            let asking = async {
                gate.wait_for_waiting(places, BOUND).await.unwrap();
                for (copy, target) in &targets {
                    for method in ["GET", "HEAD"] {
                        let before = self.catalog.count();
                        let response = gateway.request(method, target, FIELDS[1], b"").await;
                        let field = response.header("backstop").map(str::to_owned);
                        let received = self.catalog.count() - before;
                        let is_cut = !response.is_complete();
                        let status = response.status();
                        got.push((
                            *copy,
                            format!("{method} {target}"),
                            Got { status, field, is_cut, received },
                        ));
                    }
                }
                gate.open();
            };
            tokio::join!(holding, asking);
            if path == "/d" {
                *self.prepared.entry("plain".to_owned()).or_default() += places as u64;
            }
            self.catalog.reset();
            self.catalog.default(Behaviour::from_fn(right));
            for (copy, request, got) in got {
                let copy = copy.unwrap_or("none");
                self.explained(&[&request, "--in-flight", limit, "--copy-age", copy], FIELDS[1], got);
            }
        }
    }
}

/// What `explain` says of a case.
fn explain(folder: &std::path::Path, case: &Case) -> (Got, [String; 4]) {
    let arguments: Vec<&str> = case.arguments.iter().map(String::as_str).collect();
    let (status, out, err) = output(&arguments, folder);
    assert!(status.success(), "{arguments:?}: {err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    let answer = &said["answer"];
    let fields = answer["fields"].as_array().unwrap();
    let field =
        fields.iter().find(|field| field[0] == "backstop").map(|field| field[1].as_str().unwrap().to_owned());
    let calls = said["calls"].as_array().unwrap().iter();
    let received = calls.filter(|call| call["dependency"] == "catalog" && !call["request"].is_null()).count();
    let got = Got {
        status: u16::try_from(answer["status"].as_u64().unwrap()).unwrap(),
        field,
        is_cut: answer["cut"].as_bool().unwrap(),
        received: received as u64,
    };
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let counted = [
        word(&said["route"]["name"]),
        word(&answer["outcome"]),
        word(&answer["source"]),
        word(&answer["reason"]),
    ];
    (got, counted)
}

#[test]
fn explain_says_what_the_gateway_does() {
    run(async {
        let mut stage = Stage::open().await;
        stage.reads("description", "/p", &["GET", "HEAD"], &FIELDS).await;
        stage.reads("declared", "/d", &["GET"], &FIELDS[..2]).await;
        stage.reads("reviews", "/reviews", &["GET"], &FIELDS[1..2]).await;
        stage.others("/best", &["GET", "HEAD"]).await;
        stage.others("/plain", &["GET", "POST", "OPTIONS"]).await;
        stage.others("/page", &["GET", "HEAD"]).await;
        stage.guarded().await;
        stage.operations().await;
        stage.full().await;
        let folder = stage.gateway.folder().to_owned();
        let counts = std::sync::Mutex::new(BTreeMap::<[String; 4], u64>::new());
        let wrong = std::sync::Mutex::new(Vec::new());
        let cases = &stage.cases;
        assert!(cases.len() >= 500, "{}", cases.len());
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                    {
                        let (explained, counted) = explain(&folder, case);
                        *counts.lock().unwrap().entry(counted).or_default() += 1;
                        if explained != case.got {
                            let text = format!(
                                "{:?}\n  gateway: {:?}\n  explain: {explained:?}",
                                case.arguments, case.got
                            );
                            wrong.lock().unwrap().push(text);
                        }
                    }
                });
            }
        });
        let wrong = wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
        let mut counts = counts.into_inner().unwrap();
        for (route, number) in &stage.prepared {
            let counted = [route.as_str(), "normal", "primary", "none"].map(str::to_owned);
            *counts.entry(counted).or_default() += number;
        }
        counted_alike(&stage.gateway, &counts).await;
    });
}

/// The gateway has counted what was explained, and nothing else, on routes whose requests all were.
async fn counted_alike(gateway: &Gateway, counts: &BTreeMap<[String; 4], u64>) {
    let metrics = gateway.metrics().await;
    for route in ["best", "plain", "account", "page", "reviews", "declared"] {
        let mut all = 0;
        for ([of, outcome, source, reason], expected) in counts.iter().filter(|([of, ..], _)| of == route) {
            let labels = [("route", of), ("outcome", outcome), ("source", source), ("reason", reason)];
            let labels = labels.map(|(name, value)| format!("{name}=\"{value}\""));
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let counted = metrics.sum("backstop_requests_total", &labels) as u64;
            assert_eq!(counted, *expected, "{labels:?}");
            all += counted;
        }
        let label = format!("route=\"{route}\"");
        assert_eq!(metrics.sum("backstop_requests_total", &[&label]) as u64, all, "{route}");
    }
}
