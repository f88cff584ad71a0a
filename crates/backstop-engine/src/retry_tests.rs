use super::*;
use crate::failure::Sent;

const MS: Duration = Duration::from_millis(1);

/// A read whose connection was refused, with time, room and a healthy dependency: everything speaks for a retry.
const READ: RetryFacts = RetryFacts {
    owner: Owner::Backstop,
    inbound_attempt: 1,
    method: Method::Get,
    attempts_allowed: 2,
    attempts_made: 1,
    failure: Failure::new(FailureKind::Connect, Phase::Connect, Sent::No),
    retry_after: None,
    suspended: false,
    resource_per_mille: 699,
    retries_in_flight: 0,
    in_flight: 1,
    backoff: Duration::from_millis(20),
    left: Duration::from_millis(30),
    min_useful: Duration::from_millis(10),
};

fn after(kind: FailureKind, phase: Phase, sent: Sent) -> RetryFacts {
    RetryFacts { failure: Failure::new(kind, phase, sent), ..READ }
}

#[test]
fn a_refused_read_is_made_once_more() {
    assert_eq!(may_retry(&READ), Ok(20 * MS));
    assert_eq!(may_retry(&RetryFacts { method: Method::Head, ..READ }), Ok(20 * MS));
    assert_eq!(may_retry(&RetryFacts { inbound_attempt: 0, ..READ }), Ok(20 * MS));
}

/// Each rule alone turns the answer, at its own boundary.
#[test]
fn each_rule_alone_forbids_a_retry() {
    let cases = [
        (RetryFacts { owner: Owner::Client, ..READ }, NoRetry::Owner),
        (RetryFacts { owner: Owner::Upstream, ..READ }, NoRetry::Owner),
        (RetryFacts { inbound_attempt: 2, ..READ }, NoRetry::Inbound),
        (RetryFacts { inbound_attempt: u32::MAX, ..READ }, NoRetry::Inbound),
        (RetryFacts { method: Method::OtherSafe, ..READ }, NoRetry::Method),
        (RetryFacts { method: Method::Unsafe, ..READ }, NoRetry::Method),
        (RetryFacts { attempts_allowed: 1, ..READ }, NoRetry::Attempts),
        (RetryFacts { attempts_made: 2, ..READ }, NoRetry::Attempts),
        (RetryFacts { attempts_allowed: 9, attempts_made: 2, ..READ }, NoRetry::Attempts),
        (RetryFacts { suspended: true, ..READ }, NoRetry::Suspended),
        (RetryFacts { resource_per_mille: 700, ..READ }, NoRetry::Resource),
        (RetryFacts { left: 30 * MS - Duration::from_nanos(1), ..READ }, NoRetry::Deadline),
        (RetryFacts { min_useful: Duration::MAX, ..READ }, NoRetry::Deadline),
        (RetryFacts { retry_after: Some(Duration::from_nanos(1)), ..READ }, NoRetry::RetryAfter),
        (RetryFacts { retry_after: Some(Duration::MAX), ..READ }, NoRetry::RetryAfter),
        (RetryFacts { retries_in_flight: 1, ..READ }, NoRetry::InFlight),
    ];
    for (facts, why) in cases {
        assert_eq!(may_retry(&facts), Err(why), "{facts:?}");
    }
}

/// Every kind of failure in every phase, by hand: what is over in a moment, and what is not.
#[test]
fn only_a_failure_of_a_moment_is_retried() {
    use FailureKind as Kind;
    use NoRetry::{Failure as Lasting, Timeout};
    let cases = [
        (Kind::Dns, Ok(())),
        (Kind::Connect, Ok(())),
        (Kind::ConnectTimeout, Err(Timeout)),
        (Kind::Tls, Err(Lasting)),
        (Kind::Write, Ok(())),
        (Kind::Reset, Ok(())),
        (Kind::ReadTimeout, Err(Timeout)),
        (Kind::Incomplete, Err(Lasting)),
        (Kind::Protocol, Err(Lasting)),
        (Kind::Unavailable { status: 502 }, Ok(())),
        (Kind::Unavailable { status: 503 }, Ok(())),
        (Kind::Unavailable { status: 504 }, Err(Timeout)),
        (Kind::Declared { status: 500 }, Err(Lasting)),
        (Kind::Declared { status: 429 }, Err(Lasting)),
        (Kind::Declared { status: 408 }, Err(Timeout)),
    ];
    let phases = [Phase::Queue, Phase::Resolve, Phase::Connect, Phase::Send, Phase::Head, Phase::Body];
    for (kind, expected) in cases {
        for phase in phases {
            let lost_in_the_body = kind == Kind::Reset && phase == Phase::Body;
            let expected = if lost_in_the_body { Err(Lasting) } else { expected };
            for sent in [Sent::No, Sent::Maybe] {
                let facts = after(kind, phase, sent);
                assert_eq!(may_retry(&facts), expected.map(|()| 20 * MS), "{facts:?}");
                // Nothing whatever makes an unsafe call twice, not even that it was certainly not sent.
                let write = RetryFacts { method: Method::Unsafe, ..facts };
                assert_eq!(may_retry(&write), Err(NoRetry::Method), "{write:?}");
            }
        }
    }
}

/// By hand: asked for 1 s and 20 ms drawn are 1020 ms, and 10 ms for the attempt: 1030 ms must be left.
#[test]
fn a_wish_to_be_called_later_is_kept_if_it_fits() {
    let asked = RetryFacts {
        retry_after: Some(Duration::from_secs(1)),
        left: 1030 * MS,
        ..after(FailureKind::Unavailable { status: 503 }, Phase::Head, Sent::Maybe)
    };
    assert_eq!(may_retry(&asked), Ok(1020 * MS));
    let short = RetryFacts { left: 1030 * MS - Duration::from_nanos(1), ..asked };
    assert_eq!(may_retry(&short), Err(NoRetry::RetryAfter));
}

/// By hand: a fifth of 9 is 1, of 10 is 2, of 100 is 20.
#[test]
fn retries_under_way_are_at_most_a_fifth() {
    for (in_flight, most) in [(0, 1), (1, 1), (9, 1), (10, 2), (14, 2), (100, 20), (u32::MAX, 858_993_459)] {
        let facts = |retries| RetryFacts { in_flight, retries_in_flight: retries, ..READ };
        assert_eq!(may_retry(&facts(most - 1)), Ok(20 * MS), "{in_flight}");
        assert_eq!(may_retry(&facts(most)), Err(NoRetry::InFlight), "{in_flight}");
    }
}

#[test]
fn reasons_against_a_retry_have_words_of_their_own() {
    let all = [
        (NoRetry::Owner, "owner"),
        (NoRetry::Inbound, "inbound"),
        (NoRetry::Method, "method"),
        (NoRetry::Attempts, "attempts"),
        (NoRetry::Timeout, "timeout"),
        (NoRetry::Failure, "failure"),
        (NoRetry::Suspended, "suspended"),
        (NoRetry::Resource, "resource"),
        (NoRetry::RetryAfter, "retry_after"),
        (NoRetry::Deadline, "deadline"),
        (NoRetry::InFlight, "in_flight"),
        (NoRetry::Budget, "budget"),
    ];
    assert_eq!(all.map(|(why, _)| why.token()), all.map(|(_, word)| word));
    assert_eq!(NoRetry::TOKENS, all.map(|(_, word)| word));
}
