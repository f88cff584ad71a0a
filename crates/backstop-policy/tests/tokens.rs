//! Authorizers that verify tokens: what is read, what it becomes, and what is refused.

mod support;

use std::time::Duration;

use backstop_engine::policy::DependencyId;
use backstop_policy::{AuthorizerKind, Code, HostHeader, TokenAlgorithm};
use support::{errors, loaded, refused, says};

const TABLE: &str = "[authorizer.tokens]\nprincipal = \"header.X-User\"\ntimeout = \"100ms\"\n";
const JWT: &str = "[authorizer.tokens.jwt]\nkeys = \"http://127.0.0.1:9003/jwks?x=1\"\nissuer = \"https://login.example\"\naudience = \"shop\"\nalgorithms = [\"RS256\", \"ES256\"]\nmax_age = \"1h\"\n";

fn guarded(table: &str, jwt: &str) -> String {
    format!(
        "[dependency.catalog]\nurl = \"http://x\"\n{table}{jwt}[route.x.guarded]\nmatch = \"POST /x\"\ndependency = \"catalog\"\nauthorizer = \"tokens\"\ndeadline = \"1s\"\nin_flight = 20\n"
    )
}

fn with(lines: &str) -> String {
    guarded(TABLE, &format!("{JWT}{lines}\n"))
}

/// A quarter of an hour is a quarter of `max_age`; 5 s are less than that.
#[test]
fn what_is_not_written_has_the_stated_defaults() {
    let policy = loaded(&with(""));
    let route = policy.policy.routes[0].authorizer.unwrap();
    assert_eq!((route.dependency, route.timeout), (None, Duration::from_millis(100)));
    assert_eq!(policy.routes[0].authorizer, Some(0));
    let [settings] = &policy.authorizers[..] else { panic!("one") };
    assert_eq!((settings.dependency, &*settings.name), (DependencyId(1), "tokens"));
    assert_eq!(settings.told().collect::<Vec<_>>(), ["x-user"]);
    let AuthorizerKind::Tokens(tokens) = &settings.kind else { panic!("it verifies tokens") };
    assert_eq!((&*tokens.path, &*tokens.issuer), ("/jwks?x=1", "https://login.example"));
    assert_eq!(tokens.audience, ["shop".into()]);
    assert_eq!(tokens.algorithms, [TokenAlgorithm::Rs256, TokenAlgorithm::Es256]);
    let seconds = Duration::from_secs;
    assert_eq!((tokens.max_age, tokens.refresh, tokens.timeout), (seconds(3600), seconds(900), seconds(5)));
    assert_eq!((tokens.skew, &*tokens.claim, tokens.trusts_date), (Duration::ZERO, "sub", false));
    let issuer = &policy.dependencies[1];
    assert_eq!(issuer.host, HostHeader::Fixed("127.0.0.1:9003".into()));
    assert!(policy.policy.dependencies[1].breaker.is_none());
    // A quarter of 8 s is less than 5 s.
    let short = loaded(&with("").replace("\"1h\"", "\"8s\""));
    let AuthorizerKind::Tokens(tokens) = &short.authorizers[0].kind else { panic!("it verifies tokens") };
    assert_eq!((tokens.refresh, tokens.timeout), (seconds(2), seconds(2)));
}

#[test]
fn every_algorithm_is_one_that_only_the_issuer_can_use() {
    let signed = |text: &str| with("").replace("[\"RS256\", \"ES256\"]", text);
    for name in ["none", "None", "HS256", "HS384", "hs512", "RS1", "ES512", "", "RSA-OAEP"] {
        refused(&signed(&format!("[\"{name}\"]")), Code::Algorithm);
    }
    for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"] {
        says(&signed(&format!("\"{name}\"")), &[]);
    }
    refused(&signed("[]"), Code::Empty);
    refused(&signed("[\"RS256\", \"RS256\"]"), Code::Repeated);
    refused(&with("").replace("\"shop\"", "[\"shop\", \"shop\"]"), Code::Repeated);
}

