//! Two spellings of one resource are one resource (RFC 3986 section 6.2.2): a write by one withdraws what was read by the
//! other. The path is forwarded as it came, the host in its one spelling.

use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{Policy, Shop, expect, product, run};

fn on(host: &str) -> [(&str, &str); 3] {
    [SPANISH[0], SPANISH[1], ("Host", host)]
}

#[test]
fn a_write_withdraws_whatever_its_spelling() {
    run(async {
        for (host, path) in [
            ("shop.example", "/p/%31"),
            ("shop.example", "/%70/1"),
            ("SHOP.example", "/p/1"),
            ("shop.example:80", "/p/1"),
            ("shop.example:", "/p/1"),
            ("shop.example.", "/p/1"),
        ] {
            let shop = Shop::open().await;
            shop.get("1").await;
            let written = shop.gateway.request("PUT", path, &on(host), b"new").await;
            assert_eq!(written.status(), 200, "{host}{path}");
            let seen = shop.origin.requests().last().expect("the write").target.clone();
            assert_eq!(seen, path, "forwarded as it came");
            shop.goes_down().await;
            expect::no_copy(&shop.get("1").await, "missing", "connect");
        }
    });
}

/// Most services decode all of a path: what one of them may have meant is withdrawn, and what two may tell apart is never
/// served for one another.
#[test]
fn a_write_withdraws_what_its_path_may_mean_and_no_copy_serves_another_path() {
    run(async {
        let pairs = [
            ("/p/a:b", "/p/a%3Ab"),
            ("/p/a%3ab", "/p/a:b"),
            ("/p/a%40b", "/p/a@b"),
            ("/p/a%21%24%2Cb", "/p/a!$,b"),
            ("/p/caf%C3%A9", "/p/caf%c3%a9"),
        ];
        for (read, written) in pairs {
            let shop = Shop::open().await;
            assert_eq!(shop.gateway.get(read, &on("shop.example")).await.status(), 200);
            shop.origin.on(Matcher::any().method("GET"), Behaviour::status(503));
            if written != "/p/caf%c3%a9" {
                let other = shop.gateway.get(written, &on("shop.example")).await;
                expect::no_copy(&other, "missing", "unavailable");
            }
            assert_eq!(shop.gateway.get(read, &on("shop.example")).await.status(), 200, "{read}");
            let put = shop.gateway.request("PUT", written, &on("shop.example:080"), b"new").await;
            assert_eq!(put.status(), 200);
            expect::no_copy(&shop.gateway.get(read, &on("shop.example")).await, "missing", "unavailable");
        }
    });
}

#[test]
fn a_named_withdrawal_reaches_another_spelling_and_every_host_of_the_route() {
    run(async {
        let hosts = "host = [\"shop.example\", \"www.shop.example\"]";
        let shop = Shop::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("description.public_read", &Policy::description(hosts))
                .route(
                    "stock.direct",
                    "match = \"PUT /stock/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\nwithdraws = \"description\"",
                )
        })
        .await;
        for host in ["shop.example", "www.shop.example"] {
            let read = shop.gateway.get("/p/1", &on(host)).await;
            expect::live(&read, 200, &product("1", "first", "es"));
        }
        shop.gateway.request("PUT", "/stock/%31", &on("www.shop.example"), b"0").await;
        shop.goes_down().await;
        for host in ["shop.example", "www.shop.example"] {
            expect::no_copy(&shop.gateway.get("/p/1", &on(host)).await, "missing", "connect");
        }
    });
}

