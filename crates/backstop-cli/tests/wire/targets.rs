//! The target of a request, on its way through.

use std::net::{Ipv6Addr, SocketAddr};

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Origin};

use crate::raw::{Wires, direct};
use crate::support::{Gateway, Policy, run};

/// RFC 9110 section 7.7: path and query go on byte for byte. Nothing is decoded, merged or sorted.
#[test]
fn path_and_query_go_on_byte_for_byte() {
    run(async {
        let wires = Wires::open().await;
        let targets = [
            "/",
            "/?",
            "/a//b///c/",
            "/a%2Fb/%7euser/%7Euser/%zz/%",
            "/a;v=1/b,c/(d)/e'f/g*h!$&+=:@~",
            "/a?b=c&b=d&&e&=f?g/h",
            "/a?q=%20+%2B&x[]={y}|\\^`",
            "/a/...//.b/c./..d",
            "/%C3%A9/%00",
        ];
        for target in targets {
            let said =
                wires.say(format!("GET {target} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")).await;
            assert_eq!(said.statuses(), [200], "{target}");
        }
        let seen: Vec<_> = wires.origin.requests().iter().map(|request| request.target.clone()).collect();
        assert_eq!(seen, targets);
    });
}

/// RFC 9112 section 3.2.2: the target's authority wins over `Host`, and the origin gets it as its `Host`.
#[test]
fn the_absolute_form_decides_the_host() {
    run(async {
        let wires = Wires::open().await;
        let said = wires
            .say("GET http://shop.example:81/p/1?q HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n")
            .await;
        assert_eq!(said.statuses(), [200]);
        let [request] = &wires.origin.requests()[..] else { panic!("one request") };
        assert_eq!(request.target, "/p/1?q", "an origin gets the origin form");
        assert_eq!(request.fields.all("host").collect::<Vec<_>>(), ["shop.example:81"]);

        // Without Host it is malformed all the same (RFC 9112 section 3.2).
        let said = wires.say("GET http://shop.example/ HTTP/1.1\r\n\r\n").await;
        said.refused_with(400, "absolute form without Host");
        for bad in ["http://me@shop.example/", "http:///p/1", "http://sh op/"] {
            let said = wires.say(format!("GET {bad} HTTP/1.1\r\nHost: shop\r\n\r\n")).await;
            said.refused_with(400, bad);
        }
        assert_eq!(wires.origin.count(), 1);
    });
}

/// RFC 9110 section 7.4: who asks for `https` on a connection that is none asks at the wrong place, unless it is a proxy that
/// is trusted; and then an answer for one scheme is no copy for the other.
#[test]
fn another_scheme_is_served_to_the_trusted_and_is_another_copy() {
    let get =
        |target: &str| format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
    run(async {
        let wires = Wires::open().await;
        wires.say(get("https://shop.example/p/1")).await.refused_with(421, "https");
        assert_eq!(wires.origin.count(), 0);
        assert_eq!(wires.say(get("HTTP://shop.example/p/1")).await.statuses(), [200]);

        let trusting = Wires::with(|origin| {
            Policy::empty()
                .gateway("trusted = [\"127.0.0.1\"]")
                .dependency("catalog", origin, "")
                .route(
                    "read.public_read",
                    "match = \"GET /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 8\nmax_age = \"60s\"",
                )
        })
        .await;
        trusting.origin.default(Answer::json("{}"));
        assert_eq!(trusting.say(get("https://shop.example/p/1")).await.statuses(), [200]);
        let [request] = &trusting.origin.requests()[..] else { panic!("one request") };
        assert_eq!(request.header("x-forwarded-proto"), Some("https"));
        trusting.origin.default(Behaviour::status(503));
        let secured = trusting.say(get("https://shop.example/p/1")).await;
        assert_eq!(secured.statuses(), [200], "the copy");
        let plain = trusting.say(get("http://shop.example/p/1")).await;
        assert_eq!(plain.statuses(), [503], "it is another resource");
    });
}

