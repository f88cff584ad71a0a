use super::super::{Authorizer, identities, word};
use super::*;
use backstop_engine::policy::{DependencyId, Origin};
use backstop_policy::{Address, AuthorizerKind, HostHeader};

fn asked() -> AskedSettings {
    AskedSettings {
        path: "/check".into(),
        allow: StatusSet::of(&[200, 204]),
        sign: "x-allowed".into(),
        sign_value: Some("yes".into()),
        deny: StatusSet::of(&[401, 403]),
        tells: vec!["x-roles".into()],
        send: vec!["authorization".into(), "cookie".into(), "x-user".into()],
    }
}

fn settings_of(asked: AskedSettings) -> AuthorizerSettings {
    AuthorizerSettings {
        dependency: DependencyId(1),
        name: "sessions".into(),
        principal: Some("x-user".into()),
        kind: AuthorizerKind::Asked(asked),
        origin: Origin::NONE,
    }
}

fn settings() -> AuthorizerSettings {
    settings_of(asked())
}

fn authorizer() -> Asked {
    Asked::new(&settings(), &asked(), "127.0.0.1:9003", &identities(&[settings()])).unwrap()
}

fn answer(status: u16, fields: &[(&str, &str)]) -> Response<Bytes> {
    let mut answer = Response::builder().status(status);
    for (name, value) in fields {
        answer = answer.header(*name, *value);
    }
    answer.body(Bytes::from_static(b"content")).unwrap()
}

const YES: (&str, &str) = ("x-allowed", "yes");
const USER: (&str, &str) = ("x-user", "ana");

/// Each row is one thing short of a yes, or one thing too many.
#[test]
fn only_an_explicit_yes_is_one() {
    let table: &[(u16, &[(&str, &str)])] = &[
        (200, &[]),
        (200, &[USER]),
        (200, &[YES]),
        (200, &[("x-allowed", "no"), USER]),
        (200, &[("x-allowed", ""), USER]),
        (200, &[("x-allowed", "yes, yes"), USER]),
        (200, &[YES, YES, USER]),
        (200, &[YES, ("x-allowed", "no"), USER]),
        (200, &[YES, ("x-user", "")]),
        (200, &[YES, USER, ("x-user", "bob")]),
        (200, &[("connection", "x-allowed"), YES, USER]),
        (200, &[("connection", "x-user"), YES, USER]),
        (200, &[("content-type", "text/html"), ("x-powered-by", "error pages")]),
        (201, &[YES, USER]),
        (202, &[YES, USER]),
        (206, &[YES, USER]),
        (301, &[YES, USER, ("location", "/login")]),
        (302, &[YES, USER]),
        (304, &[YES, USER]),
        (400, &[YES, USER]),
        (402, &[]),
        (404, &[YES, USER]),
        (407, &[]),
        (429, &[]),
        (500, &[YES, USER]),
        (501, &[]),
        (200, &[YES, USER, ("backstop", "outcome=fallback, source=snapshot, age=30")]),
        (401, &[("backstop", "outcome=fallback, source=snapshot, age=30")]),
        (200, &[YES, USER, ("age", "10")]),
        (401, &[("age", "1")]),
    ];
    for (status, fields) in table {
        let verdict = authorizer().read(answer(*status, fields));
        assert!(matches!(verdict, Verdict::Unclear), "{status} {fields:?}: {verdict:?}");
    }
    for status in 502..=504 {
        let verdict = authorizer().read(answer(status, &[YES, USER]));
        assert!(matches!(verdict, Verdict::Failed(_)), "{status}: {verdict:?}");
    }
}

#[test]
fn a_yes_says_who_it_is() {
    for status in [200, 204] {
        let roles = [YES, USER, ("x-roles", "a"), ("x-roles", "b"), ("x-else", "1")];
        let Verdict::Allowed(caller) = authorizer().read(answer(status, &roles)) else { panic!("{status}") };
        assert_eq!(caller.principal, Some(Principal((*b"ana").into())));
        let fields: Vec<_> =
            caller.fields.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(fields, [("x-roles", "a"), ("x-roles", "b"), ("x-user", "ana")]);
    }
}

