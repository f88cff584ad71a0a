//! `backstop explain` as a person uses it, and the steps of real requests for trusted callers.

use std::net::TcpListener;

use backstop_lab::origin::{Answer, Matcher, Origin};
use insta::assert_snapshot;

use crate::support::gateway::{folder, output};
use crate::support::shop::{HOST, SPANISH, down};
use crate::support::{Gateway, Policy, products, run};

const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop.toml");

/// What is said of a request, with the policy's path as it is written in documents.
fn said(arguments: &[&str]) -> String {
    let arguments: Vec<&str> = ["explain"].into_iter().chain(arguments.iter().copied()).collect();
    let folder = folder();
    let (status, out, err) = output(&arguments, &folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(status.code(), Some(if err.is_empty() { 0 } else { 2 }), "{err}");
    let text = if err.is_empty() { out } else { err };
    text.replace(SHOP, "examples/shop.toml")
}

/// Without the time limits, which a test of their own shows.
fn without_limits(text: &str) -> String {
    let (head, rest) = text.split_once("\ntime limits\n").unwrap();
    let (_, rest) = rest.split_once("\n\n").unwrap();
    format!("{head}\n{rest}")
}

#[test]
fn a_copy_that_is_too_old_is_explained() {
    let text = said(&[
        SHOP,
        "GET /products/42",
        "--when",
        "catalog=connect_timeout",
        "--copy-age",
        "61s",
        "--host",
        HOST,
        "--header",
        "Accept-Language: es",
    ]);
    assert_snapshot!(without_limits(&text), @"");
}

#[test]
fn every_time_limit_says_what_it_includes() {
    let text = said(&[SHOP, "GET /products/42"]);
    let (_, limits) = text.split_once("\ntime limits\n").unwrap();
    let (limits, _) = limits.split_once("\n\n").unwrap();
    assert_snapshot!(limits, @"");
}

#[test]
fn a_full_route_is_explained() {
    let text = said(&[SHOP, "GET /products/42", "--in-flight", "route=200"]);
    assert_snapshot!(without_limits(&text), @"");
}

#[test]
fn a_request_that_no_route_answers_is_explained() {
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/page.toml");
    assert_snapshot!(said(&[policy, "PUT /nothing"]), @"");
}

#[test]
fn a_slip_is_refused_with_what_was_meant() {
    assert_snapshot!(said(&[SHOP, "GET /products/42", "--when", "catalgo=reset"]), @"");
    assert_snapshot!(said(&[SHOP, "GET /products/42", "--when", "catalog=conect"]), @"");
    assert_snapshot!(said(&[SHOP, "/products/42"]), @"");
    assert_snapshot!(said(&[SHOP, "GET /products/42", "--operation", "unknown"]), @"");
}

#[test]
fn a_policy_that_is_wrong_is_refused_as_run_refuses_it() {
    let folder = folder();
    std::fs::write(folder.join("policy.toml"), "[gateway]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let (explained, _, why) = output(&["explain", "policy.toml", "GET /"], &folder);
    let (ran, _, refused) = output(&["run", "policy.toml"], &folder);
    assert_eq!((explained.code(), why), (ran.code(), refused));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// No socket, no ledger, no copies: its address is taken by another, and its folder stays as it was.
#[test]
fn an_explanation_writes_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let outcome = "outcome = { succeeded = [{ status = 200 }] }";
    let policy = Policy::shop(taken.local_addr().unwrap())
        .gateway(&format!("listen = \"{}\"", taken.local_addr().unwrap()))
        .store("path = \"data\"")
        .store("snapshots = { memory = \"1 MiB\", disk = \"1 GiB\" }")
        .route(
            "pay.effect",
            &format!(
                "match = \"POST /pay\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 2\n{outcome}"
            ),
        );
    let folder = folder();
    std::fs::write(folder.join("policy.toml"), policy.text()).unwrap();
    for (request, more) in [("GET /p/1", "X-Tenant: a"), ("POST /pay", "Idempotency-Key: k")] {
        let (status, out, err) = output(&["explain", "policy.toml", request, "--header", more], &folder);
        assert!(status.success() && out.contains("200 after 0 s: outcome normal"), "{out}{err}");
    }
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["policy.toml"]);
    taken.set_nonblocking(true).unwrap();
    assert!(taken.accept().is_err(), "nobody connected");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_trusted_caller_gets_the_steps_and_nobody_else_does() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let asks = [SPANISH[0], SPANISH[1], SPANISH[2], ("Backstop-Explain", "?1")];
        let gateway = Gateway::start(&Policy::shop(origin.addr()).gateway("trusted = [\"127.0.0.0/8\"]"));
        let names = |field: &str| -> Vec<String> {
            let step = |item: &str| item.split(';').next().unwrap().to_owned();
            field.split(", ").map(step).collect()
        };
        let normal = gateway.get("/p/1", &asks).await;
        assert_eq!(normal.header("backstop"), Some("outcome=normal, source=primary"));
        let steps = normal.header("backstop-steps").unwrap();
        let expected = ["admitted", "copy_known", "called", "answered", "body", "copy_kept", "decided"];
        assert_eq!(names(steps), expected, "{steps}");
        assert!(gateway.get("/p/1", &SPANISH).await.header("backstop-steps").is_none(), "nobody asked");
        // What a dependency says there is not told on, nor kept.
        let marked = Answer::json(crate::support::product("2", "first", "es"))
            .header("Backstop-Steps", "admitted;at=0");
        origin.on(Matcher::any(), marked);
        assert!(gateway.get("/p/2", &SPANISH).await.header("backstop-steps").is_none());
        down(&origin).await;
        let copy = gateway.get("/p/2", &asks).await;
        assert_eq!((copy.status(), copy.header("age")), (200, Some("0")));
        let steps = copy.header("backstop-steps").unwrap();
        let expected = ["admitted", "copy_known", "called", "failed", "copy", "decided"];
        assert_eq!(names(steps), expected, "{steps}");
        assert!(steps.contains("failed;at=") && steps.contains(";cause=connect;line="), "{steps}");
        assert!(gateway.get("/p/2", &SPANISH).await.header("backstop-steps").is_none());

        origin.accept_again().await.unwrap();
        let stranger = Gateway::start(&Policy::shop(origin.addr()));
        let answer = stranger.get("/p/2", &asks).await;
        assert_eq!(answer.header("backstop"), Some("outcome=normal, source=primary"));
        assert!(answer.header("backstop-steps").is_none());
        down(&origin).await;
        assert!(stranger.get("/p/2", &asks).await.header("backstop-steps").is_none());
    });
}
