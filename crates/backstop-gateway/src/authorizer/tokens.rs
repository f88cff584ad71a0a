//! Signed tokens (RFC 7519) that are verified here, with the issuer's keys.
//!
//! ```text
//! Authorization: Bearer HEADER.CLAIMS.SIGNATURE
//!   no such field ------------------------------------> 401, a challenge without an error
//!   never a token of this issuer (form, header) ------> 401, invalid_token
//!   the date or the keys cannot be believed ----------> 503
//!   its key is not known -> keys are fetched once more: still not -> 401; not to be had -> 503
//!   signature, issuer, audience, time, principal -----> 401, invalid_token, or a yes
//! ```
//!
//! - No yes is remembered. Each request's token is verified, so that none outlives its `exp` by a nanosecond.
//! - Keys are what the issuer last said, and no longer than `max_age`. Older ones might be withdrawn by now: then nobody
//!   can be told from anybody, which is an outage.
//! - A refusal is certain or it is none: where newer keys could make a yes of it and cannot be had, it is an outage.
//! - Nothing of a token is ever written to a log or into an answer.

mod challenge;
mod claims;
mod fetch;
mod header;
mod key_set;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use backstop::authorize::{Caller, Principal, Verdict};
use backstop::clock::Clock;
use backstop_engine::failure::Failure;
use backstop_engine::policy::DependencyId;
use backstop_engine::time::{Now, WallTrust};
use backstop_policy::{AuthorizerSettings, TokenAlgorithm, TokenSettings};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, request};
use jsonwebtoken::Algorithm;

use challenge::Challenge;
use claims::Rules;
use header::Shown;
use keys::{Keys, Renewed};

use super::{CannotAsk, Credentials, only};

pub(crate) use fetch::{Fetch, run as fetch};

/// An issuer whose tokens are believed.
#[derive(Debug)]
pub(crate) struct Tokens {
    algorithms: Vec<Algorithm>,
    rules: Rules,
    trusts_date: bool,
    principal: Option<HeaderName>,
    challenge: Challenge,
    keys: Arc<Keys>,
    clock: Clock,
    fetch: Fetch,
    assumed: Option<Assumed>,
}

/// What every token comes to where nobody is let in anyway: in an explanation, which has no issuer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Assumed {
    /// It is this caller's.
    Valid(&'static str),
    /// It is none.
    Invalid,
    /// The date cannot be believed.
    Unclear,
    /// There are no keys.
    NoKeys(Failure),
}

impl Tokens {
    /// As the policy has it; its keys are fetched from a service that is sent this host.
    pub(crate) fn new(
        settings: &AuthorizerSettings,
        tokens: &TokenSettings,
        host: &str,
        clock: &Clock,
    ) -> Result<Self, CannotAsk> {
        let cannot =
            |part, text: &str| CannotAsk { name: settings.name.clone(), part, text: text.to_owned() };
        let algorithms: Vec<Algorithm> = tokens.algorithms.iter().copied().map(algorithm).collect();
        let keys = Arc::new(Keys::new(tokens.max_age));
        let principal = settings.principal.as_deref();
        let principal =
            principal.map(|name| HeaderName::try_from(name).map_err(|_| cannot("principal", name)));
        Ok(Self {
            rules: Rules::new(tokens),
            trusts_date: tokens.trusts_date,
            principal: principal.transpose()?,
            challenge: Challenge::new(&settings.name).ok_or_else(|| cannot("name", &settings.name))?,
            fetch: Fetch {
                id: settings.dependency,
                name: settings.name.clone(),
                path: tokens.path.parse::<Uri>().map_err(|_| cannot("path", &tokens.path))?,
                host: HeaderValue::try_from(host).map_err(|_| cannot("host", host))?,
                refresh: tokens.refresh,
                timeout: tokens.timeout,
                algorithms: algorithms.clone(),
                keys: Arc::clone(&keys),
            },
            keys,
            algorithms,
            clock: clock.clone(),
            assumed: None,
        })
    }

    /// From now on every token comes to this, whatever it is. For whoever explains, and never where anybody is let in.
    pub(crate) const fn assume(&mut self, assumed: Assumed) {
        self.assumed = Some(assumed);
    }

    fn by_assumption(&self, assumed: Assumed) -> Verdict {
        match assumed {
            Assumed::Valid(principal) => self.caller(principal.into()),
            Assumed::Invalid => self.challenge.invalid(),
            Assumed::Unclear => Verdict::Unclear,
            Assumed::NoKeys(failure) => Verdict::Failed(failure),
        }
    }