/// An issuer, an audience or an algorithm that is not stated would be any.
#[test]
fn who_is_believed_must_be_stated() {
    for key in ["keys", "issuer", "audience", "algorithms"] {
        let lines: String =
            JWT.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect();
        assert_eq!(errors(&guarded(TABLE, &lines)), [Code::MissingKey], "{key}");
    }
    assert_eq!(errors(&guarded(TABLE, &JWT.replace("max_age = \"1h\"\n", ""))), [Code::MissingContract]);
    assert_eq!(errors(&guarded("[authorizer.tokens]\n", JWT)), [Code::MissingContract]);
    refused(&with("").replace("\"https://login.example\"", "\"\""), Code::Empty);
    refused(&with("").replace("\"shop\"", "\"\""), Code::Empty);
    refused(&with("").replace("\"shop\"", "[]"), Code::Empty);
    refused(&with("").replace("http://127.0.0.1:9003/jwks?x=1", "https://login.example/jwks"), Code::Url);
}

#[test]
fn an_authorizer_is_of_one_kind() {
    let table = |line: &str| guarded(&format!("{TABLE}{line}\n"), JWT);
    refused(&table("url = \"http://127.0.0.1:9003/check\""), Code::ExactlyOne);
    for line in [
        "allow = { header = \"x-allowed\" }",
        "deny = [401]",
        "tells = [\"x-roles\"]",
        "send = [\"cookie\"]",
        "in_flight = 20",
        "connect = \"1s\"",
        "host = \"login.example\"",
        "idle = \"1s\"",
        "breaker = {}",
    ] {
        assert_eq!(errors(&table(line)), [Code::OtherKind], "{line}");
    }
    assert_eq!(errors(&guarded(TABLE, "")), [Code::ExactlyOne]);
    let asked = format!("{TABLE}url = \"http://127.0.0.1:9003/check\"\n");
    assert_eq!(errors(&guarded(&asked, "")), [Code::MissingKey, Code::MissingContract]);
    // One that cannot be read is not missing.
    assert_eq!(errors(&guarded(TABLE, "jwt = 1\n")), [Code::WrongType]);
}

/// Every 55 minutes and within 5: an hour, which is still in time. A second more is not.
#[test]
fn keys_are_fetched_before_they_are_too_old() {
    says(&with("refresh = \"55m\"\ntimeout = \"5m\""), &[]);
    refused(&with("refresh = \"55m\"\ntimeout = \"301s\""), Code::KeysTooOld);
    refused(&with("refresh = \"1h\""), Code::KeysTooOld);
    refused(&with("timeout = \"46m\""), Code::KeysTooOld);
}

#[test]
fn a_clock_that_nobody_vouches_for_is_believed_only_in_writing() {
    says(&with("unsynchronised = \"trust\""), &[Code::TrustClock]);
    says(&with("unsynchronised = \"refuse\""), &[]);
    refused(&with("unsynchronised = \"ignore\""), Code::UnknownChoice);
}

/// A token stands in `Authorization`: what is told in that field nobody could send. A cookie it never looks at.
#[test]
fn a_token_is_looked_at_in_one_field() {
    let asked = |told: &str| {
        format!(
            "{}[authorizer.sessions]\nurl = \"http://127.0.0.1:9004/check\"\nallow = {{ header = \"x-allowed\" }}\ntimeout = \"100ms\"\nin_flight = 40\nsend = [\"x-session\"]\ntells = [\"{told}\"]\n[route.y.guarded]\nmatch = \"POST /y\"\ndependency = \"catalog\"\nauthorizer = \"sessions\"\ndeadline = \"1s\"\nin_flight = 20\n",
            with("")
        )
    };
    refused(&asked("authorization"), Code::ToldByClients);
    loaded(&asked("cookie"));
}

#[test]
fn keys_are_not_fetched_from_the_gateway_itself() {
    let policy = with("").replace("127.0.0.1:9003", "127.0.0.1:8080");
    refused(&format!("[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\n{policy}"), Code::OwnAddress);
}
