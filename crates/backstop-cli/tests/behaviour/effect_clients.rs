//! Clients of operations that leave, callers that are told apart, and processes that stand still.

use std::time::Duration;

use backstop_lab::client::{Connection, RequestBytes};
use backstop_lab::origin::{Answer, Behaviour, Gate, Origin};
use backstop_store::ledger::checkpoint::Checkpoint;

use crate::support::bank::{Bank, PAY, TEN, keyed, member, paid, pay_at, policy, problem};
use crate::support::gateway::output;
use crate::support::guarded::{AUTHORIZER, bearers};
use crate::support::{BOUND, Gateway, Metrics, Policy, run};

fn request(bank: &Bank, key: &str) -> RequestBytes {
    RequestBytes::new(&bank.gateway.host, "POST", PAY, &keyed(key), TEN)
}

/// In the middle of its request: nothing was begun. <https://github.com/neondatabase/neon/issues/3478>
#[test]
fn a_client_that_leaves_before_its_request_is_whole_begins_nothing() {
    run(async {
        let bank = Bank::open().await;
        let whole = request(&bank, "k-1").0;
        let mut leaving = Connection::open(bank.gateway.addr).await.unwrap();
        leaving.send(&whole[..whole.len() - 5]).await.unwrap();
        bank.gateway.metrics_until(|metrics| metrics.sum("backstop_client_connections", &[]) == 1.0).await;
        leaving.reset().unwrap();
        // The next request is behind it on no connection: wait until the gateway has seen it go.
        bank.gateway.metrics_until(|metrics| metrics.sum("backstop_client_connections", &[]) == 0.0).await;
        assert_eq!(bank.received(), 0);
        assert_eq!(bank.pay("k-1").await.status(), 201);
        assert_eq!(bank.received(), 1);
    });
}

/// After its request is whole, at any moment: what the service did is recorded, and told to whoever comes with the same key.
/// <https://github.com/traefik/traefik/issues/2932>
#[test]
fn a_client_that_leaves_does_not_undo_its_operation() {
    run(async {
        let bank = Bank::open().await;
        let gate = Gate::new();
        bank.says(paid().gate(&gate));
        let mut leaving = Connection::open(bank.gateway.addr).await.unwrap();
        leaving.send(&request(&bank, "op-7").0).await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        leaving.reset().unwrap();
        let early = bank.pay("op-7").await;
        assert_eq!((early.status(), &*problem(&early)), (409, "operation-in-progress"));
        gate.open();
        let address = early.header("location").unwrap().to_owned();
        let done = bank.until(&address, "succeeded").await;
        assert_eq!(member(&done, "answer_status"), "201");
        let again = bank.pay("op-7").await;
        assert_eq!((again.status(), again.header("idempotent-replayed")), (201, Some("true")));
        assert_eq!(bank.received(), 1);
        let left = bank.gateway.metrics_until(|metrics| {
            metrics.sum("backstop_requests_total", &["outcome=\"abandoned\""]) == 1.0
        });
        assert_eq!(
            left.await.sum("backstop_dependency_failures_total", &[]),
            0.0,
            "no failure of the service's"
        );
    });
}

/// <https://github.com/paveg/hono-idempotency/issues/126>: one caller's operation is not there for another.
#[test]
fn another_callers_operation_is_not_there() {
    run(async {
        let bank = Bank::open().await;
        bank.says(Behaviour::close());
        let anas = bank.pay("k-1").await;
        let address = anas.header("location").unwrap();
        bank.says(paid());
        let bob = [("Content-Type", "application/json"), ("X-Tenant", "bob"), ("Idempotency-Key", "k-1")];
        assert_eq!(bank.gateway.request("POST", PAY, &bob, TEN).await.status(), 201, "his own of that key");
        assert_eq!(bank.received(), 2);
        let (others, unknown) = (
            bank.gateway.get(address, &bob).await,
            bank.look("/.backstop/operations/00000000000000000000000000000000").await,
        );
        for answer in [&others, &unknown] {
            assert_eq!((answer.status(), &*problem(answer)), (404, "no-such-operation"));
        }
        let text = others.text();
        assert!(!text.contains("reset") && !text.contains("unknown"), "{text}");
        assert_eq!(bank.gateway.request("POST", address, &bob, b"").await.status(), 405);
        assert_eq!(bank.look("/.backstop/operations/xyz").await.status(), 404);
        assert_eq!(bank.look(address).await.status(), 200);
    });
}