/// The host decides the route, from wherever it comes.
#[test]
fn the_host_of_the_absolute_form_decides_the_route() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route(
                    "one.direct",
                    &direct("*", "host = \"one.example\"\nrequest_headers = { set = { x-route = \"one\" } }"),
                )
                .route(
                    "two.direct",
                    &direct(
                        "*",
                        "host = \"*.two.example\"\nrequest_headers = { set = { x-route = \"two\" } }",
                    ),
                )
        })
        .await;
        for (target, host, route) in [
            ("/", "one.example", Some("one")),
            ("/", "ONE.example:8080", Some("one")),
            ("/", "one.example.", Some("one")),
            ("/", "a.two.example", Some("two")),
            ("/", "three.example", None),
            ("http://one.example/", "a.two.example", Some("one")),
            ("http://three.example/", "one.example", None),
        ] {
            wires.origin.forget();
            let answer = wires.gateway.get(target, &[("Host", host)]).await;
            let seen = wires.origin.requests();
            let went = seen.first().and_then(|request| request.header("x-route"));
            assert_eq!(
                (answer.status(), went),
                (if route.is_some() { 200 } else { 404 }, route),
                "{target} {host}"
            );
        }
    });
}

/// `OPTIONS *` asks about the server as a whole (RFC 9110 section 9.3.7), and no route is for that: a catch-all is for paths.
#[test]
fn the_asterisk_form_is_never_taken_for_a_path() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say("OPTIONS * HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").await;
        said.refused_with(404, "the server as a whole");
        assert_eq!(said.answers[0].header("backstop"), Some("outcome=rejected, reason=no_route"));
        assert_eq!(wires.origin.count(), 0);
    });
}

/// RFC 9112 section 3.2: an HTTP/1.0 request needs no `Host`, but whoever speaks HTTP/1.1 to the origin must send one.
#[test]
fn an_old_request_without_host_gets_one_on_its_way() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say("GET /p/1 HTTP/1.0\r\n\r\n").await;
        assert_eq!(said.statuses(), [200]);
        said.closed("HTTP/1.0");
        let [request] = &wires.origin.requests()[..] else { panic!("one request") };
        assert_eq!(request.minor_version, 1);
        assert_eq!(request.fields.count("host"), 1, "{:?}", request.head);
        assert_eq!(request.header("via"), Some("1.0 edge"), "as it was received");
    });
}

/// RFC 9110 section 4.2.1 and RFC 9112 section 3.2: an IPv6 address stands in brackets, also where nobody but the gateway says
/// it: to an old client's origin, and to whoever is probed.
#[test]
fn an_ipv6_dependency_is_called_by_its_address_in_brackets() {
    run(async {
        let address = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        let origin = Origin::builder().addr(address).start().await.expect("IPv6 on this machine");
        let breaker =
            "breaker = { min_calls = 1, open = \"1s\" }\nprobe = { path = \"/health\", interval = \"1s\" }";
        let policy = Policy::empty()
            .dependency("catalog", origin.addr(), breaker)
            .route("all.direct", &direct("*", ""));
        let gateway = Gateway::start(&policy);
        let mut connection = client::Connection::open(gateway.addr).await.unwrap();
        connection.send(b"GET /p/1 HTTP/1.0\r\n\r\n").await.unwrap();
        assert_eq!(connection.read_response().await.unwrap().status(), 200);
        let [request] = &origin.requests()[..] else { panic!("one request") };
        let name = format!("[::1]:{}", origin.addr().port());
        assert_eq!(request.header("host"), Some(name.as_str()));

        let mut hand = gateway.hand();
        hand.freeze();
        origin.default(Behaviour::status(503));
        while gateway.metrics().await.sum("backstop_breaker_phase", &["phase=\"open\""]) == 0.0 {
            gateway.get("/p/1", &[]).await;
        }
        while origin.count_of("GET", "/health") == 0 {
            hand.pass(std::time::Duration::from_secs(1));
            gateway.metrics().await;
        }
        let requests = origin.requests();
        let probe = requests.iter().find(|request| request.target == "/health").expect("a probe");
        assert_eq!(probe.header("host"), Some(name.as_str()));
    });
}

#[test]
fn a_prefix_is_stripped_from_the_path_alone() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("api.direct", &direct("GET /api/v1/{rest*}", "strip_prefix = \"/api/v1\""))
        })
        .await;
        for (sent, seen) in [
            ("/api/v1/p/1?q=/api/v1/x", "/p/1?q=/api/v1/x"),
            ("/api/v1/api/v1/a", "/api/v1/a"),
            ("/api/v1/", "/"),
            ("/api/v1/?q", "/?q"),
            ("/api/v1//a", "//a"),
            ("/%61pi/v%31/%70/1", "/%70/1"),
        ] {
            wires.origin.forget();
            assert_eq!(wires.gateway.get(sent, &[]).await.status(), 200, "{sent}");
            assert_eq!(wires.origin.requests()[0].target, seen, "{sent}");
        }
        assert_eq!(wires.gateway.get("/api/v10/a", &[]).await.status(), 404);
    });
}
