//! Whatever the origin sees and the key does not hold must not make a copy for others.

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::shop::{HOST, SPANISH};
use crate::support::{Policy, Shop, expect, product, run};

/// RFC 9110 section 9.3.1 gives the content of a GET no meaning; an origin that answers by it answers nobody else.
#[test]
fn an_answer_to_a_gets_own_content_is_nobody_elses() {
    run(async {
        let shop = Shop::open().await;
        shop.origin.on(
            Matcher::any(),
            Behaviour::from_fn(|request| {
                let text = if request.body.is_empty() { "plain" } else { "from the content" };
                Answer::json(product("1", text, "es"))
            }),
        );
        let fat = shop.gateway.request("GET", "/p/1", &SPANISH, b"EVIL").await;
        expect::live(&fat, 200, &product("1", "from the content", "es"));
        shop.goes_down().await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
    });
}

/// A trusted peer passes on what its own client claims: another claim is another copy.
#[test]
fn what_a_trusted_peer_tells_of_its_client_is_part_of_the_key() {
    run(async {
        let shop = Shop::with(|origin| Policy::shop(origin).gateway("trusted = [\"127.0.0.1\"]")).await;
        let claims = [
            ("X-Forwarded-Host", "evil.example"),
            ("X-Forwarded-Prefix", "/evil"),
            ("X-Forwarded-Ssl", "on"),
        ];
        let claiming = |claim| [SPANISH[0], SPANISH[1], SPANISH[2], claim];
        for claim in claims {
            shop.gateway.get("/p/1", &claiming(claim)).await;
        }
        shop.goes_down().await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
        for claim in claims {
            let copy = shop.gateway.get("/p/1", &claiming(claim)).await;
            expect::copy(&copy, &product("1", "first", "es"), 0, "connect");
        }
    });
}

/// The policy may remove a credential before forwarding; the answer is this caller's all the same.
#[test]
fn a_credential_that_is_removed_still_makes_a_request_somebodys_own() {
    run(async {
        let shop = Shop::with(|origin| {
            let removing = Policy::description("request_headers = { remove = [\"authorization\"] }");
            Policy::shop(origin).replace_route("description.public_read", &removing)
        })
        .await;
        let own = [SPANISH[0], SPANISH[1], SPANISH[2], ("Authorization", "Bearer alice")];
        assert_eq!(shop.gateway.get("/p/1", &own).await.status(), 200);
        assert_eq!(shop.origin.requests()[0].header("authorization"), None);
        shop.goes_down().await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
    });
}

/// The gateway's own credential, set by the policy for all requests, makes none of them somebody's own.
#[test]
fn the_gateways_own_credential_does_not_hinder_copies() {
    run(async {
        let shop = Shop::with(|origin| {
            let setting =
                Policy::description("request_headers = { set = { authorization = \"Bearer gateway\" } }");
            Policy::shop(origin).replace_route("description.public_read", &setting)
        })
        .await;
        shop.get("1").await;
        assert_eq!(shop.origin.requests()[0].header("authorization"), Some("Bearer gateway"));
        shop.goes_down().await;
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "connect");
    });
}

/// A 304 that names no validator confirms what was asked with, if that is one; of two, nobody knows which.
#[test]
fn a_304_to_a_question_about_two_answers_renews_neither() {
    run(async {
        let mut shop = Shop::open().await;
        let tagged = Answer::json(product("1", "first", "es")).header("ETag", "\"a\"");
        shop.origin.on(Matcher::any(), tagged);
        shop.get("1").await;
        shop.pass(8.0);
        shop.origin.on(Matcher::any(), Behaviour::status(304));
        for asked in [vec!["\"a\", \"b\""], vec!["\"a\"", "\"b\""], vec!["*"]] {
            let mut fields = SPANISH.to_vec();
            fields.extend(asked.iter().map(|tag| ("If-None-Match", *tag)));
            assert_eq!(shop.gateway.get("/p/1", &fields).await.status(), 304);
        }
        shop.goes_down().await;
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 8, "connect");
    });
}

