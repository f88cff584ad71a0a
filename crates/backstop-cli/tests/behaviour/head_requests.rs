//! HEAD and conditional requests against copies. Public reports: HEAD answered from stored data said `Content-Length: 0`,
//! <https://github.com/varnishcache/varnish-cache/issues/4245>, <https://github.com/caddyserver/cache-handler/issues/59>.

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{Outcomes, Shop, expect, product, run};

/// A right answer of 137 bytes with an entity tag.
fn tagged(tag: &str) -> (Answer, String) {
    let short = product("1", "", "es").len();
    let body = product("1", &"x".repeat(137 - short), "es");
    (Answer::json(body.clone()).header("ETag", tag), body)
}

/// The same fields as GET without content (RFC 9110 section 9.3.2), and the connection goes on in step.
#[test]
fn head_is_answered_from_the_copy_with_its_length() {
    run(async {
        let mut shop = Shop::open().await;
        let (answer, body) = tagged("\"e1\"");
        shop.origin.on(Matcher::any(), answer);
        expect::live(&shop.get("1").await, 200, &body);
        shop.is_unavailable();
        shop.pass(2.0);
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        let head = client.exchange("HEAD", "/p/1", &SPANISH, b"").await.unwrap();
        assert_eq!((head.status(), head.header("content-length"), head.body.len()), (200, Some("137"), 0));
        assert_eq!(head.header("etag"), Some("\"e1\""));
        expect::marked_as_copy(&head, 2, "unavailable");
        let get = client.get("/p/1", &SPANISH).await.unwrap();
        expect::copy(&get, &body, 2, "unavailable");
        assert_eq!(get.body.len(), 137);
        expect::outcomes(&shop.gateway, Outcomes { normal: 1, fallback: 2, ..Outcomes::default() }).await;
    });
}

/// A product that was only ever looked at by HEAD has no copy: never an empty 200.
#[test]
fn head_alone_makes_no_copy() {
    run(async {
        let shop = Shop::open().await;
        shop.origin.on(Matcher::any(), tagged("\"e1\"").0);
        let head = shop.gateway.request("HEAD", "/p/2", &SPANISH, b"").await;
        assert_eq!((head.status(), head.header("content-length"), head.body.len()), (200, Some("137"), 0));
        assert_eq!(shop.origin.count_of("HEAD", "/p/2"), 1);
        shop.is_unavailable();
        expect::no_copy(&shop.get("2").await, "missing", "unavailable");
    });
}

/// HEAD tells of a newer version. The copy stays the older one and is called so; 137 old bytes are never labelled `e2`.
#[test]
fn head_of_a_newer_version_does_not_relabel_the_copy() {
    run(async {
        let shop = Shop::open().await;
        let (answer, body) = tagged("\"e1\"");
        shop.origin.on(Matcher::any(), answer);
        shop.get("1").await;
        shop.origin.on(Matcher::any(), Answer::json("x".repeat(150)).header("ETag", "\"e2\""));
        let head = shop.gateway.request("HEAD", "/p/1", &SPANISH, b"").await;
        assert_eq!((head.header("content-length"), head.header("etag")), (Some("150"), Some("\"e2\"")));
        shop.is_unavailable();
        let saved = shop.get("1").await;
        expect::copy(&saved, &body, 0, "unavailable");
        assert_eq!(saved.header("etag"), Some("\"e1\""));
    });
}

/// The origin's 304 is never kept as a body. It confirms the copy that it names, whose date it renews; one that names
/// another version renews nothing.
#[test]
fn a_304_is_no_copy_and_renews_only_what_it_confirms() {
    run(async {
        for (tag, age) in [("\"e1\"", 20), ("\"e2\"", 50)] {
            let mut shop = Shop::open().await;
            let (answer, body) = tagged("\"e1\"");
            shop.origin.on(Matcher::any(), answer);
            shop.get("1").await;
            shop.pass(30.0);
            shop.origin.on(Matcher::any(), Answer::new(304).header("ETag", tag));
            let asking = [("If-None-Match", tag), SPANISH[0], SPANISH[1], SPANISH[2]];
            let unchanged = shop.gateway.get("/p/1", &asking).await;
            assert_eq!((unchanged.status(), unchanged.header("backstop")), (304, None));
            let sent = shop.origin.requests();
            assert_eq!(sent.last().unwrap().header("if-none-match"), Some(tag));
            shop.is_unavailable();
            shop.pass(20.0);
            expect::copy(&shop.get("1").await, &body, age, "unavailable");
        }
    });
}

/// The client's own condition is judged against the copy (RFC 9111 section 4.3.2), and the 304 says what it stands for.
#[test]
fn a_client_that_has_the_copy_gets_304() {
    run(async {
        let mut shop = Shop::open().await;
        shop.origin.on(Matcher::any(), tagged("\"e1\"").0);
        shop.get("1").await;
        shop.origin.on(Matcher::any(), Behaviour::status(503));
        shop.pass(5.0);
        let has_it = [("If-None-Match", "\"e0\", W/\"e1\""), SPANISH[0], SPANISH[1], SPANISH[2]];
        let unchanged = shop.gateway.get("/p/1", &has_it).await;
        assert_eq!((unchanged.status(), unchanged.header("etag")), (304, Some("\"e1\"")));
        expect::marked_as_copy(&unchanged, 5, "unavailable");
        let has_another = [("If-None-Match", "\"e2\""), SPANISH[0], SPANISH[1], SPANISH[2]];
        assert_eq!(shop.gateway.get("/p/1", &has_another).await.status(), 200);
    });
}
