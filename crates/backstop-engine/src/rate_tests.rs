use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn at(ns: u64) -> Mono {
    Mono::from_ns(ns)
}

/// One second in so many parts, rounded up; of none, never.
fn interval_ns(per_second: u64) -> u64 {
    if per_second == 0 { u64::MAX } else { SECOND.div_ceil(per_second) }
}

fn admitted_at(rate: &Rate, ns: u64) -> u64 {
    let mut admitted = 0;
    while admitted < 10_000 && rate.try_take(at(ns)) {
        admitted += 1;
    }
    admitted
}

/// By hand: 10 per second are 100 ms apart; after three at once the next comes at 100 ms, and after a second of silence
/// three again, not ten.
#[test]
fn the_burst_comes_at_once_and_then_one_per_interval() {
    let rate = Rate::new(10, 3);
    assert_eq!(admitted_at(&rate, 0), 3);
    assert_eq!(admitted_at(&rate, 100 * MS - 1), 0);
    assert_eq!(admitted_at(&rate, 100 * MS), 1);
    assert_eq!(admitted_at(&rate, 299 * MS), 1);
    assert_eq!(admitted_at(&rate, 300 * MS), 1);
    assert_eq!(admitted_at(&rate, 1_300 * MS), 3);
}

/// By hand: 50 ms of 1000/s are 50, of 60/s 3 (though 16.7 ms are not whole nanoseconds); of 39/s 1.95, so 1; of 1 per minute next to nothing, so 1.
#[test]
fn the_usual_burst_is_fifty_milliseconds_and_at_least_one() {
    for (count, period, burst) in [(1_000, 1, 50), (60, 1, 3), (40, 1, 2), (39, 1, 1), (1, 1, 1), (1, 60, 1)]
    {
        let rate = Rate::per(count, Duration::from_secs(period));
        assert_eq!(admitted_at(&rate, 7 * SECOND), burst, "{count} per {period} s");
    }
}

#[test]
fn one_per_minute_is_one_per_minute() {
    let rate = Rate::per(1, Duration::from_secs(60));
    assert!(rate.try_take(at(0)));
    assert!(!rate.try_take(at(60 * SECOND - 1)));
    assert!(rate.try_take(at(60 * SECOND)));
    assert!(!rate.try_take(at(60 * SECOND)));
}

/// By hand: 10^9 per second are 1 ns apart; what is above counts as that.
#[test]
fn a_billion_per_second_is_one_per_nanosecond() {
    for per_second in [SECOND, SECOND + 1, u64::MAX] {
        let rate = Rate::new(per_second, 5);
        let late = LATEST_NS - 1_000;
        assert_eq!(admitted_at(&rate, late), 5);
        assert_eq!([1, 2, 4].map(|ns| admitted_at(&rate, late + ns)), [1, 1, 2]);
        assert_eq!(admitted_at(&rate, u64::MAX), 0, "beyond what can be reckoned nothing is admitted");
    }
    assert_eq!(admitted_at(&Rate::new(SECOND, u64::MAX), 0), 10_000, "nor does a burst overflow");
    let usual = Rate::per(u64::MAX, Duration::from_secs(1));
    assert_eq!(usual.spare(at(0)), 50 * MS, "50 ms of one per nanosecond");
}

#[test]
fn a_burst_of_nothing_is_one_and_a_rate_of_nothing_is_none() {
    assert_eq!(admitted_at(&Rate::new(10, 0), 0), 1);
    for none in [Rate::new(0, 5), Rate::per(0, Duration::ZERO), Rate::per(1, Duration::MAX)] {
        assert_eq!((admitted_at(&none, SECOND), none.spare(at(SECOND))), (0, 0));
        assert_eq!(none.per_second(), 0.0);
    }
}

/// A limiter that let refusals run into debt would never admit again under steady excess.
#[test]
fn refusals_cost_nothing() {
    let rate = Rate::new(10, 1);
    assert_eq!(admitted_at(&rate, 0), 1);
    for refused in 0..100_000 {
        assert!(!rate.try_take(at(refused)));
    }
    assert!(rate.try_take(at(100 * MS)));
}

#[test]
fn no_limit_is_no_limit_until_one_is_set() {
    let rate = Rate::unlimited();
    assert!(rate.is_unlimited());
    assert_eq!((admitted_at(&rate, 0), rate.spare(at(0))), (10_000, u64::MAX));
    rate.set(at(0), 100);
    assert_eq!((admitted_at(&rate, 0), rate.is_unlimited()), (5, false));
    rate.set_unlimited(at(0));
    assert_eq!(admitted_at(&rate, 0), 10_000);
}

