//! A gateway that only passes payments on: the kill loop does its work, and the oracle finds what such a gateway does to
//! clients that ask again.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use backstop_lab::origin::Then;
use backstop_lab::payments::oracle::{LedgerEntry, Rule};
use backstop_lab::payments::{Fault, Payments, Which, read_effects};
use backstop_store::ledger::checkpoint::Checkpoint;

use crate::lives::{End, Plan, Subject, often, run as live};
use crate::support::gateway::folder;
use crate::support::{Policy, run};

struct PassedOn;

impl Subject for PassedOn {
    fn policy(&self, payments: SocketAddr) -> Policy {
        let route =
            "match = \"POST /payments\"\ndependency = \"payments\"\ndeadline = \"2s\"\nin_flight = 50";
        Policy::empty().dependency("payments", payments, "").route("pay.direct", route)
    }

    fn ledger(&self, _: &Path) -> Vec<LedgerEntry> {
        Vec::new()
    }
}

fn plan(ends: Vec<End>, is_stubborn: bool) -> Plan {
    Plan { ends, clients: 8, answers: 100, is_stubborn, life: Duration::from_secs(10), rest: Duration::ZERO }
}

/// Who asks only once is never told anything wrong, however often the gateway is killed. What is lost stays lost.
#[test]
fn clients_that_ask_once_are_told_the_truth_or_nothing() {
    run(async {
        let folder = folder();
        let payments = Payments::start_in(&folder).await.unwrap();
        let report = live(&PassedOn, &payments, &plan(vec![End::Random; often("BACKSTOP_KILLS", 3)], false))
            .await
            .unwrap();
        assert_eq!(report.kills, often("BACKSTOP_KILLS", 3));
        assert!(
            report.cut >= often("BACKSTOP_KILLS", 3) as u64,
            "each kill met somebody: {} of {}",
            report.cut,
            often("BACKSTOP_KILLS", 3)
        );
        assert_eq!(report.broken(), BTreeSet::from([Rule::Unwritten]), "{report:#?}");
        // What is on the service's disk is what was made, once for each key.
        let effects = read_effects(&folder.join("effects.jsonl")).unwrap();
        assert_eq!(effects, payments.effects());
        let counts = payments.counts();
        assert!(effects.len() >= 20 && counts.effects.values().all(|count| *count == 1), "{counts:#?}");
        drop(payments);
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

/// Each life begins with payments whose answer is lost after the effect. Clients that ask again pay twice, and the oracle says
/// so for each.
#[test]
fn clients_that_ask_again_pay_twice_and_it_is_found() {
    run(async {
        let payments = Payments::start().await.unwrap();
        for number in [1, 2, 3] {
            payments.fail(Which::key(&format!("k-{number}")).times(1), Fault::answer_lost(Then::Reset));
        }
        let report = live(&PassedOn, &payments, &plan(vec![End::Random; often("BACKSTOP_KILLS", 3)], true))
            .await
            .unwrap();
        assert_eq!(report.unknown, 0, "{report:#?}");
        let twice: BTreeSet<&str> = report
            .violations
            .iter()
            .filter(|violation| violation.rule == Rule::EffectTwice)
            .map(|violation| violation.key.as_str())
            .collect();
        assert!(BTreeSet::from(["k-1", "k-2", "k-3"]).is_subset(&twice), "{report:#?}");
        // Every fourth payment that is known is asked for once more, which this gateway takes for another one.
        assert!(twice.contains("k-0"), "{report:#?}");
        assert!(report.broken().contains(&Rule::ReplayDiffers), "{report:#?}");
        assert!(!report.broken().contains(&Rule::SuccessWithoutEffect), "{report:#?}");
    });
}

/// A life that should end at a moment which is not passed is no success.
#[test]
fn a_moment_that_is_never_passed_is_told() {
    run(async {
        let payments = Payments::start().await.unwrap();
        let mut plan = plan(vec![End::At(Checkpoint::IntentCommitted, 2)], false);
        plan.life = Duration::from_millis(200);
        let error = live(&PassedOn, &payments, &plan).await.unwrap_err();
        assert_eq!(error, "life 0: within 200ms it never passed intent_committed:2");
    });
}
