//! What a token claims, once its signature is verified (RFC 7519 section 4.1).

use std::collections::HashSet;
use std::time::Duration;

use backstop_engine::time::Wall;
use backstop_policy::TokenSettings;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde_json::{Map, Value};

/// What claims must be.
#[derive(Debug)]
pub(super) struct Rules {
    issuer: Box<str>,
    audience: Vec<Box<str>>,
    skew: Duration,
    claim: Box<str>,
}

/// The longest name of a principal (OpenID Connect Core 1.0 section 2, `sub`).
const PRINCIPAL_BYTES: usize = 255;

impl Rules {
    pub(super) fn new(tokens: &TokenSettings) -> Self {
        Self {
            issuer: tokens.issuer.clone(),
            audience: tokens.audience.clone(),
            skew: tokens.skew,
            claim: tokens.claim.clone(),
        }
    }

    /// Whose token it is, if this key verifies it and it holds now.
    pub(super) fn principal(
        &self,
        token: &str,
        key: &DecodingKey,
        algorithm: Algorithm,
        now: Wall,
    ) -> Option<Box<str>> {
        let claims = decode::<Map<String, Value>>(token, key, &signature_alone(algorithm)).ok()?.claims;
        let is_valid = self.is_by_the_issuer(&claims) && self.is_for_us(&claims) && self.holds(&claims, now);
        // It is bound to a key whose possession would have to be proved (RFC 7800 section 3.1), and nobody asks for that
        // here: whoever stole it would come in.
        let is_bound = claims.contains_key("cnf");
        if !is_valid || is_bound {
            return None;
        }
        let principal = claims.get(&*self.claim)?.as_str()?;
        is_name(principal).then(|| principal.into())
    }

    fn is_by_the_issuer(&self, claims: &Map<String, Value>) -> bool {
        claims.get("iss").and_then(Value::as_str) == Some(&*self.issuer)
    }

    /// One audience or a list of them (RFC 7519 section 4.1.3). A list with something else in it is none.
    fn is_for_us(&self, claims: &Map<String, Value>) -> bool {
        let is_ours = |text: &str| self.audience.iter().any(|ours| **ours == *text);
        match claims.get("aud") {
            Some(Value::String(one)) => is_ours(one),
            Some(Value::Array(several)) => {
                let texts: Option<Vec<&str>> = several.iter().map(Value::as_str).collect();
                texts.is_some_and(|texts| texts.into_iter().any(is_ours))
            }
            _ => false,
        }
    }

    /// From its `nbf`, inclusive, to its `exp`, exclusive (RFC 7519 sections 4.1.4 and 4.1.5), by our own clock. A token
    /// without an end is refused: nobody could take it back.
    fn holds(&self, claims: &Map<String, Value>, now: Wall) -> bool {
        let now = i128::from(now.as_unix_ns());
        let has_begun = match claims.get("nbf") {
            Some(begin) => {
                unix_ns(begin, f64::ceil).is_some_and(|begin| now.saturating_add(self.skew_ns()) >= begin)
            }
            None => true,
        };
        let has_ended =
            claims.get("exp").and_then(|end| unix_ns(end, f64::floor)).is_none_or(|end| now >= end);
        has_begun && !has_ended
    }

    fn skew_ns(&self) -> i128 {
        i128::try_from(self.skew.as_nanos()).unwrap_or(i128::MAX)
    }
}

/// Everything else is examined by our own clock and our own rules: the library's allow a minute of leeway and let what is missing
/// pass.
fn signature_alone(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims = HashSet::new();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

/// Seconds since 1970, maybe with a fraction (RFC 7519 section 2), in nanoseconds. A fraction never makes a token valid for
/// longer: whole seconds, rounded to the side that refuses.
fn unix_ns(seconds: &Value, round: fn(f64) -> f64) -> Option<i128> {
    /// Beyond this not every whole number is one.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = seconds.as_number()?;
    let whole = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => i128::from(whole),
        (None, Some(whole), _) => i128::from(whole),
        (None, None, Some(fraction)) if fraction.abs() < EXACT => round(fraction) as i128,
        _ => return None,
    };
    Some(whole.saturating_mul(1_000_000_000))
}

/// Visible ASCII, spaces within. What would be another name once it is a field's value, such as one with a space at its
/// end, is none.
fn is_name(text: &str) -> bool {
    (1..=PRINCIPAL_BYTES).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
}
