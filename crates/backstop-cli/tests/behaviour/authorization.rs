//! Who says whether a caller may: an outage of it is neither "forbidden" nor access, whatever it looks like, on every class.
//! Public reports: an authorizer that fails is answered with 403, <https://github.com/envoyproxy/envoy/issues/6119>; an error
//! page that is sent with 200 let everybody in, <https://github.com/tarampampam/error-pages/issues/315>.

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, CutAt, Matcher, Then};

use crate::support::guarded::{ANA, BOB, CLASSES, Guarded, method, with_key, yes};
use crate::support::shop::{HOST, down};
use crate::support::{BOUND, expect, products, run};

/// 503 by Backstop itself, because of the authorizer.
#[track_caller]
fn is_outage(response: &Response, cause: &str, what: &str) {
    assert_eq!(response.status(), 503, "{what}: {:?}", response.head);
    let mark = format!("outcome=rejected, reason=authorizer{cause}");
    assert_eq!(response.header("backstop"), Some(mark.as_str()), "{what}");
    assert!(response.is_complete() && response.header("www-authenticate").is_none(), "{what}");
    let problem = response.json().expect("a problem document");
    assert!(problem["type"].as_str().unwrap().ends_with("authorizer-failed"), "{what}: {problem}");
}

/// What an authorizer may do that is neither a yes nor a no, and what caused it, where the request learns that.
fn failures() -> Vec<(&'static str, Behaviour, &'static str)> {
    let friendly = Answer::new(200).header("Content-Type", "text/html").body("<h1>Welcome!</h1>");
    let whole_yes =
        || Answer::new(200).header("X-Allowed", "yes").header("X-User", "ana").body("x".repeat(100));
    vec![
        ("closes", Behaviour::close(), "reset"),
        ("resets", Behaviour::reset(), "reset"),
        ("500", Behaviour::status(500), ""),
        ("503", Behaviour::status(503), "unavailable"),
        ("404", Behaviour::status(404), ""),
        ("400", Behaviour::status(400), ""),
        ("429", Behaviour::status(429), ""),
        ("redirect", Answer::new(302).header("Location", "/login").into(), ""),
        ("garbage", Behaviour::raw("SSH-2.0-OpenSSH_9.2\r\n", Then::Close), "protocol"),
        ("friendly page", friendly.into(), ""),
        ("empty 200", Behaviour::empty_200(), ""),
        ("wrong sign", Answer::new(200).header("X-Allowed", "no").header("X-User", "ana").into(), ""),
        ("no principal", Answer::new(200).header("X-Allowed", "yes").into(), ""),
        ("cut yes", whole_yes().cut(CutAt::Body(50), Then::Close).into(), "incomplete"),
        (
            "cut no",
            Answer::new(401).body("x".repeat(100)).cut(CutAt::Body(50), Then::Reset).into(),
            "incomplete",
        ),
        ("long no", Answer::new(403).body("x".repeat(100_000)).into(), ""),
        ("head cut", whole_yes().cut(CutAt::Head(20), Then::Close).into(), "reset"),
    ]
}

/// Never open: what a breaker does with these failures is another test's matter.
const NEVER_OPEN: &str = "breaker = { min_calls = 10000, failures = \"100%\" }";

/// Each failure on each class. Copies and prepared answers are there, and none of them is given.
#[test]
fn an_outage_of_the_authorizer_is_503_and_nothing_is_executed() {
    run(async {
        let shop = Guarded::with(NEVER_OPEN).await;
        for (class, _) in CLASSES {
            assert_eq!(shop.ask(class).await.status(), 200, "{class}");
        }
        for (what, behaviour, cause) in failures() {
            let cause = if cause.is_empty() { String::new() } else { format!(", cause={cause}") };
            let executed = shop.origin.count();
            shop.says(behaviour);
            for (class, _) in CLASSES {
                is_outage(&shop.ask(class).await, &cause, &format!("{what} on {class}"));
            }
            assert_eq!(shop.origin.count(), executed, "{what}");
            // One good answer between them: ten failures in a row would open the breaker.
            shop.says(yes("ana"));
            assert_eq!(shop.ask("direct").await.status(), 200, "{what}");
        }
        assert_eq!(shop.counted("denied").await, 0);
        let all = failures().len() * CLASSES.len();
        let failed = failures().iter().filter(|(.., cause)| !cause.is_empty()).count() * CLASSES.len();
        assert_eq!(shop.counted("failed").await, failed as u64);
        assert_eq!(shop.counted("unclear").await, (all - failed) as u64);
    });
}

