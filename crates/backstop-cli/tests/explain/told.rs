//! `backstop explain` as a person uses it, and the steps of real requests for trusted callers.

use std::net::TcpListener;

use backstop_lab::origin::{Answer, Matcher, Origin};
use insta::assert_snapshot;

use crate::support::gateway::{folder, output};
use crate::support::shop::{HOST, SPANISH, down};
use crate::support::{Gateway, Policy, products, run};

const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop.toml");

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/page.toml");

/// What is said of a request, with the policy's path as it is written in documents.
fn said(arguments: &[&str]) -> String {
    let arguments: Vec<&str> = ["explain"].into_iter().chain(arguments.iter().copied()).collect();
    let folder = folder();
    let (status, out, err) = output(&arguments, &folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(status.code(), Some(if err.is_empty() { 0 } else { 2 }), "{err}");
    let text = if err.is_empty() { out } else { err };
    text.replace(SHOP, "examples/shop.toml").replace(PAGE, "examples/page.toml")
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
    assert_snapshot!(without_limits(&text), @r#"
    GET /products/42
      route `description` (public_read): `GET /products/{product}` is the most specific that matches
        {product} is 42
        examples/shop.toml:25: [route.description.public_read]

    before
      61 s before, the same request got 200, which was kept as a copy

    steps
               0 s  admitted: a place at the process and one at the route
                      examples/shop.toml:29: in_flight  = 200
               0 s  there is a copy, and it is too old
                      examples/shop.toml:32: max_age    = "6s"
               0 s  calls `catalog` (call 1), until 294 ms at most
                      examples/shop.toml:14: [dependency.catalog]
             50 ms  the call failed: connect_timeout
                      examples/shop.toml:14: [dependency.catalog]
             50 ms  there is a copy, and it is too old
                      examples/shop.toml:32: max_age    = "6s"
             50 ms  decided: rejected, because of age
                      examples/shop.toml:32: max_age    = "6s"

    answer
      503 after 50 ms: outcome rejected, reason age
      content-type: application/problem+json
      cache-control: no-store
      proxy-status: shop-edge; error=connection_timeout
      backstop: outcome=rejected, reason=age, cause=connect_timeout

    what dependencies receive
               0 s  `catalog`: a connection, and no request (connect_timeout)
    "#);
}

#[test]
fn every_time_limit_says_what_it_includes() {
    let text = said(&[SHOP, "GET /products/42"]);
    let (_, limits) = text.split_once("\ntime limits\n").unwrap();
    let (limits, _) = limits.split_once("\n\n").unwrap();
    assert_snapshot!(limits, @r#"
      deadline                   300 ms  from the complete request head to the last byte at a client that reads,
                                         everything below included. What the client takes for its own content is
                                         not in it
                                         examples/shop.toml:28: deadline   = "300ms"
      reply                        3 ms  kept at the end of the deadline for sending the answer
      alternative                  3 ms  kept before that for the class's own alternative
      attempt                    294 ms  what is left for calls: authorizer, cache, waiting for a place,
                                         connecting, sending, the answer to its end, and a retry. A call that
                                         another may follow has 60 % of it
      catalog.connect             50 ms  connecting to one of its addresses, within the attempt
                                         examples/shop.toml:14: [dependency.catalog]
      body_time                    30 s  the client's sending of its content, beside the deadline
      reply_time                   30 s  how long what is ready waits for a client that does not take it
    "#);
}

#[test]
fn a_full_route_is_explained() {
    let text = said(&[SHOP, "GET /products/42", "--in-flight", "route=200"]);
    assert_snapshot!(without_limits(&text), @r#"
    GET /products/42
      route `description` (public_read): `GET /products/{product}` is the most specific that matches
        {product} is 42
        examples/shop.toml:25: [route.description.public_read]

    steps
               0 s  refused: no place at the limit `route`
                      examples/shop.toml:29: in_flight  = 200
               0 s  decided: rejected, because of capacity
                      examples/shop.toml:29: in_flight  = 200

    answer
      503 after 0 s: outcome rejected, reason capacity
      content-type: application/problem+json
      cache-control: no-store
      proxy-status: shop-edge; error=proxy_internal_response
      backstop: outcome=rejected, reason=capacity

    what dependencies receive
      nothing
    "#);
}

#[test]
fn a_request_that_no_route_answers_is_explained() {
    assert_snapshot!(said(&[PAGE, "PUT /nothing"]), @r#"
    PUT /nothing
      no route matches

    answer
      404 after 0 s: outcome rejected, reason no_route
      content-type: application/problem+json
      cache-control: no-store
      backstop: outcome=rejected, reason=no_route

    what dependencies receive
      nothing
    "#);
}

#[test]
fn a_slip_is_refused_with_what_was_meant() {
    assert_snapshot!(said(&[SHOP, "GET /products/42", "--when", "catalgo=reset"]), @r#"
    error: `catalgo` is no dependency

    hint: did you mean `catalog`?
    "#);
    assert_snapshot!(said(&[SHOP, "GET /products/42", "--when", "catalog=conect"]), @r#"
    error: `conect` is no failure

    hint: did you mean `connect`?
    "#);
    assert_snapshot!(said(&[SHOP, "/products/42"]), @r#"
    error: `/products/42` is no method and a path

    hint: write it as `GET /products/42`
    "#);
    assert_snapshot!(said(&[SHOP, "GET /products/42", "--operation", "unknown"]), @r#"
    error: the request is on no `effect` route, so it is no operation
    "#);
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
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let outcome = "scope = \"route\"\noutcome = { succeeded = [{ status = 200 }] }";
    let policy = Policy::shop(service.local_addr().unwrap())
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
    service.set_nonblocking(true).unwrap();
    assert!(service.accept().is_err(), "nobody connected");
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