/// Whoever is not trusted cannot say whose request it is.
#[test]
fn a_caller_is_named_by_who_is_trusted_alone() {
    run(async {
        let bank = Bank::of(|origin| policy(origin, "").gateway("trusted = [\"192.0.2.0/24\"]")).await;
        let answer = bank.pay("k-1").await;
        assert_eq!((answer.status(), &*problem(&answer), bank.received()), (400, "no-caller", 0));
    });
}

fn behind_an_authorizer(bank: &Origin, sessions: &Origin, more: &str) -> Policy {
    policy(bank.addr(), &format!("scope = \"principal\"\nauthorizer = \"sessions\"\n{more}"))
        .table("authorizer.sessions", &format!("url = \"http://{}/check\"\n{AUTHORIZER}", sessions.addr()))
}

/// Whoever refreshes a token is the same caller; whoever lost the right hears nothing; and while nobody can say who may,
/// nothing is done and nothing shown. <https://github.com/envoyproxy/envoy/issues/6119>
#[test]
fn who_asks_is_found_out_anew_each_time() {
    run(async {
        let (bank, sessions) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        bank.default(Behaviour::close());
        sessions.default(bearers());
        let gateway = Gateway::start(&behind_an_authorizer(&bank, &sessions, ""));
        let send = |token: &'static str, key: &'static str| {
            let (gateway, json) = (&gateway, ("Content-Type", "application/json"));
            async move {
                let fields = [json, ("Authorization", token), ("Idempotency-Key", key), ("X-User", "root")];
                gateway.request("POST", PAY, &fields, TEN).await
            }
        };
        let lost = send("Bearer ana", "k-1").await;
        assert_eq!(lost.status(), 502);
        let address = lost.header("location").unwrap().to_owned();
        let look = |token: &'static str| {
            let (gateway, address) = (&gateway, address.clone());
            async move { gateway.get(&address, &[("Authorization", token)]).await }
        };
        // Another token of the same principal.
        sessions.default(Answer::new(204).header("X-Allowed", "yes").header("X-User", "ana"));
        assert_eq!(send("Bearer refreshed", "k-1").await.status(), 409);
        assert_eq!(look("Bearer refreshed").await.status(), 200);
        sessions.default(bearers());
        assert_eq!(look("Bearer bob").await.status(), 404);
        let denied = look("Basic eve").await;
        assert_eq!(
            (denied.status(), denied.header("www-authenticate")),
            (401, Some("Bearer realm=\"shop\""))
        );
        let faults: [Behaviour; 4] = [
            Answer::new(500).into(),
            Answer::new(404).into(),
            Behaviour::html_200(),
            Answer::new(302).into(),
        ];
        for fault in faults {
            sessions.default(fault);
            assert_eq!(look("Bearer ana").await.status(), 503);
            assert_eq!(send("Bearer ana", "k-1").await.status(), 503);
            assert_eq!(send("Bearer ana", "k-9").await.status(), 503);
        }
        assert_eq!(bank.count_of("POST", PAY), 1, "one effect, and none while nobody can say who may");
    });
}

/// Tenants with one account at the service: the keys that it gets are apart.
#[test]
fn a_derived_key_is_the_same_for_one_operation_and_no_other() {
    run(async {
        let bank = Bank::with("send = { header = \"x-operation\", as = \"derived\" }").await;
        assert_eq!(bank.pay("k-1").await.status(), 201);
        let bob = [("Content-Type", "application/json"), ("X-Tenant", "bob"), ("Idempotency-Key", "k-1")];
        assert_eq!(bank.gateway.request("POST", PAY, &bob, TEN).await.status(), 201);
        let told: Vec<String> = bank
            .origin
            .requests()
            .iter()
            .map(|it| it.header("x-operation").unwrap_or("none").to_owned())
            .collect();
        assert_eq!(told.len(), 2);
        assert_ne!(told[0], told[1]);
        assert!(told.iter().all(|key| key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit())));
        // Byte for byte where nothing else is written, also as a string of Structured Fields.
        let plain = Bank::open().await;
        plain.pay("\"k-1\"").await;
        assert_eq!(plain.origin.requests()[0].header("idempotency-key"), Some("\"k-1\""));
    });
}