/// Refused connections, and an authorizer that hangs: within its own 100 ms, while the deadline is a second.
#[test]
fn an_authorizer_that_is_down_or_hangs_ends_within_its_time() {
    run(async {
        for (class, _) in CLASSES {
            let mut shop = Guarded::with(NEVER_OPEN).await;
            shop.says(Behaviour::hang());
            let gateway = shop.gateway.addr;
            let asking = tokio::spawn(async move {
                let (target, fields) = (format!("/{class}"), with_key(&ANA, class, "k-hang"));
                backstop_lab::client::request(gateway, method(class), &target, &fields, b"").await.unwrap()
            });
            shop.authorizer.wait_for(1, BOUND).await.unwrap();
            shop.pass(99);
            assert!(!asking.is_finished(), "{class}");
            shop.pass(1);
            is_outage(&asking.await.unwrap(), ", cause=read_timeout", class);
            down(&shop.authorizer).await;
            is_outage(&shop.ask(class).await, ", cause=connect", class);
            assert_eq!(shop.origin.count(), 0, "{class}");
        }
    });
}

/// With its status, its challenge and its content, on every class; and it is counted as what it is.
#[test]
fn a_no_is_passed_on_with_its_challenge() {
    run(async {
        let shop = Guarded::open().await;
        for (class, _) in CLASSES {
            for status in [401, 403] {
                let challenge = "Bearer realm=\"shop\", error=\"invalid_token\"";
                shop.says(
                    Answer::new(status)
                        .header("WWW-Authenticate", challenge)
                        .header("X-User", "ana")
                        .header("Cache-Control", "public, max-age=3600")
                        .header("CDN-Cache-Control", "max-age=3600")
                        .header("Surrogate-Control", "max-age=3600")
                        .header("Expires", "Tue, 01 Dec 2026 10:00:00 GMT")
                        .header("ETag", "\"1\"")
                        .body("no"),
                );
                let response = shop.ask(class).await;
                assert_eq!((response.status(), response.text().as_str()), (status, "no"), "{class}");
                assert_eq!(response.header("www-authenticate"), Some(challenge), "{class}");
                assert_eq!(response.header("cache-control"), Some("no-store"), "nobody keeps it for others");
                for name in ["cdn-cache-control", "surrogate-control", "expires", "etag"] {
                    assert_eq!(response.header(name), None, "{class}");
                }
                assert_eq!((response.header("backstop"), response.header("x-user")), (None, None), "{class}");
            }
        }
        assert_eq!(shop.origin.count(), 0);
        assert_eq!(shop.counted("denied").await, 2 * CLASSES.len() as u64);
        assert_eq!(shop.counted("failed").await + shop.counted("unclear").await, 0);
        let metrics = shop.gateway.metrics().await;
        let denied = metrics.sum("backstop_requests_total", &["source=\"authorizer\"", "reason=\"denied\""]);
        assert_eq!(denied as usize, 2 * CLASSES.len());
    });
}

/// To HEAD as to GET, without the content (RFC 9110 section 9.3.2).
#[test]
fn a_no_to_head_has_no_content() {
    run(async {
        let shop = Guarded::open().await;
        shop.says(Answer::new(403).body("no"));
        let response = shop.gateway.request("HEAD", "/public_read", &ANA, b"").await;
        assert_eq!((response.status(), response.text().as_str()), (403, ""));
    });
}

