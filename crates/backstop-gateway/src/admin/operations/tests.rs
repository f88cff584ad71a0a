//! The endpoints on a ledger in memory.
//!
//! `now(S)` is S seconds after 2001-09-09T01:46:40Z, which is 1 000 000 000 s after 1970. The forward of an operation has 30 s,
//! its verification an hour.

mod full;

use backstop_engine::operation::{Draw, Schedule};
use backstop_engine::time::Now;
use backstop_store::ledger::{LedgerOptions, MemoryRows, Rows, ThreadLedger};
use backstop_store::testing::{begin, forward, kept, now, unknown};
use http::HeaderMap;
use http_body_util::BodyExt;

use self::full::FullRows;
use super::*;

const JSON: (&str, &str) = ("content-type", "application/json");
const FAILED: &str = r#"{"outcome":"failed","by":"ana","reason":"the bank knows no such payment"}"#;

struct Heard {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

/// Asks the desk as it is set up.
fn ask_at(desk: &Desk<'_>, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Heard {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let path = request.uri().path().to_owned();
        let (parts, body) = desk.answer(place(&path).unwrap(), request).await.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Heard { status: parts.status.as_u16(), headers: parts.headers, text }
    })
}

fn ask(ledger: &dyn Ledger, at: Now, method: &str, target: &str, body: &str) -> Heard {
    ask_at(&Desk::new(Some(ledger), Clock::manual(at).0), method, target, &[JSON], body)
}

fn open(rows: impl Rows + 'static, options: LedgerOptions) -> ThreadLedger {
    ThreadLedger::open(Box::new(rows), options, 1, now(0)).unwrap()
}

fn in_memory() -> ThreadLedger {
    open(MemoryRows::default(), LedgerOptions::default())
}

fn draw() -> Draw {
    Schedule::default().draw(0)
}

fn id(number: u8) -> String {
    OperationId::from_bytes([number; 16]).to_string()
}

fn resolve_of(number: u8) -> String {
    format!("/operations/{}/resolve", id(number))
}

/// 1 and 2 need a person, 3 is unknown, 4 is under way, and 5 succeeded; 3 to 5 began in one moment.
fn five() -> ThreadLedger {
    let ledger = in_memory();
    unknown(&ledger, 1, now(10), draw());
    unknown(&ledger, 2, now(20), draw());
    assert_eq!(ledger.sweep(Default::default(), 7, now(3700)).wait().unwrap().overdue, 2);
    unknown(&ledger, 3, now(5000), draw());
    let _under_way = begin(&ledger, 4, now(5000));
    let answer = kept(201, Some(b"the content of an answer"));
    let report = forward(begin(&ledger, 5, now(5000)), now(5000)).succeeded(answer);
    assert!(matches!(ledger.record(report, now(5001)).wait(), Ok(Recorded::Changed { .. })));
    ledger
}

#[test]
fn a_path_is_about_one_thing() {
    assert_eq!(place("/operations"), Some(Place::All));
    assert_eq!(place("/operations/7f"), Some(Place::One("7f")));
    assert_eq!(place("/operations/7f/resolve"), Some(Place::Resolve("7f")));
    for other in ["/", "/operationsx", "/operations/7f/forget", "/operations/7f/resolve/", "/x/operations"] {
        assert_eq!(place(other), None, "{other}");
    }
}

