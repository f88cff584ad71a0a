pub(crate) mod signer;

use backstop::authorize::Verdict;
use backstop::clock::ManualClock;
use backstop::upstream::Progress;
use backstop_engine::policy::Origin;
use backstop_engine::time::{BootId, Mono, Wall};
use backstop_policy::AuthorizerKind;
use http::Request;
use serde_json::{Value, json};
use signer::{ISSUER, STRANGER, base64url, hmac_signature, message};

use super::key_set::KeySet;
use super::*;
use crate::authorizer::Authorizer;

/// 2027-01-15T08:00:00Z.
const NOW_S: i64 = 1_800_000_000;
const ALL: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

fn settings() -> TokenSettings {
    TokenSettings {
        path: "/jwks".into(),
        issuer: "https://login.example".into(),
        audience: vec!["shop".into(), "stock".into()],
        algorithms: TokenAlgorithm::ALL.to_vec(),
        max_age: Duration::from_secs(3600),
        refresh: Duration::from_secs(900),
        timeout: Duration::from_secs(5),
        skew: Duration::ZERO,
        claim: "sub".into(),
        trusts_date: false,
    }
}

/// An authorizer whose keys are there, at [`NOW_S`].
struct World {
    authorizer: Authorizer,
    hand: ManualClock,
}

impl World {
    fn of(tokens: &TokenSettings) -> Self {
        let start = Now {
            mono: Mono::from_ns(1),
            wall: Wall::from_unix_ns(NOW_S * 1_000_000_000),
            boot: BootId([1; 16]),
            wall_trust: WallTrust::Synchronised,
        };
        let (clock, hand) = Clock::manual(start);
        let settings = AuthorizerSettings {
            dependency: DependencyId(0),
            name: "tokens".into(),
            principal: Some("x-user".into()),
            kind: AuthorizerKind::Tokens(tokens.clone()),
            origin: Origin::NONE,
        };
        let tokens = Tokens::new(&settings, tokens, "login.example", &clock).unwrap();
        let set = KeySet::read(&ISSUER.set(&ALL), &tokens.algorithms).unwrap();
        tokens.keys.begin(clock.mono());
        tokens.keys.fetched(set, clock.mono(), Duration::ZERO);
        Self { authorizer: Authorizer::Tokens(tokens), hand }
    }

    fn new() -> Self {
        Self::of(&settings())
    }

    /// What comes of a request with these lines of `Authorization`.
    fn shown(&self, lines: &[&str]) -> Verdict {
        let mut request = Request::builder();
        for line in lines {
            request = request.header("authorization", *line);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let credentials = self.authorizer.credentials(&head.headers);
        head.extensions.insert(credentials);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.authorizer.find_out(&[], None, &head, &Progress::new()))
    }

    fn comes_of(&self, token: &str) -> Verdict {
        self.shown(&[&format!("Bearer {token}")])
    }

    /// The name that a token lets in under.
    fn lets_in(&self, token: &str) -> Option<String> {
        match self.comes_of(token) {
            Verdict::Allowed(caller) => {
                let principal = String::from_utf8(caller.principal.unwrap().0.into_vec()).unwrap();
                assert_eq!(caller.fields.get("x-user").unwrap().as_bytes(), principal.as_bytes());
                Some(principal)
            }
            Verdict::Denied(denial) => {
                assert_eq!(denial.status(), 401);
                assert_eq!(
                    denial.headers().get("www-authenticate").unwrap(),
                    "Bearer realm=\"tokens\", error=\"invalid_token\""
                );
                None
            }
            other => panic!("{other:?}"),
        }
    }
}

fn header() -> Value {
    json!({ "alg": "ES256", "kid": "ES256", "typ": "JWT" })
}

fn claims() -> Value {
    json!({
        "iss": "https://login.example",
        "aud": "shop",
        "sub": "ana",
        "exp": NOW_S + 60,
        "nbf": NOW_S - 60,
        "iat": NOW_S - 60,
    })
}

/// One member changed; removed where it is null.
fn with(mut object: Value, member: &str, value: Value) -> Value {
    let members = object.as_object_mut().unwrap();
    members.remove(member);
    if !value.is_null() {
        members.insert(member.to_owned(), value);
    }
    object
}

#[test]
fn every_algorithm_lets_in_with_its_own_key() {
    let world = World::new();
    for algorithm in ALL {
        let header = json!({ "alg": algorithm, "kid": algorithm });
        assert_eq!(world.lets_in(&ISSUER.token(&header, &claims())).as_deref(), Some("ana"), "{algorithm}");
        assert_eq!(world.lets_in(&STRANGER.token(&header, &claims())), None, "{algorithm}");
    }
}