    /// How its keys are fetched.
    pub(crate) fn fetch(&self) -> &Fetch {
        &self.fetch
    }

    /// The dependency that has its keys.
    pub(crate) fn dependency(&self) -> DependencyId {
        self.fetch.id
    }

    /// How old its keys are; `None` while there are none.
    pub(crate) fn keys_age(&self) -> Option<Duration> {
        self.keys.age(self.clock.mono())
    }

    /// Whether the caller of this request may, by the token that it shows.
    pub(crate) async fn verify(&self, head: &request::Parts) -> Verdict {
        let credentials = head.extensions.get().map(|Credentials(fields)| fields);
        let token = match credentials.map(bearer) {
            Some(Bearer::Token(token)) => token,
            Some(Bearer::None) | None => return self.challenge.missing(),
            Some(Bearer::Malformed) => return self.challenge.invalid(),
        };
        if let Some(assumed) = self.assumed {
            return self.by_assumption(assumed);
        }
        let Some(shown) = Shown::read(token, &self.algorithms) else { return self.challenge.invalid() };
        if !self.believes(&self.clock.now()) {
            return Verdict::Unclear;
        }
        let mut keys = match self.keys.believed(&self.clock).await {
            Ok(keys) => keys,
            Err(outage) => return outage,
        };
        if !keys.knows(&shown.key_id) {
            keys = match self.keys.renewed(&keys, &self.clock).await {
                Renewed::Keys(keys) => keys,
                Renewed::Outage(outage) => return outage,
            };
        }
        let Some(key) = keys.key(&shown.key_id, shown.algorithm) else { return self.challenge.invalid() };
        // The moment that counts is the one of the yes, after any wait for keys.
        let now = self.clock.now();
        if !self.believes(&now) {
            return Verdict::Unclear;
        }
        match self.rules.principal(token, key, shown.algorithm, now.wall) {
            Some(principal) => self.caller(principal),
            None => self.challenge.invalid(),
        }
    }

    /// Whether the date may decide what has expired. A clock that shows an earlier date than one already seen, or that
    /// nobody vouches for, might bring back a token whose time is over.
    fn believes(&self, now: &Now) -> bool {
        match now.wall_trust {
            WallTrust::Synchronised => true,
            WallTrust::Unsynchronised => self.trusts_date,
            WallTrust::RanBack => false,
        }
    }

    fn caller(&self, principal: Box<str>) -> Verdict {
        let mut fields = HeaderMap::new();
        if let Some(name) = &self.principal {
            // Visible ASCII always is a field's value; whoever cannot be told to the dependency is not let in.
            let Ok(value) = HeaderValue::from_str(&principal) else { return self.challenge.invalid() };
            fields.insert(name, value);
        }
        Verdict::Allowed(Caller { principal: Some(Principal(principal.into_boxed_bytes())), fields })
    }
}

/// What `Authorization` holds.
#[derive(Debug, PartialEq, Eq)]
enum Bearer<'a> {
    /// No field, or a credential of another kind (RFC 6750 section 3.1: then the challenge names no error).
    None,
    /// A bearer token, or what stands in its place.
    Token(&'a str),
    /// More than one field, or one that is no token.
    Malformed,
}

/// The token of a request (RFC 6750 section 2.1). The scheme's case does not matter (RFC 9110 section 11.1).
fn bearer(credentials: &HeaderMap) -> Bearer<'_> {
    if !credentials.contains_key(AUTHORIZATION) {
        return Bearer::None;
    }
    let Some(Ok(text)) = only(credentials, &AUTHORIZATION).map(HeaderValue::to_str) else {
        return Bearer::Malformed;
    };
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Bearer::None;
    }
    match token.trim_matches(' ') {
        "" => Bearer::Malformed,
        token => Bearer::Token(token),
    }
}

const fn algorithm(named: TokenAlgorithm) -> Algorithm {
    match named {
        TokenAlgorithm::Rs256 => Algorithm::RS256,
        TokenAlgorithm::Rs384 => Algorithm::RS384,
        TokenAlgorithm::Rs512 => Algorithm::RS512,
        TokenAlgorithm::Ps256 => Algorithm::PS256,
        TokenAlgorithm::Ps384 => Algorithm::PS384,
        TokenAlgorithm::Ps512 => Algorithm::PS512,
        TokenAlgorithm::Es256 => Algorithm::ES256,
        TokenAlgorithm::Es384 => Algorithm::ES384,
        TokenAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}

#[cfg(test)]
mod tests;