/// 3610 s are an hour after 10 s, when its time was over; the sweep that saw it was at 3700 s.
#[test]
fn operations_are_listed_with_those_that_began_first_before_the_others() {
    let ledger = five();
    let first = json!({
        "id": "01010101010101010101010101010101",
        "state": "attention",
        "why": "deadline",
        "route": "pay",
        "began": "2001-09-09T01:46:50.000Z",
        "age_seconds": 5990,
        "since": "2001-09-09T02:48:20.000Z",
        "in_state_seconds": 2300,
    });
    let page = ask(&ledger, now(6000), "GET", "/operations?limit=1", "");
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(page.json()["operations"], json!([first]));
    let mut ids = Vec::new();
    let mut next = Some("/operations?limit=2".to_owned());
    while let Some(target) = next {
        let page = ask(&ledger, now(6000), "GET", &target, "").json();
        let listed = page["operations"].as_array().unwrap();
        ids.push(listed.iter().map(|one| one["id"].as_str().unwrap()[..2].to_owned()).collect::<Vec<_>>());
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(ids, [vec!["01", "02"], vec!["03", "04"], vec!["05"]]);
    let of = |query: &str| {
        let page = ask(&ledger, now(6000), "GET", &format!("/operations?{query}"), "").json();
        let listed = page["operations"].as_array().unwrap().clone();
        listed.iter().map(|one| one["id"].as_str().unwrap()[..2].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("state=attention"), ["01", "02"]);
    assert_eq!(of("state=not_executed"), [""; 0]);
    assert_eq!(of("from=2001-09-09T01:47:00Z&limit=1"), ["02"]);
    assert_eq!(ask(&ledger, now(6000), "HEAD", "/operations", "").status, 200);
    let wrong = ask(&ledger, now(6000), "GET", "/operations?state=lost", "");
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.headers["content-type"], "application/problem+json");
    let detail = "`state` is one of dispatching, unknown, succeeded, failed, not_executed, attention";
    assert_eq!(wrong.json(), json!({ "title": "Bad Request", "status": 400, "detail": detail }));
}

#[test]
fn one_operation_is_shown_with_its_history() {
    let ledger = five();
    let shown = ask(&ledger, now(6000), "GET", &format!("/operations/{}", id(5)), "");
    assert_eq!(shown.status, 200);
    assert_eq!(shown.headers["cache-control"], "no-store");
    let shown = shown.json();
    let answer = json!({ "status": 201, "fields": ["content-type", "location"], "has_content": true });
    assert_eq!((&shown["verification"], &shown["answer"]), (&Value::Null, &answer));
    let event = json!({
        "at": "2001-09-09T03:10:01.000Z",
        "actor": "reporter",
        "from": { "state": "dispatching", "why": "" },
        "to": { "state": "succeeded", "why": "direct" },
        "by": null,
        "reason": null,
    });
    assert_eq!(shown["history"], json!([event]));
    // Between half and all of a quarter of an hour after the sweep at 3700 s: by entropy, so only the bounds are known.
    let open = ask(&ledger, now(3700), "GET", &format!("/operations/{}", id(1)), "").json();
    let next = open["verification"]["next_seconds"].as_u64().unwrap();
    assert!((450..=900).contains(&next), "{open}");
    assert_eq!(open["verification"]["until"], "2001-09-09T02:46:50.000Z");
    for path in [id(9), "7f".into(), id(0xab).to_uppercase()] {
        let missing = ask(&ledger, now(6000), "GET", &format!("/operations/{path}"), "");
        assert_eq!((missing.status, &missing.json()["status"]), (404, &json!(404)), "{path}");
    }
}

/// The samples' key and fingerprint are their number over and over, their scope is ones, the upstream's name is `upstream-f`, the
/// captured amount 5.
#[test]
fn what_a_client_sent_or_got_is_not_shown() {
    let ledger = five();
    for target in ["/operations".to_owned(), format!("/operations/{}", id(5))] {
        let text = ask(&ledger, now(6000), "GET", &target, "").text;
        let digest = |byte: &str| byte.repeat(32);
        for secret in [
            "upstream-",
            "amount",
            "captured",
            "key",
            "scope",
            "fingerprint",
            &digest("05"),
            &digest("01"),
            "the content of an answer",
            "/payments/1",
            "text/plain",
        ] {
            assert!(!text.contains(secret), "{target} shows {secret}: {text}");
        }
    }
}

#[test]
fn a_persons_decision_is_kept_with_name_and_reason() {
    let rows = MemoryRows::default();
    let ledger = open(rows.clone(), LedgerOptions::default());
    unknown(&ledger, 1, now(10), draw());
    assert_eq!(ledger.sweep(Default::default(), 7, now(3700)).wait().unwrap().overdue, 1);
    let decided = ask(&ledger, now(4000), "POST", &resolve_of(1), FAILED);
    let expected = json!({
        "id": id(1),
        "before": { "state": "attention", "why": "deadline" },
        "after": { "state": "failed", "why": "person" },
        "by": "ana",
        "reason": "the bank knows no such payment",
    });
    assert_eq!((decided.status, decided.json()), (200, expected));
    // As if the process had started again.
    assert!(ledger.close(Duration::from_secs(10)));
    let again = open(rows, LedgerOptions::default());
    let shown = ask(&again, now(4001), "GET", &format!("/operations/{}", id(1)), "").json();
    let last = json!({
        "at": "2001-09-09T02:53:20.000Z",
        "actor": "person",
        "from": { "state": "attention", "why": "deadline" },
        "to": { "state": "failed", "why": "person" },
        "by": "ana",
        "reason": "the bank knows no such payment",
    });
    let history = shown["history"].as_array().unwrap();
    assert_eq!((shown["state"].as_str(), history.len(), history.last()), (Some("failed"), 3, Some(&last)));
}

#[test]
fn what_needs_no_person_is_not_decided_by_one() {
    let ledger = five();
    let before = ledger.list(all()).wait().unwrap();
    for (number, refused, state, why) in [
        (3, "not_now", "unknown", "timeout"),
        (4, "not_now", "dispatching", ""),
        (5, "decided", "succeeded", "direct"),
    ] {
        let conflict = ask(&ledger, now(5002), "POST", &resolve_of(number), FAILED);
        assert_eq!(conflict.status, 409, "{}", conflict.text);
        assert_eq!(conflict.headers["content-type"], "application/problem+json");
        let conflict = conflict.json();
        let expected = json!({ "state": state, "why": why });
        assert_eq!((&conflict["refused"], &conflict["state"]), (&json!(refused), &expected));
        assert_eq!((&conflict["id"], &conflict["title"]), (&json!(id(number)), &json!("Conflict")));
    }
    assert_eq!(ask(&ledger, now(5002), "POST", &resolve_of(1), FAILED).status, 200);
    assert_eq!(ask(&ledger, now(5002), "POST", &resolve_of(1), FAILED).json()["refused"], "decided");
    assert_eq!(ask(&ledger, now(5002), "POST", &resolve_of(9), FAILED).status, 404);
    let after = ledger.list(all()).wait().unwrap();
    assert_eq!(before[1..], after[1..], "nothing but the first was changed");
}

fn all() -> Filter {
    let from = backstop_engine::time::Wall::from_unix_ns(0);
    Filter { state: None, from, after: None, most: Filter::MOST }
}

/// Fields, body and the status that answers them.
type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, u16);

