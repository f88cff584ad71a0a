//! What is told of requests, and what is tried beside them, as the gateway and the engine get it.

mod support;

use backstop_policy::{AccessFormat, Code};
use support::{errors, loaded, read, refused};

fn route(more: &str) -> String {
    read(&format!(
        "alternative = {{ dependency = \"replica\", verified = \"evidence/replica.toml\" }}\n{more}"
    ))
}

fn gateway(more: &str) -> String {
    format!("[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\n{more}\n")
}

/// The share and whether anybody is called. Who wrote nothing has their copies tried, and nobody is called.
#[test]
fn nobody_is_called_unless_an_exercise_is_written() {
    let cases = [
        ("", "", (10, false)),
        ("", "exercise = \"2.5%\"", (25, true)),
        ("", "exercise = \"0%\"", (0, true)),
        ("exercise = \"5%\"", "", (50, true)),
        ("exercise = \"5%\"", "exercise = \"0%\"", (0, true)),
        ("exercise = \"0%\"", "", (0, true)),
    ];
    for (of_gateway, of_route, expected) in cases {
        let policy = loaded(&(gateway(of_gateway) + &route(of_route)));
        let exercise = policy.policy.routes[0].exercise;
        assert_eq!((exercise.share_per_mille, exercise.calls), expected, "{of_gateway} {of_route}");
    }
}

/// There is nothing behind a write that could be tried.
#[test]
fn only_what_has_an_alternative_has_an_exercise() {
    for class in ["direct", "guarded", "effect", "composed"] {
        let codes = errors(&format!("[route.x.{class}]\nmatch = \"GET /x\"\nexercise = \"1%\"\n"));
        assert!(codes.contains(&Code::OtherClass), "{class}: {codes:?}");
    }
    refused(&route("exercise = 0.01"), Code::Percent);
}

#[test]
fn an_access_log_and_traces_are_off_until_they_are_written() {
    let off = loaded("").gateway;
    assert_eq!((off.access_log, off.traces), (None, None));
    let log = |text: &str| loaded(&gateway(&format!("access_log = {text}"))).gateway.access_log.unwrap();
    let default = log("{}");
    assert_eq!((default.format, default.path, default.query), (AccessFormat::Json, None, false));
    let file = log("{ format = \"common\", path = \"access.log\", query = true }");
    assert_eq!(
        (file.format, file.path.as_deref(), file.query),
        (AccessFormat::Common, Some("access.log"), true)
    );
    assert_eq!(log("{ path = \"stdout\" }").path, None);
    refused(&gateway("access_log = { format = \"combined\" }"), Code::UnknownChoice);
    refused(&gateway("access_log = { file = \"x\" }"), Code::UnknownKey);
    let traces = |text: &str| loaded(&format!("[telemetry]\ntraces = {text}\n")).gateway.traces.unwrap();
    let default = traces("{ url = \"http://127.0.0.1:4318/v1/traces\" }");
    assert_eq!((default.address.to_string().as_str(), &*default.path), ("127.0.0.1:4318", "/v1/traces"));
    assert_eq!(default.sample_per_mille, 100);
    assert_eq!(traces("{ url = \"http://c:1/\", sample = \"0.1%\" }").sample_per_mille, 1);
    refused("[telemetry]\ntraces = {}\n", Code::MissingKey);
    refused("[telemetry]\ntrace = { url = \"http://c:1/\" }\n", Code::UnknownKey);
}
