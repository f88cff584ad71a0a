use jsonwebtoken::Algorithm::{ES256, ES384, EdDSA, HS256, PS256, RS256, RS384};
use serde_json::{Value, json};

use super::super::tests::signer::{ISSUER, base64url};
use super::*;

const ALLOWED: [Algorithm; 6] = [RS256, RS384, PS256, ES256, ES384, EdDSA];

fn read(keys: &Value) -> Result<KeySet, NoKeySet> {
    KeySet::read(json!({ "keys": keys }).to_string().as_bytes(), &ALLOWED)
}

fn with(algorithm: &str, members: &[(&str, Value)]) -> Value {
    let mut jwk = ISSUER.jwk(algorithm);
    for (name, value) in members {
        jwk[*name] = value.clone();
    }
    jwk
}

#[test]
fn each_key_verifies_what_it_is_made_for() {
    let set =
        read(&json!([ISSUER.jwk("RS256"), ISSUER.jwk("ES256"), ISSUER.jwk("ES384"), ISSUER.jwk("EdDSA")]))
            .unwrap();
    let table: [(&str, &[Algorithm]); 4] =
        [("RS256", &[RS256, RS384, PS256]), ("ES256", &[ES256]), ("ES384", &[ES384]), ("EdDSA", &[EdDSA])];
    for (id, algorithms) in table {
        for algorithm in ALLOWED.into_iter().chain([HS256]) {
            assert_eq!(
                set.key(id, algorithm).is_some(),
                algorithms.contains(&algorithm),
                "{id} {algorithm:?}"
            );
        }
    }
    assert!(set.knows("RS256") && !set.knows("rs256") && !set.is_empty());
    // One that names its algorithm is for that alone (RFC 7517 section 4.4).
    let stated = read(&json!([with("RS256", &[("alg", json!("PS256"))])])).unwrap();
    assert!(stated.key("RS256", PS256).is_some() && stated.key("RS256", RS256).is_none());
}

/// RFC 7517 section 5: keys that are not understood, or not for this, are passed over. The good one beside them stays.
#[test]
fn keys_that_cannot_verify_are_passed_over() {
    let modulus = |bytes: usize| ("n", json!(base64url(vec![0xff; bytes])));
    let table = [
        ("a shared secret", json!({ "kty": "oct", "kid": "x", "k": base64url("secret"), "alg": "HS256" })),
        ("another kind", json!({ "kty": "AKP", "kid": "x", "alg": "ML-DSA-44", "pub": "AA" })),
        ("another curve", with("ES256", &[("kid", json!("x")), ("crv", json!("secp256k1"))])),
        ("for encryption", with("RS256", &[("kid", json!("x")), ("use", json!("enc"))])),
        ("for signing only", with("ES256", &[("kid", json!("x")), ("key_ops", json!(["sign"]))])),
        ("of another algorithm", with("RS256", &[("kid", json!("x")), ("alg", json!("RSA-OAEP"))])),
        ("not allowed", with("RS256", &[("kid", json!("x")), ("alg", json!("RS512"))])),
        ("no name", with("ES256", &[("kid", json!(null))])),
        ("an empty name", with("ES256", &[("kid", json!(""))])),
        ("its private part in public", with("ES256", &[("kid", json!("x")), ("d", json!("AA"))])),
        ("2040 bits", with("RS256", &[("kid", json!("x")), modulus(255)])),
        ("8200 bits", with("RS256", &[("kid", json!("x")), modulus(1025)])),
        ("half a point", with("ES256", &[("kid", json!("x")), ("y", json!(""))])),
        ("a long point", with("EdDSA", &[("kid", json!("x")), ("x", json!(base64url([1; 33])))])),
        ("no base64url", with("EdDSA", &[("kid", json!("x")), ("x", json!("***"))])),
        ("no object", json!("key")),
    ];
    for (what, key) in table {
        let set = read(&json!([key, ISSUER.jwk("ES256")])).unwrap();
        assert!(!set.knows("x") && !set.knows("") && set.knows("ES256"), "{what}");
        assert!(read(&json!([key])).unwrap().is_empty(), "{what}");
    }
    for bytes in [256, 1024] {
        assert!(read(&json!([with("RS256", &[("kid", json!("x")), modulus(bytes)])])).unwrap().knows("x"));
    }
}

/// RFC 7517 section 4.5 lets keys of different kinds share a name. Two that could both be meant make the set worthless.
#[test]
fn two_keys_of_one_name_are_no_set() {
    let named = |algorithm: &str| with(algorithm, &[("kid", json!("x"))]);
    assert_eq!(read(&json!([named("ES256"), named("ES256")])).unwrap_err(), NoKeySet::SameName);
    let rs = with("RS256", &[("kid", json!("x")), ("alg", json!("RS256"))]);
    assert_eq!(read(&json!([rs, named("RS256")])).unwrap_err(), NoKeySet::SameName);
    let kinds = read(&json!([named("ES256"), named("RS256"), named("EdDSA")])).unwrap();
    assert!(kinds.key("x", ES256).is_some() && kinds.key("x", RS256).is_some());
}

#[test]
fn what_is_no_set_is_none() {
    for content in [
        "",
        "{",
        "<html><body>keys</body></html>",
        "[]",
        "{}",
        "null",
        "{\"keys\":{}}",
        "{\"keys\":null}",
        "{\"error\":\"try later\"}",
        "{\"keys\":[]}{\"keys\":[]}",
    ] {
        let read = KeySet::read(content.as_bytes(), &ALLOWED);
        assert_eq!(read.err(), Some(NoKeySet::NoSet), "{content}");
    }
    assert!(KeySet::read(b"{\"keys\":[]}", &ALLOWED).unwrap().is_empty());
}
