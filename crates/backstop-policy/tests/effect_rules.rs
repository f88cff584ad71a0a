//! Rules of routes that write operations: each way to break them leads to the code that its page describes.

mod support;

use backstop_policy::Code;
use support::{READ, REPLICA, diagnosed, effect, says_exactly as says};

#[track_caller]
fn told(lines: &str, expected: &[Code]) {
    says(&effect(lines), expected);
}

/// A gateway that trusts a proxy, and with these lines.
fn gateway(lines: &str) -> String {
    format!("[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\n{lines}\n")
}

fn query(lines: &str) -> String {
    format!(
        "status_query = {{ path = \"/o/{{operation_id}}\", succeeded = [{{ status = 200, json = {{ \"/s\" = \"ok\" }} }}], {lines} }}"
    )
}

fn outcome(lines: &str) -> String {
    format!("outcome = {{ {lines} }}")
}

#[test]
fn nothing_that_repeats_or_stands_in_has_a_key_to_be_written_in() {
    for key in [
        "retry = {}",
        "alternative = {}",
        "max_age = \"1s\"",
        "key = []",
        "local_copy = {}",
        "cache = {}",
        "otherwise = {}",
        "fallback_in_flight = 1",
        "gone = {}",
        "unavailable_status = \"cause\"",
        "idle = \"1s\"",
        "languages = []",
        "buffer = \"1 MiB\"",
        "override_origin = true",
        "correct = {}",
        "parts = []",
    ] {
        told(key, &[Code::OtherClass]);
    }
    let (_, diagnostics) = diagnosed(&effect("retry = {}"));
    let found = diagnostics.iter().find(|found| found.code == Code::OtherClass).unwrap();
    assert!(found.help.as_deref().unwrap_or_default().contains("sent once"), "{found:?}");
    let other = effect("").replace("route.pay.effect", "route.pay.direct");
    assert!(
        diagnosed(&other).1.iter().any(|found| found.message == "`outcome` belongs to the class `effect`")
    );
}

#[test]
fn only_methods_that_write_have_effects() {
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        told(&format!("match = \"{method} /pay\""), &[]);
    }
    for method in ["GET", "HEAD", "OPTIONS", "*"] {
        told(&format!("match = [\"POST /pay\", \"{method} /p\"]"), &[Code::EffectOnRead]);
    }
}

#[test]
fn a_scope_is_vouched_for() {
    told("authorizer =", &[Code::NoScope]);
    told("authorizer =\nscope = \"principal\"", &[Code::ScopeNotVerified]);
    told("authorizer =\nscope = \"header.x-tenant\"", &[Code::ScopeNotVerified]);
    let by_header = effect("authorizer =\nscope = \"header.x-tenant\"");
    says(&(gateway("trusted = []") + &by_header), &[Code::ScopeNotVerified]);
    says(&(gateway("trusted = [\"10.0.0.0/8\"]") + &by_header), &[]);
    told("authorizer =\nscope = \"route\"", &[Code::SharedScope]);
    told("scope = \"principal\"", &[]);
    for bad in ["header.authorization", "header.cookie", "ip", "header.x-forwarded-for"] {
        told(&format!("scope = {bad:?}"), &[Code::NoIdentity]);
    }
    told("scope = 1\nauthorizer =", &[Code::WrongType]);
    told("authorizer = \"session\"", &[Code::UnknownReference]);
    let nameless = |lines: &str| effect(lines).replace("principal = \"header.x-user\"\n", "");
    says(&nameless(""), &[Code::ScopeNotVerified]);
    says(&nameless("scope = \"principal\""), &[Code::ScopeNotVerified]);
    says(&nameless("scope = \"route\""), &[Code::SharedScope]);
}

#[test]
fn tenants_with_one_account_upstream_have_keys_of_their_own() {
    told("shared_account =", &[Code::SharedAccount]);
    told("shared_account = true", &[Code::SharedAccount]);
    told("shared_account = false", &[]);
    told("shared_account = true\nsend = { as = \"derived\" }", &[]);
    told("shared_account =\nsend = { as = \"derived\" }", &[]);
    told("shared_account =\nauthorizer =\nscope = \"route\"", &[Code::SharedScope]);
}

#[test]
fn no_body_is_kept_that_another_may_see_or_nobody_may_keep() {
    told("card_data = true", &[]);
    told("card_data = true\nstore_body = \"none\"", &[]);
    told("card_data = true\nstore_body = \"redacted\"\nredact = [\"/pan\"]", &[Code::CardData]);
    told("card_data = false\nstore_body = \"redacted\"", &[]);
    told("authorizer =\nscope = \"route\"\nstore_body = \"none\"", &[Code::SharedScope]);
    told("authorizer =\nscope = \"route\"\nstore_body = \"redacted\"", &[Code::SharedBodies]);
    told("redact = [\"/a\", \"/a\"]", &[Code::Repeated]);
}

