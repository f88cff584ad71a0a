//! `[route.NAME.CLASS]`: what all classes share, then one table per class.

use crate::read::Need::{Contract, Default, Required};
use crate::read::{List, Named, OneOrMany, table};
use crate::shape::{
    AlternativeTable, CacheTable, CorsTable, FillTable, LocalCopyTable, Prepared, RetryTable,
    RouteLimitsTable,
};
use crate::value::{
    AfterRestartChoice, Count, DeclaredStatus, EditableHeader, GoneStatus, HostPattern, IncorrectChoice,
    KeyPartText, Language, MatchRule, MediaType, ModeChoice, Name, PathPrefix, Pointer, PositiveSize,
    PositiveTime, SecretText, Status, Text, Time, UnavailableChoice,
};

table! {
    /// What every route class has.
    struct Common {
        /// What it answers: a method (or `*`) and a path template with parameters `{name}` and maybe a rest `{name*}`
        /// at the end. `"*"` alone is everything. `GET` answers `HEAD` too. The most specific route wins, whatever
        /// the order in the file.
        "match" matches: OneOrMany<MatchRule> = Required;
        /// Hosts it answers for: exact, or with a leading `*.`.
        "host" host: OneOrMany<HostPattern> = Default("every host");
        /// The dependency that is asked first.
        "dependency" dependency: Name = Required;
        /// From the complete request head to the last byte at a reading client, everything included.
        "deadline" deadline: PositiveTime = Contract;
        /// Requests in flight at once, answers from copies included. The excess is refused at once.
        "in_flight" in_flight: Count = Contract;
        /// Removed from the start of the path before forwarding, however the request spells it.
        "strip_prefix" strip_prefix: PathPrefix = Default("nothing");
        /// Changes to the request before it is forwarded.
        "request_headers" request_headers: HeaderEditsTable = Default("none");
        /// Changes to the answer before it is sent. On Backstop's own answers (refusals, prepared, left out) what tells of their
        /// content or their lifetime stays as it is.
        "response_headers" response_headers: HeaderEditsTable = Default("none");
        /// Limits on one request, where they differ from the gateway's.
        "limits" limits: RouteLimitsTable = Default("the gateway's");
        /// Further statuses that count as a failure of the dependency, besides 502, 503 and 504: 429 or any 5xx.
        "declared" declared: List<DeclaredStatus> = Default("none");
        /// Who says whether a caller may, one of `[authorizer.NAME]`. Requests with OPTIONS go on without it: a browser asks so
        /// what it may ask, and sends no credential with that.
        "authorizer" authorizer: Name = Default("nobody: every caller may");
        /// Which pages may read the answers that are Backstop's own.
        "cors" cors: CorsTable = Default("none: no field is added");
        /// The business function it serves, such as `browse`: routes of one function are counted together.
        "function" function: Name = Default("none");
        /// How long an abandoned call may go on occupying its dependency. For as long, and at least 10 s, nothing is kept of
        /// what an abandoned write may still change.
        "abandon_hold" abandon_hold: Time = Default("the remaining deadline");
        /// Whether decisions are carried out: `enforce`, or `observe`, in which requests are forwarded as if nothing were decided,
        /// and what would have been is counted and shown. Only `direct`, `public_read` and `optional` routes without an
        /// `authorizer` can be observed; in a gateway that observes, every other route says `enforce`.
        "mode" mode: ModeChoice = Default("the gateway's");
    }
}

table! {
    /// No alternative at all: what fails is refused. For everything that writes, and for what nothing may stand in for.
    struct DirectTable {
        ..common: Common;
        /// The answer may stream without end: `deadline` then ends with the response head, and after it no gap may be
        /// longer than this.
        "idle" idle: PositiveTime = Default("no stream: the deadline covers the whole answer");
        /// Routes whose copies a successful or unknown write withdraws. Copies of the same path, whatever its query, are withdrawn always. Where the paths have parameters of the same names, only the path with the same values is withdrawn, else the whole route.
        "withdraws" withdraws: OneOrMany<Name> = Default("none");
    }
}

table! {
    /// A protected operation: nobody comes to it who was not explicitly allowed, and nothing stands in for it. `authorizer` is
    /// required.
    struct GuardedTable {
        ..common: Common;
        /// Routes whose copies a successful or unknown write withdraws, as on a `direct` route.
        "withdraws" withdraws: OneOrMany<Name> = Default("none");
    }
}

