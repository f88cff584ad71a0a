//! `[authorizer.NAME]`: who says whether a caller may.

use std::time::Duration;

use backstop_engine::policy::{DependencyId, Origin, StatusSet};

/// `[authorizer.NAME]`: who says whether a caller may.
#[derive(Clone, Debug)]
pub struct AuthorizerSettings {
    /// Where it is asked, or where its keys are: its position in `policy.dependencies` and in `Loaded::dependencies`, after
    /// those of the file.
    pub dependency: DependencyId,
    /// Its name.
    pub name: Box<str>,
    /// The field that tells the dependency the verified principal, in lower case. One that is asked answers with it.
    pub principal: Option<Box<str>>,
    /// How it finds out.
    pub kind: AuthorizerKind,
    /// Where it was written.
    pub origin: Origin,
}

impl AuthorizerSettings {
    /// Every field that tells the dependency who asks, in lower case.
    pub fn told(&self) -> impl Iterator<Item = &str> {
        let tells = match &self.kind {
            AuthorizerKind::Asked(asked) => &asked.tells[..],
            AuthorizerKind::Tokens(_) => &[],
        };
        tells.iter().chain(&self.principal).map(|name| &**name)
    }
}

/// How an authorizer finds out whether a caller may.
#[derive(Clone, Debug)]
pub enum AuthorizerKind {
    /// Another service is asked about each request.
    Asked(AskedSettings),
    /// The request carries a signed token, which is verified here.
    Tokens(TokenSettings),
}

/// An authorizer that is asked about each request.
#[derive(Clone, Debug)]
pub struct AskedSettings {
    /// The path that it is asked at, maybe with a query.
    pub path: Box<str>,
    /// The statuses of an explicit yes. Default 200 and 204.
    pub allow: StatusSet,
    /// The field that comes with a yes, in lower case.
    pub sign: Box<str>,
    /// Its exact value; any value that is not empty if `None`.
    pub sign_value: Option<Box<str>>,
    /// The statuses of an explicit no. Default 401 and 403.
    pub deny: StatusSet,
    /// Further fields of its answer that the dependency gets, in lower case.
    pub tells: Vec<Box<str>>,
    /// Fields of the request that it gets, in lower case. Default `authorization` and `cookie`.
    pub send: Vec<Box<str>>,
}

/// `[authorizer.NAME.jwt]`: signed tokens (RFC 7519) that are verified here.
#[derive(Clone, Debug)]
pub struct TokenSettings {
    /// The path of the issuer's keys, a JWK Set (RFC 7517), maybe with a query.
    pub path: Box<str>,
    /// The one issuer that is believed: `iss`, exactly.
    pub issuer: Box<str>,
    /// For whom a token may be: one of these is in its `aud`, exactly. At least one.
    pub audience: Vec<Box<str>>,
    /// How a token may be signed; at least one.
    pub algorithms: Vec<TokenAlgorithm>,
    /// The longest time for which keys are believed, from the moment they were asked for; inclusive.
    pub max_age: Duration,
    /// How often they are fetched. Default a quarter of `max_age`.
    pub refresh: Duration,
    /// How long one fetch may take. Default 5 s, and at most a quarter of `max_age`.
    pub timeout: Duration,
    /// How much earlier than its `nbf` a token may be used. Default 0. `exp` is never extended.
    pub skew: Duration,
    /// The claim that names the principal. Default `sub`.
    pub claim: Box<str>,
    /// Whether tokens are believed while nobody vouches for the clock. Default `false`.
    pub trusts_date: bool,
}

/// A signature that only the issuer can make (RFC 7518 section 3.1, RFC 8037 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl TokenAlgorithm {
    /// Every one, in the order of the reference.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// As `alg` has it.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}