#[test]
fn a_direct_answer_proves_no_more_than_it_says() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 599] {
        let refused = |more: &str| {
            outcome(&format!("succeeded = [{{ status = 201 }}], refused = [{{ status = {status}{more} }}]"))
        };
        told(&refused(""), &[Code::NoProof]);
        told(&refused(", no_effect = false"), &[Code::NoProof]);
        told(&refused(", no_effect = true"), &[]);
    }
    for status in [303, 400, 401, 402, 403, 404, 405, 410, 413, 415, 422] {
        told(
            &outcome(&format!("succeeded = [{{ status = 201 }}], refused = [{{ status = {status} }}]")),
            &[],
        );
    }
    told(&outcome("succeeded = [{ status = 201 }], refused = [{ status = 200 }]"), &[Code::NoProof]);
    told(
        &outcome(
            "succeeded = [{ status = 201 }], refused = [{ status = 200, json = { \"/s\" = \"declined\" } }]",
        ),
        &[],
    );
    told(&outcome("succeeded = [{ status = [201, 409] }]"), &[Code::NoProof]);
    told(&outcome("succeeded = [{ status = [201, 500] }]"), &[Code::NoProof]);
    told(&outcome("succeeded = [{ status = [200, 303] }], pending = [{ status = 503 }]"), &[]);
    told(&outcome("succeeded = []"), &[Code::Empty]);
    told(&outcome("succeeded = [{ status = [] }]"), &[Code::Empty]);
    told(&outcome("succeeded = [{ status = [201, 201] }]"), &[Code::Repeated]);
    told(&outcome("refused = [{ status = 400 }]"), &[Code::MissingKey]);
    told(&outcome("succeeded = [{ status = 201, json = { \"status\" = \"x\" } }]"), &[Code::Pointer]);
    told(&outcome("succeeded = [{ status = 201, json = { \"/status\" = 1.5 } }]"), &[Code::WrongType]);
    told(
        &outcome("succeeded = [{ status = 201, json = { \"/n\" = 9223372036854775808 } }]"),
        &[Code::OutOfRange],
    );
    // What could not be read is not taken for nothing.
    told(&query("failed = [{ status = 200, json = { \"/s\" = 1.5 } }]"), &[Code::WrongType]);
    told(&query("absent = [{ status = 404, json = { \"/s\" = 1.5 } }]"), &[Code::WrongType]);
}

#[test]
fn no_answer_means_two_things() {
    let pair = |one: &str, other: &str| {
        outcome(&format!(
            "succeeded = [{{ status = 200{one} }}], pending = [{{ status = [202, 200]{other} }}]"
        ))
    };
    let of = |value: &str| format!(", json = {{ \"/s\" = {value} }}");
    told(&pair("", ""), &[Code::TwoMeanings]);
    told(&pair(&of("\"a\""), ""), &[Code::TwoMeanings]);
    told(&pair("", &of("\"a\"")), &[Code::TwoMeanings]);
    told(&pair(&of("\"a\""), &of("\"b\"")), &[]);
    told(&pair(&of("\"a\""), &of("[\"b\", \"a\"]")), &[Code::TwoMeanings]);
    told(&pair(&of("true"), &of("\"true\"")), &[]);
    told(&pair(&of("\"a\""), ", json = { \"/t\" = \"b\" }"), &[Code::TwoMeanings]);
    told(
        &outcome("succeeded = [{ status = 200 }, { status = [200, 201] }], pending = [{ status = 202 }]"),
        &[],
    );
    told(&query("failed = [{ status = 200, json = { \"/s\" = [\"no\", \"ok\"] } }]"), &[Code::TwoMeanings]);
    told(&query("failed = [{ status = 200, json = { \"/s\" = \"no\" } }]"), &[]);
    let absent = "absent = [{ status = 404, json = { \"/e\" = \"x\" } }], failed = [{ status = 404, json = { \"/e\" = \"y\" } }]";
    told(&query(absent), &[]);
}

