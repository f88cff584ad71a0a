//! What the words of metrics and logs mean, for people who have not read the reference.

/// What a dependency does whose calls fail in this way: "catalog ...".
pub(super) fn failure(kind: &str) -> &'static str {
    of_failure(kind).0
}

/// What it did: a dependency that is no longer asked does nothing now.
pub(super) fn failed(kind: &str) -> &'static str {
    of_failure(kind).1
}

fn of_failure(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "dns" => ("has a name that is not resolved", "had a name that was not resolved"),
        "connect" => ("refuses connections", "refused connections"),
        "connect_timeout" => ("does not accept connections in time", "did not accept connections in time"),
        "tls" => ("accepts no secure connection", "accepted no secure connection"),
        "write" => ("takes no requests", "took no requests"),
        "reset" => ("breaks connections", "broke connections"),
        "read_timeout" => ("does not answer in time", "did not answer in time"),
        "incomplete" => ("gives incomplete answers", "gave incomplete answers"),
        "protocol" => ("gives answers that are no HTTP", "gave answers that were no HTTP"),
        "unavailable" => ("answers 502, 503 or 504", "answered 502, 503 or 504"),
        "declared" => (
            "answers with a status that the policy counts as a failure",
            "answered with a status that the policy counts as a failure",
        ),
        _ => ("fails", "failed"),
    }
}

/// Why a route answers as it does, where a reason is not a dependency's failure. Where it is about the dependency it goes on after its
/// name; the others stand for themselves.
pub(super) fn reason(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "capacity" => "its own limit or the gateway's is reached",
        "missing" => "there is no copy",
        "age" => "copies are older than they may be",
        "breaker_open" => "is not asked at present",
        "ramping" => "is given its load back in steps",
        "dependency_full" => "has no free connection",
        "pool_timeout" => "had no free connection in time",
        "resource_full" => "uses something that is in full use",
        "too_late" => "could not be asked in the time that was left",
        "authorizer" => "its authorizer gives no answer",
        "draining" => "the gateway is stopping",
        "incorrect" => "gives answers that the policy does not call correct",
        "server_error" => "answers with an error",
        "upstream_degraded" => "gives answers that are degraded themselves",
        "ledger" => "operations cannot be written down",
        _ => return None,
    })
}

/// Whether a reason is not about the dependency.
pub(super) fn stands_alone(reason: &str) -> bool {
    matches!(reason, "capacity" | "missing" | "age" | "authorizer" | "draining" | "ledger")
}

/// An age or a length of time, no more exactly than people want to know it.
pub(super) fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { lasts(seconds as u64) }
}

/// Seconds in the two largest units that they need.
pub(super) fn lasts(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}