/// By hand: of a burst of four at 100/s, three are left; they stay three at 1/s, and the next is a whole second away.
/// Back at 100/s, none that was taken comes back, and the next is 10 ms away.
#[test]
fn a_changed_rate_keeps_what_is_left_and_gives_nothing() {
    let rate = Rate::new(100, 4);
    assert!(rate.try_take(at(0)));
    rate.set(at(0), 1);
    assert_eq!(admitted_at(&rate, 0), 3);
    assert_eq!([SECOND - 1, SECOND].map(|ns| admitted_at(&rate, ns)), [0, 1]);
    rate.set(at(SECOND), 100);
    assert_eq!([SECOND, SECOND + 10 * MS - 1, SECOND + 10 * MS].map(|ns| admitted_at(&rate, ns)), [0, 0, 1]);
}

/// By hand: 1000/s have a burst of 50, 10 000/s one of 500; of the 500 only the 50 are there at once, and 10 more after
/// a millisecond. Going down to 100/s leaves the five that are its burst.
#[test]
fn a_changed_rate_has_its_own_burst() {
    let rate = Rate::per(1_000, Duration::from_secs(1));
    rate.set(at(0), 10_000);
    assert_eq!((rate.spare(at(0)), rate.spare(at(MS))), (50, 60));
    rate.set(at(MS), 100);
    assert_eq!(admitted_at(&rate, MS), 5);
}

/// By hand: 10 s at a rate of zero add nothing; then 100/s begin with nothing and give one after 10 ms.
#[test]
fn from_zero_a_rate_begins_with_nothing() {
    let rate = Rate::new(100, 4);
    rate.set(at(0), 0);
    assert_eq!(admitted_at(&rate, 10 * SECOND), 0);
    rate.set(at(10 * SECOND), 100);
    let later = [0, 10 * MS - 1, 10 * MS].map(|ns| admitted_at(&rate, 10 * SECOND + ns));
    assert_eq!(later, [0, 0, 1]);
}

#[test]
fn what_was_taken_is_put_back_unless_others_took_since() {
    let rate = Rate::new(10, 2);
    let first = rate.take(at(0)).unwrap();
    rate.put_back(first);
    assert_eq!(rate.spare(at(0)), 2);
    let second = rate.take(at(0)).unwrap();
    assert!(rate.try_take(at(0)));
    rate.put_back(second);
    assert_eq!(rate.spare(at(0)), 0, "too little, never too much");
}

proptest! {
    /// Against a list of everybody who was admitted: another one is right if with it no stretch from an earlier one to
    /// now holds more than the burst and what the rate gives in that time.
    #[test]
    fn a_rate_agrees_with_a_list_of_admissions(
        interval in 1..50_u64, burst in 1..8_u64, gaps in vec(0..120_u64, 1..300),
    ) {
        let rate = Rate::with(Pace { interval_ns: interval, burst }, Some(burst));
        let mut list: Vec<u64> = Vec::new();
        let mut now = 0;
        for gap in gaps {
            now += gap;
            let fits = (0..list.len()).all(|first| {
                let with_this_one = (list.len() - first) as u64 + 1;
                with_this_one.saturating_sub(burst) * interval <= now - list[first]
            });
            prop_assert_eq!(rate.spare(at(now)) > 0, fits);
            prop_assert_eq!(rate.try_take(at(now)), fits);
            if fits {
                list.push(now);
            }
        }
    }

    /// Against a bucket of fractional tokens, with changes of the rate. A change may lose a nanosecond of an interval of
    /// a microsecond, so the model is not asked within a hundredth of a token of its limit.
    #[test]
    fn a_changing_rate_agrees_with_a_bucket(
        burst in 1..20_u64, steps in vec((0..3_000_000_u64, 0..40_u64, 0..1_000_000_u64), 1..60),
    ) {
        let (mut per_second, mut tokens, mut last) = (1_000, burst as f64, 0);
        let rate = Rate::new(per_second, burst);
        for (gap, takes, new_rate) in steps {
            let now = last + gap;
            tokens = (tokens + gap as f64 / interval_ns(per_second) as f64).min(burst as f64);
            last = now;
            for _ in 0..takes {
                let taken = rate.try_take(at(now));
                if (tokens - 1.0).abs() > 0.07 {
                    prop_assert_eq!(taken, tokens > 1.0, "{} tokens", tokens);
                }
                tokens = if taken { tokens - 1.0 } else { tokens };
            }
            if new_rate % 3 == 0 {
                per_second = new_rate;
                if new_rate == 0 {
                    tokens = 0.0;
                }
                rate.set(at(now), new_rate);
            }
        }
    }
}
