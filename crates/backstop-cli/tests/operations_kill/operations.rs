//! Payments as operations, through the kill loop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use backstop_lab::origin::Then;
use backstop_lab::payments::oracle::LedgerEntry;
use backstop_lab::payments::{Fault, Payments, When, Which};

use crate::ledger::entries;
use crate::lives::{End, Plan, Report, Subject, often, run as live};
use backstop_store::ledger::checkpoint::Checkpoint;

use crate::support::bank::{pay_at, verified};
use crate::support::gateway::{folder, output};
use crate::support::{Gateway, Policy, run};

/// `POST /payments` as an operation of the payment service, its status asked for often and not for long: eight seconds after
/// an operation began it is a matter for a person if it is still unknown.
pub fn policy(payments: SocketAddr) -> Policy {
    verified(
        payments,
        "deadline = \"1s\"\nverify = { first = \"20ms\", factor = 2, cap = \"200ms\", deadline = \"8s\" }",
    )
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

/// In the last life what is unknown ends: it is asked for, and after eight seconds it is a matter for a person.
fn plan(ends: Vec<End>) -> Plan {
    let (life, rest) = (Duration::from_secs(20), Duration::from_secs(20));
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

/// Some answers are lost, and some payments come late, so that a second forward would pay twice. The keys of those that are paid
/// and whose answer never says so.
fn trouble(payments: &Payments, keys: std::ops::Range<u64>) -> BTreeSet<String> {
    let faults = [
        Fault::lost_before_effect(Then::Close),
        Fault::answer_lost(Then::Reset),
        Fault::answer_lost(Then::Close),
        Fault::status_after_effect(500),
        Fault::truncated(Then::Reset),
        Fault::html_page(),
        Fault::lost_and_late(Then::Reset, When::After(Duration::from_millis(20))),
        Fault::processing(When::After(Duration::from_millis(20))),
    ];
    let mut lost = BTreeSet::new();
    for (number, (which, fault)) in keys.step_by(2).zip(faults.iter().enumerate().cycle()) {
        let key = format!("k-{number}");
        payments.fail(Which::key(&key), fault.clone());
        if which > 0 {
            lost.insert(key);
        }
    }
    lost
}

/// Of the payments whose answer was lost so many at least were made. All of them were found out by their status, where the loop is no
/// longer than usually. Where it is, the eight seconds of some are over while the gateway is killed again and again: those are a
/// person's, and half at least were found out.
fn are_found_out(report: &Report, lost: &BTreeSet<String>, payments: &Payments, least: usize, is_long: bool) {
    let found = report.ended("succeeded", "status");
    let people: BTreeSet<&str> = ["deadline", "absent", "pending"]
        .into_iter()
        .flat_map(|why| report.ended("attention", why))
        .collect();
    let made: BTreeSet<&str> =
        lost.iter().map(String::as_str).filter(|key| payments.effects_of(key) == 1).collect();
    let may_be_left = |key: &&&str| is_long && people.contains(**key);
    let left: Vec<&&str> = made.difference(&found).filter(|key| !may_be_left(key)).collect();
    assert_eq!(left, [&""; 0], "{report:#?}");
    let known = made.intersection(&found).count();
    assert!(2 * known >= made.len(), "{known} of {}", made.len());
    assert!(made.len() >= least, "{} were made", made.len());
}

/// Whatever is sent happens once at most, whoever is told of it is told the truth, and what is unknown is found out or is a
/// matter for a person in the end.
#[test]
fn killed_at_random_nothing_happens_twice_and_nobody_is_told_otherwise() {
    run(async {
        let payments = Payments::start().await.unwrap();
        let lost = trouble(&payments, 3..200);
        let kills = often("BACKSTOP_RANDOM_KILLS", 40);
        let report = live(&Written, &payments, &plan(vec![End::Random; kills])).await.unwrap();
        assert_eq!(report.kills, kills);
        assert!(report.cut >= kills as u64, "each kill met somebody: {} of {kills}", report.cut);
        assert_eq!(report.broken(), BTreeSet::new(), "{report:#?}");
        assert!(payments.counts().effects_in_all() >= 20);
        are_found_out(&report, &lost, &payments, kills.min(40), kills > 40);
    });
}

/// The same, killed at each of the moments of an operation's life but the last.
#[test]
fn killed_at_every_moment_nothing_happens_twice_and_nobody_is_told_otherwise() {
    run(async {
        let payments = Payments::start().await.unwrap();
        let lost = trouble(&payments, 1..4000);
        let times = often("BACKSTOP_KILLS_AT_EACH", 3) as u64;
        let moments = Checkpoint::ALL.into_iter().filter(|point| *point != Checkpoint::RetentionWritten);
        let ends = moments.flat_map(|point| (0..times).map(move |time| End::At(point, 1 + time * 3)));
        let ends: Vec<End> = ends.collect();
        let count = ends.len();
        let report = live(&Written, &payments, &plan(ends)).await.unwrap();
        assert_eq!((report.kills, count as u64), (count, 15 * times));
        println!("{} of {count} kills before it listened, {} cut", report.unheard, report.cut);
        let heard = (count - report.unheard) as u64;
        assert!(report.cut >= heard, "each kill met somebody: {} of {heard}", report.cut);
        assert_eq!(report.broken(), BTreeSet::new(), "{report:#?}");
        assert!(payments.counts().effects_in_all() >= 20);
        are_found_out(&report, &lost, &payments, count, times > 3);
    });
}

/// The last moment: in the middle of forgetting, which needs a day and a date that may be believed.
#[test]
fn killed_while_it_forgets_it_forgets_no_outcome() {
    run(async {
        for time in 0..often("BACKSTOP_KILLS_AT_EACH", 3) {
            let payments = Payments::start().await.unwrap();
            let (folder, policy) = (folder(), policy(payments.addr()));
            let mut gateway = Gateway::start_to_be_killed(&folder, &policy, "retention_written:1").unwrap();
            let keys: Vec<String> = (0..=time).map(|number| format!("k-{number}")).collect();
            for key in &keys {
                assert_eq!(pay_at(&gateway, key).await.status(), 201);
            }
            let mut hand = gateway.hand();
            hand.say("sync on");
            hand.say("wall +90000000000000");
            assert_eq!(gateway.wait().signal(), Some(9));
            let gateway = Gateway::start_in(&gateway.into_folder(), &policy);
            for key in &keys {
                let again = pay_at(&gateway, key).await;
                assert_eq!((again.status(), again.header("idempotent-replayed")), (201, Some("true")));
            }
            assert_eq!(payments.counts().effects_in_all(), keys.len() as u64);
        }
    });
}
