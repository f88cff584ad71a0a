//! Whoever looks at an operation: pages of other origins, callers told by a field, and a ledger that cannot be read.

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour};
use rusqlite::Connection;

use crate::support::bank::{ANA, Bank, member, paid, policy, problem};
use crate::support::run;

const SHOP: &str = "https://shop.example";
const CORS: &str = "cors = { origins = [\"https://shop.example\"] }";
const NOBODYS: &str = "/.backstop/operations/00000000000000000000000000000000";

fn allowed(answer: &Response) -> Option<&str> {
    answer.header("access-control-allow-origin")
}

/// The Fetch standard, section 4.8: before a page's first look with a credential its browser asks, without one. What is answered
/// then says nothing of any operation, so a name that nobody has gets the same.
#[test]
fn a_named_page_may_look_after_it_has_asked() {
    run(async {
        let bank = Bank::with(CORS).await;
        let paid = bank.pay("k-1").await;
        let address = format!("/.backstop/operations/{}", "0123456789abcdef".repeat(2));
        bank.says(Behaviour::close());
        let lost = bank.pay("k-2").await;
        assert_eq!((paid.status(), lost.status()), (201, 502));
        for address in [lost.header("location").unwrap(), &address] {
            let asks = |origin| {
                let fields = [
                    ("Origin", origin),
                    ("Access-Control-Request-Method", "GET"),
                    ("Access-Control-Request-Headers", "authorization, x-tenant"),
                ];
                let gateway = &bank.gateway;
                async move { gateway.request("OPTIONS", address, &fields, b"").await }
            };
            let shop = asks(SHOP).await;
            assert_eq!((shop.status(), allowed(&shop)), (204, Some(SHOP)));
            assert_eq!(shop.header("access-control-allow-methods"), Some("GET, HEAD"));
            assert_eq!(shop.header("access-control-allow-headers"), Some("authorization, x-tenant"));
            assert_eq!(shop.header("vary"), Some("origin"));
            let other = asks("https://evil.example").await;
            assert_eq!((other.status(), allowed(&other)), (204, None));
            assert_eq!(other.header("access-control-allow-headers"), None);
        }
        // What it may look at it may also read when that is not there.
        let page: Vec<_> = ANA.iter().copied().chain([("Origin", SHOP)]).collect();
        let missing = bank.gateway.get(NOBODYS, &page).await;
        assert_eq!((missing.status(), allowed(&missing)), (404, Some(SHOP)));
        let tools = bank.gateway.request("OPTIONS", NOBODYS, &[], b"").await;
        assert_eq!((tools.status(), tools.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
        assert_eq!((allowed(&tools), bank.received()), (None, 2));
    });
}

/// Who asks is read from what came, for a payment and for a look at it alike, whatever the operator takes away on the way.
#[test]
fn who_looks_is_told_before_the_operators_edits() {
    run(async {
        let edits = "request_headers = { remove = [\"x-tenant\"] }";
        let bank = Bank::with(edits).await;
        bank.says(Behaviour::close());
        let lost = bank.pay("k-1").await;
        let look = bank.look(lost.header("location").unwrap()).await;
        assert_eq!((look.status(), member(&look, "state")), (200, "unknown".to_owned()));
        let gone = bank.origin.requests();
        assert!(
            gone.iter().all(|request| request.header("x-tenant").is_none()),
            "the operator's edit is made"
        );
        let bobs = bank.gateway.get(lost.header("location").unwrap(), &[("X-Tenant", "bob")]).await;
        assert_eq!(bobs.status(), 404);
    });
}

/// An operator's shell holds the file. A look is told that nothing can be read, and not that there is no such payment: who hears
/// that pays again. What is new is refused because of the ledger, and not for want of places.
#[test]
fn a_ledger_that_cannot_be_read_is_no_missing_operation() {
    run(async {
        let mut bank = Bank::open().await;
        bank.says(Behaviour::close());
        let lost = bank.pay("k-1").await;
        let address = lost.header("location").unwrap().to_owned();
        bank.says(paid());

        let shell = Connection::open(bank.gateway.folder().join("backstop-data/ledger.sqlite")).unwrap();
        shell.execute_batch("BEGIN IMMEDIATE").unwrap();
        // Nobody can see from outside that a request waits for the file, so their times go by as they do: 1 s and 2 s.
        bank.hand.go_on();
        let (look, pays) = (bank.look(&address).await, bank.pay("k-2").await);
        for (answer, kind, reason) in
            [(&look, "ledger-unreadable", "ledger_unreadable"), (&pays, "ledger-unavailable", "ledger")]
        {
            assert_eq!((answer.status(), &*problem(answer)), (503, kind));
            let field = answer.header("backstop").unwrap();
            assert!(field.contains(&format!("reason={reason}")), "{field}");
        }
        shell.execute_batch("ROLLBACK").unwrap();

        let look = bank.look(&address).await;
        assert_eq!((look.status(), member(&look, "state")), (200, "unknown".to_owned()));
        // Its intent became durable for nobody, and was never sent.
        let again = bank.pay("k-2").await;
        assert_eq!(bank.received(), 1, "{}", again.text());
        assert_eq!(bank.pay("k-3").await.status(), 201);
    });
}

/// A service that says by 503 that it did not take a payment, and says so with a word of its own. Any other 503 leaves it unknown.
#[test]
fn a_server_error_is_a_refusal_where_the_contract_says_that_it_has_no_effect() {
    run(async {
        let contract = "outcome = { succeeded = [{ status = 201 }], refused = [{ status = 503, no_effect = true, json = { \"/error\" = \"not_accepted\" } }] }";
        let bank = Bank::of(|origin| policy(origin, contract)).await;
        let says =
            |text: &str| Answer::new(503).header("Content-Type", "application/json").body(text.to_owned());
        bank.says(says(r#"{"error":"not_accepted"}"#));
        let first = bank.pay("k-1").await;
        bank.says(paid());
        let again = bank.pay("k-1").await;
        for answer in [&first, &again] {
            assert_eq!((answer.status(), &*answer.text()), (503, r#"{"error":"not_accepted"}"#));
        }
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        for (key, answer) in [
            ("k-2", Behaviour::from(says(r#"{"error":"overloaded"}"#))),
            ("k-3", Answer::new(503).into()),
            ("k-4", Answer::new(502).into()),
        ] {
            bank.says(answer);
            let lost = bank.pay(key).await;
            assert_eq!((lost.status(), &*problem(&lost)), (502, "outcome-unknown"), "{key}");
            assert_eq!(member(&lost, "why"), "server_error", "{key}");
        }
        assert_eq!(bank.received(), 4);
    });
}

/// Where the end of the connection is the end of the answer, half a number is a number too (RFC 9112 section 8).
#[test]
fn half_a_number_is_no_whole_answer() {
    run(async {
        let contract = "outcome = { succeeded = [{ status = 201 }] }";
        let bank = Bank::of(|origin| policy(origin, contract)).await;
        for (key, content, status) in
            [("k-1", "{\"id\":12}", 201), ("k-2", "12", 502), ("k-3", "{\"id\":", 502)]
        {
            let raw = format!("HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n{content}");
            bank.says(Behaviour::raw(raw, backstop_lab::origin::Then::Close));
            assert_eq!(bank.pay(key).await.status(), status, "{content}");
        }
    });
}