/// RFC 7519 section 4.1: each row changes one claim of a token that is signed as it should be.
#[test]
fn each_claim_that_is_wrong_refuses() {
    let world = World::new();
    let lets_in = |claims: &Value| world.lets_in(&ISSUER.token(&header(), claims)).is_some();
    assert!(lets_in(&claims()));
    let second = "x".repeat(255);
    let good = [
        ("aud", json!(["shop"])),
        ("aud", json!(["other", "stock"])),
        ("nbf", json!(null)),
        ("iat", json!(null)),
        ("exp", json!(NOW_S as f64 + 60.5)),
        ("sub", json!("Ana Maria")),
        ("sub", json!(second)),
        ("roles", json!(["buyer"])),
    ];
    for (name, value) in good {
        assert!(lets_in(&with(claims(), name, value.clone())), "{name} = {value}");
    }
    let wrong = [
        ("iss", json!(null)),
        ("iss", json!("https://login.example/")),
        ("iss", json!("https://LOGIN.example")),
        ("iss", json!(["https://login.example"])),
        ("iss", json!("")),
        ("aud", json!(null)),
        ("aud", json!("Shop")),
        ("aud", json!("")),
        ("aud", json!([])),
        ("aud", json!(["other"])),
        ("aud", json!(["shop", 1])),
        ("aud", json!({ "shop": true })),
        ("sub", json!(null)),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!(" ana")),
        ("sub", json!("ana ")),
        ("sub", json!("ana\n")),
        ("sub", json!("an\u{0}a")),
        ("sub", json!("añá")),
        ("sub", json!("x".repeat(256))),
        ("exp", json!(null)),
        ("exp", json!((NOW_S + 60).to_string())),
        ("exp", json!(true)),
        ("exp", json!(1e300)),
        ("exp", json!(-1)),
        ("nbf", json!("0")),
        ("nbf", json!(false)),
        ("cnf", json!({ "jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" })),
    ];
    for (name, value) in wrong {
        assert!(!lets_in(&with(claims(), name, value.clone())), "{name} = {value}");
    }
    for no_object in [json!([]), json!("sub"), json!(null), json!(1)] {
        assert!(!lets_in(&no_object), "{no_object}");
    }
}

/// RFC 7519 section 4.1.4: on or after `exp` it must not be accepted; section 4.1.5: before `nbf` it must not. A nanosecond
/// decides, and a fraction is rounded to the side that refuses.
#[test]
fn a_token_ends_with_its_exp_and_not_a_nanosecond_later() {
    let world = World::new();
    let at = |offset_ns: i64| {
        world.hand.set(|now| now.wall = Wall::from_unix_ns(NOW_S * 1_000_000_000 + offset_ns))
    };
    let lets_in = |name: &str, value: Value| {
        world.lets_in(&ISSUER.token(&header(), &with(claims(), name, value))).is_some()
    };
    at(-1);
    assert!(lets_in("exp", json!(NOW_S)));
    assert!(lets_in("exp", json!(NOW_S as f64 + 0.75)));
    assert!(!lets_in("nbf", json!(NOW_S)));
    assert!(!lets_in("nbf", json!(NOW_S as f64 - 0.25)));
    at(0);
    assert!(!lets_in("exp", json!(NOW_S)));
    assert!(!lets_in("exp", json!(NOW_S as f64 + 0.75)));
    assert!(lets_in("nbf", json!(NOW_S)));
    assert!(lets_in("nbf", json!(NOW_S as f64 - 0.25)));
}

/// It is for issuers whose clock runs ahead; no token lives longer by it.
#[test]
fn skew_moves_the_beginning_and_never_the_end() {
    let world = World::of(&TokenSettings { skew: Duration::from_secs(5), ..settings() });
    let lets_in = |name: &str, value: i64| {
        world.lets_in(&ISSUER.token(&header(), &with(claims(), name, json!(value)))).is_some()
    };
    assert!(lets_in("nbf", NOW_S + 5));
    assert!(!lets_in("nbf", NOW_S + 6));
    assert!(lets_in("exp", NOW_S + 1));
    assert!(!lets_in("exp", NOW_S));
}