table! {
    /// What every route class has that keeps answers.
    struct KeptTable {
        ..common: Common;
        /// `Accept-Language` is negotiated to one of these, and forwarded as that one. A request that accepts none of
        /// them is forwarded unchanged, never stored and never answered from a copy.
        "languages" languages: List<Language> = Default("none: `Accept-Language` is left alone");
        /// What distinguishes copies, added to method, host, path, query and the answer's `Vary`: `path.NAME`,
        /// `query.NAME`, `header.NAME`, `language`, and on a route with an `authorizer` `principal`.
        "key" key: List<KeyPartText> = Default("`[]`: nothing more");
        /// Whether everybody who is allowed may share the copies of a route with an `authorizer`. Without it the key holds the
        /// `principal`. A request with a cookie has no part in them unless `ignore_cookie` takes it away before the dependency
        /// makes its answer of it; nor has one with an `Authorization` that the authorizer does not get.
        "shared" shared: bool = Default("`false`");
        /// What an answer must be to be correct. Only correct answers become copies.
        "correct" correct: CorrectTable = Default("complete, and JSON where it says so");
        /// What withdraws the copy, beside an answer that must not be kept (`private`, `no-store`).
        "gone" gone: GoneTable = Default("`{ status = [404, 410] }`");
        /// What an answer that fails `correct` becomes: `propagate` passes it through (a wrong schema is not
        /// unavailability), `fallback` treats it as a failure of the dependency.
        "incorrect" incorrect: IncorrectChoice = Default("`\"propagate\"`");
        /// Copies of an earlier boot: `verify` serves them only while the clock is synchronised and never ran back,
        /// `trust` accepts the risk of an unsynchronised clock.
        "after_restart" after_restart: AfterRestartChoice = Default("`\"verify\"`");
        /// Whether copies are served although the origin forbids old ones (`no-cache`, `must-revalidate`,
        /// `proxy-revalidate`, `s-maxage`, `no-store`). Never `private`, `Set-Cookie` or `Authorization`.
        "override_origin" override_origin: bool = Default("`false`");
        /// Largest answer that is held back until it is complete, and kept. Larger ones stream and have no alternative.
        "buffer" buffer: PositiveSize = Default("`\"1 MiB\"`");
        /// Whether a request with `Cookie` may use a copy. Only if `request_headers` removes the Cookie.
        "ignore_cookie" ignore_cookie: bool = Default("`false`");
        /// A separate, limited lane in which copies are still served when `in_flight` refuses. Of a `cached_read` only with a
        /// `local_copy`.
        "fallback_in_flight" fallback_in_flight: Count = Default("none");
        /// What a missing or unusable copy is answered with: `contract` is 503, `cause` is 502 or 504 by the cause, or the dependency's own 502, 503 or 504. Of a `cached_read` only with a `local_copy`.
        "unavailable_status" unavailable_status: UnavailableChoice = Default("`\"contract\"`");
        /// Who repeats a call that failed for the moment.
        "retry" retry: RetryTable = Default("nothing is repeated");
        /// Another dependency that is asked before the copy is served.
        "alternative" alternative: AlternativeTable = Default("none");
    }
}

table! {
    /// The last correct answer stands in, within its age. For what every caller with the same key may see.
    struct PublicReadTable {
        ..kept: KeptTable;
        /// The oldest copy that may be served, inclusive to the nanosecond.
        "max_age" max_age: PositiveTime = Contract;
    }
}

table! {
    /// A shared cache is asked first. What it does not have is read from the dependency, once for everybody who asks for
    /// it, within a budget; a copy of one's own stands in when that cannot be.
    struct CachedReadTable {
        ..kept: KeptTable;
        /// The cache.
        "cache" cache: CacheTable = Required;
        /// How the dependency is read for what the cache does not have.
        "fill" fill: FillTable = Default("as its keys say");
        /// A copy of one's own, for when neither the cache nor the dependency answers.
        "local_copy" local_copy: LocalCopyTable = Default("none: what cannot be read is refused");
    }
}

table! {
    /// Left out, or a general answer prepared beforehand. For parts that the whole can do without.
    struct OptionalTable {
        ..common: Common;
        /// What stands in.
        "otherwise" otherwise: OtherwiseTable = Required;
        /// `Accept-Language` is negotiated to one of these, and forwarded as that one; a prepared answer may then have one for
        /// each language. A request that accepts none of them is forwarded unchanged, and gets the general answer.
        "languages" languages: List<Language> = Default("none: `Accept-Language` is left alone");
        /// A separate, limited lane in which it still stands in when `in_flight` refuses.
        "fallback_in_flight" fallback_in_flight: Count = Default("none");
        /// Who repeats a call that failed for the moment.
        "retry" retry: RetryTable = Default("nothing is repeated");
        /// Another dependency that is asked before anything stands in.
        "alternative" alternative: AlternativeTable = Default("none");
    }
}

table! {
    /// Header fields to change. Removal comes first; setting then replaces every field of that name.
    struct HeaderEditsTable {
        /// Fields to set. A value that is a secret is read once, at the start: `env:NAME` from the environment, `file:PATH` from a
        /// file, relative to the policy file, without the line end behind it.
        "set" set: Named<SecretText, EditableHeader> = Default("none");
        /// Fields to remove.
        "remove" remove: OneOrMany<EditableHeader> = Default("none");
    }
}

table! {
    /// What an answer must be, besides complete.
    struct CorrectTable {
        /// Its media type, without parameters.
        "type" media_type: MediaType = Default("any");
        /// JSON Pointers (RFC 6901) that must exist.
        "has" has: List<Pointer> = Default("none");
        /// JSON Pointers whose string must equal a part of the request's key, such as `{ "/lang" = "language" }`.
        "echo" echo: Named<KeyPartText, Pointer> = Default("none");
    }
}

table! {
    /// What withdraws a copy.
    struct GoneTable {
        /// Statuses of the dependency: 3xx but 304, and 4xx but 429.
        "status" status: List<GoneStatus> = Required;
    }
}

table! {
    /// The stand-in of an optional part: exactly one of `prepared` and `omit`.
    struct OtherwiseTable {
        /// A file with a general answer, relative to the policy file and at most 1 MiB large. It is sent with status 200. Or one
        /// for each of the route's `languages`, and a general one for everybody else:
        /// `{ es = "general.es.json", default = "general.json" }`.
        "prepared" prepared: Prepared = Default("none");
        /// Its media type.
        "type" media_type: MediaType = Default("by the file's extension: json, html, txt, xml, csv, svg");
        /// The answer that leaves the part out.
        "omit" omit: OmitTable = Default("none");
    }
}

table! {
    /// An answer that leaves the part out.
    struct OmitTable {
        /// A 2xx status.
        "status" status: Status = Default("`200`, or `204` without a body");
        /// Its media type. Required with a body.
        "type" media_type: MediaType = Default("none");
        /// Its content.
        "body" body: Text = Default("empty");
    }
}
