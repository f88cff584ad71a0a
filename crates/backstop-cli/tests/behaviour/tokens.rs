//! Signed tokens that are verified here: who comes in, under which name, until when.

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::issuer::{Key, Signed, now_s};
use crate::support::shop::HOST;
use crate::support::{expect, run};

/// 401 by Backstop itself, with this challenge.
#[track_caller]
pub fn is_refused(response: &Response, error: &str, what: &str) {
    assert_eq!(response.status(), 401, "{what}: {:?}", response.head);
    let challenge = format!("Bearer realm=\"sessions\"{error}");
    assert_eq!(response.header("www-authenticate"), Some(challenge.as_str()), "{what}");
    assert_eq!(response.header("cache-control"), Some("no-store"), "{what}");
    assert_eq!(response.header("backstop"), None, "{what}");
    assert!(response.is_complete(), "{what}");
    let problem = response.json().expect("a problem document");
    assert_eq!(problem["type"], "urn:backstop:problem:token", "{what}");
}

pub const INVALID: &str = ", error=\"invalid_token\"";

/// On every class; the dependency hears the name from the token alone, and the token goes on unchanged (RFC 9110 section
/// 11.6.2).
#[test]
fn a_token_lets_in_under_its_principal() {
    run(async {
        let shop = Signed::open().await;
        let token = shop.token("ana");
        for class in Signed::classes() {
            let before = shop.origin.count();
            assert_eq!(shop.ask(class, &token).await.status(), 200, "{class}");
            assert_eq!(shop.origin.count(), before + 1, "{class}");
        }
        let bearer = format!("bearer {token}");
        let claims = [
            ("Host", HOST),
            ("Authorization", bearer.as_str()),
            ("X-User", "root"),
            ("X_User", "root"),
            ("x-user", "admin"),
        ];
        assert_eq!(shop.gateway.request("POST", "/guarded", &claims, b"{}").await.status(), 200);
        let requests = shop.origin.requests();
        let head = String::from_utf8_lossy(&requests.last().unwrap().head).to_ascii_lowercase();
        let users: Vec<&str> =
            head.lines().filter(|line| line.starts_with("x-user") || line.starts_with("x_user")).collect();
        assert_eq!(users, ["x-user: ana"]);
        assert_eq!(requests.last().unwrap().header("authorization"), Some(bearer.as_str()));
        assert_eq!(shop.issuer.count(), 1, "nobody is asked about a request");
    });
}

/// Each is refused on each class, and nothing is executed.
#[test]
fn without_a_valid_token_nothing_is_executed() {
    run(async {
        let shop = Signed::open().await;
        let executed = shop.origin.count();
        let stranger = Key::new("first");
        let forged = stranger.token("ana", now_s() + 3600);
        let expired = shop.key.token("ana", now_s() - 3600);
        let good = shop.token("ana");
        let (message, _) = good.rsplit_once('.').unwrap();
        let unsigned = format!("{message}.");
        let unknown = Key::new("unknown").token("ana", now_s() + 3600);
        let nameless = shop.token("");
        let shown = [forged, expired, unsigned, unknown, nameless, "ana".to_owned()];
        for class in Signed::classes() {
            is_refused(&shop.shows(class, &[]).await, "", class);
            is_refused(&shop.shows(class, &["Basic YW5hOmFuYQ=="]).await, "", class);
            is_refused(&shop.shows(class, &["Bearer"]).await, INVALID, class);
            for (index, token) in shown.iter().enumerate() {
                is_refused(&shop.ask(class, token).await, INVALID, &format!("{class} {index}"));
            }
            // Two credentials are refused before any route is known.
            let bearer = format!("Bearer {good}");
            assert_eq!(shop.shows(class, &[&bearer, &bearer]).await.status(), 400, "{class}");
        }
        assert_eq!(shop.origin.count(), executed);
        let classes = Signed::classes().count() as u64;
        assert_eq!(shop.counted("denied").await, (shown.len() as u64 + 3) * classes);
        assert_eq!(shop.counted("failed").await + shop.counted("unclear").await, 0);
        let log = shop.gateway.log().join("\n");
        for part in shown.iter().chain([&good]).flat_map(|token| token.split('.')).filter(|it| it.len() > 3) {
            assert!(!log.contains(part), "{part} stands in the log");
        }
    });
}