/// A page of another site that is open in an operator's browser, and whatever is no decision.
#[test]
fn whatever_is_no_operators_decision_changes_nothing() {
    let ledger = five();
    let long = format!(r#"{{"outcome":"failed","by":"ana","reason":"{}"}}"#, "x".repeat(BODY_MAX));
    let host = ("host", "127.0.0.1:9901");
    let table: [Row<'_>; 12] = [
        (&[JSON, host, ("origin", "http://evil.example")], FAILED, 403),
        (&[JSON, host, ("origin", "null")], FAILED, 403),
        (&[JSON, ("host", "evil.example"), ("origin", "http://evil.example")], FAILED, 403),
        (&[JSON, host, ("sec-fetch-site", "cross-site")], FAILED, 403),
        (&[JSON, host, ("sec-fetch-site", "same-site")], FAILED, 403),
        (&[JSON, host, ("origin", "http://127.0.0.1:9901"), ("sec-fetch-site", "cross-site")], FAILED, 403),
        (&[("content-type", "text/plain")], FAILED, 415),
        (&[], FAILED, 415),
        (&[JSON], "", 400),
        (&[JSON], r#"{"outcome":"failed","by":"ana"}"#, 400),
        (&[JSON], r#"{"outcome":"failed","by":"","reason":"r"}"#, 400),
        (&[JSON], &long, 413),
    ];
    let desk = Desk::new(Some(&ledger), Clock::manual(now(6000)).0);
    for (fields, body, status) in table {
        let heard = ask_at(&desk, "POST", &resolve_of(1), fields, body);
        assert_eq!(heard.status, status, "{fields:?} {body:.60}: {}", heard.text);
        assert_eq!(heard.headers["content-type"], "application/problem+json");
        assert_eq!(heard.headers.get("access-control-allow-origin"), None);
    }
    for (method, target, allow) in [
        ("GET", resolve_of(1), "POST"),
        ("OPTIONS", resolve_of(1), "POST"),
        ("DELETE", format!("/operations/{}", id(1)), "GET, HEAD"),
        ("POST", "/operations".into(), "GET, HEAD"),
    ] {
        let heard = ask_at(&desk, method, &target, &[JSON], FAILED);
        assert_eq!(
            (heard.status, &heard.headers["allow"]),
            (405, &HeaderValue::from_static(allow)),
            "{method}"
        );
    }
    assert_eq!(
        ask(&ledger, now(6000), "GET", &format!("/operations/{}", id(1)), "").json()["state"],
        "attention"
    );
    let own = [JSON, host, ("origin", "http://127.0.0.1:9901"), ("sec-fetch-site", "same-origin")];
    assert_eq!(ask_at(&desk, "POST", &resolve_of(1), &own, FAILED).status, 200, "its own page may");
}

#[test]
fn a_ledger_that_does_not_do_it_is_told_apart() {
    let everything = [
        ("GET", "/operations".to_owned()),
        ("GET", format!("/operations/{}", id(1))),
        ("POST", resolve_of(1)),
    ];
    let check = |desk: &Desk<'_>, word: &str| {
        for (method, target) in &everything {
            let heard = ask_at(desk, method, target, &[JSON], FAILED);
            assert_eq!((heard.status, &heard.json()["ledger"]), (503, &json!(word)), "{method} {target}");
        }
    };
    let closed = five();
    assert!(closed.close(Duration::from_secs(10)));
    check(&Desk::new(Some(&closed), Clock::manual(now(6000)).0), "closed");

    let crowded = open(MemoryRows::default(), LedgerOptions { queue_len: 0, ..LedgerOptions::default() });
    check(&Desk::new(Some(&crowded), Clock::manual(now(6000)).0), "queue_full");

    let full = open(FullRows::default(), LedgerOptions::default());
    check(&Desk::new(Some(&full), Clock::manual(now(6000)).0), "no_room");

    // Somebody else is in a transaction and stays there.
    let mut rows = MemoryRows::default();
    let stuck = open(rows.clone(), LedgerOptions::default());
    rows.begin().unwrap();
    let patience = Duration::from_millis(1);
    check(&Desk { patience, ..Desk::new(Some(&stuck), Clock::manual(now(6000)).0) }, "timeout");
    rows.commit().unwrap();
}

/// What is decided is dated when it is decided, and not when the first byte of the decision came.
#[test]
fn a_decision_that_arrives_slowly_is_dated_when_it_is_whole() {
    struct Slow(Option<Bytes>, backstop::clock::ManualClock);
    impl Body for Slow {
        type Data = Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            self.1.advance(Duration::from_secs(3));
            std::task::Poll::Ready(self.0.take().map(|content| Ok(http_body::Frame::data(content))))
        }
    }
    let ledger = five();
    let (clock, hand) = Clock::manual(now(6000));
    let desk = Desk::new(Some(&ledger), clock);
    let request = Request::builder().method("POST").header(JSON.0, JSON.1);
    let request = request.body(Slow(Some(Bytes::from_static(FAILED.as_bytes())), hand)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let resolve = resolve_of(1);
    let answer = runtime.block_on(desk.answer(place(&resolve).unwrap(), request));
    assert_eq!(answer.status(), 200);
    let shown = ask(&ledger, now(6010), "GET", &format!("/operations/{}", id(1)), "").json();
    // Two frames were polled, each 3 s after the last: 1 000 006 006 s after 1970.
    assert_eq!(shown["history"][2]["at"], "2001-09-09T03:26:46.000Z", "{shown:#}");
}

#[test]
fn without_a_ledger_there_are_no_operations() {
    let desk = Desk::new(None, Clock::manual(now(0)).0);
    for (method, target) in [("GET", "/operations".to_owned()), ("POST", resolve_of(1))] {
        let heard = ask_at(&desk, method, &target, &[JSON], FAILED);
        assert_eq!(heard.status, 404);
        assert!(heard.json()["detail"].as_str().unwrap().contains("no ledger"), "{}", heard.text);
    }
}

#[test]
fn readiness_names_a_ledger_that_takes_nothing_new() {
    use super::super::ledger_warning;
    let healthy = five();
    assert_eq!(ledger_warning(&healthy.standing(now(6000))), None);
    let full = open(FullRows::default(), LedgerOptions::default());
    assert_eq!(ask(&full, now(0), "GET", "/operations", "").status, 503);
    let warning = ledger_warning(&full.standing(now(0))).unwrap();
    assert!(warning.contains("the disk of their ledger is full"), "{warning}");
    let ended = backstop_store::ledger::LedgerStanding {
        failed: Some("disk I/O error".into()),
        ..full.standing(now(0))
    };
    let warning = ledger_warning(&ended).unwrap();
    assert!(warning.contains("their ledger ended (disk I/O error)"), "{warning}");
}
