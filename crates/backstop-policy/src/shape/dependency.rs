//! `[dependency.NAME]`.

use crate::read::Need::{Default, Required};
use crate::read::{OneOrMany, table};
use crate::shape::{BreakerTable, ProbeTable, RecoveryTable};
use crate::value::{Count, FixedHost, Name, PositiveTime, Time, Url};

table! {
    /// Something that is called and may fail.
    struct DependencyTable {
        /// Where it listens. Of several, the one with the least in flight is called; another one is tried only if
        /// nothing was sent.
        "url" url: OneOrMany<Url> = Required;
        /// Connections over all threads and addresses. Optional parts may use less than 60 % of them, reads (of any
        /// class) less than 85 %, each at least one; the last are for requests that may change something. When all that
        /// a request may use are busy, it is refused at once (`dependency_full`) or waits for `queue`.
        "connections" connections: Count = Default("`64`");
        /// How long a request waits for a connection (then `pool_timeout`).
        "queue" queue: Time = Default("`\"0\"`: not at all");
        /// Longest time to connect. The route's deadline ends it sooner.
        "connect" connect: PositiveTime = Default("`\"1s\"`");
        /// What is sent as `Host`.
        "host" host: FixedHost = Default("the client's own, in lower case, without final dots and without port 80");
        /// How long an unused connection is kept.
        "idle" idle: PositiveTime = Default("`\"30s\"`");
        /// Resources that its calls take up, beside those of other dependencies.
        "uses" uses: OneOrMany<Name> = Default("none");
        /// When it is not asked any more because it fails.
        "breaker" breaker: BreakerTable = Default("none: it is always asked");
        /// How the load returns after its breaker was open. Only with a `breaker`.
        "recovery" recovery: RecoveryTable = Default("with a `breaker`, as its keys say");
        /// A GET that finds out whether it works again, where no request may be used for that.
        "probe" probe: ProbeTable = Default("none: requests find out");
    }
    later {
        "tls" => "TLS to dependencies (`tls`)";
    }
}