/// However a client spells who it is, in the head or behind the content, on whatever route.
#[test]
fn who_a_client_says_it_is_goes_no_further() {
    run(async {
        let shop = Guarded::open().await;
        let claims = [
            ("Host", HOST),
            ("Authorization", "Bearer ana"),
            ("X-User", "root"),
            ("x-user", "admin"),
            ("X_User", "root"),
            ("X-Roles", "owner"),
            ("x_roles", "owner"),
        ];
        for target in ["/guarded", "/open"] {
            assert_eq!(shop.gateway.request("POST", target, &claims, b"{}").await.status(), 200, "{target}");
        }
        let mut behind = backstop_lab::client::Connection::open(shop.gateway.addr).await.unwrap();
        behind
            .send(b"POST /open HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-User, X-Sum\r\n\r\n2\r\n{}\r\n0\r\nX-User: root\r\nX_Roles: owner\r\nX-Sum: 1\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(behind.read_response().await.unwrap().status(), 200);
        let requests = shop.origin.requests();
        let told = |index: usize, name: &str| {
            let name = name.to_ascii_lowercase();
            let head = String::from_utf8_lossy(&requests[index].head).to_ascii_lowercase();
            head.lines()
                .filter(|line| line.starts_with(&format!("{name}:")))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (told(0, "x-user"), told(0, "x-roles")),
            (vec!["x-user: ana".into()], vec!["x-roles: buyer".into()])
        );
        for index in 0..3 {
            assert_eq!((told(index, "x_user"), told(index, "x_roles")), (vec![], vec![]), "{index}");
        }
        for index in 1..3 {
            assert_eq!((told(index, "x-user"), told(index, "x-roles")), (vec![], vec![]), "{index}");
        }
        assert_eq!(told(2, "trailer"), ["trailer: x-sum"]);
        let asked = &shop.authorizer.requests()[0];
        assert_eq!((asked.header("x-user"), asked.header("x_user")), (None, None));
    });
}

/// What the operator sets for the dependency is not what the client showed.
#[test]
fn it_is_asked_with_the_clients_own_credential() {
    run(async {
        let shop = Guarded::of(|origin, authorizer| {
            let policy = crate::support::guarded::policy(origin, authorizer, "");
            policy.replace_table("route.guarded.guarded", |table| {
                format!("{table}\nrequest_headers = {{ set = {{ authorization = \"Basic backend\" }} }}\n")
            })
        })
        .await;
        assert_eq!(shop.ask("guarded").await.status(), 200);
        let anonymous = shop.gateway.request("POST", "/guarded?next=%2F", &[("Host", HOST)], b"{}").await;
        assert_eq!(anonymous.status(), 401);
        let asked = shop.authorizer.requests();
        assert_eq!(asked[0].header("authorization"), Some("Bearer ana"));
        assert_eq!(asked[1].header("authorization"), None);
        assert_eq!((asked[1].method.as_str(), asked[1].target.as_str()), ("GET", "/check"));
        assert_eq!(asked[1].header("x-forwarded-method"), Some("POST"));
        assert_eq!(asked[1].header("x-forwarded-uri"), Some("/guarded?next=%2F"));
        assert_eq!((asked[1].body_bytes, asked[1].header("content-length")), (0, None));
        assert_eq!(shop.origin.requests()[0].header("authorization"), Some("Basic backend"));
    });
}

/// Each has their own, and a third one none.
#[test]
fn copies_are_the_principals() {
    run(async {
        let shop = Guarded::open().await;
        shop.origin.on(
            Matcher::any(),
            Behaviour::from_fn(|request| {
                Answer::json(format!("{{\"for\":\"{}\"}}", request.header("x-user").unwrap_or("nobody")))
            }),
        );
        for class in ["public_read", "cached_read"] {
            let target = format!("/{class}");
            for who in [&ANA, &BOB] {
                assert_eq!(shop.gateway.get(&target, who).await.status(), 200);
            }
            shop.origin.on(Matcher::any(), Behaviour::status(503));
            for (who, name) in [(&ANA, "ana"), (&BOB, "bob")] {
                expect::copy(
                    &shop.gateway.get(&target, who).await,
                    &format!("{{\"for\":\"{name}\"}}"),
                    0,
                    "unavailable",
                );
            }
            let third = [("Host", HOST), ("Authorization", "Bearer eve")];
            expect::no_copy(&shop.gateway.get(&target, &third).await, "missing", "unavailable");
            shop.origin.on(
                Matcher::any(),
                Behaviour::from_fn(|request| {
                    Answer::json(format!("{{\"for\":\"{}\"}}", request.header("x-user").unwrap_or("nobody")))
                }),
            );
        }
    });
}

/// Where everybody who is allowed sees the same: one copy, and still nobody who is not allowed gets it.
#[test]
fn shared_copies_are_for_all_who_are_allowed() {
    run(async {
        let shop = Guarded::of(|origin, authorizer| {
            let policy = crate::support::guarded::policy(origin, authorizer, "");
            policy.replace_table("route.public_read.public_read", |table| {
                table.replace("key = [\"principal\"]", "key = []\nshared = true")
            })
        })
        .await;
        shop.origin.on(Matcher::any(), products("shared"));
        let live = shop.gateway.get("/public_read", &ANA).await.text();
        shop.origin.on(Matcher::any(), Behaviour::status(503));
        expect::copy(&shop.gateway.get("/public_read", &BOB).await, &live, 0, "unavailable");
        assert_eq!(shop.gateway.get("/public_read", &[("Host", HOST)]).await.status(), 401);
    });
}

/// A browser asks first what it may ask, without a credential (the Fetch standard's preflight).
#[test]
fn options_goes_to_the_dependency_unauthenticated() {
    run(async {
        let shop = Guarded::open().await;
        shop.says(Behaviour::status(500));
        shop.origin.on(
            Matcher::any().method("OPTIONS"),
            Answer::new(204).header("Access-Control-Allow-Origin", "*"),
        );
        for (class, _) in CLASSES.into_iter().filter(|(class, _)| *class != "composed") {
            let fields = [
                ("Host", HOST),
                ("Origin", "https://shop.example"),
                ("Access-Control-Request-Method", "POST"),
            ];
            let response = shop.gateway.request("OPTIONS", &format!("/{class}"), &fields, b"").await;
            assert_eq!(response.status(), 204, "{class}");
            assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{class}");
        }
        assert_eq!(shop.authorizer.count(), 0);
    });
}

/// Ten failures in a row: then it is left alone for its open time, and one good answer among its probes' closes it.
#[test]
fn an_authorizer_that_fails_is_left_alone() {
    run(async {
        let mut shop = Guarded::open().await;
        shop.says(Behaviour::status(503));
        for _ in 0..10 {
            is_outage(&shop.ask("guarded").await, ", cause=unavailable", "while it is asked");
        }
        for _ in 0..20 {
            is_outage(&shop.ask("guarded").await, ", cause=breaker_open", "while it is open");
        }
        assert_eq!((shop.authorizer.count(), shop.origin.count()), (10, 0));
        shop.says(yes("ana"));
        shop.pass(6_000);
        for _ in 0..3 {
            assert_eq!(shop.ask("guarded").await.status(), 200);
        }
    });
}

/// A token that it cannot read, sent a hundred times by one client: everybody else goes on being let in.
#[test]
fn one_client_cannot_shut_out_all() {
    run(async {
        let shop = Guarded::open().await;
        shop.says(Behaviour::from_fn(|request| match request.header("authorization") {
            Some("Bearer ana") => yes("ana"),
            _ => Answer::new(500).body("cannot read that token"),
        }));
        for _ in 0..100 {
            let fields = [("Host", HOST), ("Authorization", "Bearer junk")];
            is_outage(&shop.gateway.request("POST", "/guarded", &fields, b"").await, "", "junk");
        }
        assert_eq!(shop.ask("guarded").await.status(), 200);
    });
}

/// Nineteen of its twenty places may be guarded requests': the next one is refused at once, and none of them is executed.
#[test]
fn its_own_limit_refuses_at_once() {
    run(async {
        let shop = Guarded::of(|origin, authorizer| {
            let policy = crate::support::guarded::policy(origin, authorizer, "");
            policy.replace_table("authorizer.sessions", |table| {
                table.replace("in_flight = 20", "in_flight = 3")
            })
        })
        .await;
        let gate = backstop_lab::origin::Gate::new();
        shop.says(yes("ana").gate(&gate));
        let gateway = shop.gateway.addr;
        let held: Vec<_> = (0..2)
            .map(|_| {
                tokio::spawn(async move {
                    backstop_lab::client::request(gateway, "POST", "/guarded", &ANA, b"{}").await.unwrap()
                })
            })
            .collect();
        gate.wait_for_waiting(2, BOUND).await.unwrap();
        is_outage(&shop.ask("guarded").await, ", cause=dependency_full", "the third of two");
        assert_eq!(shop.counted("not_asked").await, 1);
        gate.open();
        for held in held {
            assert_eq!(held.await.unwrap().status(), 200);
        }
        assert_eq!((shop.authorizer.count(), shop.origin.count()), (2, 2));
    });
}

/// Its time is part of the one deadline: what it took is not there for the dependency any more.
#[test]
fn its_time_is_part_of_the_deadline() {
    run(async {
        let mut shop = Guarded::of(|origin, authorizer| {
            crate::support::guarded::policy(origin, authorizer, "")
                .replace_table("authorizer.sessions", |table| table.replace("100ms", "900ms"))
        })
        .await;
        let gate = backstop_lab::origin::Gate::new();
        shop.says(yes("ana").gate(&gate));
        shop.origin.on(Matcher::any(), Behaviour::hang());
        let gateway = shop.gateway.addr;
        let asking = tokio::spawn(async move {
            backstop_lab::client::request(gateway, "POST", "/guarded", &ANA, b"{}").await.unwrap()
        });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        shop.pass(800);
        gate.open();
        shop.origin.wait_for(1, BOUND).await.unwrap();
        shop.pass(100);
        assert!(!asking.is_finished());
        // The share of the reply is less than this, too.
        shop.pass(100);
        assert_eq!(asking.await.unwrap().status(), 504);
    });
}

/// A client that leaves while its caller is looked at has executed nothing, and leaves no place taken.
#[test]
fn a_client_that_leaves_early_executes_nothing() {
    run(async {
        let shop = Guarded::open().await;
        let gate = backstop_lab::origin::Gate::new();
        shop.says(yes("ana").gate(&gate));
        for number in 1..=5 {
            let mut client = backstop_lab::client::Connection::open(shop.gateway.addr).await.unwrap();
            client
                .send(b"POST /guarded HTTP/1.1\r\nHost: shop.example\r\nAuthorization: Bearer ana\r\nContent-Length: 2\r\n\r\n{}")
                .await
                .unwrap();
            gate.wait_for_waiting(number, BOUND).await.unwrap();
            client.reset().unwrap();
            shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == number as u64).await;
        }
        gate.open();
        expect::idle(&shop.gateway).await;
        assert_eq!(shop.origin.count(), 0);
    });
}

