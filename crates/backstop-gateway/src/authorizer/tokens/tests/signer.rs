//! An issuer for tests: keys made anew in each process, and tokens put together by hand, so that wrong ones can be.

use std::sync::LazyLock;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512,
    RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use aws_lc_rs::{hmac, rand::SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

pub(crate) struct Signer {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

pub(crate) static ISSUER: LazyLock<Signer> = LazyLock::new(Signer::new);
/// Another one, whose keys nobody believes.
pub(crate) static STRANGER: LazyLock<Signer> = LazyLock::new(Signer::new);

pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    fn new() -> Self {
        Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            p256: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            p384: EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap(),
            ed25519: Ed25519KeyPair::generate().unwrap(),
        }
    }

    /// Its public key for this algorithm as a JWK (RFC 7517), by the algorithm's name as `kid`.
    pub(crate) fn jwk(&self, algorithm: &str) -> Value {
        let point = |key: &EcdsaKeyPair, curve: &str| {
            let point = key.public_key().as_ref()[1..].to_vec();
            let (x, y) = point.split_at(point.len() / 2);
            json!({ "kty": "EC", "crv": curve, "x": base64url(x), "y": base64url(y) })
        };
        let mut jwk = match algorithm {
            "ES256" => point(&self.p256, "P-256"),
            "ES384" => point(&self.p384, "P-384"),
            "EdDSA" => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": base64url(self.ed25519.public_key()) })
            }
            _ => {
                let key = self.rsa.public_key();
                let (n, e) = (key.modulus(), key.exponent());
                let n = base64url(n.big_endian_without_leading_zero());
                json!({ "kty": "RSA", "n": n, "e": base64url(e.big_endian_without_leading_zero()) })
            }
        };
        jwk["kid"] = json!(algorithm);
        jwk
    }

    /// A set of its keys for these algorithms.
    pub(crate) fn set(&self, algorithms: &[&str]) -> Vec<u8> {
        let keys: Vec<Value> = algorithms.iter().map(|algorithm| self.jwk(algorithm)).collect();
        json!({ "keys": keys }).to_string().into_bytes()
    }

    /// What a confused verifier would take for a shared secret: the public RSA key in DER.
    pub(crate) fn public_der(&self) -> Vec<u8> {
        self.rsa.public_key().as_der().unwrap().as_ref().to_vec()
    }

    pub(crate) fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let rsa = |padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(padding, &SystemRandom::new(), message, &mut signature).unwrap();
            signature
        };
        let ec = |key: &EcdsaKeyPair| key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec();
        match algorithm {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "RS384" => rsa(&RSA_PKCS1_SHA384),
            "RS512" => rsa(&RSA_PKCS1_SHA512),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "PS384" => rsa(&RSA_PSS_SHA384),
            "PS512" => rsa(&RSA_PSS_SHA512),
            "ES256" => ec(&self.p256),
            "ES384" => ec(&self.p384),
            "EdDSA" => self.ed25519.sign(message).as_ref().to_vec(),
            "none" => Vec::new(),
            other => panic!("{other}"),
        }
    }

    /// The same ECDSA key, but its signature in ASN.1 instead of RFC 7518 section 3.4's form.
    pub(crate) fn asn1_signature(&self, message: &[u8]) -> Vec<u8> {
        let pkcs8 = self.p256.to_pkcs8v1().unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref()).unwrap();
        key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
    }

    /// A token of these parts, signed as the header says.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.signature(header["alg"].as_str().unwrap(), message.as_bytes());
        format!("{message}.{}", base64url(signature))
    }
}

/// What is signed (RFC 7515 section 5.1).
pub(crate) fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()))
}

/// HMAC with SHA-256 under this secret.
pub(crate) fn hmac_signature(secret: &[u8], message: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    base64url(hmac::sign(&key, message.as_bytes()))
}
