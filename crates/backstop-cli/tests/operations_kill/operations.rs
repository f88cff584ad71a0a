//! The policy under which the kill loop is to run: payments as operations.

use std::net::SocketAddr;

use crate::support::Policy;
use crate::support::gateway::{folder, output};

/// `POST /payments` as an operation of the payment service, its status asked for often and not for long: eight seconds after
/// an operation began it is a matter for a person if it is still unknown.
pub fn policy(payments: SocketAddr) -> Policy {
    let route = r#"match = "POST /payments"
dependency = "payments"
deadline = "1s"
in_flight = 50
scope = "header.x-tenant"
shared_account = false
upstream_retention = "1h"
store_body = "redacted"
unknown_answer = "auto"
verify = { first = "20ms", factor = 2, cap = "200ms", deadline = "8s" }

[route.pay.effect.outcome]
succeeded = [{ status = [200, 201], json = { "/status" = "succeeded" } }]
pending = [{ status = 202 }, { status = [200, 201], json = { "/status" = "processing" } }]
refused = [{ status = [400, 402, 405, 422] }]

[route.pay.effect.status_query]
path = "/payments/by-key/{operation_id}"
timeout = "500ms"
rate = "500/s"
concurrency = 8
echo = { "/operation_id" = "operation_id", "/amount" = "body:/amount" }
succeeded = [{ status = 200, json = { "/status" = "succeeded" } }]
failed = [{ status = 200, json = { "/status" = "declined" } }]
pending = [{ status = 200, json = { "/status" = "processing" } }]
absent = [{ status = 404, json = { "/error/code" = "resource_missing" } }]"#;
    Policy::empty()
        .gateway("trusted = [\"127.0.0.1/32\"]")
        .dependency("payments", payments, "")
        .route("pay.effect", route)
}

/// Nothing is wrong with it but that this version has no such class.
#[test]
fn the_policy_of_the_kill_loop_is_refused_for_its_class_alone() {
    let folder = folder();
    let policy = policy("127.0.0.1:9".parse().unwrap());
    std::fs::write(folder.join("policy.toml"), policy.text()).unwrap();
    let (status, told, errors) = output(&["check", "--format", "json", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(1), "{told} {errors}");
    let found: serde_json::Value = serde_json::from_str(&told).unwrap();
    let findings = found.as_array().expect("findings").iter();
    let wrong: Vec<&str> = findings
        .filter(|finding| finding["severity"] == "error")
        .map(|finding| finding["message"].as_str().unwrap())
        .collect();
    assert_eq!(wrong, ["the class `effect`: not available in this version"], "{found:#}");
    std::fs::remove_dir_all(&folder).unwrap();
}
