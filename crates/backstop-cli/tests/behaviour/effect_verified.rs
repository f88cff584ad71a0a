//! A payment whose answer is lost, from its client's first 502 to the truth.

use std::time::Duration;

use backstop_lab::client::Response;
use backstop_lab::origin::{Gate, Then};
use backstop_lab::payments::{Fault, Payments, StatusFault, When, Which};

use crate::support::bank::{ANA, PAY, keyed, member, problem, until, verified};
use crate::support::{BOUND, Gateway, run};

struct Shop {
    payments: Payments,
    gateway: Gateway,
}

impl Shop {
    async fn open(more: &str) -> Self {
        let payments = Payments::start().await.unwrap();
        let gateway = Gateway::start(&verified(payments.addr(), more));
        Self { payments, gateway }
    }

    async fn pay_with(&self, key: &str, more: &[(&str, &str)], content: &[u8]) -> Response {
        let fields: Vec<_> = keyed(key).iter().chain(more).copied().collect();
        self.gateway.request("POST", PAY, &fields, content).await
    }

    async fn pay(&self, key: &str) -> Response {
        self.pay_with(key, &[], br#"{"amount":10}"#).await
    }

    async fn until(&self, address: &str, state: &str) -> Response {
        until(&self.gateway, address, state).await
    }
}

fn address(answer: &Response) -> String {
    answer.header("location").expect("the operation's address").to_owned()
}

/// The whole way: the answer is lost after the payment happened; the client hears that nobody knows; its status says what
/// happened; and whoever sends the key again hears that, and pays nothing.
#[test]
fn a_lost_answer_is_found_again_and_nothing_is_paid_twice() {
    run(async {
        let shop = Shop::open("").await;
        shop.payments.fail(Which::key("k-1"), Fault::answer_lost(Then::Reset));
        let lost = shop.pay("k-1").await;
        assert_eq!(
            (lost.status(), &*problem(&lost), &*member(&lost, "retry")),
            (502, "outcome-unknown", "same_key")
        );
        assert_eq!((&*member(&lost, "state"), &*member(&lost, "tracked")), ("in_verification", "true"));
        let seconds: u64 = lost.header("retry-after").unwrap().parse().unwrap();
        assert_eq!(seconds, 1, "a moment that is known");
        let done = shop.until(&address(&lost), "succeeded").await;
        assert_eq!((&*member(&done, "why"), done.header("backstop-outcome")), ("status", Some("reconciled")));
        for _ in 0..2 {
            let again = shop.pay("k-1").await;
            assert_eq!((again.status(), again.header("backstop-outcome")), (200, Some("reconciled")));
            assert_eq!((&*member(&again, "state"), &*member(&again, "retry")), ("succeeded", "never"));
        }
        assert_eq!((shop.payments.effects_of("k-1"), shop.payments.forwards_of("k-1")), (1, 1));
        assert!(shop.payments.status_queries_of("k-1") >= 1);
        let counts = shop.payments.counts();
        assert_eq!(counts.methods(), ["GET", "POST"]);
    });
}

/// 202 only to a client that understands it, by its own word or by the route's.
#[test]
fn an_unknown_outcome_is_202_only_where_that_is_understood() {
    run(async {
        let asks = ("Prefer", "wait=5, Respond-Async");
        for (more, prefer, expected) in
            [("", None, 502), ("", Some(asks), 202), ("unknown_answer = \"accepted\"", None, 202)]
        {
            let shop = Shop::open(more).await;
            shop.payments.fail(Which::all(), Fault::answer_lost(Then::Close));
            // Until a gate opens its status is not known: what is told is told of an unknown one.
            shop.payments.fail_status(Which::all(), StatusFault::Status(500));
            let fields: Vec<_> = prefer.into_iter().collect();
            let answer = shop.pay_with("k-1", &fields, br#"{"amount":10}"#).await;
            assert_eq!(answer.status(), expected, "{more} {prefer:?}");
            assert_eq!(member(&answer, "state"), "in_verification");
            assert!(answer.header("location").is_some() && answer.header("retry-after").is_some());
            let applied = answer.header("preference-applied");
            assert_eq!(applied, prefer.map(|_| "respond-async"));
            let again = shop.pay_with("k-1", &fields, br#"{"amount":10}"#).await;
            assert_eq!((again.status(), &*problem(&again)), (409, "outcome-unknown"), "again is a conflict");
            assert_eq!(shop.payments.effects_of("k-1"), 1);
        }
    });
}

/// <https://github.com/beam-community/stripity-stripe/issues/564>: the service is slower than the deadline. Its client hears that it
/// is in verification, then a conflict that says so, never "failed" and never "paid", and in the end that it is paid; also over a
/// kill of the gateway.
#[test]
fn a_key_that_is_in_use_is_no_failed_payment() {
    run(async {
        let mut shop = Shop::open("").await;
        let gate = Gate::new();
        shop.payments.fail(Which::key("op-1"), Fault::late(When::Opened(gate.clone())).seen_as_processing());
        let first = shop.pay("op-1").await;
        assert_eq!((first.status(), &*member(&first, "state")), (504, "in_verification"));
        let second = shop.pay("op-1").await;
        assert_eq!((second.status(), &*problem(&second)), (409, "outcome-unknown"));
        let other = shop.pay_with("op-1", &[], br#"{"amount":11}"#).await;
        assert_eq!((other.status(), &*problem(&other)), (422, "key-reused"));
        let policy = verified(shop.payments.addr(), "");
        shop.gateway = shop.gateway.restart_after_kill(&policy);
        let third = shop.pay("op-1").await;
        assert_eq!((third.status(), &*problem(&third)), (409, "outcome-unknown"), "it survives a kill");
        gate.open();
        shop.until(&address(&first), "succeeded").await;
        let last = shop.pay("op-1").await;
        assert_eq!((last.status(), &*member(&last, "state")), (200, "succeeded"));
        assert_eq!((shop.payments.effects_of("op-1"), shop.payments.forwards_of("op-1")), (1, 1));
    });
}

/// The variant of the same report: the service forgot the payment, and its absence proves nothing. A person is called when the time
/// is over, and the same key is a conflict until that person has decided.
#[test]
fn an_absence_ends_with_a_person() {
    run(async {
        let shop = Shop::open("").await;
        shop.payments.fail(Which::key("op-1"), Fault::lost_before_effect(Then::Reset));
        let first = shop.pay("op-1").await;
        assert_eq!(first.status(), 502);
        let mut hand = shop.gateway.hand();
        hand.advance(Duration::from_secs(12 * 3600));
        let found = shop.until(&address(&first), "needs_attention").await;
        assert!(["absent", "deadline"].contains(&&*member(&found, "why")), "{}", found.text());
        let again = shop.pay("op-1").await;
        assert_eq!(
            (again.status(), &*problem(&again), &*member(&again, "retry")),
            (409, "needs-attention", "same_key")
        );
        let id = address(&first).rsplit('/').next().unwrap().to_owned();
        // The line follows the state, which is durable first.
        let called = async {
            while !shop.gateway.log().iter().any(|line| line.contains(&id) && line.contains("ERROR")) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, called).await.expect("a line in the log");
        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_operations", &["state=\"attention\""]), 1.0);
        // A person decides, on the operators' port.
        let admin = shop.gateway.admin.to_string();
        let (said, _, errors) = crate::support::gateway::output(
            &[
                "operations",
                "resolve",
                &id,
                "--outcome",
                "not-executed",
                "--reason",
                "asked the bank",
                "--by",
                "ana",
                "--admin",
                &admin,
            ],
            shop.gateway.folder(),
        );
        assert!(said.success(), "{errors}");
        let decided = shop.pay("op-1").await;
        assert_eq!(
            (decided.status(), &*problem(&decided), &*member(&decided, "retry")),
            (409, "not-executed", "same_key")
        );
        assert_eq!(shop.payments.forwards_of("op-1"), 1);
    });
}

/// What a status answer must repeat is not what was sent: no verdict, a person.
#[test]
fn another_amount_under_the_same_key_is_no_proof() {
    run(async {
        let shop = Shop::open("").await;
        shop.payments.fail(Which::key("k-1"), Fault::answer_lost(Then::Reset));
        shop.payments.fail_status(Which::all(), StatusFault::OtherAmount);
        let lost = shop.pay("k-1").await;
        let found = shop.until(&address(&lost), "needs_attention").await;
        assert_eq!(member(&found, "why"), "mismatch");
    });
}

/// Said on a status endpoint that fails in every way: nothing is decided by it, and the truth comes once it is well.
#[test]
fn a_status_that_cannot_be_had_decides_nothing() {
    run(async {
        for fault in [
            StatusFault::Status(500),
            StatusFault::Status(401),
            StatusFault::Status(403),
            StatusFault::HtmlPage,
            StatusFault::BareNotFound,
        ] {
            let shop = Shop::open("").await;
            shop.payments.fail(Which::key("k-1"), Fault::answer_lost(Then::Reset));
            shop.payments.fail_status(Which::all(), fault.clone());
            let lost = shop.pay("k-1").await;
            let asked = shop.payments.wait_until(BOUND, |counts| counts.status_queries_in_all() >= 3).await;
            asked.unwrap();
            let look = shop.gateway.get(&address(&lost), &ANA).await;
            assert_eq!(member(&look, "state"), "in_verification", "{fault:?}");
            shop.payments.heal();
            shop.until(&address(&lost), "succeeded").await;
            assert_eq!(shop.payments.effects_of("k-1"), 1);
        }
    });
}

/// The full rule of absence, and a service that executes the payment long after it said that there is none: what was told is not
/// taken back in silence, a person is called.
#[test]
fn a_payment_that_comes_after_it_was_not_executed_calls_a_person() {
    run(async {
        let rule = r#"absence = { settle = "2s", confirmations = 2, spacing = "1s", verdict = "not_executed", calibrate = { sample = "100%", must_see_within = "2s" } }"#;
        let shop = Shop::open(rule).await;
        let mut hand = shop.gateway.hand();
        let gate = Gate::new();
        let fault = Fault::lost_and_late(Then::Reset, When::Opened(gate.clone()));
        shop.payments.fail(Which::key("late"), fault);
        let lost = shop.pay("late").await;
        assert_eq!(lost.status(), 502);
        // Others are known meanwhile: its credentials are good, and it shows what it did.
        let mut number = 0;
        let mut pass = async |state: &str, step: Duration| {
            for _ in 0..400 {
                number += 1;
                assert_eq!(shop.pay(&format!("k-{number}")).await.status(), 201);
                for _ in 0..10 {
                    let look = shop.gateway.get(&address(&lost), &ANA).await;
                    if member(&look, "state") == state {
                        return look;
                    }
                }
                hand.advance(step);
            }
            panic!("never {state}: {:#?}", shop.gateway.log());
        };
        let decided = pass("not_executed", Duration::from_secs(1)).await;
        assert_eq!((&*member(&decided, "why"), &*member(&decided, "retry")), ("absent", "same_key"));
        let again = shop.pay("late").await;
        assert_eq!((again.status(), &*problem(&again)), (409, "not-executed"));
        gate.open();
        shop.payments.wait_until(BOUND, |counts| counts.effects.get("late") == Some(&1)).await.unwrap();
        let found = pass("needs_attention", Duration::from_secs(60)).await;
        assert_eq!(member(&found, "why"), "contradicted");
        let again = shop.pay("late").await;
        assert_eq!((again.status(), &*problem(&again)), (409, "needs-attention"));
        assert_eq!(shop.payments.forwards_of("late"), 1);
    });
}
