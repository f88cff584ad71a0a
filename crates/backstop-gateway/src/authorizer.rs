//! Whether a caller may: another service is asked, or the request carries a signed token that is verified here.
//!
//! Either way nobody comes in without an explicit yes for this very request, and what cannot be found out is an outage: 503, and
//! never "forbidden". Who the caller is the dependency hears from here alone: a client's own fields of these names are gone by
//! then, on every route, disguised ones and those behind the content too.

mod asked;
mod tokens;

use backstop::authorize::Verdict;
use backstop::clock::Clock;
use backstop::upstream::Progress;
use backstop_engine::failure::Phase;
use backstop_engine::flow::Attempt;
use backstop_policy::{
    Address, AskedSettings, AuthorizerKind, AuthorizerSettings, HostHeader, TokenSettings,
};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, request};

use crate::client_body::RequestContent;
use crate::strict::passes_for;
use crate::upstream::Lane;

pub(crate) use asked::Asked;
pub(crate) use tokens::{Assumed, Fetch, Tokens, fetch};

/// Who says whether callers may.
#[derive(Debug)]
pub(crate) enum Authorizer {
    /// Another service.
    Asked(Asked),
    /// The issuer of the token that the request carries.
    Tokens(Tokens),
}

/// What the policy says of an authorizer cannot be done. Never passed over: what it protects would be shut for good.
#[derive(Debug, thiserror::Error)]
#[error("authorizer `{name}` cannot be asked: its {part} `{text}` is none")]
pub struct CannotAsk {
    name: Box<str>,
    part: &'static str,
    text: String,
}

/// What a client sent that its authorizer gets, as an extension of the request: its fields as they came.
#[derive(Clone)]
pub(crate) struct Credentials(HeaderMap);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Authorizer {
    /// The fields of a request that it gets.
    fn gets(&self) -> &[HeaderName] {
        const TOKEN: &[HeaderName] = &[AUTHORIZATION];
        match self {
            Self::Asked(asked) => asked.send(),
            Self::Tokens(_) => TOKEN,
        }
    }

    /// Whether it gets this field of a request.
    pub(crate) fn looks_at(&self, name: &HeaderName) -> bool {
        self.gets().contains(name)
    }

    /// Whether a service that takes `_` for `-` would read this field as one that it gets.
    pub(crate) fn is_imitated_by(&self, name: &HeaderName) -> bool {
        self.gets().iter().any(|sent| passes_for(name, sent))
    }

    /// What it gets of a request, as its client sent it.
    pub(crate) fn credentials(&self, headers: &HeaderMap) -> Credentials {
        let lines = self
            .gets()
            .iter()
            .flat_map(|name| headers.get_all(name).iter().map(move |value| (name.clone(), value.clone())));
        Credentials(lines.collect())
    }

    /// Whether the caller of this request may: with this one call where another service is asked.
    pub(crate) async fn find_out(
        &self,
        lanes: &[Lane<RequestContent>],
        attempt: Option<Attempt>,
        head: &request::Parts,
        progress: &Progress,
    ) -> Verdict {
        match (self, attempt) {
            (Self::Asked(asked), Some(attempt)) => match lanes.get(asked.dependency) {
                Some(lane) => asked.ask(lane, attempt, head, progress).await,
                // Nobody who could say so is there.
                None => Verdict::Unclear,
            },
            (Self::Tokens(tokens), None) => {
                // Whoever waits here waits for the issuer's answer.
                progress.enter(Phase::Head);
                tokens.verify(head).await
            }
            _ => Verdict::Unclear,
        }
    }

    /// From now on every token comes to this, in an explanation.
    pub(crate) const fn assume(&mut self, assumed: Assumed) {
        if let Self::Tokens(tokens) = self {
            tokens.assume(assumed);
        }
    }

    /// One that verifies tokens.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        match self {
            Self::Asked(_) => None,
            Self::Tokens(tokens) => Some(tokens),
        }
    }
}

/// Those who say whether callers may, ready for it.
pub(crate) fn ready(
    settings: &[AuthorizerSettings],
    hosts: &[(HostHeader, String)],
    clock: &Clock,
) -> Result<Vec<Authorizer>, CannotAsk> {
    let identities = identities(settings);
    let ready = |settings: &AuthorizerSettings| {
        let host = match hosts.get(usize::from(settings.dependency.0)) {
            Some((HostHeader::Fixed(host), _)) => host,
            Some((HostHeader::Client, own)) => own.as_str(),
            None => "",
        };
        Ok(match &settings.kind {
            AuthorizerKind::Asked(asked) => {
                Authorizer::Asked(Asked::new(settings, asked, host, &identities)?)
            }
            AuthorizerKind::Tokens(tokens) => Authorizer::Tokens(Tokens::new(settings, tokens, host, clock)?),
        })
    };
    settings.iter().map(ready).collect()
}

/// Whose word lets a caller have copies, and what that word is, for telling copies apart: another authorizer's principal of the
/// same name is another one.
pub(crate) fn word(
    settings: &AuthorizerSettings,
    addresses: &[Address],
    (host, own_host): &(HostHeader, String),
) -> String {
    let AuthorizerSettings { dependency: _, origin: _, name, principal, kind } = settings;
    match kind {
        AuthorizerKind::Asked(asked) => {
            let AskedSettings { path, allow, sign, sign_value, deny: _, tells, send } = asked;
            let asked = (addresses, host, own_host, path, send);
            format!("{:?}", (name, asked, allow, sign, sign_value, principal, tells))
        }
        // Within one issuer a principal is the same whatever it is signed with and wherever the keys are (RFC 7519 section
        // 4.1.2).
        AuthorizerKind::Tokens(TokenSettings { issuer, audience, claim, .. }) => {
            format!("{:?}", (name, issuer, audience, claim, principal))
        }
    }
}

/// Every field by which the authorizers of a policy tell who asks.
pub(crate) fn identities(settings: &[AuthorizerSettings]) -> Vec<HeaderName> {
    let told = settings.iter().flat_map(AuthorizerSettings::told);
    let mut names: Vec<HeaderName> = told.filter_map(|name| HeaderName::try_from(name).ok()).collect();
    names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    names.dedup();
    names
}

/// The value of a field that stands there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    lines.next().filter(|_| lines.next().is_none())
}
