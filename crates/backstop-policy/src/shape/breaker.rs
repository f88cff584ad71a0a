//! `breaker`, `recovery` and `probe` of a dependency: when it is left alone, and how it is asked again.

use crate::read::Need::{Default, Required};
use crate::read::{OneOrMany, table};
use crate::value::{
    Count, Factor, Percent, PositivePercent, PositiveTime, ProbePath, Probes, StateChoice, Status,
};

table! {
    /// When a dependency that fails is not asked any more. `{}` takes every default.
    struct BreakerTable {
        /// How far back failures and slow calls count.
        "window" window: PositiveTime = Default("`\"10s\"`");
        /// So many calls must have ended in the window before their shares say anything.
        "min_calls" min_calls: Count = Default("`20`");
        /// The share of failed calls from which it opens.
        "failures" failures: PositivePercent = Default("`\"50%\"`");
        /// How long a call may take, its whole answer included, before it counts as slow. What a client takes to send or to
        /// read is none of it, nor is silence on a route with `idle`.
        "slow" slow: PositiveTime = Default("half of the shortest deadline of the routes that ask it");
        /// The share of slow calls from which it opens.
        "slow_share" slow_share: PositivePercent = Default("`\"60%\"`");
        /// How long it stays open the first time, give or take a fifth. Each time in a row doubles it.
        "open" open: PositiveTime = Default("`\"5s\"`");
        /// The longest time that it stays open.
        "open_max" open_max: PositiveTime = Default("`\"30s\"`, or `open` if that is longer");
        /// Calls at once that find out whether it works again, and as many must succeed. Only reads are used for it.
        "probes" probes: Probes = Default("`3`");
        /// What it is held at from the start, whatever comes of calls: `"open"` sends nothing, `"closed"` sends
        /// everything. An operator can release that of a dependency by hand until the next start; that of a cache nobody can
        /// operate by hand, so only the policy holds it.
        "state" state: StateChoice = Default("none: what comes of calls decides");
    }
}

table! {
    /// How the load returns once the probes have succeeded: a rate that grows while every signal is green, holds
    /// between green and red, and shrinks on red. What exceeds it gets the alternative or is refused. `start = "100%"`
    /// returns everything at once.
    struct RecoveryTable {
        /// The share of the rate before the incident with which it begins.
        "start" start: PositivePercent = Default("`\"10%\"`");
        /// By what the rate grows after a green tick. More than 1.
        "up" up: Factor = Default("`1.5`");
        /// By what the rate shrinks on red. Less than 1.
        "back" back: Factor = Default("`0.7`");
        /// How often the signals are judged.
        "tick" tick: PositiveTime = Default("`\"1s\"`");
        /// Up to these values a signal is green.
        "green" green: GreenTable = Default("as its keys say");
        /// Above these values a signal is red.
        "red" red: RedTable = Default("as its keys say");
    }
}

table! {
    /// Up to these values a signal is green.
    struct GreenTable {
        /// Share of failed calls.
        "errors" errors: Percent = Default("`\"1%\"`");
        /// 95th percentile of the latency, as a multiple of that before the incident.
        "p95" p95: Factor = Default("`\"3x\"`");
        /// What the dependency says it waited for its database (`Server-Timing: db;dur=`).
        "db_wait" db_wait: PositiveTime = Default("`\"5ms\"`");
        /// Use of its resources.
        "in_use" in_use: Percent = Default("`\"70%\"`");
        /// How long the fills that wait would take.
        "backlog" backlog: PositiveTime = Default("`\"1s\"`");
    }
}

table! {
    /// Above these values a signal is red.
    struct RedTable {
        /// Share of failed calls.
        "errors" errors: Percent = Default("`\"5%\"`");
        /// 95th percentile of the latency, as a multiple of that before the incident.
        "p95" p95: Factor = Default("`\"7x\"`");
        /// What the dependency says it waited for its database (`Server-Timing: db;dur=`).
        "db_wait" db_wait: PositiveTime = Default("`\"20ms\"`");
        /// Use of its resources.
        "in_use" in_use: Percent = Default("`\"90%\"`");
        /// How long the fills that wait would take.
        "backlog" backlog: PositiveTime = Default("`\"5s\"`");
    }
}

table! {
    /// A GET of its own that finds out whether the dependency works again, while its breaker is open or half open. For
    /// dependencies that serve nothing safe.
    struct ProbeTable {
        /// What is asked for.
        "path" path: ProbePath = Required;
        /// How often.
        "interval" interval: PositiveTime = Default("`\"5s\"`");
        /// How long the whole answer may take. At most `interval`.
        "timeout" timeout: PositiveTime = Default("`\"1s\"`");
        /// The statuses that say that it works.
        "expect" expect: OneOrMany<Status> = Default("any 2xx");
    }
}