/// What a yes is, who gives it and whom it names; and nothing else, so that a line more in the file costs no copies.
#[test]
fn another_authorizer_tells_copies_apart() {
    let host = (HostHeader::Fixed("a:1".into()), "a:1".to_owned());
    let address = |port| [Address { host: "a".into(), port }];
    let same = |settings: AuthorizerSettings| {
        word(&settings, &address(1), &host) == word(&self::settings(), &address(1), &host)
    };
    assert!(same(settings()));
    assert!(same(AuthorizerSettings { origin: Origin(9), dependency: DependencyId(7), ..settings() }));
    for changed in [
        AuthorizerSettings { name: "staff".into(), ..settings() },
        settings_of(AskedSettings { path: "/staff".into(), ..asked() }),
        settings_of(AskedSettings { allow: StatusSet::of(&[200]), ..asked() }),
        settings_of(AskedSettings { sign: "x-other".into(), ..asked() }),
        settings_of(AskedSettings { sign_value: None, ..asked() }),
        AuthorizerSettings { principal: None, ..settings() },
        settings_of(AskedSettings { tells: Vec::new(), ..asked() }),
        settings_of(AskedSettings { send: Vec::new(), ..asked() }),
    ] {
        assert!(!same(changed.clone()), "{changed:?}");
    }
    assert_ne!(word(&settings(), &address(2), &host), word(&settings(), &address(1), &host));
}

/// RFC 9110 section 11.6.1: a 401 has its challenge, and that is what makes a client ask again with a credential.
#[test]
fn a_no_goes_on_whole_but_for_what_is_the_gateways() {
    for status in [401, 403] {
        let fields =
            [("www-authenticate", "Bearer realm=\"shop\""), USER, ("x-roles", "a"), YES, ("x-why", "1")];
        let Verdict::Denied(denial) = authorizer().read(answer(status, &fields)) else { panic!("{status}") };
        assert_eq!(denial.status(), status);
        let left: Vec<&str> = denial.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["www-authenticate", "x-why"]);
        assert_eq!(denial.body(), "content");
    }
}

#[test]
fn any_value_of_the_sign_is_one_where_the_policy_names_none() {
    let asked = AskedSettings { sign: "x-user".into(), sign_value: None, ..asked() };
    let authorizer = Asked::new(&settings(), &asked, "h", &[]).unwrap();
    assert!(matches!(authorizer.read(answer(204, &[USER])), Verdict::Allowed(_)));
    assert!(matches!(authorizer.read(answer(204, &[("x-user", "")])), Verdict::Unclear));
    assert!(matches!(authorizer.read(answer(204, &[])), Verdict::Unclear));
}

/// What the client sent, and never what it says of itself.
#[test]
fn it_is_asked_with_the_clients_credentials_alone() {
    let authorizer = authorizer();
    let (mut head, ()) = Request::builder()
        .method("POST")
        .uri("/account/1?x=2")
        .header("authorization", "Bearer t")
        .header("cookie", "a=b")
        .header("x-user", "root")
        .header("x-else", "1")
        .header("host", "shop.example")
        .header("x-forwarded-for", "10.0.0.1")
        .header("if-none-match", "\"1\"")
        .body(())
        .unwrap()
        .into_parts();
    let authorizer = Authorizer::Asked(authorizer);
    let credentials = authorizer.credentials(&head.headers);
    let Authorizer::Asked(authorizer) = authorizer else { panic!("it is asked") };
    // The operator sets one of its own for the dependency.
    head.headers.insert("authorization", HeaderValue::from_static("Basic backend"));
    head.extensions.insert(credentials);
    let request = authorizer.request(&head);
    assert_eq!((request.method(), request.uri().path()), (&Method::GET, "/check"));
    let mut sent: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    sent.sort_unstable();
    assert_eq!(
        sent,
        [
            "authorization: Bearer t",
            "cookie: a=b",
            "host: 127.0.0.1:9003",
            "x-forwarded-for: 10.0.0.1",
            "x-forwarded-method: POST",
            "x-forwarded-uri: /account/1?x=2",
        ]
    );
}
