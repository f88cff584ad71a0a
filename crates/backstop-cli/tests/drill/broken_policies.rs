//! The real gateway, by a policy that is broken in one point: the operator's own drill finds it.

use crate::services::{Place, failed, said};
use crate::support::run;

const POLICY: &str = r#"
[gateway]
listen    = "127.0.0.1:8080"
in_flight = 500

[store]
path = "backstop-data"

[dependency.catalog]
url         = "http://127.0.0.1:9001"
connections = 30

[route.description.public_read]
match      = "GET /products/{product}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 30
languages  = ["es", "en"]
key        = ["path.product", "language", "header.x-tenant"]
max_age    = "600ms"
correct    = { type = "application/json" }
"#;

/// What the operator promised elsewhere.
const DRILL: &str = r#"
duration = "2s"
load = [
  { request = "GET /products/1", rate = "20/s", headers = { accept-language = "es", x-tenant = "a" } },
  { request = "GET /products/1", rate = "20/s", headers = { accept-language = "es", x-tenant = "b" } },
]

[[fault]]
dependency = "catalog"
kind       = "hang"
from       = "500ms"
to         = "2s"

[[expect]]
from   = "1400ms"
status = 503

[[expect]]
latency = "400ms"

[[expect]]
dependency       = "catalog"
calls_per_second = 60
"#;

fn finds(policy: &str, expected: &[&str]) {
    run(async {
        let place = Place::new(1, policy).await;
        place.write("drill.toml", DRILL);
        let output = place.drill(&["drill.toml"]);
        let code = if expected.is_empty() { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let expected: std::collections::BTreeSet<String> =
            expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(failed(&place.report()), expected, "{}", said(&output));
    });
}

#[test]
fn as_it_should_be_it_holds() {
    finds(POLICY, &[]);
}

#[test]
fn copies_that_may_be_too_old_are_found() {
    finds(&POLICY.replace("\"600ms\"", "\"10s\""), &["expected"]);
}

#[test]
fn a_tenant_that_is_missing_in_the_key_is_found() {
    finds(&POLICY.replace(", \"header.x-tenant\"", ""), &["keys"]);
}

#[test]
fn a_deadline_that_is_too_long_is_found() {
    finds(&POLICY.replace("\"300ms\"", "\"900ms\""), &["latency"]);
}