/// A no to HEAD has no content (RFC 9110 section 9.3.2), and OPTIONS is asked without a credential.
#[test]
fn other_methods_are_as_behind_any_authorizer() {
    run(async {
        let shop = Signed::open().await;
        let head = shop.gateway.request("HEAD", "/public_read", &[("Host", HOST)], b"").await;
        assert_eq!((head.status(), head.text().as_str()), (401, ""));
        assert!(head.header("www-authenticate").is_some());
        shop.origin.on(Matcher::any().method("OPTIONS"), Answer::new(204));
        let options = shop.gateway.request("OPTIONS", "/guarded", &[("Host", HOST)], b"").await;
        assert_eq!(options.status(), 204);
    });
}

/// RFC 7519 section 4.1.4, to the nanosecond, for requests and for copies: no yes is remembered.
#[test]
fn no_yes_outlives_its_token() {
    run(async {
        let mut shop = Signed::open().await;
        let wall_ns = shop.hand.reading().wall;
        let expires_s = wall_ns / 1_000_000_000 + 30;
        let token = shop.key.token("ana", expires_s);
        assert_eq!(shop.ask("public_read", &token).await.status(), 200);
        shop.origin.on(Matcher::any(), Behaviour::status(503));
        shop.hand.wall(expires_s * 1_000_000_000 - wall_ns - 1);
        assert_eq!(shop.ask("public_read", &token).await.header("backstop").unwrap_or_default(), COPY);
        let executed = shop.origin.count();
        shop.hand.wall(1);
        for class in Signed::classes() {
            is_refused(&shop.ask(class, &token).await, INVALID, class);
        }
        assert_eq!(shop.origin.count(), executed);
        let renewed = shop.key.token("ana", expires_s + 30);
        let copy = shop.ask("public_read", &renewed).await;
        assert_eq!(
            (copy.status(), copy.header("backstop")),
            (200, Some(COPY)),
            "a new token, the same caller"
        );
    });
}

/// Time since boot stands still there, so the copy is not a second older.
const COPY: &str = "outcome=fallback, source=snapshot, age=0, reason=unavailable";

/// Each caller has their own, whatever token of theirs they show; a third one has none.
#[test]
fn copies_are_those_of_whom_the_token_names() {
    run(async {
        let shop = Signed::open().await;
        let own = || {
            Behaviour::from_fn(|request| {
                Answer::json(format!("{{\"for\":\"{}\"}}", request.header("x-user").unwrap_or("nobody")))
            })
        };
        for class in ["public_read", "cached_read"] {
            shop.origin.on(Matcher::any(), own());
            for name in ["ana", "bob"] {
                assert_eq!(shop.ask(class, &shop.token(name)).await.status(), 200, "{class}");
            }
            shop.origin.on(Matcher::any(), Behaviour::status(503));
            for name in ["ana", "bob"] {
                let other_token = shop.key.token(name, now_s() + 7200);
                let body = format!("{{\"for\":\"{name}\"}}");
                expect::copy(&shop.ask(class, &other_token).await, &body, 0, "unavailable");
            }
            expect::no_copy(&shop.ask(class, &shop.token("eve")).await, "missing", "unavailable");
        }
    });
}

/// While nobody vouches for the date, what has expired might come back: an outage, and not the caller's fault.
#[test]
fn a_clock_that_is_not_synchronised_lets_nobody_in() {
    run(async {
        let mut shop = Signed::open().await;
        let executed = shop.origin.count();
        let token = shop.token("ana");
        shop.hand.say("sync off");
        for class in Signed::classes() {
            super::tokens_keys::is_outage(&shop.ask(class, &token).await, "", class);
            is_refused(&shop.shows(class, &[]).await, "", class);
        }
        assert_eq!(shop.origin.count(), executed);
        shop.hand.say("sync on");
        assert_eq!(shop.ask("guarded", &token).await.status(), 200);
        shop.pass(1000);
        assert_eq!(shop.ask("guarded", &token).await.status(), 200);
    });
}
