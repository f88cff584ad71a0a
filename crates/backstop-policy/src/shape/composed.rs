//! `[route.NAME.composed]`: one answer from the answers of other routes.

use crate::read::Need::{Contract, Default, Required};
use crate::read::{List, OneOrMany, table};
use crate::shape::{Common, CorsTable, HeaderEditsTable, RouteLimitsTable};
use crate::value::{Count, HostPattern, MatchRule, ModeChoice, Name, PartPath, Pointer, PositiveTime};

table! {
    /// One JSON object from the answers of other routes, its parts. They are asked side by side, each under the whole policy
    /// of its own route. Without a required part there is no answer; an optional one that is slow, refused, failing or not
    /// one JSON value is left out in time and named in the `Backstop` field.
    struct ComposedTable {
        /// What it answers: a method (or `*`) and a path template with parameters `{name}` and maybe a rest `{name*}`
        /// at the end. `"*"` alone is everything. `GET` answers `HEAD` too. The most specific route wins, whatever
        /// the order in the file.
        "match" matches: OneOrMany<MatchRule> = Required;
        /// Hosts it answers for: exact, or with a leading `*.`.
        "host" host: OneOrMany<HostPattern> = Default("every host");
        /// From the complete request head to the last byte at a reading client, everything included.
        "deadline" deadline: PositiveTime = Contract;
        /// Requests in flight at once, answers from copies included. The excess is refused at once.
        "in_flight" in_flight: Count = Contract;
        /// Its parts, from 1 to 16. Each has the smaller of its own route's deadline and of what is left of this one, and takes
        /// a place at its own route.
        "parts" parts: List<PartTable> = Required;
        /// Changes to the answer before it is sent. On Backstop's own answers (refusals, prepared, left out) what tells of their
        /// content or their lifetime stays as it is.
        "response_headers" response_headers: HeaderEditsTable = Default("none");
        /// Limits on one request, where they differ from the gateway's.
        "limits" limits: RouteLimitsTable = Default("the gateway's");
        /// Who says whether a caller may have the whole, one of `[authorizer.NAME]`. Each part is asked about on its own route
        /// besides, where that names one.
        "authorizer" authorizer: Name = Default("nobody: every caller may");
        /// Which pages may read the answers that are Backstop's own.
        "cors" cors: CorsTable = Default("none: no field is added");
        /// The business function it serves, such as `browse`: routes of one function are counted together.
        "function" function: Name = Default("none");
        /// Only `enforce`: no dependency has the whole, so nothing could be forwarded instead of it. In a gateway that observes
        /// it has to be said.
        "mode" mode: ModeChoice = Default("the gateway's");
    }
}

table! {
    /// One part of a composed answer. It is a GET with the client's own header fields, but for those that are about the whole
    /// (conditions, ranges, content); the query is not passed on.
    struct PartTable {
        /// Where it stands in the object: a JSON Pointer (RFC 6901) each of whose steps is an object's member. No part stands
        /// within another.
        "at" at: Pointer = Required;
        /// The route that answers it, of any class but `composed`; a `direct` one without `idle`.
        "route" route: Name = Required;
        /// The path that the route is asked for: literals, and parameters of this route's own `match`. The route must match it
        /// whatever the parameters are.
        "path" path: PartPath = Required;
        /// Whether there is no answer without it. If it fails, its status and its reason are the answer's.
        "required" required: bool = Default("`false`");
    }
}

/// A composed route, with what all classes share as they have it.
#[derive(Clone, Debug)]
pub(crate) struct ComposedRoute {
    pub(crate) table: ComposedTable,
    pub(crate) common: Common,
}

impl From<ComposedTable> for ComposedRoute {
    fn from(table: ComposedTable) -> Self {
        let common = Common {
            matches: table.matches.clone(),
            host: table.host.clone(),
            deadline: table.deadline.clone(),
            in_flight: table.in_flight.clone(),
            response_headers: table.response_headers.clone(),
            limits: table.limits.clone(),
            authorizer: table.authorizer.clone(),
            cors: table.cors.clone(),
            function: table.function.clone(),
            mode: table.mode.clone(),
            ..Common::default()
        };
        Self { table, common }
    }
}