#[test]
fn a_status_answer_about_the_query_says_nothing_of_the_operation() {
    for status in [206, 302, 401, 403, 407, 408, 425, 429, 500, 503] {
        for list in ["failed", "absent"] {
            told(
                &query(&format!("{list} = [{{ status = {status}, json = {{ \"/e\" = \"x\" }} }}]")),
                &[Code::NoProof],
            );
        }
        told(&query(&format!("pending = [{{ status = {status} }}]")), &[]);
    }
    for status in [206, 302, 404, 418, 500] {
        let succeeded = format!("succeeded = [{{ status = {status}, json = {{ \"/s\" = \"ok\" }} }}]");
        told(
            &query("").replace("succeeded = [{ status = 200, json = { \"/s\" = \"ok\" } }]", &succeeded),
            &[Code::NoProof],
        );
    }
    // With a list 200 is the list itself.
    let listed =
        "list = { items = \"/data\", match = { \"/id\" = \"operation_id\" } }, absent = [{ status = ";
    told(&query(&format!("{listed}200, json = {{ \"/s\" = \"none\" }} }}]")), &[Code::NoProof]);
    told(&query(&format!("{listed}404, json = {{ \"/e\" = \"x\" }} }}]")), &[]);
    // Any page would do.
    told(&query("failed = [{ status = 410 }]"), &[Code::NoProof]);
    told(&query("failed = [{ status = 410 }], echo = { \"/id\" = \"operation_id\" }"), &[]);
    told(&query("failed = [{ status = 410 }], echo = {}"), &[Code::NoProof]);
}

#[test]
fn a_rule_about_status_queries_needs_one() {
    told("status_query =\nupstream_retention =", &[Code::NobodyAsks]);
    told("status_query =", &[Code::NeedsStatusQuery]);
    told("status_query =\nupstream_retention =\nverify = {}", &[Code::NeedsStatusQuery]);
    told("status_query =\nupstream_retention =\nabsence = { settle = \"15m\" }", &[Code::NeedsStatusQuery]);
    told("status_query =\nupstream_retention =\nunknown_answer = \"accepted\"", &[Code::NobodyFollows]);
    told("unknown_answer = \"accepted\"", &[Code::AlwaysAccepted]);
    told("upstream_retention =", &[Code::MissingContract]);
    told("status_query = { path = \"/o/{operation_id}\" }", &[Code::MissingKey]);
    for (path, code) in [("/o", Code::NoOperation), ("/o/{id}", Code::IdOfAnswer), ("o", Code::StatusPath)] {
        told(&query("").replace("/o/{operation_id}", path), &[code]);
    }
    told(&query("echo = { \"/a\" = \"/amount\" }"), &[Code::Echo]);
    told("operation_id = \"idempotency-key\"", &[Code::OperationKey]);
    told("scope = \"tenant\"", &[Code::Scope]);
}

#[test]
fn absence_says_that_nothing_was_executed_only_with_the_whole_rule() {
    let whole = "absence = { settle = \"15m\", verdict = \"not_executed\", calibrate = { must_see_within = \"5m\" } }";
    told(whole, &[]);
    told(&whole.replace("settle = \"15m\", ", ""), &[Code::MissingContract]);
    told(&whole.replace(", calibrate = { must_see_within = \"5m\" }", ""), &[Code::AbsenceNotWhole]);
    told(&format!("{whole}\n{}", query("absent = [{ status = 404 }]")), &[Code::AbsenceNotWhole]);
    told(&format!("{whole}\n{}", query("absent = []")), &[Code::AbsenceNotWhole]);
    let times = |count: u8| whole.replace("settle", &format!("confirmations = {count}, settle"));
    told(&times(1), &[Code::AbsenceNotWhole]);
    told(&times(2), &[]);
    told(&format!("{whole}\n{}", query("")), &[Code::AbsenceNotWhole]);
    told(&query("absent = [{ status = 404 }]"), &[Code::BareAbsence]);
    let asks = whole.replace("not_executed", "attention");
    told(&format!("{asks}\n{}", query("absent = [{ status = 404 }]")), &[Code::BareAbsence]);
}

#[test]
fn an_operation_is_followed_while_its_upstream_knows_it_and_kept_for_longer() {
    told("verify = { deadline = \"86399s\" }", &[]);
    told("verify = { deadline = \"24h\" }", &[Code::VerifyTooLong]);
    told("verify = { deadline = \"13h\" }\nupstream_retention = \"10h\"", &[Code::VerifyTooLong]);
    told("upstream_retention = \"10h\"", &[]);
    told("retention = { tombstone = \"12h\", body = \"12h\" }", &[]);
    told("retention = { tombstone = \"43199s\", body = \"1h\" }", &[Code::ForgottenTooSoon]);
    told("retention = { tombstone = \"23h\" }", &[Code::ForgottenTooSoon]);
    told("retention = { body = \"721h\" }", &[Code::ForgottenTooSoon]);
    told("retention = { body = \"720h\" }", &[]);
    told(
        "status_query =\nupstream_retention =\nretention = { body = \"1h\", tombstone = \"1h\" }",
        &[Code::NobodyAsks],
    );
}

