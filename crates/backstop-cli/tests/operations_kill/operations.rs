//! Payments as operations, through the kill loop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use backstop_lab::origin::Then;
use backstop_lab::payments::oracle::{LedgerEntry, Rule};
use backstop_lab::payments::{Fault, Payments, When, Which};

use crate::ledger::entries;
use crate::lives::{End, Plan, Subject, kills, run as live};
use crate::support::gateway::{folder, output};
use crate::support::{Policy, run};

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

struct Written;

impl Subject for Written {
    fn policy(&self, payments: SocketAddr) -> Policy {
        policy(payments)
    }

    fn ledger(&self, folder: &Path) -> Vec<LedgerEntry> {
        entries(&folder.join("backstop-data"))
    }
}

/// In the last life nobody waits for what is unknown: no status is asked for yet.
fn plan(ends: Vec<End>) -> Plan {
    let (life, rest) = (Duration::from_secs(20), Duration::ZERO);
    Plan { ends, clients: 8, answers: 60, is_stubborn: true, life, rest }
}

#[test]
fn the_policy_of_the_kill_loop_is_accepted() {
    let folder = folder();
    let policy = policy("127.0.0.1:9".parse().unwrap());
    std::fs::write(folder.join("policy.toml"), policy.text()).unwrap();
    let (status, told, errors) = output(&["check", "policy.toml"], &folder);
    assert!(status.success(), "{told} {errors}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Whatever is sent happens once at most, and whoever is told of it is told the truth. What is unknown stays so here.
#[test]
fn killed_at_random_nothing_happens_twice_and_nobody_is_told_otherwise() {
    run(async {
        let payments = Payments::start().await.unwrap();
        // Some answers are lost, and some payments come late, so that a second forward would pay twice.
        for (number, fault) in [
            (3, Fault::answer_lost(Then::Reset)),
            (5, Fault::answer_lost(Then::Close)),
            (7, Fault::lost_before_effect(Then::Close)),
            (9, Fault::status_after_effect(500)),
            (11, Fault::truncated(Then::Reset)),
            (13, Fault::html_page()),
            (15, Fault::lost_and_late(Then::Reset, When::After(Duration::from_millis(20)))),
            (17, Fault::processing(When::After(Duration::from_millis(20)))),
        ] {
            payments.fail(Which::key(&format!("k-{number}")), fault);
        }
        let report = live(&Written, &payments, &plan(vec![End::Random; kills(3)])).await.unwrap();
        assert_eq!(report.kills, kills(3));
        assert!(report.cut >= kills(3) as u64, "each kill met somebody: {} of {}", report.cut, kills(3));
        assert_eq!(report.broken(), BTreeSet::from([Rule::NotEnded]), "{report:#?}");
        assert!(payments.counts().effects_in_all() >= 20);
    });
}