/// RFC 3875 section 4.1.18: a service that reads fields as variables of its environment cannot tell `X_Tenant` from
/// `X-Tenant`. What the key or the operator rules about comes under its own name or not at all.
#[test]
fn a_field_in_disguise_is_in_nobodys_copy() {
    run(async {
        let shop = Shop::with(|origin| {
            let read = Policy::description("request_headers = { remove = [\"X-Internal-User\"] }");
            Policy::shop(origin).replace_route("description.public_read", &read)
        })
        .await;
        let disguised = [
            SPANISH[0],
            SPANISH[1],
            SPANISH[2],
            ("X_Tenant", "b"),
            ("x_internal-User", "admin"),
            ("X_Forwarded_For", "203.0.113.9"),
            ("X-Forwarded_Host", "bank.example"),
            ("Accept_Language", "de"),
            ("X_Other", "kept"),
        ];
        assert_eq!(shop.gateway.get("/p/1", &disguised).await.status(), 200);
        assert_ne!(shop.gateway.request("PUT", "/p/1", &disguised, b"{}").await.status(), 404);
        let [read, write] = &shop.origin.requests()[..] else { panic!("two requests") };
        for gone in [
            "x_tenant",
            "x_internal-user",
            "x_forwarded_for",
            "x-forwarded_host",
            "accept_language",
            "x_other",
        ] {
            assert_eq!(read.header(gone), None, "{gone}");
        }
        assert_eq!((read.header("x-tenant"), read.header("accept-language")), (Some("a"), Some("es")));
        // Where nothing is kept, only what is the operator's or tells where it comes from has a name of its own.
        assert_eq!((write.header("x_other"), write.header("x_forwarded_for")), (Some("kept"), None));
    });
}

/// Names that the operator writes with underscores: what passes for one of them goes no further either.
#[test]
fn a_ruled_name_with_underscores_is_disguised_by_hyphens() {
    run(async {
        let shop = Shop::with(|origin| {
            let write = "match = \"PUT /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\nrequest_headers = { set = { X_User = \"edge\" }, remove = [\"X_Internal\"] }";
            Policy::empty().dependency("catalog", origin, "").route("write.direct", write)
        })
        .await;
        let fields = [
            ("Host", HOST),
            ("X-User", "root"),
            ("X_User", "root"),
            ("X-Internal", "1"),
            ("X_Internal", "1"),
        ];
        shop.gateway.request("PUT", "/p/1", &fields, b"{}").await;
        let [request] = &shop.origin.requests()[..] else { panic!("one request") };
        assert_eq!((request.header("x_user"), request.header("x-user")), (Some("edge"), None));
        assert_eq!((request.header("x_internal"), request.header("x-internal")), (None, None));
    });
}

/// What is in a copy's key comes in the head or not at all.
#[test]
fn a_keyed_field_does_not_follow_the_content() {
    run(async {
        let shop = Shop::open().await;
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        let head = "GET /p/1 HTTP/1.1\r\nHost: shop.example\r\nAccept-Language: es\r\nX-Tenant: a\r\nTransfer-Encoding: chunked\r\n";
        let content = "2\r\n{}\r\n0\r\nX-Tenant: b\r\nX_Tenant: c\r\nX-Sum: 1\r\n\r\n";
        client
            .send(format!("{head}Trailer: X-Tenant, X_Tenant, X-Sum\r\n\r\n{content}").as_bytes())
            .await
            .unwrap();
        assert_eq!(client.read_response().await.unwrap().status(), 200);
        let [request] = &shop.origin.requests()[..] else { panic!("one request") };
        assert_eq!(request.header("trailer"), Some("X-Sum"));
        assert_eq!(
            request.trailers.iter().map(|field| field.name.to_ascii_lowercase()).collect::<Vec<_>>(),
            ["x-sum"]
        );
    });
}