/// A client chooses the port in `Host`, and each has copies of its own; a write withdraws them all, a named one and one on the
/// same path, on a route for certain hosts and on one for all.
#[test]
fn a_write_withdraws_the_copies_under_every_port() {
    const PORTS: [&str; 3] = ["shop.example", "shop.example:8080", "shop.example:9090"];
    run(async {
        for hosts in ["host = \"shop.example\"", ""] {
            for (path, written) in
                [("/stock/1", PORTS[0]), ("/stock/1", PORTS[1]), ("/p/1", PORTS[0]), ("/p/1", PORTS[2])]
            {
                let shop = Shop::with(|origin| {
                    Policy::shop(origin)
                        .replace_route("description.public_read", &Policy::description(hosts))
                        .route(
                            "stock.direct",
                            "match = \"PUT /stock/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\nwithdraws = \"description\"",
                        )
                })
                .await;
                shop.gateway.get("/p/1", &on(PORTS[0])).await;
                shop.gateway.get("/p/1", &on(PORTS[1])).await;
                shop.gateway.get("/p/2", &on(PORTS[1])).await;
                shop.is_unavailable();
                for host in &PORTS[..2] {
                    let copy = shop.gateway.get("/p/1", &on(host)).await;
                    expect::copy(&copy, &product("1", "first", "es"), 0, "unavailable");
                }
                let other = shop.gateway.get("/p/1", &on(PORTS[2])).await;
                expect::no_copy(&other, "missing", "unavailable");
                shop.origin.on(Matcher::any().method("PUT"), Answer::new(200));
                shop.gateway.request("PUT", path, &on(written), b"0").await;
                for host in &PORTS[..2] {
                    let gone = shop.gateway.get("/p/1", &on(host)).await;
                    assert_eq!(gone.status(), 503, "{hosts} {path} on {written}: {host}");
                }
                let kept = shop.gateway.get("/p/2", &on(PORTS[1])).await;
                assert_eq!(kept.status(), 200, "{hosts} {path} on {written}: the write does not point there");
            }
        }
    });
}

/// A second way to write a path would otherwise be a second route: past a stricter one.
#[test]
fn another_spelling_leads_to_the_same_route() {
    run(async {
        let shop = Shop::open().await;
        shop.gateway.get("/%70/%31", &SPANISH).await;
        shop.goes_down().await;
        expect::copy(&shop.gateway.get("/p/1", &SPANISH).await, &product("%31", "first", "es"), 0, "connect");
    });
}

/// What is cut off before forwarding is cut off however it is spelt: else two resources would lie under one key.
#[test]
fn another_spelling_of_the_prefix_asks_for_the_same_resource() {
    run(async {
        for path in ["/p/1", "/%70/1", "/%70/%31"] {
            let shop = Shop::with(|origin| {
                Policy::empty()
                    .dependency("catalog", origin, "")
                    .route("description.public_read", &Policy::description("strip_prefix = \"/p\""))
            })
            .await;
            shop.origin
                .default(Behaviour::from_fn(|request| Answer::json(product("1", &request.target, "es"))));
            let target = path.replacen("/%70", "", 1).replacen("/p", "", 1);
            let body = product("1", &target, "es");
            expect::live(&shop.gateway.get(path, &SPANISH).await, 200, &body);
            shop.goes_down().await;
            expect::copy(&shop.get("1").await, &body, 0, "connect");
        }
    });
}

/// A template is one path, however the request is spelt.
#[test]
fn a_template_matches_in_every_spelling() {
    run(async {
        let shop = Shop::with(|origin| {
            let lines =
                "match = \"GET /caf%C3%A9/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4";
            Policy::empty().dependency("catalog", origin, "").route("menu.direct", lines)
        })
        .await;
        for path in ["/caf%c3%a9/1", "/caf%C3%A9/1", "/%63%61f%C3%a9/1"] {
            assert_eq!(shop.gateway.get(path, &SPANISH).await.status(), 200, "{path}");
            let seen = shop.origin.requests().last().expect("the read").target.clone();
            assert_eq!(seen, path, "forwarded as it came");
        }
    });
}

/// An origin that chooses by the host, byte for byte, must not leave the answer of one spelling as the copy of another.
#[test]
fn another_spelling_of_the_host_asks_the_same_host() {
    run(async {
        for host in ["shop.example.", "shop.example:80", "SHOP.Example", "shop.example:"] {
            let shop = Shop::open().await;
            shop.origin.default(Behaviour::from_fn(|request| {
                let told = |name| request.header(name).unwrap_or("none");
                let hosts = format!("{} {}", told("host"), told("x-forwarded-host"));
                Answer::json(product("1", &hosts, "es"))
            }));
            let body = product("1", "shop.example shop.example", "es");
            expect::live(&shop.gateway.get("/p/1", &on(host)).await, 200, &body);
            shop.goes_down().await;
            expect::copy(&shop.get("1").await, &body, 0, "connect");
        }
    });
}
