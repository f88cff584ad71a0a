//! Whether the status query sees what has just happened.
//!
//! An absence proves something only of an upstream that shows its own successes in time. So of those that are known some are
//! asked for by the same query: at once, then after waits that double, for as long as they may take to be shown. While the last
//! one was not shown, no absence counts. Nor does one before any was shown: what was seen in another life is not known.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop::operation::key::is_quoted;
use backstop_engine::health::PerMille;
use backstop_engine::policy::effect::CalibrationRules;
use backstop_engine::time::Mono;

/// Successes of one route that are being asked for at once. One more is left out: there are enough.
const PENDING: usize = 2;
/// The wait after the first query; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Where known successes are offered, by whoever has the upstream's own answer. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calibration(Arc<[Offers]>);

/// What is offered of one route.
#[derive(Debug)]
struct Offers {
    route: Box<str>,
    sample: PerMille,
    successes: AtomicU64,
    left_out: AtomicU64,
    waiting: Mutex<VecDeque<Known>>,
}

/// A success that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    upstream_id: Box<[u8]>,
    since: Mono,
}

impl Calibration {
    /// For these routes. Of others nothing is taken.
    pub(crate) fn of<'a>(routes: impl IntoIterator<Item = (&'a str, &'a CalibrationRules)>) -> Self {
        let offers = |(route, rules): (&str, &CalibrationRules)| Offers {
            route: route.into(),
            sample: rules.sample,
            successes: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            waiting: Mutex::default(),
        };
        Self(routes.into_iter().map(offers).collect())
    }

    /// The upstream's own answer has just said that this operation was executed. Takes the route's share of them, evenly; what
    /// there is no room for is left out. Never waits.
    pub(crate) fn offer(&self, route: &str, upstream_id: &[u8], now: Mono) {
        // Its upstream may know it without the quotes, and then it would look like one that is not shown.
        let Some(offers) = self.offers(route).filter(|_| !is_quoted(upstream_id)) else { return };
        let before = offers.successes.fetch_add(1, Ordering::Relaxed);
        if !is_sampled(before, offers.sample) {
            return;
        }
        let mut waiting = offers.waiting();
        if waiting.len() < PENDING {
            waiting.push_back(Known { upstream_id: upstream_id.into(), since: now });
        } else {
            offers.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn offers(&self, route: &str) -> Option<&Offers> {
        self.0.iter().find(|offers| *offers.route == *route)
    }
}

impl Offers {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Known>> {
        // Plain data: whoever panicked while holding it left it whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the next one after so many is taken, so that the share is right in any row of a thousand. The first is.
const fn is_sampled(before: u64, sample: PerMille) -> bool {
    let per_mille = sample.0 as u64;
    (before.wrapping_mul(per_mille) % 1000) < per_mille
}

/// What the samples of one route have come to.
#[derive(Debug)]
pub(super) struct Samples {
    calibration: Calibration,
    route: Box<str>,
    must_see_within: Duration,
    pending: Vec<Pending>,
    last: Option<Shown>,
}

/// What became of the last known success, if there was one in this life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    InTime,
    NotInTime,
}

/// A success that is being asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    known: Known,
    due: Mono,
    wait: Duration,
    is_asked: bool,
}

/// What is to be asked.
#[derive(Debug)]
pub(super) struct Sample {
    known: Known,
}

/// What became of the calibration with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was shown in time.
    InTime,
    /// It was not.
    NotInTime,
    /// Nothing yet.
    NotYet,
}

impl Sample {
    pub(super) fn upstream_id(&self) -> &[u8] {
        &self.known.upstream_id
    }
}

impl Samples {
    pub(super) fn new(calibration: Calibration, route: &str, rules: &CalibrationRules) -> Self {
        let must_see_within = rules.must_see_within;
        Self { calibration, route: route.into(), must_see_within, pending: Vec::new(), last: None }
    }

    /// Whether absences count, as far as it goes.
    pub(super) fn shows_recent(&self) -> bool {
        self.last == Some(Shown::InTime)
    }

    /// Whether the last known success was not shown in time.
    pub(super) fn is_failing(&self) -> bool {
        self.last == Some(Shown::NotInTime)
    }

    /// How many successes were not asked for because enough were.
    pub(super) fn left_out(&self) -> u64 {
        let offers = self.calibration.offers(&self.route);
        offers.map_or(0, |offers| offers.left_out.load(Ordering::Relaxed))
    }

    /// One that is to be asked for now.
    pub(super) fn next(&mut self, now: Mono) -> Option<Sample> {
        self.take_offered();
        let pending = self.pending.iter_mut().find(|pending| !pending.is_asked && pending.due <= now)?;
        pending.is_asked = true;
        Some(Sample { known: pending.known.clone() })
    }

    fn take_offered(&mut self) {
        if self.pending.len() >= PENDING {
            return;
        }
        let Some(offers) = self.calibration.offers(&self.route) else { return };
        let known = offers.waiting().pop_front();
        self.pending.extend(known.map(|known| Pending {
            due: known.since,
            known,
            wait: FIRST_WAIT,
            is_asked: false,
        }));
    }

