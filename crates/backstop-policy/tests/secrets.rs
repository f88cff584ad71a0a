//! Values that stand in the environment or in files.

mod support;

use backstop_policy::{Code, render_human};
use support::{diagnosed, loaded, refused};

fn setting(value: &str) -> String {
    format!(
        "[route.x.direct]\nmatch = \"*\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 1\nrequest_headers = {{ set = {{ authorization = {value:?} }} }}\n"
    )
}

#[test]
fn a_secret_is_read_where_it_stands() {
    for (written, value) in [
        ("env:TOKEN", "Bearer t0p-secret"),
        ("file:secrets/token", "Bearer from-a-file"),
        ("Bearer here", "Bearer here"),
        ("environment:x", "environment:x"),
    ] {
        let policy = loaded(&setting(written));
        let [(name, found)] = &policy.routes[0].request_headers.set[..] else { panic!("one") };
        assert_eq!((&**name, &**found), ("authorization", value), "{written}");
    }
    assert_eq!(loaded(&setting("file:secrets/longest")).routes[0].request_headers.set[0].1.len(), 8192);
}

/// What is told of a secret is where it stands, and never a part of it.
#[test]
fn what_cannot_be_read_is_refused_and_not_shown() {
    for written in [
        "env:NOWHERE",
        "env:EMPTY",
        "env:TWO_LINES",
        "file:secrets/nowhere",
        "file:secrets/long",
        "file:secrets/binary",
        "env:",
        "env:A B",
        "file:",
        "file: x",
    ] {
        refused(&setting(written), Code::Secret);
        let (text, diagnostics) = diagnosed(&setting(written));
        let told = render_human(&diagnostics, &text, false);
        assert!(!told.contains("s3cret") && !told.contains("xxxx"), "{told}");
    }
}
