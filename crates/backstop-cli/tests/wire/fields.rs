//! Fields on their way: what belongs to one connection stays there, everything else goes on as it is.

use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::raw::{Wires, direct};
use crate::support::{Policy, run};

/// RFC 9110 section 7.6.1, both ways: the fields of one connection, and those that `Connection` names.
#[test]
fn hop_by_hop_fields_go_no_further() {
    let hop = [
        ("Connection", "close, X-Mine"),
        ("X-Mine", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("TE", "trailers"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
        ("Proxy-Authorization", "Basic x"),
    ];
    run(async {
        let wires = Wires::open().await;
        let mut answer = Answer::json("{}").header("X-Kept", "1");
        for (name, value) in hop.iter().filter(|(name, _)| *name != "Connection") {
            answer = answer.header(name, value);
        }
        wires.origin.on(Matcher::any(), answer.header("Connection", "X-Mine"));
        let fields: Vec<_> = hop.into_iter().chain([("X-Kept", "1"), ("Authorization", "Basic y")]).collect();
        let answer = wires.gateway.get("/p/1", &fields).await;
        assert_eq!(answer.status(), 200);
        let [request] = &wires.origin.requests()[..] else { panic!("one request") };
        for name in [
            "x-mine",
            "keep-alive",
            "proxy-connection",
            "te",
            "upgrade",
            "http2-settings",
            "proxy-authorization",
        ] {
            assert_eq!(request.header(name), None, "{name} to the origin");
            assert_eq!(answer.header(name), None, "{name} to the client");
        }
        assert_eq!(request.header("connection"), None);
        assert_eq!((request.header("x-kept"), answer.header("x-kept")), (Some("1"), Some("1")));
        assert_eq!(request.header("authorization"), Some("Basic y"), "byte for byte");
    });
}

/// A field that says whether an answer may be kept is not dropped at the word of the same answer's `Connection`: it would be
/// kept, and served to others. An answer that asks for it is not valid.
#[test]
fn an_answer_cannot_drop_what_says_whether_it_may_be_kept() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route(
                    "read.public_read",
                    "match = \"GET /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 8\nmax_age = \"60s\"",
                )
                .route("rest.direct", &direct("*", ""))
        })
        .await;
        for (name, value) in [
            ("Cache-Control", "private"),
            ("Set-Cookie", "session=1"),
            ("Backstop-Cache-Control", "no-store"),
        ] {
            let private = Answer::json("{}").header(name, value).header("Connection", name);
            wires.origin.default(private);
            let refused = wires.gateway.get("/p/1", &[]).await;
            assert_eq!(
                (refused.status(), refused.header("backstop")),
                (503, Some("outcome=rejected, reason=missing, cause=protocol")),
                "{name}"
            );
            let passed = wires.gateway.get("/other", &[]).await;
            assert_eq!(
                (passed.status(), passed.header("backstop")),
                (502, Some("outcome=failed, reason=protocol"))
            );
            wires.origin.default(Behaviour::status(503));
            let copy = wires.gateway.get("/p/1", &[]).await;
            assert_eq!(copy.status(), 503, "{name}: nothing was kept");
        }
    });
}

/// RFC 9110 section 5.3: lines of one name keep their order, and `Set-Cookie` lines are never joined.
#[test]
fn lines_of_one_name_stay_lines_in_their_order() {
    run(async {
        let wires = Wires::open().await;
        let cookies = ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "b=2", "c=3; Path=/"];
        let mut answer = Answer::json("{}").header("X-List", "1").header("X-Other", "o");
        for cookie in cookies {
            answer = answer.header("Set-Cookie", cookie);
        }
        wires.origin.on(Matcher::any(), answer.header("X-List", "2").header("X-List", "3"));
        let sent = [("X-List", "1"), ("X-Other", "o"), ("X-List", "2, 2b"), ("X-List", "3")];
        let answer = wires.gateway.get("/p/1", &sent).await;
        assert_eq!(answer.head.fields.all("set-cookie").collect::<Vec<_>>(), cookies);
        assert_eq!(answer.head.fields.all("x-list").collect::<Vec<_>>(), ["1", "2", "3"]);
        let request = &wires.origin.requests()[0];
        assert_eq!(request.fields.all("x-list").collect::<Vec<_>>(), ["1", "2, 2b", "3"]);
    });
}

