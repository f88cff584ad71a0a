//! Which route a request is for, and which requests may share a copy: as the gateway has it.

use backstop_lab::drill::{Facts, Samples};

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