#[test]
fn times_of_verification_fit_together() {
    told("verify = { first = \"60s\" }", &[]);
    told("verify = { first = \"61s\" }", &[Code::VerifyTimes]);
    told("verify = { cap = \"999ms\" }", &[Code::VerifyTimes]);
    told("verify = { factor = 1 }", &[]);
    told("verify = { factor = 0.999 }", &[Code::VerifyTimes]);
    // Ten seconds and the five after which anybody may ask.
    told("verify = { deadline = \"15001ms\" }", &[]);
    told("verify = { deadline = \"15s\" }", &[Code::VerifyTimes]);
    told(&format!("{}\nverify = {{ deadline = \"20s\" }}", query("timeout = \"20s\"")), &[Code::VerifyTimes]);
    told("absence = { settle = \"10s\" }", &[]);
    told("absence = { settle = \"9999ms\" }", &[Code::VerifyTimes]);
    told("absence = { settle = \"9999ms\", not_after = { header = \"x-before\" } }", &[]);
    let calibrated = |seen: &str| {
        format!("absence = {{ settle = \"15m\", calibrate = {{ must_see_within = {seen:?} }} }}")
    };
    told(&calibrated("15m"), &[]);
    told(&calibrated("901s"), &[Code::VerifyTimes]);
    // 15 s of lease, 900 s, twice 60 s.
    told("absence = { settle = \"15m\" }\nverify = { deadline = \"1036s\" }", &[]);
    told("absence = { settle = \"15m\" }\nverify = { deadline = \"1035s\" }", &[Code::VerifyTimes]);
    told("absence = { settle = \"15m\", confirmations = 1 }\nverify = { deadline = \"916s\" }", &[]);
}

#[test]
fn a_header_has_one_purpose_and_no_edit_undoes_it() {
    let trusted =
        |lines: &str| gateway("trusted = [\"10.0.0.0/8\"]") + &effect(&format!("authorizer =\n{lines}"));
    says(&trusted("scope = \"header.Idempotency-Key\""), &[Code::EffectHeader]);
    says(&trusted("scope = \"header.x-t\"\nsend = { header = \"X-T\" }"), &[Code::EffectHeader]);
    says(&trusted("scope = \"header.x-t\"\nsend = { header = \"x-u\" }"), &[]);
    let late =
        |header: &str| format!("absence = {{ settle = \"15m\", not_after = {{ header = {header:?} }} }}");
    told(&late("idempotency-key"), &[Code::EffectHeader]);
    told(&late("x-before"), &[]);
    says(&trusted(&format!("scope = \"header.x-before\"\n{}", late("x-before"))), &[Code::EffectHeader]);
    told("operation_id = \"header.x-user\"", &[Code::EffectHeader]);
    told("send = { header = \"X-User\" }", &[Code::EffectHeader]);
    let tells = |lines: &str| {
        effect(lines).replace("timeout = \"100ms\"", "tells = [\"x-plan\"]\ntimeout = \"100ms\"")
    };
    says(&tells("operation_id = \"header.x-plan\""), &[Code::EffectHeader]);
    says(&tells(""), &[]);
    told("operation_id = \"body:/id\"\nsend = { header = \"x-id\" }", &[]);
    for edit in ["set = { idempotency-key = \"1\" }", "remove = \"Idempotency-Key\""] {
        told(&format!("request_headers = {{ {edit} }}"), &[Code::ReservedHeader]);
        told(&format!("send = {{ header = \"x-id\" }}\nrequest_headers = {{ {edit} }}"), &[]);
    }
    told("request_headers = { set = { authorization = \"Basic x\" } }", &[]);
    told("send = { header = \"content-length\" }", &[Code::ReservedHeader]);
}

#[test]
fn fingerprints() {
    told("fingerprint = { ignore = \"/nonce\" }", &[]);
    told("fingerprint = { only = [\"/amount\", \"/to\"] }", &[]);
    told("fingerprint = {}", &[Code::ExactlyOne]);
    told("fingerprint = { ignore = 1 }", &[Code::WrongType]);
    told("fingerprint = { ignore = \"/a\", only = \"/b\" }", &[Code::ExactlyOne]);
    told("fingerprint = { ignore = [\"/a\", \"\"] }", &[Code::Empty]);
    told("fingerprint = { only = [] }", &[Code::Empty]);
    told("fingerprint = { only = [\"/a\", \"/a\"] }", &[Code::Repeated]);
}