/// Whoever is not trusted is not believed; whoever is, is continued.
#[test]
fn who_asked_is_told_by_the_gateway_or_by_those_it_trusts() {
    let claims = [
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Host", "bank.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Port", "443"),
        ("X-Forwarded-Prefix", "/admin"),
        ("x-forwarded-ssl", "on"),
        ("Forwarded", "for=203.0.113.9"),
        ("Host", "shop.example"),
    ];
    run(async {
        let wires = Wires::open().await;
        wires.gateway.get("/p/1", &claims).await;
        let request = &wires.origin.requests()[0];
        let told = |name| request.fields.all(name).collect::<Vec<_>>().join(", ");
        assert_eq!(told("x-forwarded-for"), "127.0.0.1");
        assert_eq!(
            (told("x-forwarded-host"), told("x-forwarded-proto")),
            ("shop.example".into(), "http".into())
        );
        for claimed in ["x-forwarded-port", "x-forwarded-prefix", "x-forwarded-ssl", "forwarded"] {
            assert_eq!(told(claimed), "", "{claimed}");
        }

        let trusting =
            Wires::with(|origin| crate::raw::everything(origin).gateway("trusted = [\"127.0.0.0/8\"]")).await;
        trusting.gateway.get("/p/1", &claims).await;
        let request = &trusting.origin.requests()[0];
        let told = |name| request.fields.all(name).collect::<Vec<_>>().join(", ");
        assert_eq!(told("x-forwarded-for"), "203.0.113.9, 127.0.0.1");
        assert_eq!(
            (told("x-forwarded-host"), told("x-forwarded-proto")),
            ("bank.example".into(), "https".into())
        );
        assert_eq!((told("x-forwarded-port"), told("forwarded")), ("443".into(), "for=203.0.113.9".into()));
        assert_eq!((told("x-forwarded-prefix"), told("x-forwarded-ssl")), ("/admin".into(), "on".into()));
    });
}

#[test]
fn the_host_is_the_clients_own_or_the_one_that_is_fixed() {
    run(async {
        let wires = Wires::open().await;
        wires.gateway.get("/p/1", &[("Host", "Shop.Example:8443")]).await;
        assert_eq!(wires.origin.requests()[0].header("host"), Some("shop.example:8443"));
        let fixed = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "host = \"catalog.internal\"")
                .route("all.direct", &direct("*", ""))
        })
        .await;
        fixed.gateway.get("/p/1", &[("Host", "shop.example")]).await;
        let request = &fixed.origin.requests()[0];
        assert_eq!(request.fields.all("host").collect::<Vec<_>>(), ["catalog.internal"]);
        assert_eq!(request.header("x-forwarded-host"), Some("shop.example"));
    });
}

/// Removal comes first; setting then replaces every line of that name.
#[test]
fn the_policy_sets_and_removes_fields_both_ways() {
    run(async {
        let edits = "request_headers = { set = { x-set = \"own\" }, remove = [\"cookie\", \"x-gone\"] }\n\
             response_headers = { set = { x-frame-options = \"DENY\" }, remove = [\"server\", \"x-gone\"] }";
        let wires = Wires::with(|origin| {
            Policy::empty().dependency("catalog", origin, "").route("all.direct", &direct("*", edits))
        })
        .await;
        let answer = Answer::json("{}").header("Server", "secret/1.2").header("X-Gone", "1");
        wires.origin.on(Matcher::any(), answer.header("X-Frame-Options", "a").header("X-Frame-Options", "b"));
        let sent =
            [("Cookie", "a=b"), ("X-Gone", "1"), ("X-Set", "client"), ("X-Set", "twice"), ("X-Kept", "1")];
        let answer = wires.gateway.get("/p/1", &sent).await;
        assert_eq!(answer.head.fields.all("x-frame-options").collect::<Vec<_>>(), ["DENY"]);
        assert_eq!((answer.header("server"), answer.header("x-gone")), (None, None));
        let request = &wires.origin.requests()[0];
        assert_eq!(request.fields.all("x-set").collect::<Vec<_>>(), ["own"]);
        assert_eq!((request.header("cookie"), request.header("x-gone")), (None, None));
        assert_eq!(request.header("x-kept"), Some("1"));
    });
}
