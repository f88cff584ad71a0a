//! The payment service: what happens, what is counted and what is answered, under each of its faults.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{path::Path, time::Duration};

use backstop_lab::{
    client::{self, ClientError, Completeness, Connection, Ending, Response},
    origin::{Gate, Then},
    payments::{Fault, Payments, StatusFault, When, Which, read_effects},
};
use serde_json::{Value, json};

const BOUND: Duration = Duration::from_secs(10);

async fn pay(payments: &Payments, key: &str, amount: u64) -> Result<Response, ClientError> {
    let body = format!(r#"{{"amount":{amount}}}"#);
    client::request(payments.addr(), "POST", "/payments", &[("Idempotency-Key", key)], body.as_bytes()).await
}

async fn ask(payments: &Payments, key: &str) -> Result<Response, ClientError> {
    client::get(payments.addr(), &format!("/payments/by-key/{key}"), &[]).await
}

async fn known(payments: &Payments, key: &str) -> (u16, Value) {
    let response = ask(payments, key).await.unwrap();
    (response.status(), response.json().unwrap())
}

fn missing() -> (u16, Value) {
    (404, json!({"error": {"code": "resource_missing"}}))
}

fn payment(id: Option<&str>, status: &str, key: &str, amount: u64) -> Value {
    json!({"id": id, "status": status, "operation_id": key, "amount": amount})
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("backstop-payments-{}-{name}", std::process::id()));
    let _from_before = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn operations(path: &Path) -> Vec<(u64, String, u64)> {
    let effects = read_effects(&path.join("effects.jsonl")).unwrap();
    effects.into_iter().map(|effect| (effect.sequence, effect.operation_id, effect.amount)).collect()
}

#[tokio::test]
async fn each_request_is_a_payment_of_its_own() {
    let payments = Payments::start().await.unwrap();
    assert_eq!(known(&payments, "k-1").await, missing());
    for id in ["pay_1", "pay_2"] {
        let paid = pay(&payments, "k-1", 10).await.unwrap();
        assert_eq!((paid.status(), paid.json().unwrap()), (201, payment(Some(id), "succeeded", "k-1", 10)));
    }
    // In quotes, and percent-encoded in the path, it is the same key.
    pay(&payments, "\"k-1\"", 10).await.unwrap();
    assert_eq!(known(&payments, "%22k-1%22").await, (200, payment(Some("pay_1"), "succeeded", "k-1", 10)));
    assert_eq!((payments.effects_of("k-1"), payments.forwards_of("k-1")), (3, 3));
    assert_eq!(payments.status_queries_of("k-1"), 2);
    let counts = payments.counts();
    assert_eq!(counts.methods(), ["GET", "POST"]);
    assert_eq!(counts.requests[&("POST".to_owned(), "/payments".to_owned())], 3);
    assert_eq!(
        (counts.effects_in_all(), counts.forwards_in_all(), counts.status_queries_in_all()),
        (3, 3, 2)
    );
}

#[tokio::test]
async fn what_is_refused_has_no_effect() {
    let payments = Payments::start().await.unwrap();
    let declined = pay(&payments, "k-1", 402).await.unwrap();
    assert_eq!((declined.status(), declined.json().unwrap()), (402, payment(None, "declined", "k-1", 402)));
    assert_eq!(known(&payments, "k-1").await, (200, payment(None, "declined", "k-1", 402)));
    assert_eq!(pay(&payments, "k-2", 422).await.unwrap().status(), 422);
    assert_eq!(known(&payments, "k-2").await, missing());
    for (fields, body) in [(&[][..], "{\"amount\":1}"), (&[("Idempotency-Key", "k-3")][..], "{}")] {
        let refused = client::request(payments.addr(), "POST", "/payments", fields, body.as_bytes()).await;
        assert_eq!(refused.unwrap().status(), 400);
    }
    let put =
        client::request(payments.addr(), "PUT", "/payments", &[("Idempotency-Key", "k-4")], b"{}").await;
    assert_eq!(put.unwrap().status(), 405);
    assert_eq!(client::get(payments.addr(), "/elsewhere", &[]).await.unwrap().status(), 404);
    let counts = payments.counts();
    assert_eq!((counts.effects_in_all(), counts.unnamed_forwards, counts.forwards_in_all()), (0, 1, 5));
    assert_eq!(counts.forwards["k-4"], 1, "whatever may change something counts");
}

/// Each fault with what the client hears, whether it happened, and what a status query then says.
#[tokio::test]
async fn faults_of_a_payment() {
    let payments = Payments::start().await.unwrap();
    let lost =
        |ending| move |heard: Result<Response, ClientError>| heard.unwrap_err().ending() == Some(ending);
    let told = |status| move |heard: Result<Response, ClientError>| heard.unwrap().status() == status;
    let cut = |by| {
        move |heard: Result<Response, ClientError>| {
            let heard = heard.unwrap();
            (heard.status(), heard.completeness) == (201, by) && !heard.body.is_empty()
        }
    };
    type Hears = Box<dyn Fn(Result<Response, ClientError>) -> bool>;
    let page = |heard: Result<Response, ClientError>| {
        let heard = heard.unwrap();
        heard.status() == 200 && heard.json().is_err()
    };
    let cases: Vec<(Fault, Hears, bool)> = vec![
        (Fault::answer_lost(Then::Reset), Box::new(lost(Ending::Reset)), true),
        (Fault::answer_lost(Then::Close), Box::new(lost(Ending::Fin)), true),
        (Fault::lost_before_effect(Then::Reset), Box::new(lost(Ending::Reset)), false),
        (Fault::lost_before_effect(Then::Close), Box::new(lost(Ending::Fin)), false),
        (Fault::status_after_effect(500), Box::new(told(500)), true),
        (Fault::status_without_effect(500), Box::new(told(500)), false),
        (Fault::half_head(), Box::new(lost(Ending::Fin)), true),
        (Fault::truncated(Then::Close), Box::new(cut(Completeness::CutByFin)), true),
        (Fault::truncated(Then::Reset), Box::new(cut(Completeness::CutByReset)), true),
        (Fault::html_page(), Box::new(page), true),
        (Fault::html_page().without_effect(), Box::new(page), false),
        (Fault::drip(Duration::from_millis(1)), Box::new(told(201)), true),
        (Fault::late(When::After(Duration::from_millis(1))), Box::new(told(201)), true),
    ];
    for (number, (fault, hears, happens)) in cases.into_iter().enumerate() {
        let key = format!("k-{number}");
        payments.fail(Which::key(&key), fault.clone());
        assert!(hears(pay(&payments, &key, 10).await), "{fault:?}");
        assert_eq!(payments.effects_of(&key), u64::from(happens), "{fault:?}");
        assert_eq!(payments.forwards_of(&key), 1);
        assert_eq!(known(&payments, &key).await.0, if happens { 200 } else { 404 }, "{fault:?}");
    }
    assert_eq!(pay(&payments, "another", 10).await.unwrap().status(), 201);
}

#[tokio::test]
async fn a_late_payment_happens_although_its_client_has_left() {
    let payments = Payments::start().await.unwrap();
    let gate = Gate::new();
    payments.fail(Which::next(1), Fault::late(When::Opened(gate.clone())));
    let mut client = Connection::open(payments.addr()).await.unwrap();
    client
        .send(b"POST /payments HTTP/1.1\r\nIdempotency-Key: k-1\r\nContent-Length: 13\r\n\r\n{\"amount\":10}")
        .await
        .unwrap();
    gate.wait_for_waiting(1, BOUND).await.unwrap();
    client.reset().unwrap();
    payments.origin().wait_until(BOUND, |stats| stats.peers_reset == 1).await.unwrap();
    // Even if every connection is ended under it.
    payments.origin().close_connections();
    payments.origin().wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
    assert_eq!(known(&payments, "k-1").await, missing());
    gate.open();
    payments.wait_until(BOUND, |counts| counts.effects_in_all() == 1).await.unwrap();
    assert_eq!(known(&payments, "k-1").await.0, 200);
    assert!(payments.wait_until(Duration::from_millis(1), |counts| counts.effects.len() == 2).await.is_err());
}

#[tokio::test]
async fn lost_now_and_done_later() {
    let payments = Payments::start().await.unwrap();
    let gate = Gate::new();
    payments.fail(Which::all(), Fault::lost_and_late(Then::Close, When::Opened(gate.clone())));
    assert_eq!(pay(&payments, "k-1", 10).await.unwrap_err().ending(), Some(Ending::Fin));
    assert_eq!(known(&payments, "k-1").await, missing());
    gate.open();
    payments.wait_until(BOUND, |counts| counts.effects.contains_key("k-1")).await.unwrap();
}

#[tokio::test]
async fn processing_becomes_succeeded() {
    let payments = Payments::start().await.unwrap();
    let gate = Gate::new();
    payments.fail(Which::all(), Fault::processing(When::Opened(gate.clone())));
    let accepted = pay(&payments, "k-1", 10).await.unwrap();
    let processing = payment(None, "processing", "k-1", 10);
    assert_eq!((accepted.status(), accepted.json().unwrap()), (202, processing.clone()));
    assert_eq!(known(&payments, "k-1").await, (200, processing.clone()));
    gate.open();
    payments.wait_until(BOUND, |counts| counts.effects_in_all() == 1).await.unwrap();
    // A replica that lags behind goes on saying so.
    payments.fail_status(Which::next(1), StatusFault::Behind);
    assert_eq!(known(&payments, "k-1").await, (200, processing));
    assert_eq!(known(&payments, "k-1").await, (200, payment(Some("pay_1"), "succeeded", "k-1", 10)));
}

#[tokio::test]
async fn an_answer_waits_while_the_effect_is_there() {
    let payments = Payments::start().await.unwrap();
    let gate = Gate::new();
    payments.fail(Which::all(), Fault::answer_lost(Then::Reset).answered(When::Opened(gate.clone())));
    let paying = tokio::spawn({
        let payments = payments.clone();
        async move { pay(&payments, "k-1", 10).await }
    });
    gate.wait_for_waiting(1, BOUND).await.unwrap();
    assert_eq!(payments.effects_of("k-1"), 1);
    gate.open();
    assert_eq!(paying.await.unwrap().unwrap_err().ending(), Some(Ending::Reset));
}

#[tokio::test]
async fn faults_of_a_status_query() {
    let payments = Payments::start().await.unwrap();
    pay(&payments, "k-1", 10).await.unwrap();
    let right = (200, payment(Some("pay_1"), "succeeded", "k-1", 10));
    let answers = [
        (StatusFault::Status(401), 401, None),
        (StatusFault::Status(503), 503, None),
        (StatusFault::Behind, 404, Some(missing().1)),
        (StatusFault::OtherAmount, 200, Some(payment(Some("pay_1"), "succeeded", "k-1", 11))),
        (StatusFault::OtherOperation, 200, Some(payment(Some("pay_1"), "succeeded", "not-k-1", 1))),
        (StatusFault::Held(When::After(Duration::from_millis(1))), 200, Some(right.1.clone())),
        (StatusFault::Drip(Duration::from_millis(1)), 200, Some(right.1.clone())),
    ];
    for (fault, status, body) in answers {
        payments.fail_status(Which::next(1), fault.clone());
        let heard = known(&payments, "k-1").await;
        assert_eq!(heard.0, status, "{fault:?}");
        assert!(body.is_none_or(|body| body == heard.1), "{fault:?} {heard:?}");
    }
    for (fault, status) in [(StatusFault::HtmlPage, 200), (StatusFault::BareNotFound, 404)] {
        payments.fail_status(Which::key("k-1").times(1), fault);
        let heard = ask(&payments, "k-1").await.unwrap();
        assert_eq!((heard.status(), heard.json().is_err()), (status, true));
    }
    payments.fail_status(Which::next(1), StatusFault::Truncated(Then::Close));
    assert_eq!(ask(&payments, "k-1").await.unwrap().completeness, Completeness::CutByFin);
    for (then, ending) in [(Then::Reset, Ending::Reset), (Then::Close, Ending::Fin)] {
        payments.fail_status(Which::next(1), StatusFault::Lost(then));
        assert_eq!(ask(&payments, "k-1").await.unwrap_err().ending(), Some(ending));
    }
    payments.fail_status(Which::all(), StatusFault::Lost(Then::Hang));
    let mut hanging = Connection::open(payments.addr()).await.unwrap().bound(Duration::from_millis(50));
    let heard = hanging.get("/payments/by-key/k-1", &[]).await;
    assert_eq!(heard.unwrap_err().ending(), Some(Ending::TimedOut));
    payments.heal();
    assert_eq!(known(&payments, "k-1").await, right);
    assert_eq!((payments.effects_of("k-1"), payments.forwards_of("k-1")), (1, 1), "asking changes nothing");
    // 7 + 2 + 1 + 2 + 1 + 1 queries, answered or not.
    assert_eq!(payments.status_queries_of("k-1"), 14);
}

/// One byte is enough: whoever sent it cannot know that nothing happened.
#[tokio::test]
async fn what_was_cut_counts_as_sent() {
    let payments = Payments::start().await.unwrap();
    let head = "POST /payments HTTP/1.1\r\nIdempotency-Key: k-1\r\nContent-Length: 13\r\n\r\n";
    let after_the_key = head.find("Content").unwrap();
    let named = [head.len() + 5, head.len(), after_the_key];
    for (sent, end) in named.into_iter().zip(1..) {
        let mut client = Connection::open(payments.addr()).await.unwrap();
        client.send(&format!("{head}{{\"amount\":10}}").as_bytes()[..sent]).await.unwrap();
        client.finish().await.unwrap();
        client.read_to_end().await;
        payments.wait_until(BOUND, |counts| counts.forwards.get("k-1") == Some(&end)).await.unwrap();
    }
    for (sent, end) in [1, after_the_key - 1].into_iter().zip(1..) {
        let mut client = Connection::open(payments.addr()).await.unwrap();
        let before = payments.origin().bytes_received();
        client.send(&head.as_bytes()[..sent]).await.unwrap();
        let arrived = before + u64::try_from(sent).unwrap();
        payments.origin().wait_until(BOUND, |stats| stats.bytes_received == arrived).await.unwrap();
        client.reset().unwrap();
        payments.wait_until(BOUND, |counts| counts.unnamed_forwards == end).await.unwrap();
    }
    let mut query = Connection::open(payments.addr()).await.unwrap();
    query.send(b"GET /payments/by-key/k-1 HTT").await.unwrap();
    query.finish().await.unwrap();
    query.read_to_end().await;
    let counts = payments.counts();
    assert_eq!((counts.effects_in_all(), counts.forwards["k-1"]), (0, 3));
    assert_eq!(counts.status_queries_in_all(), 0);
}

/// The service ends a connection in the midst of a head: what had come counts.
#[tokio::test]
async fn a_head_that_the_service_itself_ends_counts_as_sent() {
    let payments = Payments::start().await.unwrap();
    let mut client = Connection::open(payments.addr()).await.unwrap();
    let head = b"POST /payments HTTP/1.1\r\nIdempotency-Key: k-1\r\nCont";
    client.send(head).await.unwrap();
    payments.origin().wait_until(BOUND, |stats| stats.bytes_received == head.len() as u64).await.unwrap();
    payments.origin().reset_connections();
    payments.wait_until(BOUND, |counts| counts.forwards.get("k-1") == Some(&1)).await.unwrap();
    assert_eq!(payments.counts().effects_in_all(), 0);
}

#[tokio::test]
async fn a_restart_keeps_what_happened_and_what_was_sent() {
    let folder = folder("restart");
    let payments = Payments::start_in(&folder).await.unwrap();
    assert_eq!(pay(&payments, "k-1", 10).await.unwrap().status(), 201);
    assert_eq!(pay(&payments, "k-2", 402).await.unwrap().status(), 402);
    // Under way when the service ends: it never happens.
    let gate = Gate::new();
    payments.fail(Which::next(1), Fault::processing(When::Opened(gate.clone())));
    assert_eq!(pay(&payments, "k-3", 30).await.unwrap().status(), 202);
    assert_eq!(operations(&folder), [(1, "k-1".to_owned(), 10)]);

    let (before, addr) = (payments.counts(), payments.addr());
    let payments = payments.restart().await.unwrap();
    gate.open();
    assert_eq!((payments.counts(), payments.addr()), (before, addr));
    assert_eq!(known(&payments, "k-1").await, (200, payment(Some("pay_1"), "succeeded", "k-1", 10)));
    assert_eq!(known(&payments, "k-2").await, (200, payment(None, "declined", "k-2", 402)));
    assert_eq!(known(&payments, "k-3").await, missing());
    let paid = pay(&payments, "k-4", 40).await.unwrap();
    assert_eq!(paid.json().unwrap(), payment(Some("pay_2"), "succeeded", "k-4", 40));
    assert_eq!(operations(&folder), [(1, "k-1".to_owned(), 10), (2, "k-4".to_owned(), 40)]);
    drop(payments);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn half_a_last_line_is_no_effect() {
    let folder = folder("torn");
    let payments = Payments::start_in(&folder).await.unwrap();
    pay(&payments, "k-1", 10).await.unwrap();
    drop(payments);
    let path = folder.join("effects.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"sequence\":2,\"oper")).unwrap();
    assert_eq!(operations(&folder).len(), 1);
    let payments = Payments::start_in(&folder).await.unwrap();
    pay(&payments, "k-2", 20).await.unwrap();
    assert_eq!(operations(&folder), [(1, "k-1".to_owned(), 10), (2, "k-2".to_owned(), 20)]);
    drop(payments);
    // A whole line that is no effect was not written by the service.
    std::fs::write(&path, "{}\n").unwrap();
    let error = read_effects(&path).unwrap_err().to_string();
    assert!(error.contains("effects.jsonl, line 1: missing field"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
