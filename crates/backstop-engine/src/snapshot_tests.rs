use super::*;

const SECOND: Duration = Duration::from_secs(1);
const BOOT_A: BootId = BootId([1; 16]);
const BOOT_B: BootId = BootId([2; 16]);

fn at(mono_ns: u64, wall_ns: i64, boot: BootId, wall_trust: WallTrust) -> Now {
    Now { mono: Mono::from_ns(mono_ns), wall: Wall::from_unix_ns(wall_ns), boot, wall_trust }
}

fn copy(mono_ns: u64, wall_ns: i64, received_age: Duration) -> CopyFacts {
    let now = at(mono_ns, wall_ns, BOOT_A, WallTrust::Synchronised);
    CopyFacts { observed_at: ObservedAt::new(now, received_age), origin_limit: OriginLimit::Unlimited }
}

const RULES: CopyRules = CopyRules {
    max_age: Duration::from_secs(60),
    after_restart: AfterRestart::Verify,
    override_origin: false,
};

/// 60 s is served, 60 s + 1 ns is refused, 1 ns ahead is refused: stated by the contract (max age inclusive).
#[test]
fn age_limit_is_inclusive_to_the_nanosecond() {
    let second_ns = 1_000_000_000;
    let start = 100 * second_ns;
    let table = [
        (start, Ok(Duration::ZERO)),
        (start + 30 * second_ns, Ok(30 * SECOND)),
        (start + 60 * second_ns - 1, Ok(60 * SECOND - Duration::from_nanos(1))),
        (start + 60 * second_ns, Ok(60 * SECOND)),
        (start + 60 * second_ns + 1, Err(CopyRefusal::TooOld)),
        (start - 1, Err(CopyRefusal::FromFuture)),
        (start - second_ns, Err(CopyRefusal::FromFuture)),
        (u64::MAX, Err(CopyRefusal::TooOld)),
    ];
    for (now_ns, expected) in table {
        let now = at(now_ns, 0, BOOT_A, WallTrust::Unsynchronised);
        assert_eq!(judge(Some(&copy(start, 0, Duration::ZERO)), &RULES, &now), expected, "now = {now_ns}");
    }
    assert_eq!(
        judge(None, &RULES, &at(start, 0, BOOT_A, WallTrust::Synchronised)),
        Err(CopyRefusal::Missing)
    );
}

/// RFC 9111 section 4.2.3: an answer that came with `Age: 50` has 10 of its 60 seconds left.
#[test]
fn received_age_counts() {
    let second_ns = 1_000_000_000;
    let facts = copy(0, 0, 50 * SECOND);
    assert_eq!(
        judge(Some(&facts), &RULES, &at(10 * second_ns, 0, BOOT_A, WallTrust::Synchronised)),
        Ok(60 * SECOND)
    );
    assert_eq!(
        judge(Some(&facts), &RULES, &at(10 * second_ns + 1, 0, BOOT_A, WallTrust::Synchronised)),
        Err(CopyRefusal::TooOld)
    );
}

/// Within one boot the date decides nothing: one hour back or forward changes no age.
#[test]
fn wall_clock_steps_do_not_move_an_age_within_one_boot() {
    let hour_ns = 3_600_000_000_000_i64;
    for wall in [-hour_ns, 0, hour_ns] {
        for trust in [WallTrust::Synchronised, WallTrust::Unsynchronised, WallTrust::RanBack] {
            let now = at(60_000_000_000, wall, BOOT_A, trust);
            assert_eq!(judge(Some(&copy(0, 0, Duration::ZERO)), &RULES, &now), Ok(60 * SECOND));
            let now = at(60_000_000_001, wall, BOOT_A, trust);
            assert_eq!(judge(Some(&copy(0, 0, Duration::ZERO)), &RULES, &now), Err(CopyRefusal::TooOld));
        }
    }
}

/// Across boots the boot-time clock decides nothing, and a clock that cannot be believed refuses.
#[test]
fn another_boot_goes_by_a_believable_date_only() {
    let second_ns = 1_000_000_000_i64;
    let facts = copy(5, 1000 * second_ns, Duration::ZERO);
    let trust = CopyRules { after_restart: AfterRestart::Trust, ..RULES };
    let table = [
        (1000 * second_ns, WallTrust::Synchronised, Ok(Duration::ZERO), Ok(Duration::ZERO)),
        (1060 * second_ns, WallTrust::Synchronised, Ok(60 * SECOND), Ok(60 * SECOND)),
        (1060 * second_ns + 1, WallTrust::Synchronised, Err(CopyRefusal::TooOld), Err(CopyRefusal::TooOld)),
        (
            1000 * second_ns - 1,
            WallTrust::Synchronised,
            Err(CopyRefusal::FromFuture),
            Err(CopyRefusal::FromFuture),
        ),
        (1060 * second_ns, WallTrust::Unsynchronised, Err(CopyRefusal::ClockUntrusted), Ok(60 * SECOND)),
        (
            1060 * second_ns,
            WallTrust::RanBack,
            Err(CopyRefusal::ClockUntrusted),
            Err(CopyRefusal::ClockUntrusted),
        ),
    ];
    for (wall, wall_trust, verify, trusted) in table {
        let now = at(u64::MAX, wall, BOOT_B, wall_trust);
        assert_eq!(judge(Some(&facts), &RULES, &now), verify, "{wall} {wall_trust:?}");
        assert_eq!(judge(Some(&facts), &trust, &now), trusted, "{wall} {wall_trust:?} trusted");
    }
}

/// RFC 9111 section 4.2: fresh means lifetime > age (strict); RFC 5861 section 4: not more stale than (inclusive).
#[test]
fn the_origin_may_shorten_an_age_but_not_lengthen_it() {
    let now = |seconds: u64| at(seconds * 1_000_000_000, 0, BOOT_A, WallTrust::Synchronised);
    let with = |origin_limit| CopyFacts { origin_limit, ..copy(0, 0, Duration::ZERO) };
    let overriding = CopyRules { override_origin: true, ..RULES };
    let forbidden = Err(CopyRefusal::ForbiddenByOrigin);
    let table = [
        (OriginLimit::Never, 0, forbidden),
        (OriginLimit::WhileFresh(10 * SECOND), 9, Ok(9 * SECOND)),
        (OriginLimit::WhileFresh(10 * SECOND), 10, forbidden),
        (OriginLimit::UpTo(10 * SECOND), 10, Ok(10 * SECOND)),
        (OriginLimit::UpTo(10 * SECOND), 11, forbidden),
        (OriginLimit::UpTo(600 * SECOND), 61, Err(CopyRefusal::TooOld)),
    ];
    for (limit, seconds, expected) in table {
        assert_eq!(judge(Some(&with(limit)), &RULES, &now(seconds)), expected, "{limit:?} at {seconds}");
    }
    assert_eq!(judge(Some(&with(OriginLimit::Never)), &overriding, &now(60)), Ok(60 * SECOND));
    assert_eq!(judge(Some(&with(OriginLimit::Never)), &overriding, &now(61)), Err(CopyRefusal::TooOld));
}

#[test]
fn reads_are_ordered_by_the_clock_they_share() {
    let early = copy(1, 100, Duration::ZERO).observed_at;
    let late = copy(2, 50, Duration::ZERO).observed_at;
    assert!(late.began_after(&early), "within a boot the date does not count");
    assert!(!early.began_after(&early));
    let rebooted =
        ObservedAt { boot: BOOT_B, mono: Mono::from_ns(0), wall: Wall::from_unix_ns(101), ..early };
    assert!(rebooted.began_after(&early));
}
