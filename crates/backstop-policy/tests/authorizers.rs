//! Authorizers: what is read, what it becomes, and what is refused.

mod support;

use backstop_engine::policy::{DependencyId, RouteClass};
use backstop_policy::{AuthorizerKind, Code, HostHeader};
use support::{errors, loaded, refused, says};

const AUTHORIZER: &str = "[authorizer.sessions]\nurl = \"http://127.0.0.1:9003/check?x=1\"\nallow = { header = \"X-Allowed: yes\" }\nprincipal = \"header.X-User\"\ntimeout = \"100ms\"\nin_flight = 100\n";

fn guarded(lines: &str) -> String {
    format!(
        "[dependency.catalog]\nurl = \"http://x\"\n{AUTHORIZER}[route.x.guarded]\nmatch = \"POST /x\"\ndependency = \"catalog\"\nauthorizer = \"sessions\"\ndeadline = \"1s\"\nin_flight = 20\n{lines}\n"
    )
}

fn read(lines: &str) -> String {
    format!(
        "[dependency.catalog]\nurl = \"http://x\"\n{AUTHORIZER}[route.x.public_read]\nmatch = \"GET /x\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 20\nmax_age = \"60s\"\ncorrect = {{ type = \"application/json\" }}\n{lines}\n"
    )
}

/// A dependency after those of the file, with its `in_flight` as connections and a breaker that calls slow what is too late.
#[test]
fn an_authorizer_is_a_dependency_after_the_others() {
    let policy = loaded(&guarded(""));
    let engine = &policy.policy.dependencies[1];
    assert_eq!((&*engine.name, engine.connections), ("sessions", 100));
    let breaker = engine.breaker.unwrap();
    assert_eq!((breaker.slow.as_millis(), breaker.min_calls), (100, 20));
    let [settings] = &policy.authorizers[..] else { panic!("one") };
    assert_eq!(settings.dependency, DependencyId(1));
    let AuthorizerKind::Asked(asked) = &settings.kind else { panic!("it is asked") };
    assert_eq!(
        (&*asked.path, &*asked.sign, asked.sign_value.as_deref()),
        ("/check?x=1", "x-allowed", Some("yes"))
    );
    assert_eq!(settings.principal.as_deref(), Some("x-user"));
    assert!(asked.allow.contains(200) && asked.allow.contains(204) && !asked.allow.contains(201));
    assert!(asked.deny.contains(401) && asked.deny.contains(403) && !asked.deny.contains(404));
    assert_eq!(asked.send, ["authorization".into(), "cookie".into()]);
    assert_eq!(policy.dependencies[1].host, HostHeader::Fixed("127.0.0.1:9003".into()));
    let route = &policy.policy.routes[0];
    assert!(matches!(route.class, RouteClass::Guarded));
    let rules = route.authorizer.unwrap();
    assert_eq!((rules.dependency, rules.timeout.as_millis()), (Some(DependencyId(1)), 100));
}

#[test]
fn what_would_let_anybody_in_cannot_be_written() {
    let with = |lines: &str| guarded("").replace("allow = { header = \"X-Allowed: yes\" }", lines);
    refused(&with("allow = { status = [200] }"), Code::MissingKey);
    for sign in ["content-type", "Date", "server: x", "set-cookie", "x-allowed:"] {
        refused(&with(&format!("allow = {{ header = \"{sign}\" }}")), Code::Sign);
    }
    for status in [302, 401, 500] {
        refused(
            &with(&format!("allow = {{ status = [{status}], header = \"x-allowed\" }}")),
            Code::AllowStatus,
        );
    }
    for status in [200, 302, 400, 404, 429, 500, 503] {
        refused(&with(&format!("allow = {{ header = \"x-allowed\" }}\ndeny = [{status}]")), Code::DenyStatus);
    }
}

#[test]
fn a_guarded_route_names_its_authorizer() {
    refused(&guarded("").replace("authorizer = \"sessions\"\n", ""), Code::MissingKey);
    refused(
        &guarded("").replace("authorizer = \"sessions\"", "authorizer = \"session\""),
        Code::UnknownReference,
    );
    refused(&guarded("idle = \"1s\""), Code::OtherClass);
    refused(
        &guarded("")
            .replace("authorizer.sessions", "authorizer.catalog")
            .replace("\"sessions\"", "\"catalog\""),
        Code::SameName,
    );
}

#[test]
fn copies_behind_one_are_somebodys() {
    refused(&read("authorizer = \"sessions\"\nkey = []"), Code::CopiesOfEverybody);
    refused(&read("authorizer = \"sessions\""), Code::CopiesOfEverybody);
    says(&read("authorizer = \"sessions\"\nkey = [\"principal\"]"), &[]);
    says(&read("authorizer = \"sessions\"\nkey = []\nshared = true"), &[]);
    let nameless = |lines: &str| read(lines).replace("principal = \"header.X-User\"\n", "");
    refused(&nameless("authorizer = \"sessions\"\nkey = [\"principal\"]"), Code::NoPrincipal);
    assert_eq!(errors(&read("key = [\"principal\"]")), [Code::NoPrincipal]);
    refused(&read("key = []\nshared = true"), Code::SharedWithoutAuthorizer);
}

/// Of its 100 places guarded requests may have 94, and reads 84: less than 95 % and less than 85 %.
#[test]
fn its_limits_fit_those_of_its_routes() {
    says(&guarded("").replace("in_flight = 20", "in_flight = 94"), &[Code::FewConnections]);
    says(
        &guarded("").replace("in_flight = 20", "in_flight = 95"),
        &[Code::AuthorizerBehindRoute, Code::FewConnections],
    );
    refused(&guarded("").replace("\"100ms\"", "\"1s\""), Code::AuthorizerTimeout);
    says(&guarded("").replace("\"100ms\"", "\"999ms\""), &[]);
}

/// What is taken from every client nobody can look at any more: each valid token would be refused.
#[test]
fn what_is_told_is_nothing_that_clients_are_asked_for() {
    let with = |lines: &str| guarded("").replace("principal = \"header.X-User\"", lines);
    for name in ["authorization", "Cookie"] {
        refused(&with(&format!("tells = [\"{name}\"]")), Code::ToldByClients);
    }
    loaded(&with("tells = [\"cookie\"]\nsend = [\"authorization\"]"));
    refused(&with("principal = \"header.x-user\"\nsend = [\"X-User\"]"), Code::ToldByClients);
    let other = AUTHORIZER.replace("sessions", "tokens").replace("X-User", "X-Token");
    let both = |lines: &str| format!("{}\n{other}{lines}\n", guarded(""));
    refused(&both("send = [\"x-user\"]"), Code::ToldByClients);
}

#[test]
fn who_it_is_is_told_by_a_field_of_its_own() {
    for field in [
        "x-user",
        "header.authorization",
        "header.cookie",
        "header.set-cookie",
        "header.content-type",
        "header.via",
        "header.x-forwarded-for",
        "header.connection",
    ] {
        let policy = guarded("").replace("header.X-User", field);
        let found = errors(&policy);
        assert!(found == [Code::Header] || found == [Code::ReservedHeader], "{field}: {found:?}");
    }
}
