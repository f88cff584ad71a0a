//! Which route a request is for, and which requests may share a copy: as the gateway has it.

use backstop_lab::drill::{Ask, Facts, Samples, own};

use crate::world::policy;

const POLICY: &str = r#"
[gateway]
listen    = "127.0.0.1:8080"
in_flight = 100

[store]
path = "backstop-data"

[dependency.catalog]
url = "http://127.0.0.1:9001"

[route.mine.direct]
host       = ["a.example"]
match      = "GET /things/{thing}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20

[route.theirs.direct]
host       = ["b.example"]
match      = "GET /things/{thing}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20

[route.wild.direct]
host       = ["*.c.example"]
match      = "GET /things/{thing}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20

[route.wilder.direct]
host       = ["*.d.c.example"]
match      = "GET /things/{thing}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20

[route.files.public_read]
match      = "GET /files/{file*}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20
languages  = ["es", "en"]
key        = ["language"]
max_age    = "600ms"
correct    = { type = "application/json" }

[route.plain.public_read]
match      = "GET /plain"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 20
key        = []
max_age    = "600ms"
correct    = { type = "application/json" }
"#;

fn facts() -> Facts {
    Facts::new(policy(POLICY))
}

fn name(facts: &Facts, host: &str, method: &str, target: &str) -> Option<String> {
    let route = facts.find(host, method, target)?;
    facts.routes().get(route).map(|route| route.name.to_string())
}

#[test]
fn a_request_belongs_to_the_route_of_its_host() {
    let facts = facts();
    for (host, expected) in [
        ("a.example", Some("mine")),
        ("A.Example:8080", Some("mine")),
        ("b.example.", Some("theirs")),
        ("x.c.example", Some("wild")),
        ("x.d.c.example", Some("wilder")),
        ("c.example", None),
        ("127.0.0.1", None),
    ] {
        assert_eq!(name(&facts, host, "GET", "/things/1").as_deref(), expected, "{host}");
    }
}

#[test]
fn every_route_is_asked_on_a_host_of_its_own() {
    let facts = facts();
    for route in 0..4 {
        let asks = Samples::default().asks(&facts, route, |method| method == "GET");
        assert!(!asks.is_empty(), "{route}");
        for ask in asks {
            let host = ask.fields.iter().find(|(name, _)| name == "host").map(|(_, host)| host.as_str());
            assert_eq!(facts.find(host.unwrap(), "GET", &ask.target), Some(route), "{ask:?}");
        }
    }
}

#[test]
fn a_route_is_found_by_the_one_spelling_of_a_path() {
    let facts = facts();
    let found = |target: &str| name(&facts, "a.example", "GET", target);
    assert_eq!(found("/%74hings/1").as_deref(), Some("mine"));
    assert_eq!(found("/t%68ings/1?a=/x").as_deref(), Some("mine"));
    assert_eq!(found("/things%2F1"), None, "an encoded slash is none");
    assert_eq!(found("/files/").as_deref(), Some("files"), "a rest may be empty");
    assert_eq!(found("/files"), None, "and its slash may not be missing");
}

/// However its path is written, a route with effects is not called without a sandbox.
#[test]
fn an_effect_is_known_however_its_path_is_written() {
    let facts = Facts::new(policy(include_str!("../../../../examples/payments.toml")));
    for target in ["/payments", "/%70ayments", "/paymen%74s?a=b", "/%70%61yments"] {
        let file = format!("duration = \"1s\"\nload = [{{ request = \"POST {target}\" }}]");
        let settings = backstop_policy::parse_drill(&file, "drill.toml", facts.loaded()).unwrap();
        let refused = own::scenario(&facts, "drill.toml", &settings).unwrap_err();
        assert!(
            matches!(&refused, own::Impossible::Effect { route, .. } if route == "pay"),
            "{target}: {refused}"
        );
    }
}

#[test]
fn requests_share_a_copy_by_the_language_that_is_negotiated() {
    let facts = facts();
    let key = |target: &str, accepted: &[&str]| {
        let fields = accepted.iter().map(|value| ("Accept-Language".to_owned(), (*value).to_owned()));
        let route = facts.find("x", "GET", target).unwrap();
        Ask::new(&facts, route, "GET", target, fields.collect()).key
    };
    let files = |accepted: &[&str]| key("/files/1", accepted);
    let spanish = files(&["es"]);
    for same in [&["fr, es"][..], &["en;q=0.1, es"], &["fr", "es-MX"], &["de-AT, ES;q=0.3"]] {
        assert_eq!(files(same), spanish, "{same:?}");
    }
    for other in [&["en, es"][..], &["es;q=0, en"], &["es;q=0.5, en"], &["fr"]] {
        assert_ne!(files(other), spanish, "{other:?}");
    }
    assert_eq!(key("/plain", &["es"]), key("/plain", &["en"]), "without languages there is one copy");
}
