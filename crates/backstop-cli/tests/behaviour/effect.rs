//! Operations with an effect: what their clients hear, whatever becomes of them, and that the service gets each of them once.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Behaviour, Gate};

use crate::support::bank::{ANA, Bank, PAY, TEN, member, paid, pay_at, policy, problem};
use crate::support::{BOUND, run};

/// What the service's own answer was, for whoever comes again, and across a crash: status, content and the fields that may be
/// kept (RFC 9110's `Location` and `Content-Type`), but no cookie.
#[test]
fn an_answer_comes_back_to_whoever_sends_the_same_operation_again() {
    run(async {
        let bank = Bank::open().await;
        let first = bank.pay("k-1").await;
        assert_eq!((first.status(), first.text()), (201, paid_text()));
        assert_eq!(first.header("set-cookie"), Some("session=secret"), "its first answer is as it came");
        let check = |again: &backstop_lab::client::Response| {
            assert_eq!((again.status(), again.text()), (201, paid_text()));
            assert_eq!(again.header("location"), Some("/payments/p-1"));
            assert_eq!(again.header("content-type"), Some("application/json"));
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            assert_eq!(again.header("set-cookie"), None);
            assert_eq!(again.header("cache-control"), Some("no-store"));
        };
        check(&bank.pay("k-1").await);
        check(&bank.pay_with("\"k-1\"", &[], br#"{ "to": "shop", "amount": 10 }"#).await);
        assert_eq!(bank.received(), 1);

        let Bank { origin, gateway, .. } = bank;
        let gateway = gateway.restart_after_kill(&policy(origin.addr(), ""));
        check(&pay_at(&gateway, "k-1").await);
        assert_eq!(origin.count_of("POST", PAY), 1);
    });
}

fn paid_text() -> String {
    "{\"status\": \"paid\", \"id\": \"p-1\"}".into()
}

/// Every answer that proves nothing, and every way to lose one: 502, or 504 after a timeout; the same operation again is 409; the
/// service got it once. <https://github.com/istio/istio/issues/13851>
#[test]
fn whatever_is_lost_is_unknown_and_never_sent_again() {
    run(async {
        let answers: [(&str, Behaviour, u16, &str); 14] = [
            ("500", Answer::new(500).into(), 502, "server_error"),
            ("503", Answer::new(503).header("Retry-After", "1").into(), 502, "server_error"),
            ("504", Answer::new(504).into(), 504, "server_error"),
            ("302", Answer::new(302).header("Location", "/elsewhere").into(), 502, "unmatched"),
            ("404", Answer::new(404).into(), 502, "unmatched"),
            ("409", Answer::new(409).into(), 502, "unmatched"),
            ("html", Behaviour::html_200(), 502, "unmatched"),
            ("failed", Answer::json("{\"status\":\"failed\"}").into(), 502, "unmatched"),
            ("202", Answer::new(202).into(), 502, "pending"),
            ("truncated", Behaviour::truncated(100, 10), 502, "incomplete"),
            ("half", Behaviour::half_head(201), 502, "reset"),
            ("garbage", Behaviour::garbage(), 502, "incomplete"),
            ("closed", Behaviour::close(), 502, "reset"),
            ("reset", Behaviour::reset(), 502, "reset"),
        ];
        let bank = Bank::open().await;
        for (number, (name, behaviour, status, why)) in (1..).zip(answers) {
            bank.says(behaviour);
            let first = bank.pay(name).await;
            assert_eq!((first.status(), &*problem(&first)), (status, "outcome-unknown"), "{name}");
            assert_eq!(member(&first, "retry"), "same_key", "{name}");
            assert_eq!((&*member(&first, "why"), &*member(&first, "tracked")), (why, "false"), "{name}");
            assert!(first.header("retry-after").is_none(), "nobody follows it");
            bank.says(paid());
            let again = bank.pay(name).await;
            assert_eq!((again.status(), &*problem(&again)), (409, "outcome-unknown"), "{name}");
            assert_eq!(again.header("location"), first.header("location"));
            assert_eq!(bank.received(), number, "{name}: sent once");
            let look = bank.look(first.header("location").unwrap()).await;
            assert_eq!((look.status(), &*member(&look, "state")), (200, "unknown"));
        }
    });
}

#[test]
fn an_answer_that_does_not_come_in_time_is_a_timeout_whose_outcome_is_unknown() {
    run(async {
        let bank = Bank::open().await;
        bank.says(Behaviour::hang());
        let mut hand = bank.gateway.hand();
        let late = async {
            bank.origin.wait_for(1, BOUND).await.unwrap();
            // Within what is kept of the 2 s for the record.
            hand.advance(Duration::from_millis(1950));
        };
        let (answer, ()) = futures_util::future::join(bank.pay("k-1"), late).await;
        assert_eq!((answer.status(), &*problem(&answer)), (504, "outcome-unknown"));
        assert_eq!(member(&answer, "why"), "timeout");
        assert_eq!(bank.pay("k-1").await.status(), 409);
        assert_eq!(bank.received(), 1);
    });
}

/// A refusal that the contract names is one, and comes back as it was.
#[test]
fn a_refusal_is_passed_on_and_repeated() {
    run(async {
        let bank = Bank::open().await;
        bank.says(Answer::new(402).header("Content-Type", "application/json").body("{\"why\":\"funds\"}"));
        let first = bank.pay("k-1").await;
        bank.says(paid());
        let again = bank.pay("k-1").await;
        for answer in [&first, &again] {
            assert_eq!((answer.status(), &*answer.text()), (402, "{\"why\":\"funds\"}"));
        }
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(bank.received(), 1);
    });
}

/// Only what certainly never left offers a new key. <https://github.com/istio/istio/issues/13851>
#[test]
fn what_was_certainly_never_sent_may_be_tried_anew() {
    run(async {
        let bank = Bank::open().await;
        bank.origin.refuse().await.unwrap();
        let first = bank.pay("k-1").await;
        assert_eq!((first.status(), &*problem(&first)), (503, "not-executed"));
        assert_eq!((&*member(&first, "retry"), &*member(&first, "why")), ("new_key", "connect"));
        bank.origin.accept_again().await.unwrap();
        let again = bank.pay("k-1").await;
        assert_eq!(
            (again.status(), &*problem(&again), &*member(&again, "retry")),
            (409, "not-executed", "new_key")
        );
        assert_eq!(bank.received(), 0);
        assert_eq!(bank.pay("k-2").await.status(), 201);
        assert_eq!(bank.received(), 1);
    });
}

/// The table of what is wrong with a request: nothing is sent, nothing is written down, and the right one goes through after it.
#[test]
fn a_request_that_is_no_operation_begins_none() {
    run(async {
        let bank = Bank::with("limits = { body = \"1 KiB\" }").await;
        let with = |fields: Vec<(&'static str, &'static str)>, content: &'static [u8]| {
            let bank = &bank;
            async move { bank.gateway.request("POST", PAY, &fields, content).await }
        };
        let json = ("Content-Type", "application/json");
        let (tenant, key) = (("X-Tenant", "ana"), ("Idempotency-Key", "k-1"));
        let long: &'static str = Box::leak("k".repeat(256).into_boxed_str());
        for (fields, content, status, expected) in [
            (vec![json, tenant], TEN, 400, "key-missing"),
            (vec![json, tenant, ("Idempotency-Key", "a b")], TEN, 400, "key-malformed"),
            (vec![json, tenant, ("Idempotency-Key", long)], TEN, 400, "key-malformed"),
            (vec![json, tenant, key, ("Idempotency-Key", "k-1")], TEN, 400, "key-malformed"),
            (vec![json, key], TEN, 400, "no-caller"),
            (vec![json, key, ("X-Tenant", "")], TEN, 400, "no-caller"),
            (vec![json, tenant, key], br#"{"amount":10,"amount":11}"#, 400, "content-ambiguous"),
            (vec![json, tenant, key], &[b' '; 1025], 413, "content-too-large"),
        ] {
            let answer = with(fields, content).await;
            assert_eq!((answer.status(), &*problem(&answer)), (status, expected));
        }
        assert_eq!((bank.received(), bank.pay("k-1").await.status()), (0, 201));
        let answer = bank.pay_with("k-1", &[], br#"{"amount":11,"to":"shop"}"#).await;
        assert_eq!(
            (answer.status(), &*problem(&answer), &*member(&answer, "retry")),
            (422, "key-reused", "never")
        );
        assert_eq!(bank.received(), 1);
        // Other text of the same number is another request: it may be another number to the service.
        assert_eq!(bank.pay_with("k-1", &[], br#"{"amount":10.0,"to":"shop"}"#).await.status(), 422);
    });
}

#[test]
fn the_same_key_at_once_has_one_effect() {
    run(async {
        let bank = Bank::open().await;
        let gate = Gate::new();
        bank.says(paid().gate(&gate));
        let all = futures_util::future::join_all((0..8).map(|_| bank.pay("k-1")));
        let opening = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            // The seven others have their answers while the first one is under way.
            bank.gateway
                .metrics_until(|metrics| {
                    metrics.sum("backstop_requests_total", &["reason=\"operation_in_progress\""]) == 7.0
                })
                .await;
            gate.open();
        };
        let (answers, ()) = futures_util::future::join(all, opening).await;
        let mut statuses: Vec<u16> = answers.iter().map(backstop_lab::client::Response::status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
        for answer in answers.iter().filter(|answer| answer.status() == 409) {
            assert_eq!((&*problem(answer), &*member(answer, "retry")), ("operation-in-progress", "same_key"));
            assert!(answer.header("location").is_some());
        }
        assert_eq!(bank.received(), 1);
    });
}

/// While the service cannot be asked, whoever comes again hears what is known, and nothing new is begun.
#[test]
fn an_open_breaker_leaves_the_ledger_to_answer() {
    run(async {
        let bank = Bank::open().await;
        assert_eq!(bank.pay("k-1").await.status(), 201);
        bank.says(Behaviour::close());
        assert_eq!(bank.pay("k-2").await.status(), 502);
        let Bank { origin, gateway, .. } = bank;
        let open = policy(origin.addr(), "").replace_table("dependency.bank", |text| {
            format!("{text}\nbreaker = {{ state = \"open\" }}\nprobe = {{ path = \"/health\" }}\n")
        });
        let gateway = gateway.restart(&open);
        let hand = gateway.hand();
        let bank = Bank { origin, gateway, hand };
        assert_eq!(bank.pay("k-1").await.status(), 201, "what is known is told");
        assert_eq!(bank.pay("k-2").await.status(), 409);
        let refused = bank.pay("k-3").await;
        assert_eq!((refused.status(), &*problem(&refused)), (503, "circuit-open"));
        assert_eq!(bank.received(), 2);
    });
}

/// An answer larger than what is kept: the outcome is kept, and its content goes to the first client alone.
#[test]
fn an_answer_too_large_to_keep_is_still_an_outcome() {
    run(async {
        let bank = Bank::open().await;
        for (key, bytes) in [("kept", 17 << 10), ("streamed", 2 << 20)] {
            let text = format!("{{\"status\":\"paid\",\"pad\":\"{}\"}}", "x".repeat(bytes));
            bank.says(Answer::new(201).header("Content-Type", "application/json").body(text.clone()));
            let (expected, again) = if key == "kept" { (201, 201) } else { (502, 409) };
            let first = bank.pay(key).await;
            assert_eq!(first.status(), expected, "{key}");
            let second = bank.pay(key).await;
            assert_eq!(second.status(), again, "{key}");
            if key == "kept" {
                assert_eq!(first.text(), text);
                assert_eq!(second.header("backstop-replay"), Some("status-only"));
                assert_eq!(second.text(), "");
            }
        }
        assert_eq!(bank.received(), 2);
    });
}

/// RFC 9110 section 15.3.5: an answer without content is whole with its head.
#[test]
fn a_success_without_content_is_passed_on() {
    run(async {
        let contract =
            "outcome = { succeeded = [{ status = [200, 201, 204] }], refused = [{ status = 402 }] }";
        let bank = Bank::with(contract).await;
        for (key, status) in [("k-204", 204), ("k-201", 201), ("k-402", 402)] {
            bank.says(Answer::new(status));
            let first = bank.pay(key).await;
            assert_eq!((first.status(), first.header("idempotent-replayed")), (status, None));
            let again = bank.pay(key).await;
            assert_eq!((again.status(), again.header("idempotent-replayed")), (status, Some("true")));
            assert_eq!(again.text(), "");
        }
        assert_eq!(bank.received(), 3);
    });
}

/// What a service that reads `Idempotency_Key` as `Idempotency-Key` would take for the key goes no further, and a coded answer,
/// which nobody could look into, is not asked for.
#[test]
fn what_looks_like_an_operations_field_goes_no_further() {
    run(async {
        let bank = Bank::with("send = { header = \"x-operation\", as = \"derived\" }").await;
        let disguised = [
            ("Idempotency_Key", "evil"),
            ("X_Tenant", "bob"),
            ("X_Operation", "evil"),
            ("Accept-Encoding", "gzip"),
        ];
        assert_eq!(bank.pay_with("k-1", &disguised, TEN).await.status(), 201);
        let sent = &bank.origin.requests()[0];
        for name in ["idempotency_key", "x_tenant", "x_operation"] {
            assert_eq!(sent.header(name), None, "{name}");
        }
        assert_eq!(sent.header("x-tenant"), Some("ana"));
        assert_eq!(sent.header("accept-encoding"), Some("identity"));
    });
}

/// The service sees the host, so a request to another one is another request.
#[test]
fn another_host_is_another_request() {
    run(async {
        let bank = Bank::open().await;
        assert_eq!(bank.pay_with("k-1", &[("Host", "a.example")], TEN).await.status(), 201);
        assert_eq!(bank.pay_with("k-1", &[("Host", "A.example:80")], TEN).await.status(), 201);
        assert_eq!(bank.pay_with("k-1", &[("Host", "b.example")], TEN).await.status(), 422);
        assert_eq!(bank.received(), 1);
    });
}

/// A page that may read the first answer may read what is told instead of one; else it would see an error of the network, and begin
/// anew.
#[test]
fn a_named_page_may_read_what_the_ledger_says() {
    run(async {
        let bank = Bank::with("cors = { origins = [\"https://shop.example\"] }").await;
        let page = [("Origin", "https://shop.example")];
        assert_eq!(bank.pay_with("k-1", &page, TEN).await.status(), 201);
        let replay = bank.pay_with("k-1", &page, TEN).await;
        let reused = bank.pay_with("k-1", &page, b"{}").await;
        let keyless = bank.pay_with("", &page, TEN).await;
        bank.says(Behaviour::close());
        let lost = bank.pay_with("k-2", &page, TEN).await;
        let fields: Vec<_> = ANA.iter().chain(&page).copied().collect();
        let look = bank.gateway.get(lost.header("location").unwrap(), &fields).await;
        for (answer, status) in [(&replay, 201), (&reused, 422), (&keyless, 400), (&lost, 502), (&look, 200)]
        {
            assert_eq!(answer.status(), status);
            let allowed = answer.header("access-control-allow-origin");
            assert_eq!(allowed, Some("https://shop.example"), "{status}");
        }
    });
}

/// A service that is one answer behind: every request on a connection gets what the first one on it was to get, as where a second
/// answer to that one came late. Each payment hears of itself alone, and no read is answered with a payment.
#[test]
fn a_second_answer_to_one_operation_is_nobody_elses() {
    run(async {
        let read = "match = \"GET /balance\"\ndependency = \"bank\"\ndeadline = \"2s\"\nin_flight = 60";
        let bank =
            Bank::of(|origin| policy(origin, "").gateway("threads = 1").route("balance.direct", read)).await;
        let first_on = Mutex::new(HashMap::new());
        bank.says(Behaviour::from_fn(move |request| {
            let asked = request.header("idempotency-key").unwrap_or("balance").to_owned();
            let first = first_on.lock().unwrap().entry(request.connection).or_insert(asked).clone();
            Answer::new(201)
                .header("Content-Type", "application/json")
                .body(format!(r#"{{"status":"paid","id":"{first}"}}"#))
        }));
        for round in 0..5 {
            let key = format!("k-{round}");
            let paid = bank.pay(&key).await;
            assert_eq!((paid.status(), member(&paid, "id")), (201, key));
            let balance = bank.gateway.get("/balance", &ANA).await;
            assert_eq!(member(&balance, "id"), "balance");
        }
        // The service is really like that: reads share a connection, and payments share none.
        let on = |method: &str| -> Vec<u64> {
            let requests = bank.origin.requests();
            requests.iter().filter(|one| one.method == method).map(|one| one.connection).collect()
        };
        let payments: HashSet<u64> = on("POST").into_iter().collect();
        assert_eq!(payments.len(), 5);
        assert!(on("GET").iter().all(|connection| *connection == on("GET")[0]));
    });
}

/// An upload of a quarter of a MiB that lacks its last byte.
async fn endless(bank: &Bank) -> Connection {
    let mut upload = Connection::open(bank.gateway.addr).await.unwrap();
    let head = format!(
        "POST {PAY} HTTP/1.1\r\nHost: x\r\nX-Tenant: eve\r\nIdempotency-Key: e\r\nContent-Length: 262144\r\n\r\n"
    );
    upload.send(head.as_bytes()).await.unwrap();
    upload.send(&vec![b' '; 262_143]).await.unwrap();
    upload
}

/// Requests that never end take memory of their own, half of 4 MiB: what they leave nothing of is refused before it is begun. Eight
/// of them leave 8 bytes, and a payment has 25.
#[test]
fn uploads_that_never_end_make_no_outcome_unknown() {
    run(async {
        let bank = Bank::of(|origin| policy(origin, "").gateway("buffer_memory = \"4 MiB\"")).await;
        let mut uploads = Vec::new();
        for _ in 0..7 {
            uploads.push(endless(&bank).await);
        }
        assert_eq!(bank.pay("k-0").await.status(), 201, "seven of them leave room");
        uploads.push(endless(&bank).await);
        // While the last one arrives: paid, or refused before it was begun, and nothing in between.
        let mut paid = 1;
        let filling = async {
            loop {
                let answer = bank.pay(&format!("k-{paid}")).await;
                if answer.status() != 201 {
                    return answer;
                }
                paid += 1;
                // A payment may have taken the room of an upload's last bytes: then that one comes again.
                for upload in &mut uploads {
                    if upload.has_ended() {
                        *upload = endless(&bank).await;
                    }
                }
            }
        };
        let refused = tokio::time::timeout(BOUND, filling).await.expect("they fill it");
        assert_eq!((refused.status(), &*problem(&refused)), (503, "capacity"));
        // Now that it is full it stays so.
        for number in 0..50 {
            let answer = bank.pay(&format!("r-{number}")).await;
            assert_eq!((answer.status(), &*problem(&answer)), (503, "capacity"));
        }
        assert_eq!(bank.received(), paid);
        drop(uploads);
        let again = async { while bank.pay("k-200").await.status() != 201 {} };
        tokio::time::timeout(BOUND, again).await.expect("their memory comes back");
        assert_eq!(bank.received(), paid + 1);
    });
}
