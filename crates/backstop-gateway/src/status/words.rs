//! What the words of metrics and logs mean, for people who have not read the reference.

/// What is the matter with a dependency whose calls fail in this way.
pub(super) fn failure(kind: &str) -> &'static str {
    match kind {
        "dns" => "its name is not resolved",
        "connect" => "it refuses connections",
        "connect_timeout" => "it does not accept connections in time",
        "tls" => "no secure connection can be made",
        "write" => "requests cannot be written to it",
        "reset" => "it breaks connections",
        "read_timeout" => "it does not answer in time",
        "incomplete" => "its answers are incomplete",
        "protocol" => "its answers are no HTTP",
        "unavailable" => "it answers 502, 503 or 504",
        "declared" => "it answers with a status that the policy counts as a failure",
        _ => "its calls fail",
    }
}

/// Why a route answers as it does, where a reason is not a dependency's failure.
pub(super) fn reason(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "capacity" => "its own limit or the gateway's is reached",
        "missing" => "there is no copy",
        "age" => "copies are older than they may be",
        "breaker_open" => "it is not asked at present",
        "ramping" => "it is given its load back in steps",
        "dependency_full" => "all connections to it are in use",
        "pool_timeout" => "no connection to it was free in time",
        "resource_full" => "what it shares with others is in full use",
        "too_late" => "no time was left to ask it",
        "authorizer" => "its authorizer gives no answer",
        "draining" => "the gateway is stopping",
        "incorrect" => "answers are not what the policy calls correct",
        "server_error" => "it answers with an error of its own",
        "upstream_degraded" => "its answers are degraded themselves",
        "ledger" => "operations cannot be written down",
        _ => return None,
    })
}