/// RFC 7515 section 4.1 and RFC 8725 section 3: each row changes one member of the header.
#[test]
fn each_member_of_the_header_that_is_wrong_refuses() {
    let world = World::new();
    let lets_in = |header: &Value| world.lets_in(&ISSUER.token(header, &claims())).is_some();
    for kind in ["JWT", "jwt", "at+jwt", "application/at+jwt", "application/JWT"] {
        assert!(lets_in(&with(header(), "typ", json!(kind))), "{kind}");
    }
    assert!(lets_in(&with(header(), "typ", json!(null))));
    let own_key = STRANGER.jwk("ES256");
    let wrong = [
        ("kid", json!(null)),
        ("kid", json!("")),
        ("kid", json!(1)),
        ("kid", json!("other")),
        ("kid", json!("es256")),
        ("kid", json!("ES384")),
        ("kid", json!("RS256")),
        ("typ", json!("logout+jwt")),
        ("typ", json!("dpop+jwt")),
        ("typ", json!("")),
        ("typ", json!(1)),
        ("cty", json!("JWT")),
        ("crit", json!([])),
        ("crit", json!(["exp"])),
        ("crit", json!(["b64"])),
        ("enc", json!("A128GCM")),
        ("zip", json!("DEF")),
        ("b64", json!(false)),
    ];
    for (name, value) in wrong {
        assert!(!lets_in(&with(header(), name, value.clone())), "{name} = {value}");
    }
    let b64 = with(with(header(), "crit", json!(["b64"])), "b64", json!(true));
    assert!(!lets_in(&b64), "nothing that must be understood is");
    // A key that the token brings along.
    let brought = with(header(), "jwk", own_key);
    assert_eq!(world.lets_in(&STRANGER.token(&brought, &claims())), None);
    assert_eq!(world.lets_in(&STRANGER.token(&with(brought, "kid", json!(null)), &claims())), None);
}

/// RFC 8725 section 2.1: the public key as a shared secret, and no signature at all.
#[test]
fn the_algorithm_is_the_keys_and_not_the_tokens() {
    let world = World::new();
    for kid in ["RS256", "ES256", "HS256"] {
        let header = json!({ "alg": "HS256", "kid": kid, "typ": "JWT" });
        let message = message(&header, &claims());
        let jwk = ISSUER.jwk("RS256");
        let secrets =
            [ISSUER.public_der(), jwk["n"].as_str().unwrap().into(), jwk.to_string().into(), b"x".to_vec()];
        for secret in secrets {
            let signature = hmac_signature(&secret, &message);
            assert_eq!(world.lets_in(&format!("{message}.{signature}")), None, "{kid}");
        }
        for name in ["none", "None", "NONE", "nOnE", ""] {
            let message = self::message(&json!({ "alg": name, "kid": kid }), &claims());
            assert_eq!(world.lets_in(&format!("{message}.")), None, "{name}");
        }
    }
    // Signed with a good key, under the name of an algorithm that the policy does not allow.
    let only = World::of(&TokenSettings { algorithms: vec![TokenAlgorithm::Es384], ..settings() });
    assert_eq!(only.lets_in(&ISSUER.token(&header(), &claims())), None);
    let es384 = json!({ "alg": "ES384", "kid": "ES384" });
    assert!(only.lets_in(&ISSUER.token(&es384, &claims())).is_some());
    // RSA keys verify both paddings; the header says which, and the signature is of that one.
    let header = json!({ "alg": "PS256", "kid": "RS256" });
    let message = self::message(&header, &claims());
    let other_padding = base64url(ISSUER.signature("RS256", message.as_bytes()));
    assert_eq!(world.lets_in(&format!("{message}.{other_padding}")), None);
}

#[test]
fn what_is_no_token_refuses() {
    let world = World::new();
    let token = ISSUER.token(&header(), &claims());
    let [head, body, signature]: [&str; 3] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let other_claims = base64url(with(claims(), "sub", json!("root")).to_string());
    let asn1 = base64url(ISSUER.asn1_signature(format!("{head}.{body}").as_bytes()));
    let twice = base64url("{\"iss\":\"https://login.example\",\"alg\":\"ES256\",\"alg\":\"none\"}");
    for wrong in [
        "x".to_owned(),
        "..".to_owned(),
        format!("{head}.{body}"),
        format!("{head}.{body}."),
        format!("{head}.{body}.{signature}.{signature}"),
        format!("{head}.{body}.{signature}="),
        format!("{head}.{body}.{}", &signature[1..]),
        format!("{head}.{body}.{signature}AA"),
        format!("{head}.{other_claims}.{signature}"),
        format!("{head}.{body}.{asn1}"),
        format!("{head}.{body}.{}", base64url([0; 64])),
        format!("{twice}.{body}.{signature}"),
        format!("{head} .{body}.{signature}"),
        format!("{token}, Bearer {token}"),
        format!("{token} {token}"),
    ] {
        assert_eq!(world.lets_in(&wrong), None, "{wrong}");
    }
    assert!(world.lets_in(&token).is_some());
}