    /// It was asked for at `asked`; whether it was shown.
    pub(super) fn answered(&mut self, sample: &Sample, asked: Mono, is_shown: bool) -> Seen {
        let at = self.pending.iter().position(|pending| pending.known == sample.known);
        let Some(pending) = at.and_then(|at| self.pending.get_mut(at).zip(Some(at))) else {
            return Seen::NotYet;
        };
        let (pending, at) = pending;
        let end = pending.known.since.after(self.must_see_within);
        let seen = match (is_shown, asked < end) {
            (true, true) => Seen::InTime,
            // Asked too late by our own doing, it says nothing of when it came to be shown.
            (true, false) if asked > end => {
                self.pending.swap_remove(at);
                return Seen::NotYet;
            }
            (true, false) => Seen::InTime,
            (false, true) => {
                // The last query is asked exactly at the end.
                pending.due = asked.after(pending.wait).min(end);
                pending.wait = pending.wait.saturating_mul(2);
                pending.is_asked = false;
                return Seen::NotYet;
            }
            (false, false) => Seen::NotInTime,
        };
        self.pending.swap_remove(at);
        self.last = Some(if seen == Seen::InTime { Shown::InTime } else { Shown::NotInTime });
        seen
    }

    /// It was not asked for after all.
    pub(super) fn given_back(&mut self, sample: &Sample) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.known == sample.known) {
            pending.is_asked = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_ns(ms * 1_000_000)
    }

    fn rules(sample: u32) -> CalibrationRules {
        CalibrationRules { sample: PerMille(sample), must_see_within: Duration::from_secs(10) }
    }

    fn samples(sample: u32) -> (Calibration, Samples) {
        let calibration = Calibration::of([("pay", &rules(sample))]);
        let samples = Samples::new(calibration.clone(), "pay", &rules(sample));
        (calibration, samples)
    }

    #[test]
    fn the_share_of_successes_is_exact() {
        for (sample, expected) in [(1, 1), (10, 10), (333, 333), (1000, 1000)] {
            let taken = (0..1000).filter(|before| is_sampled(*before, PerMille(sample))).count();
            assert_eq!(taken, expected, "{sample}");
        }
        assert!(is_sampled(0, PerMille(1)), "the first");
    }

    #[test]
    fn no_more_than_two_wait_and_no_other_route_is_taken() {
        let (calibration, mut samples) = samples(1000);
        calibration.offer("refund", b"x", at(0));
        for id in [b"a", b"b", b"c"] {
            calibration.offer("pay", id, at(0));
        }
        let first = samples.next(at(0)).unwrap();
        let second = samples.next(at(0)).unwrap();
        assert_eq!((first.upstream_id(), second.upstream_id()), (&b"a"[..], &b"b"[..]));
        assert!(samples.next(at(0)).is_none());
        assert_eq!(samples.left_out(), 1);
    }

    /// A failing one of the last life would be forgotten otherwise.
    #[test]
    fn before_any_success_was_shown_no_absence_counts() {
        let (calibration, mut samples) = samples(1000);
        assert!(!samples.shows_recent());
        calibration.offer("pay", b"a", at(0));
        let sample = samples.next(at(0)).unwrap();
        assert!(!samples.shows_recent());
        samples.answered(&sample, at(0), false);
        assert!(!samples.shows_recent());
        let sample = samples.next(at(1000)).unwrap();
        samples.answered(&sample, at(1000), true);
        assert!(samples.shows_recent());
    }

    /// A service may know it without its quotes.
    #[test]
    fn a_quoted_key_is_no_sample() {
        let (calibration, mut samples) = samples(1000);
        calibration.offer("pay", b"\"a\"", at(0));
        assert!(samples.next(at(0)).is_none());
        calibration.offer("pay", b"a", at(0));
        assert!(samples.next(at(0)).is_some());
    }

    /// By hand: at once, after 1 s, 2 s and 4 s more, and for the last time at 10 s.
    #[test]
    fn a_success_that_is_not_shown_in_time_suspends_absences_until_one_is() {
        let (calibration, mut samples) = samples(1000);
        calibration.offer("pay", b"shown", at(0));
        let sample = samples.next(at(0)).unwrap();
        samples.answered(&sample, at(0), true);
        calibration.offer("pay", b"a", at(0));
        for (due, expected) in [
            (0, Seen::NotYet),
            (1000, Seen::NotYet),
            (3000, Seen::NotYet),
            (7000, Seen::NotYet),
            (10_000, Seen::NotInTime),
        ] {
            assert!(due == 0 || samples.next(at(due - 1)).is_none(), "{due}");
            assert!(samples.shows_recent() && !samples.is_failing());
            let sample = samples.next(at(due)).unwrap();
            assert_eq!(samples.answered(&sample, at(due), false), expected, "{due}");
        }
        assert!(samples.is_failing() && !samples.shows_recent());
        calibration.offer("pay", b"b", at(20_000));
        let sample = samples.next(at(20_000)).unwrap();
        assert_eq!(samples.answered(&sample, at(20_000), true), Seen::InTime);
        assert!(samples.shows_recent());
    }

    #[test]
    fn what_was_asked_too_late_says_nothing_if_it_is_shown() {
        let (calibration, mut samples) = samples(1000);
        for (is_shown, expected, shows_recent) in
            [(true, Seen::NotYet, false), (false, Seen::NotInTime, false), (true, Seen::NotYet, false)]
        {
            calibration.offer("pay", b"a", at(0));
            let sample = samples.next(at(10_001)).unwrap();
            assert_eq!(samples.answered(&sample, at(10_001), is_shown), expected);
            assert_eq!(samples.shows_recent(), shows_recent);
        }
    }

    #[test]
    fn what_was_not_asked_is_asked_again() {
        let (calibration, mut samples) = samples(1000);
        calibration.offer("pay", b"a", at(0));
        let sample = samples.next(at(0)).unwrap();
        assert!(samples.next(at(5000)).is_none());
        samples.given_back(&sample);
        assert!(samples.next(at(5000)).is_some());
    }
}
