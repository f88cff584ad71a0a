//! `[authorizer.NAME]`.

use crate::read::Need::{Contract, Default, Required};
use crate::read::{List, OneOrMany, table};
use crate::shape::BreakerTable;
use crate::value::{
    AuthorizerUrl, Count, FixedHost, PositiveTime, PrincipalField, Sign, Status, TellingHeader, Time,
};

table! {
    /// Who says whether a caller may. It is asked with a GET before a copy is looked at and before anything goes to the
    /// dependency. Only an explicit yes lets a request go on and only an explicit no is told as one; whatever else comes
    /// of it (refused, too late, a redirect, an error, a page) is answered with 503.
    struct AuthorizerTable {
        /// Where it is asked: `http://HOST:PORT/PATH`. Of several hosts, with the same path, the one with the least in flight.
        "url" url: OneOrMany<AuthorizerUrl> = Required;
        /// What an explicit yes is.
        "allow" allow: AllowTable = Required;
        /// Statuses of an explicit no: 401, 403 or both. Its whole answer is passed on.
        "deny" deny: List<Status> = Default("`[401, 403]`");
        /// The field of its answer that names the verified principal, as `header.NAME`. The dependency gets it, copies' keys may
        /// hold it (`principal`), and a client's own field of that name is removed on every route.
        "principal" principal: PrincipalField = Default("none");
        /// Further fields of its answer that the dependency gets. A client's own fields of these names are removed on every
        /// route.
        "tells" tells: List<TellingHeader> = Default("none");
        /// Fields of the request that it gets, beside method, host and target in `X-Forwarded-Method`, `X-Forwarded-Host` and
        /// `X-Forwarded-Uri`. Content is never sent to it.
        "send" send: List<TellingHeader> = Default("`[\"authorization\", \"cookie\"]`");
        /// How long it is waited for, its whole answer included. The request's deadline ends it sooner.
        "timeout" timeout: PositiveTime = Contract;
        /// Requests that it is asked about at once. Optional parts may use less than 60 % of them, reads less than 85 %, guarded
        /// ones less than 95 %.
        "in_flight" in_flight: Count = Contract;
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
        "jwks" => "tokens that are verified here (`jwks`)";
        "tls" => "TLS to authorizers (`tls`)";
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
