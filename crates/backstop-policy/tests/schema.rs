//! The schema, the reader and the documented defaults say the same.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

mod support;

use backstop_engine::policy::{Origin, RouteClass};
use backstop_policy::{Code, Loaded, json_schema};
use serde_json::Value as Json;
use support::{AUTHORIZER, diagnosed, loaded, parsed};

/// Every table of the schema by its path; names in maps are `x`.
fn tables(schema: &Json, path: &str, found: &mut Vec<(String, Json)>) {
    let Some(properties) = schema["properties"].as_object() else {
        if schema["additionalProperties"].is_object() {
            tables(&schema["additionalProperties"], &format!("{path}.x"), found);
        }
        return;
    };
    found.push((path.trim_start_matches('.').to_owned(), schema.clone()));
    for (key, value) in properties {
        tables(value, &format!("{path}.{key}"), found);
    }
}

fn all_tables() -> Vec<(String, Json)> {
    let mut found = Vec::new();
    tables(&json_schema(), "", &mut found);
    found.retain(|(path, _)| path.split('.').count() >= 1 && !path.is_empty() && path != "route.x");
    found
}

#[test]
fn the_reader_knows_every_key_of_the_schema() {
    let tables = all_tables();
    assert!(tables.len() > 15, "{tables:?}");
    for (path, table) in tables {
        for key in table["properties"].as_object().unwrap().keys() {
            let (_, diagnostics) = diagnosed(&format!("[{path}]\n{key} = 1979-05-27\n"));
            let at = format!("{path}.{key}");
            let wrong_type = diagnostics.iter().any(|d| d.code == Code::WrongType && d.message.contains(&at));
            assert!(wrong_type, "{at}: {diagnostics:#?}");
            let unknown = diagnostics.iter().find(|d| matches!(d.code, Code::UnknownKey | Code::OtherClass));
            assert_eq!(unknown, None, "{at}");
        }
    }
}

#[test]
fn the_reader_misses_exactly_the_required_keys() {
    for (path, table) in all_tables() {
        let (_, diagnostics) = diagnosed(&format!("[{path}]\n"));
        let mut missing: Vec<_> = diagnostics
            .iter()
            .filter(|d| matches!(d.code, Code::MissingKey | Code::MissingContract))
            .filter_map(|d| d.message.split('`').nth(1)?.strip_prefix(&format!("{path}.")))
            .filter(|key| !key.contains('.'))
            .collect();
        missing.sort_unstable();
        let required = table["required"].as_array().cloned().unwrap_or_default();
        let mut required: Vec<_> = required.iter().filter_map(Json::as_str).collect();
        required.sort_unstable();
        assert_eq!(missing, required, "{path}");
    }
}

/// `key = default` for every key whose documentation begins its default with a literal.
fn documented_defaults(path: &str) -> String {
    let tables = all_tables();
    let (_, table) = tables.iter().find(|(other, _)| other == path).unwrap();
    let mut text = format!("[{path}]\n");
    for (key, schema) in table["properties"].as_object().unwrap() {
        let about = schema["description"].as_str().unwrap_or_default();
        if let Some(literal) = about.split(" Default: `").nth(1).and_then(|rest| rest.split('`').next()) {
            text.push_str(&format!("{key} = {literal}\n"));
        }
    }
    text
}

/// What is written out in full means what leaving it out means.
#[test]
fn the_documented_defaults_of_a_breaker_are_the_real_ones() {
    let rules = |tables: &str| {
        let text = format!("[dependency.x]\nurl = \"http://x\"\n{tables}\n[route.x.public_read]\n{ROUTE}");
        let mut loaded: Loaded = parsed(&text).1.unwrap();
        let probe = loaded.dependencies[0].probe.as_mut().map(|probe| {
            probe.origin = Origin::NONE;
            probe.clone()
        });
        let dependency = &mut loaded.policy.dependencies[0];
        dependency.breaker.as_mut().unwrap().origin = Origin::NONE;
        dependency.recovery.as_mut().unwrap().origin = Origin::NONE;
        format!("{:#?}", (dependency, probe))
    };
    let tables = ["breaker", "recovery", "recovery.green", "recovery.red", "probe"];
    let written: Vec<_> =
        tables.iter().map(|table| documented_defaults(&format!("dependency.x.{table}"))).collect();
    let mut explicit = written.join("\n");
    explicit.push_str("path = \"/\"\n");
    for line in ["min_calls = 20", "open_max = \"30s\"", "back = 0.7", "p95 = \"7x\"", "timeout = \"1s\""] {
        assert!(explicit.contains(line), "{explicit}");
    }
    assert_eq!(rules("breaker = {}\nprobe = { path = \"/\" }"), rules(&explicit));
}

