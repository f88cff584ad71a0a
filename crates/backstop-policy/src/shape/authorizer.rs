//! `[authorizer.NAME]`.

use crate::read::Need::{Contract, Default, Required};
use crate::read::{List, OneOrMany, table};
use crate::shape::BreakerTable;
use crate::value::{
    AlgorithmName, AuthorizerUrl, Count, FixedHost, NonEmptyText, PositiveTime, PrincipalField, Sign, Status,
    TellingHeader, Time, UnsynchronisedChoice,
};

table! {
    /// Who says whether a caller may, before a copy is looked at and before anything goes to the dependency. Either another
    /// service is asked with a GET (`url`): only an explicit yes lets a request go on and only an explicit no is told as
    /// one; whatever else comes of it (refused, too late, a redirect, an error, a page) is answered with 503. Or the
    /// request carries a signed token that is verified here (`jwt`).
    struct AuthorizerTable {
        /// Where it is asked: `http://HOST:PORT/PATH`. Of several hosts, with the same path, the one with the least in flight.
        "url" url: OneOrMany<AuthorizerUrl> = Default("it must be written, unless there is `jwt`");
        /// Signed tokens that are verified here. Beside it only `principal` and `timeout` are written.
        "jwt" jwt: JwtTable = Default("none: it is asked");
        /// What an explicit yes is.
        "allow" allow: AllowTable = Default("it must be written, unless there is `jwt`");
        /// Statuses of an explicit no: 401, 403 or both. Its whole answer is passed on.
        "deny" deny: List<Status> = Default("`[401, 403]`");
        /// The field that names the verified principal, as `header.NAME`. The dependency gets it, copies' keys may hold it
        /// (`principal`), and a client's own field of that name is removed on every route. An authorizer that is asked answers
        /// with it; of a token it is the claim that `jwt` names.
        "principal" principal: PrincipalField = Default("none");
        /// Further fields of its answer that the dependency gets. A client's own fields of these names are removed on every
        /// route.
        "tells" tells: List<TellingHeader> = Default("none");
        /// Fields of the request that it gets, beside method, host and target in `X-Forwarded-Method`, `X-Forwarded-Host` and
        /// `X-Forwarded-Uri`. Content is never sent to it.
        "send" send: List<TellingHeader> = Default("`[\"authorization\", \"cookie\"]`");
        /// How long it is waited for, its whole answer included. The request's deadline ends it sooner. With `jwt`: how long a
        /// request waits for keys that are being fetched.
        "timeout" timeout: PositiveTime = Contract;
        /// Requests that it is asked about at once. Optional parts may use less than 60 % of them, reads less than 85 %, guarded
        /// ones less than 95 %.
        "in_flight" in_flight: Count = Default("it must be written, unless there is `jwt`");
        /// Longest time to connect.
        "connect" connect: PositiveTime = Default("`\"1s\"`; `timeout` ends it sooner");
        /// What is sent as `Host`.
        "host" host: FixedHost = Default("the authorizer's own");
        /// How long an unused connection is kept.
        "idle" idle: Time = Default("`\"30s\"`");
        /// When it is not asked any more because it fails. Answers that are neither yes nor no are no failures: a client's own
        /// token may be at fault.
        "breaker" breaker: BreakerTable = Default("`{}`, with `slow` the `timeout`");
    }
    later {
        "tls" => "TLS to authorizers (`tls`)";
    }
    moved {
        "jwks" => "write `keys` in `[authorizer.NAME.jwt]`";
    }
}

table! {
    /// An explicit yes: one of these statuses, and this field with it. A status alone is none, because an error page that is
    /// sent with 200 would let everybody in.
    struct AllowTable {
        /// Its statuses, each a 2xx.
        "status" status: List<Status> = Default("`[200, 204]`");
        /// The field that comes with it: `NAME: VALUE` exactly, or `NAME` with any value but an empty one.
        "header" header: Sign = Required;
    }
}

table! {
    /// Signed tokens (RFC 7519) that are verified here, with the issuer's keys. A request shows one as
    /// `Authorization: Bearer TOKEN` (RFC 6750). One that is missing, not signed by this issuer, not for this audience,
    /// expired, or without the principal is answered with 401 and a challenge. While there are no keys that may be believed, every
    /// request is answered with 503.
    struct JwtTable {
        /// Where the issuer's keys are, a JWK Set (RFC 7517): `http://HOST:PORT/PATH`.
        "keys" keys: AuthorizerUrl = Required;
        /// Whose tokens are believed: `iss`, exactly.
        "issuer" issuer: NonEmptyText = Required;
        /// For whom a token must be: one of these is in its `aud`, exactly.
        "audience" audience: OneOrMany<NonEmptyText> = Required;
        /// How a token may be signed: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384` or `EdDSA`. A key
        /// verifies only what it is made for.
        "algorithms" algorithms: OneOrMany<AlgorithmName> = Required;
        /// The longest time for which keys are believed, from the moment they were asked for. Then 503, until there are
        /// newer ones: a key that the issuer withdrew meanwhile lets nobody in for longer.
        "max_age" max_age: PositiveTime = Contract;
        /// How often they are fetched. A token with a key that is not known has them fetched at once, at most every 10 s.
        "refresh" refresh: PositiveTime = Default("a quarter of `max_age`");
        /// How long one fetch may take.
        "timeout" timeout: PositiveTime = Default("`\"5s\"`, and at most a quarter of `max_age`");
        /// How much earlier than its `nbf` a token may be used, where the issuer's clock runs ahead. `exp` is never extended.
        "skew" skew: Time = Default("`\"0\"`");
        /// The claim that names the principal: 1 to 255 visible characters of ASCII, and blanks between them.
        "claim" claim: NonEmptyText = Default("`\"sub\"`");
        /// What becomes of tokens while the clock is not synchronised: `refuse` answers with 503, `trust` accepts in
        /// writing that an expired token may be believed for as long as the clock is behind. A clock that ran back is never
        /// believed.
        "unsynchronised" unsynchronised: UnsynchronisedChoice = Default("`\"refuse\"`");
    }
}
