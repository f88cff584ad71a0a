//! Which pages may read Backstop's own answers.

mod support;

use backstop_policy::Code;
use support::{loaded, refused};

fn with(cors: &str) -> String {
    format!(
        "[route.x.direct]\nmatch = \"GET /x\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 1\ncors = {cors}\n"
    )
}

#[test]
fn origins_are_as_browsers_write_them() {
    let policy = loaded(&with(
        "{ origins = [\"https://Shop.example\", \"http://localhost:3000\", \"http://[::1]:8080\"] }",
    ));
    let cors = policy.routes[0].cors.as_ref().unwrap();
    assert_eq!(
        cors.origins,
        ["https://shop.example".into(), "http://localhost:3000".into(), "http://[::1]:8080".into()]
    );
    assert!(!cors.credentials);
    assert_eq!(cors.expose, ["backstop".into(), "retry-after".into()]);
    for wrong in [
        "shop.example",
        "https://",
        "https://shop.example/",
        "https://shop.example/path",
        "https://u@shop.example",
        "https://shop.example:443",
        "http://shop.example:80",
        "ftp://shop.example",
        "null",
        "https://*.example",
    ] {
        refused(&with(&format!("{{ origins = {wrong:?} }}")), Code::WebOrigin);
    }
}

/// The Fetch standard, section 3.2.5: `*` never goes with credentials.
#[test]
fn credentials_are_for_named_origins() {
    refused(&with("{ origins = \"*\", credentials = true }"), Code::CredentialsForAll);
    refused(
        &with("{ origins = [\"https://a.example\", \"*\"], credentials = true }"),
        Code::CredentialsForAll,
    );
    loaded(&with("{ origins = \"*\" }"));
    loaded(&with("{ origins = \"https://a.example\", credentials = true, expose = [] }"));
}
