//! What may be observed only, by the gateway's word or by the route's own.

mod support;

use backstop_engine::policy::Mode;
use backstop_policy::{Code, Severity};
use support::{diagnosed, loaded};

const GATEWAY: &str = "[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\n";

const REST: &str = r#"
[dependency.catalog]
url = "http://127.0.0.1:9001"

[authorizer.sessions]
url       = "http://127.0.0.1:9003/check"
allow     = { header = "x-allowed: yes" }
timeout   = "50ms"
in_flight = 100
"#;

/// A route of each class, with these further lines.
fn route(class: &str, lines: &str) -> String {
    let common = "match = \"GET /x\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 50\n";
    let own = match class {
        "public_read" => "key = []\nmax_age = \"60s\"\ncorrect = { type = \"application/json\" }\n",
        "cached_read" => {
            "key = []\ncorrect = { type = \"application/json\" }\ncache = { url = \"redis://127.0.0.1:6379\", ttl = \"5s\" }\nlocal_copy = { max_age = \"30s\" }\n"
        }
        "optional" => "otherwise = { omit = { status = 204 } }\n",
        "guarded" => "authorizer = \"sessions\"\n",
        _ => "",
    };
    format!("{REST}\n[route.x.{class}]\n{common}{own}{lines}\n")
}

/// The errors of a fragment, each with the bytes that it points at.
fn errors(fragment: &str) -> Vec<(Code, String)> {
    let (text, diagnostics) = diagnosed(fragment);
    let errors = diagnostics.into_iter().filter(|diagnostic| diagnostic.severity() == Severity::Error);
    errors.map(|error| (error.code, text[error.place.bytes].to_owned())).collect()
}

fn modes(fragment: &str) -> Vec<Mode> {
    loaded(fragment).policy.routes.iter().map(|route| route.mode).collect()
}

#[test]
fn the_routes_own_word_counts_before_the_gateways() {
    for class in ["direct", "public_read", "optional"] {
        let observing = format!("{GATEWAY}mode = \"observe\"\n");
        assert_eq!(modes(&route(class, "")), [Mode::Enforce], "{class}");
        assert_eq!(modes(&route(class, "mode = \"observe\"")), [Mode::Observe], "{class}");
        assert_eq!(modes(&format!("{observing}{}", route(class, ""))), [Mode::Observe], "{class}");
        let enforced = format!("{observing}{}", route(class, "mode = \"enforce\""));
        assert_eq!(modes(&enforced), [Mode::Enforce], "{class}");
    }
}

#[test]
fn what_would_let_somebody_in_or_exists_nowhere_else_is_never_observed_only() {
    for class in ["guarded", "cached_read"] {
        let own = route(class, "mode = \"observe\"");
        assert_eq!(errors(&own), [(Code::NotObserved, "\"observe\"".to_owned())], "{class}");
        let general = format!("{GATEWAY}mode = \"observe\"\n{}", route(class, ""));
        assert_eq!(errors(&general), [(Code::NotObserved, "x".to_owned())], "{class}");
        let enforced = format!("{GATEWAY}mode = \"observe\"\n{}", route(class, "mode = \"enforce\""));
        assert_eq!(errors(&enforced), [], "{class}");
    }
    let behind = route("direct", "authorizer = \"sessions\"\nmode = \"observe\"");
    assert_eq!(errors(&behind), [(Code::NotObserved, "\"observe\"".to_owned())]);
}

#[test]
fn effects_and_composed_answers_are_never_observed_only() {
    let (_, diagnostics) = diagnosed("[route.x.effect]\nmatch = \"POST /x\"\nmode = \"observe\"\n");
    assert!(diagnostics.iter().any(|found| found.code == Code::NotObserved), "{diagnostics:?}");
    let page = "[route.page.composed]\nmatch = \"GET /p\"\ndeadline = \"400ms\"\nin_flight = 50\nparts = [{ at = \"/x\", route = \"x\", path = \"/x\" }]\n";
    let observed = format!("{page}mode = \"observe\"\n{}", route("direct", ""));
    assert_eq!(errors(&observed), [(Code::NotObserved, "\"observe\"".to_owned())]);
    let part = format!("{page}{}", route("direct", "mode = \"observe\""));
    assert_eq!(errors(&part), [(Code::PartObserved, "\"x\"".to_owned())]);
}

#[test]
fn who_only_observes_is_reminded() {
    let notes = |fragment: &str| {
        let (text, diagnostics) = diagnosed(fragment);
        let found = diagnostics.into_iter().filter(|found| found.code == Code::Observed);
        found.map(|found| text[found.place.bytes].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(notes(&route("direct", "mode = \"observe\"")), ["\"observe\""]);
    assert_eq!(notes(&format!("{GATEWAY}mode = \"observe\"\n{}", route("direct", ""))), ["\"observe\""]);
    assert_eq!(notes(&route("direct", "mode = \"enforce\"")), [""; 0]);
}