/// What happened to the operation at an address, as an operator is shown it, without the moments.
fn history(gateway: &Gateway, address: &str) -> Vec<String> {
    let (id, admin) = (address.rsplit('/').next().unwrap(), gateway.admin.to_string());
    let (_, shown, errors) = output(&["operations", "show", id, "--admin", &admin], gateway.folder());
    let events = shown.lines().filter_map(|line| line.split_once("Z  "));
    let events: Vec<String> = events.map(|(_, what)| what.to_owned()).collect();
    assert!(!events.is_empty(), "{shown}{errors}");
    events
}

/// Frozen with an answer on the way, past its deadline of 2 s, and past its lease, which ends 5 s after that. Which comes first then
/// is certain: the worker goes on once the clock has moved and, where the lease is over, the ledger has noticed.
#[test]
fn a_process_that_stood_still_past_its_lease_tells_the_truth_afterwards() {
    run(async {
        for (stood_s, why, actor) in [(6, "timeout", "reporter"), (60, "lease_ended", "time")] {
            let mut bank = Bank::open().await;
            let gate = Gate::new();
            bank.says(paid().gate(&gate));
            bank.hand.hold(Checkpoint::ForwardSent);
            let mut client = Connection::open(bank.gateway.addr).await.unwrap();
            client.send(&request(&bank, "k-1").0).await.unwrap();
            bank.hand.wait_for_held(Checkpoint::ForwardSent);
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            bank.gateway.signal("STOP");
            gate.open();
            bank.origin.wait_until(BOUND, |stats| stats.in_flight == 0).await.unwrap();
            bank.gateway.signal("CONT");
            bank.hand.pass(Duration::from_secs(stood_s));
            if why == "lease_ended" {
                let unknown =
                    |metrics: &Metrics| metrics.sum("backstop_operations", &["state=\"unknown\""]) == 1.0;
                bank.gateway.metrics_until(unknown).await;
            }
            bank.hand.release(Checkpoint::ForwardSent);
            let answer = client.read_response_to("POST").await.unwrap();
            assert_eq!((answer.status(), &*problem(&answer)), (504, "outcome-unknown"));
            // Its time is over: nobody waits for the disk any more.
            assert_eq!(answer.header("backstop-ledger"), Some("not-durable"));
            bank.says(paid());
            let again = bank.pay("k-1").await;
            assert_eq!((again.status(), &*problem(&again)), (409, "outcome-unknown"));
            assert_eq!(&*member(&again, "why"), why);
            assert_eq!(again.header("location"), answer.header("location"));
            let unknown = format!("dispatching -> unknown ({why}), by {actor}");
            assert_eq!(history(&bank.gateway, answer.header("location").unwrap()), ["began", &unknown]);
            assert_eq!(bank.received(), 1);
        }
    });
}

/// A stop waits for what was forwarded, also where its client has left.
#[test]
fn a_graceful_stop_waits_for_an_operation_whose_client_has_left() {
    run(async {
        let bank = Bank::open().await;
        let gate = Gate::new();
        bank.says(paid().gate(&gate));
        let mut leaving = Connection::open(bank.gateway.addr).await.unwrap();
        leaving.send(&request(&bank, "k-1").0).await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        leaving.reset().unwrap();
        bank.gateway.metrics_until(|metrics| metrics.sum("backstop_client_connections", &[]) == 0.0).await;
        bank.gateway.signal("TERM");
        let Bank { origin, mut gateway, .. } = bank;
        let stopping = |gateway: &Gateway| gateway.log().iter().any(|line| line.contains("stopping"));
        while !stopping(&gateway) {
            tokio::task::yield_now().await;
        }
        gate.open();
        assert!(gateway.wait().success(), "{:#?}", gateway.log());
        let gateway = Gateway::start_in(&gateway.into_folder(), &policy(origin.addr(), ""));
        let again = pay_at(&gateway, "k-1").await;
        assert_eq!((again.status(), again.header("idempotent-replayed")), (201, Some("true")));
        assert_eq!(origin.count_of("POST", PAY), 1);
    });
}