#[test]
fn a_request_is_small_enough_to_be_held_whole() {
    told("limits = { body = \"16 MiB\" }", &[]);
    told("limits = { body = \"16777217 B\" }", &[Code::EffectBody]);
}

#[test]
fn a_dependency_with_effects_is_repeated_by_nobody_and_is_nobodys_way_out() {
    let beside = |lines: &str| format!("{}{READ}{lines}\n", effect(""));
    says(&beside(""), &[]);
    says(&beside("retry = { owner = \"upstream\" }"), &[Code::EffectRepeated]);
    says(&beside("retry = { owner = \"client\" }"), &[]);
    says(&beside("retry = { attempts = 1 }"), &[]);
    says(&beside("retry = {}"), &[Code::EffectNeighbour]);
    let alternative = "alternative = { dependency = \"replica\", verified = \"evidence/replica.toml\" }";
    let catalog = "[dependency.catalog]\nurl = \"http://x\"\n";
    says(&format!("{catalog}{REPLICA}{}", beside(alternative)), &[]);
    let turned_to = effect("dependency = \"replica\"");
    says(&format!("{catalog}{REPLICA}{turned_to}{READ}{alternative}\n"), &[Code::EffectNeighbour]);
}

/// Only a probe of its own finds out whether a dependency that serves effects only works again.
#[test]
fn a_breaker_of_effects_alone_needs_a_probe() {
    let dependency = |lines: &str| format!("[dependency.catalog]\nurl = \"http://x\"\n{lines}\n");
    says(&(dependency("breaker = { min_calls = 5 }") + &effect("")), &[Code::ProbesNeverGo]);
    says(&(dependency("breaker = { min_calls = 5 }\nprobe = { path = \"/up\" }") + &effect("")), &[]);
    says(&(dependency("breaker = { min_calls = 5, slow = \"100ms\" }") + &effect("") + READ), &[]);
}

#[test]
fn one_ledger_belongs_to_one_gateway() {
    says(&(gateway("instances = 2") + &effect("")), &[Code::LedgerOfOne]);
    says(&(gateway("instances = 1") + &effect("")), &[]);
    says(&("[store]\npath = \"/tmp/x\"\n".to_owned() + &effect("")), &[Code::TemporaryStore]);
}

#[test]
fn other_routes_know_a_route_with_effects() {
    told("withdraws = \"pages\"", &[Code::UnknownReference]);
    told("withdraws = \"pay\"", &[Code::NoCopies]);
    says(&(effect("withdraws = \"x\"") + READ), &[]);
    told("idle = \"1s\"\ndeadline = \"9s\"", &[Code::OtherClass]);
    let page = "[route.page.composed]\nmatch = \"GET /p\"\ndeadline = \"1s\"\nin_flight = 10\n\
        parts = [{ at = \"/pay\", route = \"pay\", path = \"/pay\" }]\n";
    says(&(effect("") + page), &[Code::PartClass]);
    let waived = |code: &str| format!("[check]\nallow = [{{ code = {code:?}, reason = \"one caller\" }}]\n");
    says(&(waived("BS0561") + &effect("shared_account =")), &[]);
    says(&(waived("BS0374") + &effect("")), &[Code::UnknownWaiver]);
}

/// An empty list is an absence like another, and an item is found by the operation's id or not at all.
#[test]
fn a_list_says_where_its_items_have_the_operations_id() {
    let list = |lines: &str| query(&format!("list = {{ {lines} }}"));
    let whole = "items = \"/data\", match = { \"/reference\" = \"operation_id\" }";
    told(&list(whole), &[]);
    told(&list(&format!("{whole}, more = \"/has_more\"")), &[]);
    told(&list("items = \"/data\", match = {}"), &[Code::Empty]);
    told(&list("items = \"/data\""), &[Code::MissingKey]);
    told(&list("match = { \"/reference\" = \"operation_id\" }"), &[Code::MissingKey]);
    told(&list("items = \"data\", match = { \"/reference\" = \"operation_id\" }"), &[Code::Pointer]);
    told(&list("items = \"/data\", match = { \"/reference\" = \"body:/order\" }"), &[Code::UnknownChoice]);
    let absence = "absence = { settle = \"15m\", verdict = \"not_executed\", calibrate = { must_see_within = \"5m\" } }";
    told(&format!("{}\n{absence}", list(whole)), &[]);
    told(&format!("{}\n{absence}", query("")), &[Code::AbsenceNotWhole]);
}