/// RFC 6750 section 3.1: no error where nothing was shown that could be wrong. RFC 9110 section 11.1: the scheme in any case.
#[test]
fn who_shows_no_token_is_asked_for_one() {
    let world = World::new();
    let token = ISSUER.token(&header(), &claims());
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        assert!(matches!(world.shown(&[&format!("{scheme} {token}")]), Verdict::Allowed(_)), "{scheme}");
    }
    assert!(matches!(world.shown(&[&format!("Bearer   {token}  ")]), Verdict::Allowed(_)));
    let challenge = |lines: &[&str]| {
        let Verdict::Denied(denial) = world.shown(lines) else { panic!("{lines:?}") };
        assert_eq!((denial.status().as_u16(), &denial.headers()["content-type"]), (401, &problem_type()));
        denial.headers()["www-authenticate"].to_str().unwrap().to_owned()
    };
    let digest = format!("Digest {token}");
    for lines in [&[][..], &["Basic YW5hOg=="], &[&digest], &[""], &[&token], &["Bearer2 x"]] {
        assert_eq!(challenge(lines), "Bearer realm=\"tokens\"", "{lines:?}");
    }
    let good = format!("Bearer {token}");
    for lines in [&["Bearer"][..], &["Bearer "], &[&good, &good], &[&good, "Basic YW5hOg=="]] {
        assert_eq!(challenge(lines), "Bearer realm=\"tokens\", error=\"invalid_token\"", "{lines:?}");
    }
}

fn problem_type() -> HeaderValue {
    HeaderValue::from_static("application/problem+json")
}

/// A date that may be wrong could bring back what has expired. That is an outage and not the caller's fault; what no date
/// could make valid is refused all the same.
#[test]
fn an_untrusted_date_is_an_outage() {
    let token = ISSUER.token(&header(), &claims());
    let at = |world: &World, trust| world.hand.set(|now| now.wall_trust = trust);
    let careful = World::new();
    let trusting = World::of(&TokenSettings { trusts_date: true, ..settings() });
    for world in [&careful, &trusting] {
        at(world, WallTrust::RanBack);
        assert!(matches!(world.comes_of(&token), Verdict::Unclear));
        assert!(matches!(world.comes_of("x"), Verdict::Denied(_)));
        assert!(matches!(world.shown(&[]), Verdict::Denied(_)));
    }
    at(&careful, WallTrust::Unsynchronised);
    assert!(matches!(careful.comes_of(&token), Verdict::Unclear));
    at(&trusting, WallTrust::Unsynchronised);
    assert!(matches!(trusting.comes_of(&token), Verdict::Allowed(_)));
    at(&careful, WallTrust::Synchronised);
    assert!(matches!(careful.comes_of(&token), Verdict::Allowed(_)));
}

/// Another claim may name the principal, and its token then needs no `sub`.
#[test]
fn the_claim_that_names_the_principal_is_the_policys() {
    let world = World::of(&TokenSettings { claim: "email".into(), ..settings() });
    let named = |claims: &Value| world.lets_in(&ISSUER.token(&header(), claims));
    assert_eq!(named(&claims()), None);
    let email = with(with(claims(), "sub", json!(null)), "email", json!("ana@shop.example"));
    assert_eq!(named(&email).as_deref(), Some("ana@shop.example"));
}

/// What tells copies of two issuers apart; where their keys are and how tokens are signed makes no other caller.
#[test]
fn another_issuer_tells_copies_apart() {
    use crate::authorizer::word;
    let host = (backstop_policy::HostHeader::Client, String::new());
    let of = |tokens: TokenSettings, principal: Option<&str>, name: &str| {
        let settings = AuthorizerSettings {
            dependency: DependencyId(0),
            name: name.into(),
            principal: principal.map(Into::into),
            kind: AuthorizerKind::Tokens(tokens),
            origin: Origin::NONE,
        };
        word(&settings, &[], &host)
    };
    let same = of(settings(), Some("x-user"), "tokens");
    let moved = TokenSettings {
        path: "/keys".into(),
        algorithms: vec![TokenAlgorithm::Es256],
        max_age: Duration::from_secs(1),
        ..settings()
    };
    assert_eq!(of(moved, Some("x-user"), "tokens"), same);
    for other in [
        of(TokenSettings { issuer: "https://other.example".into(), ..settings() }, Some("x-user"), "tokens"),
        of(TokenSettings { audience: vec!["shop".into()], ..settings() }, Some("x-user"), "tokens"),
        of(TokenSettings { claim: "email".into(), ..settings() }, Some("x-user"), "tokens"),
        of(settings(), None, "tokens"),
        of(settings(), Some("x-user"), "staff"),
    ] {
        assert_ne!(other, same);
    }
}

/// No line of a log and no answer holds any of it.
#[test]
fn a_refusal_says_nothing_of_the_token() {
    let world = World::new();
    let token = ISSUER.token(&header(), &with(claims(), "sub", json!("\u{1}secret")));
    let Verdict::Denied(denial) = world.comes_of(&token) else { panic!("it has no name") };
    let shown = format!("{denial:?}");
    for part in token.split('.').chain(["secret"]) {
        assert!(!shown.contains(part));
    }
    assert_eq!(
        *denial.body(),
        "{\"type\":\"urn:backstop:problem:token\",\"title\":\"A token that is valid here is needed\",\"status\":401}\n"
    );
}
