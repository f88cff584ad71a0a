//! What is usual while nothing is wrong: the share of alternatives and of cache hits.
//!
//! Both are kept as sums that lose one part in 3600 with each second told, so that an hour ago counts for 37 % of now.
//! Their quotient is a moving average in which every request weighs the same: a quiet night does not outweigh a day.
//! Nothing is fed while there is an incident; but the usual share of hits is forgotten when it has lastingly become lower.

use super::sample::Sample;

/// Seconds after which a request's weight has fallen to 1/e.
const SECONDS: f64 = 3600.0;
/// Below this many look-ups nothing is known of the usual hit ratio.
const LOOKUPS_MIN: f64 = 20.0;

/// What was usual before the incident.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Requests answered by an alternative.
    pub fallback: f64,
    /// All requests.
    pub requests: f64,
    /// Look-ups that found what they looked for.
    pub hits: f64,
    /// All look-ups.
    pub lookups: f64,
}

impl Baseline {
    /// The usual share of alternatives; 0 before anything is known.
    pub fn fallback_ratio(&self) -> f64 {
        if self.requests > 0.0 { self.fallback / self.requests } else { 0.0 }
    }

    /// The usual share of hits, if it is known.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.lookups >= LOOKUPS_MIN).then(|| self.hits / self.lookups)
    }

    pub(super) fn feed(&mut self, sample: &Sample) {
        let lookups = sample.lookups.unwrap_or_default();
        let kept = 1.0 - 1.0 / SECONDS;
        self.fallback = self.fallback * kept + sample.counts.fallback as f64;
        self.requests = self.requests * kept + sample.counts.requests() as f64;
        self.hits = self.hits * kept + lookups.hits.min(lookups.total) as f64;
        self.lookups = self.lookups * kept + lookups.total as f64;
    }

    /// What is usual of both: sums add up.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self {
            fallback: self.fallback + other.fallback,
            requests: self.requests + other.requests,
            hits: self.hits + other.hits,
            lookups: self.lookups + other.lookups,
        }
    }

    /// Nothing is known of hits until more look-ups are told.
    pub(super) fn forget_hits(&mut self) {
        (self.hits, self.lookups) = (0.0, 0.0);
    }

    /// The same, or nothing known where the numbers make no sense: they come from a file.
    pub(super) fn plausible(self) -> Self {
        let share =
            |part: f64, whole: f64| part.is_finite() && whole.is_finite() && 0.0 <= part && part <= whole;
        let mut checked = Self::default();
        if share(self.fallback, self.requests) {
            (checked.fallback, checked.requests) = (self.fallback, self.requests);
        }
        if share(self.hits, self.lookups) {
            (checked.hits, checked.lookups) = (self.hits, self.lookups);
        }
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{Counts, Lookups};

    fn second(normal: u64, fallback: u64) -> Sample {
        Sample { counts: Counts { normal, fallback, ..Counts::default() }, ..Sample::default() }
    }

    /// By hand: 1 of 100 in a second, then 3599/3600 of that and 3 of 100 more.
    #[test]
    fn every_request_weighs_the_same_and_an_hour_ago_weighs_less() {
        let mut baseline = Baseline::default();
        assert_eq!(baseline.fallback_ratio(), 0.0);
        baseline.feed(&second(99, 1));
        assert_eq!(baseline.fallback_ratio(), 0.01);
        baseline.feed(&second(97, 3));
        let expected = (3599.0 / 3600.0 + 3.0) / (100.0 * 3599.0 / 3600.0 + 100.0);
        assert!((baseline.fallback_ratio() - expected).abs() < 1e-12);
        for _ in 0..3600 {
            baseline.feed(&second(100, 0));
        }
        // (1 - 1/3600)^3600 = 0.36783 of about 4 requests is left, of 100 * 3600 * 0.63217 + 73.6.
        assert!((baseline.fallback_ratio() - 4.0 * 0.36783 / 227_655.0).abs() < 1e-8);
    }

    #[test]
    fn the_hit_ratio_is_known_from_twenty_lookups_on() {
        let mut baseline = Baseline::default();
        let lookups = |hits, total| Sample { lookups: Some(Lookups { hits, total }), ..Sample::default() };
        baseline.feed(&lookups(9, 10));
        assert_eq!(baseline.hit_ratio(), None);
        baseline.feed(&lookups(18, 20));
        assert!((baseline.hit_ratio().unwrap() - 0.9).abs() < 1e-12);
    }

    #[test]
    fn numbers_that_make_no_sense_are_forgotten() {
        let good = Baseline { fallback: 1.0, requests: 200.0, hits: 90.0, lookups: 100.0 };
        assert_eq!(good.plausible(), good);
        for bad in [f64::NAN, f64::INFINITY, -1.0, 201.0] {
            let expected = Baseline { fallback: 0.0, requests: 0.0, ..good };
            assert_eq!(Baseline { fallback: bad, ..good }.plausible(), expected, "{bad}");
        }
        assert_eq!(Baseline { lookups: f64::NAN, ..good }.plausible().hit_ratio(), None);
    }
}