/// A page learns that its session is over, and that the service is full, only if it may read so: on Backstop's own answers and the
/// authorizer's, and never on the dependency's.
#[test]
fn a_named_page_may_read_what_is_not_the_dependencys() {
    run(async {
        let shop = Guarded::of(|origin, authorizer| {
            let policy = crate::support::guarded::policy(origin, authorizer, NEVER_OPEN);
            let cors = "cors = { origins = [\"https://shop.example\"], credentials = true }\nlimits = { body = \"10 B\" }";
            policy
                .replace_table("route.guarded.guarded", |table| format!("{table}\n{cors}\n"))
                .replace_table("route.composed.composed", |table| format!("{table}\n{cors}\n"))
        })
        .await;
        let page = |origin| [ANA[0], ANA[1], ("Origin", origin)];
        let ask = async |method: &str, target: &str, body: &[u8], origin: &'static str| {
            let response = shop.gateway.request(method, target, &page(origin), body).await;
            let told = |name: &str| response.header(name).map(str::to_owned);
            (
                response.status(),
                told("access-control-allow-origin"),
                told("access-control-allow-credentials"),
                told("vary"),
            )
        };
        let allowed = |status| {
            let own = Some("https://shop.example".to_owned());
            (status, own, Some("true".to_owned()), Some("origin".to_owned()))
        };
        let (ours, other) = ("https://shop.example", "https://evil.example");
        for status in [401, 403] {
            shop.says(Answer::new(status).body("no"));
            for (method, target) in [("POST", "/guarded"), ("GET", "/composed")] {
                assert_eq!(ask(method, target, b"", ours).await, allowed(status), "{target}");
                assert_eq!(
                    ask(method, target, b"", other).await,
                    (status, None, None, Some("origin".into()))
                );
            }
        }
        shop.says(Behaviour::status(500));
        assert_eq!(ask("POST", "/guarded", b"", ours).await, allowed(503));
        assert_eq!(ask("GET", "/composed", b"", ours).await, allowed(503));
        assert_eq!(ask("POST", "/guarded", b"more than ten", ours).await, allowed(413));
        shop.says(yes("ana"));
        assert_eq!(ask("POST", "/guarded", b"", ours).await, (200, None, None, None));
        let response = shop.gateway.request("OPTIONS", "/guarded", &page(ours), b"").await;
        assert_eq!((response.status(), response.header("access-control-allow-origin")), (200, None));
        assert_eq!(shop.origin.count_of("OPTIONS", "/guarded"), 1);
    });
}
