use super::*;
use crate::failure::{Failure, Phase, Sent};
use crate::outcome::Scope;

fn failed(kind: FailureKind) -> Cause {
    Cause::Failed(Failure::new(kind, Phase::Head, Sent::Maybe))
}

/// RFC 9110 15.6.3 to 15.6.5: 502 invalid answer, 503 own refusal, 504 no answer in time; never 408 or 500 for them.
#[test]
fn without_an_alternative_the_cause_decides() {
    let table = [
        (failed(FailureKind::Dns), 502, "dns_error"),
        (failed(FailureKind::Connect), 502, "connection_refused"),
        (failed(FailureKind::ConnectTimeout), 504, "connection_timeout"),
        (failed(FailureKind::Tls), 502, "tls_protocol_error"),
        (failed(FailureKind::Write), 502, "connection_terminated"),
        (failed(FailureKind::Reset), 502, "connection_terminated"),
        (failed(FailureKind::ReadTimeout), 504, "http_response_timeout"),
        (failed(FailureKind::Incomplete), 502, "http_response_incomplete"),
        (failed(FailureKind::Protocol), 502, "http_protocol_error"),
        (failed(FailureKind::Unavailable { status: 503 }), 503, "destination_unavailable"),
        (failed(FailureKind::Unavailable { status: 504 }), 504, "destination_unavailable"),
        (failed(FailureKind::Declared { status: 429 }), 502, "destination_unavailable"),
        (Cause::NotAsked(NotAsked::BreakerOpen), 503, "destination_unavailable"),
        (Cause::NotAsked(NotAsked::Ramping), 503, "destination_unavailable"),
        (Cause::NotAsked(NotAsked::DependencyFull), 503, "proxy_internal_response"),
        (Cause::NotAsked(NotAsked::PoolTimeout), 503, "proxy_internal_response"),
        (Cause::NotAsked(NotAsked::ResourceFull), 503, "proxy_internal_response"),
        (Cause::NotAsked(NotAsked::TooLate), 503, "proxy_internal_response"),
    ];
    for (cause, status, proxy_error) in table {
        let refusal = refusal(Reason::Cause(cause), Some(cause), UnavailableStatus::Contract);
        assert_eq!((refusal.status, refusal.proxy_error), (status, proxy_error), "{cause:?}");
    }
}

/// A copy that cannot be served is 503 by contract; `unavailable_status = "cause"` gives the cause's status.
#[test]
fn without_a_usable_copy_the_contract_decides() {
    let refusals = [
        (CopyRefusal::Missing, Problem::SnapshotMissing),
        (CopyRefusal::TooOld, Problem::SnapshotTooOld),
        (CopyRefusal::FromFuture, Problem::SnapshotFromFuture),
        (CopyRefusal::ForbiddenByOrigin, Problem::SnapshotProhibited),
        (CopyRefusal::ClockUntrusted, Problem::SnapshotFromFuture),
        (CopyRefusal::Unreadable, Problem::SnapshotMissing),
    ];
    for (copy, problem) in refusals {
        let cause = failed(FailureKind::ReadTimeout);
        let by_contract = refusal(Reason::Copy(copy), Some(cause), UnavailableStatus::Contract);
        assert_eq!((by_contract.status, by_contract.problem), (503, problem));
        assert_eq!(by_contract.proxy_error, "http_response_timeout");
        let by_cause = refusal(Reason::Copy(copy), Some(cause), UnavailableStatus::Cause);
        assert_eq!((by_cause.status, by_cause.problem), (504, problem));
    }
}

#[test]
fn own_limits_are_503_whoever_set_them() {
    for scope in [Scope::Process, Scope::ProcessShare, Scope::Route, Scope::FallbackLane] {
        let refusal = refusal(Reason::Capacity(scope), None, UnavailableStatus::Cause);
        assert_eq!((refusal.status, refusal.proxy_error), (503, "proxy_internal_response"));
    }
    assert_eq!(refusal(Reason::Draining, None, UnavailableStatus::Contract).status, 503);
    assert_eq!(refusal(Reason::ClientSlow, None, UnavailableStatus::Contract).status, 408);
    assert_eq!(refusal(Reason::ClientTooLarge, None, UnavailableStatus::Contract).status, 413);
    assert_eq!(refusal(Reason::ClientLeft, None, UnavailableStatus::Contract).status, 400);
}
