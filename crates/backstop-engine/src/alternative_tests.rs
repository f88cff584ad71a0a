use std::time::Duration;

use super::*;
use crate::time::{BootId, Mono};

const POLICY: [u8; 32] = [7; 32];
const MEASURED_NS: i64 = 900_000_000_000;
const EXPIRY_NS: i64 = 1_000_000_000_000;
const NOW: Now = Now {
    mono: Mono::from_ns(0),
    wall: Wall::from_unix_ns(EXPIRY_NS),
    boot: BootId([1; 16]),
    wall_trust: WallTrust::Synchronised,
};
/// 40 per second: two at once, 25 ms apart.
const VERIFIED: Verified = Verified {
    rate_per_second: 40,
    concurrency: 3,
    valid_from: Wall::from_unix_ns(MEASURED_NS),
    valid_until: Wall::from_unix_ns(EXPIRY_NS),
    policy: POLICY,
};
const OWN: UsedResource = UsedResource { is_shared: false, is_cause: false, signal: Signal::Green };
const SHARED: UsedResource = UsedResource { is_shared: true, ..OWN };

fn rule(resources: &[UsedResource], verified: Option<Verified>, now: Now) -> Result<(), NoAlternative> {
    may_stand_in(resources.iter().copied(), verified.as_ref(), &POLICY, &now)
}

/// Every signal of a shared and of an own resource, by hand.
#[test]
fn a_shared_resource_in_trouble_or_unknown_means_not_one_call() {
    let cases = [
        (Signal::Green, Ok(()), Ok(())),
        (Signal::Amber, Ok(()), Ok(())),
        (Signal::Red, Err(NoAlternative::Red), Err(NoAlternative::Red)),
        (Signal::Unknown, Err(NoAlternative::Unknown), Ok(())),
    ];
    for (signal, shared, own) in cases {
        let (used, alone) = (UsedResource { signal, ..SHARED }, UsedResource { signal, ..OWN });
        for others in [vec![], vec![OWN], vec![SHARED, OWN]] {
            let with = |used| [vec![used], others.clone()].concat();
            assert_eq!(rule(&with(used), Some(VERIFIED), NOW), shared, "{signal:?} shared");
            assert_eq!(rule(&with(alone), Some(VERIFIED), NOW), own, "{signal:?} alone");
        }
    }
}

/// The cause is enough, whatever its signals say.
#[test]
fn a_user_of_the_cause_never_stands_in() {
    for signal in [Signal::Green, Signal::Amber, Signal::Red, Signal::Unknown] {
        let cause = UsedResource { is_cause: true, signal, ..SHARED };
        assert_eq!(rule(&[OWN, cause], Some(VERIFIED), NOW), Err(NoAlternative::Cause));
    }
}

#[test]
fn only_evidence_that_counts_now_and_for_this_policy_allows_a_stand_in() {
    assert_eq!(rule(&[], Some(VERIFIED), NOW), Ok(()), "at the last moment of the evidence");
    assert_eq!(rule(&[], None, NOW), Err(NoAlternative::Unverified));
    let other_policy = Verified { policy: [8; 32], ..VERIFIED };
    assert_eq!(rule(&[], Some(other_policy), NOW), Err(NoAlternative::Policy));
    let first = Now { wall: Wall::from_unix_ns(MEASURED_NS), ..NOW };
    assert_eq!(rule(&[], Some(VERIFIED), first), Ok(()), "at its first moment");
    let before = Now { wall: Wall::from_unix_ns(MEASURED_NS - 1), ..NOW };
    assert_eq!(rule(&[], Some(VERIFIED), before), Err(NoAlternative::Early));
    let later = Now { wall: Wall::from_unix_ns(EXPIRY_NS + 1), ..NOW };
    assert_eq!(rule(&[], Some(VERIFIED), later), Err(NoAlternative::Expired));
    for wall_trust in [WallTrust::Unsynchronised, WallTrust::RanBack] {
        let unbelievable = Now { wall_trust, wall: Wall::from_unix_ns(0), ..NOW };
        assert_eq!(rule(&[], Some(VERIFIED), unbelievable), Err(NoAlternative::Clock));
    }
}

/// By hand: two at once by the rate, the third after 25 ms; three under way, then none until one ends. A refusal by one
/// uses up nothing of the other.
#[test]
fn a_stand_in_stays_within_what_was_verified() {
    let stand_in = StandIn::new(Some(VERIFIED));
    let after_ms = |ms| Now { mono: Mono::from_ns(0).after(Duration::from_millis(ms)), ..NOW };
    let call = |ms| stand_in.try_acquire(Some(&VERIFIED), [SHARED], &POLICY, &after_ms(ms));
    let mut held = vec![call(0).unwrap(), call(0).unwrap()];
    assert_eq!(call(0).err(), Some(NoAlternative::Rate));
    assert_eq!(stand_in.in_flight(), 2);
    held.push(call(25).unwrap());
    for _ in 0..5 {
        assert_eq!(call(100).err(), Some(NoAlternative::Concurrency));
    }
    held.clear();
    let (first, second) = (call(100), call(100));
    assert!(first.is_ok() && second.is_ok(), "both of the rate are still there");
    let counted = [NoAlternative::Rate, NoAlternative::Concurrency].map(|why| stand_in.refused(why));
    assert_eq!(counted, [1, 5]);
}

/// A red resource in the middle of good evidence: no place is taken and nothing of the rate.
#[test]
fn what_may_not_stand_in_is_not_called_once() {
    let red = UsedResource { signal: Signal::Red, ..SHARED };
    let stand_in = StandIn::new(Some(VERIFIED));
    for _ in 0..1_000 {
        assert_eq!(
            stand_in.try_acquire(Some(&VERIFIED), [red], &POLICY, &NOW).err(),
            Some(NoAlternative::Red)
        );
        assert_eq!(stand_in.in_flight(), 0);
    }
    assert_eq!(stand_in.refused(NoAlternative::Red), 1_000);
    let unverified = StandIn::new(None);
    assert_eq!(
        unverified.try_acquire(Some(&VERIFIED), [], &POLICY, &NOW).err(),
        Some(NoAlternative::Unverified)
    );
    // Good evidence of the dependency is none of a route that has no evidence.
    assert_eq!(stand_in.try_acquire(None, [], &POLICY, &NOW).err(), Some(NoAlternative::Unverified));
    assert_eq!((unverified.verified(), stand_in.verified()), (None, Some(&VERIFIED)));
}

#[test]
fn reasons_against_a_stand_in_have_words_of_their_own() {
    let all = [
        (NoAlternative::Cause, "cause"),
        (NoAlternative::Red, "red"),
        (NoAlternative::Unknown, "unknown"),
        (NoAlternative::Unverified, "unverified"),
        (NoAlternative::Policy, "policy"),
        (NoAlternative::Clock, "clock"),
        (NoAlternative::Early, "early"),
        (NoAlternative::Expired, "expired"),
        (NoAlternative::Concurrency, "concurrency"),
        (NoAlternative::Rate, "rate"),
    ];
    assert_eq!(all.map(|(why, _)| why.token()), all.map(|(_, word)| word));
    assert_eq!(NoAlternative::TOKENS, all.map(|(_, word)| word));
}