const ROUTE: &str =
    "match = \"GET /x\"\ndependency = \"x\"\ndeadline = \"2s\"\nin_flight = 9\nmax_age = \"1s\"\n";

#[test]
fn the_documented_defaults_are_the_real_ones() {
    let gateway = "listen = \"127.0.0.1:1\"\nin_flight = 100\n";
    let dependency = "url = \"http://x\"\n";
    let minimal =
        format!("[gateway]\n{gateway}\n[dependency.x]\n{dependency}\n[route.x.public_read]\n{ROUTE}");
    let explicit = [
        documented_defaults("gateway") + gateway,
        documented_defaults("gateway.limits"),
        documented_defaults("store"),
        documented_defaults("store.snapshots"),
        documented_defaults("dependency.x") + dependency,
        documented_defaults("route.x.public_read") + ROUTE,
    ]
    .join("\n");
    for written in
        ["drain = \"10s\"", "memory = \"64 MiB\"", "connections = 64", "buffer = \"1 MiB\"", "queue = \"0\""]
    {
        assert!(explicit.contains(written), "{explicit}");
    }
    let settings = |text: &str| {
        let mut loaded: Loaded = parsed(text).1.unwrap();
        loaded.dependencies[0].origin = Origin::NONE;
        loaded.routes[0].origin = Origin::NONE;
        let RouteClass::PublicRead(read) = loaded.policy.routes.remove(0).class else {
            panic!("not a public read")
        };
        format!("{:#?}", (loaded.gateway, loaded.store, loaded.dependencies, loaded.routes, read))
    };
    assert_eq!(settings(&minimal), settings(&explicit));
}

#[test]
fn the_documented_defaults_of_an_effect_are_the_real_ones() {
    const OWN: &str = "match = \"POST /x\"\ndependency = \"x\"\ndeadline = \"2s\"\nin_flight = 9\n\
        authorizer = \"sessions\"\nupstream_retention = \"24h\"\n";
    const QUERY: &str =
        "path = \"/{operation_id}\"\nsucceeded = [{ status = 200, json = { \"/s\" = \"ok\" } }]\n";
    let required = [
        ("", OWN),
        (".outcome", "succeeded = [{ status = 201 }]\n"),
        (".status_query", QUERY),
        (".absence", "settle = \"15m\"\n"),
        (".absence.calibrate", "must_see_within = \"5m\"\n"),
    ];
    let tables = required.iter().map(|(path, lines)| format!("[route.x.effect{path}]\n{lines}"));
    let minimal: String = tables.collect();
    let optional = [(".send", ""), (".verify", ""), (".retention", "")];
    let tables = required.iter().chain(&optional);
    let explicit: String =
        tables.map(|(path, lines)| documented_defaults(&format!("route.x.effect{path}")) + lines).collect();
    for line in [
        "operation_id = \"header.idempotency-key\"",
        "scope = \"principal\"",
        "store_body = \"redacted\"",
        "as = \"client\"",
        "rate = \"5/s\"",
        "confirmations = 3",
        "sample = \"1%\"",
        "factor = 2",
        "attention_poll = \"15m\"",
        "tombstone = \"720h\"",
    ] {
        assert!(explicit.contains(line), "{explicit}");
    }
    let rules = |route: &str| {
        let loaded = loaded(&format!("[dependency.x]\nurl = \"http://x\"\n{AUTHORIZER}{route}"));
        let mut rules = loaded.policy.routes[0].class.effect().cloned().unwrap();
        rules.origin = Origin::NONE;
        rules.outcome.succeeded[0].origin = Origin::NONE;
        rules.verification.as_mut().unwrap().query.succeeded[0].origin = Origin::NONE;
        rules
    };
    assert_eq!(rules(&minimal), rules(&explicit));
}
