//! How an incident went: what was counted, stretch by stretch, in a bounded number of stretches.
//!
//! It begins with stretches of one second. When there are [`COURSE_MAX`] of them, each two become one, twice as long: an incident
//! of any length has at least half as many as there may be.

use std::time::Duration;

use super::moment::Moment;
use super::sample::Counts;
use super::window::Second;

/// Stretches that are kept at most.
pub const COURSE_MAX: usize = 120;
/// Dependencies whose calls are kept: the first ones that the record names.
pub const COURSE_DEPENDENCIES: usize = 16;

/// What was counted over time, from the incident's first second on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// How long one stretch is.
    pub step: Duration,
    /// The stretches, the first one first. Those in which nobody counted are empty.
    pub stretches: Vec<Stretch>,
}

/// What was counted in one stretch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Requests by outcome.
    pub counts: Counts,
    /// The oldest copy that was served.
    pub oldest_copy: Duration,
    /// Calls of dependencies, in the order of the record.
    pub attempts: Vec<u64>,
}

impl Default for Course {
    fn default() -> Self {
        Self { step: Duration::from_secs(1), stretches: Vec::new() }
    }
}

impl Course {
    /// Counts a second. `place` tells where in the record a dependency of this second stands.
    pub(super) fn count(&mut self, began: &Moment, second: &Second, place: impl Fn(&str) -> Option<usize>) {
        let Some(stretch) = self.at(second.at.since(began)) else { return };
        stretch.counts.merge(&second.sample.counts);
        stretch.oldest_copy = stretch.oldest_copy.max(second.sample.served.oldest);
        for (index, calls) in second.sample.dependencies.iter().enumerate() {
            let Some(at) = place(second.names.dependency(index)).filter(|at| *at < COURSE_DEPENDENCIES)
            else {
                continue;
            };
            if stretch.attempts.len() <= at {
                stretch.attempts.resize(at + 1, 0);
            }
            if let Some(sum) = stretch.attempts.get_mut(at) {
                *sum = sum.saturating_add(calls.attempts);
            }
        }
    }

    /// The stretch that holds this moment, which is made if it is not there yet.
    fn at(&mut self, since_began: Duration) -> Option<&mut Stretch> {
        let mut index = self.index(since_began);
        while index >= COURSE_MAX {
            self.halve();
            index = self.index(since_began);
        }
        if self.stretches.len() <= index {
            self.stretches.resize_with(index + 1, Stretch::default);
        }
        self.stretches.get_mut(index)
    }

    fn index(&self, since_began: Duration) -> usize {
        let step = self.step.as_nanos().max(1);
        usize::try_from(since_began.as_nanos() / step).unwrap_or(usize::MAX)
    }

    fn halve(&mut self) {
        self.step = self.step.saturating_mul(2);
        let merged = self.stretches.chunks(2).map(|two| {
            let mut sum = Stretch::default();
            two.iter().for_each(|one| sum.merge(one));
            sum
        });
        self.stretches = merged.collect();
    }

    /// The same within its bounds: it comes from a file.
    pub(super) fn bounded(mut self) -> Self {
        self.step = self.step.max(Duration::from_secs(1));
        while self.stretches.len() > COURSE_MAX {
            self.halve();
        }
        self.stretches.iter_mut().for_each(|stretch| stretch.attempts.truncate(COURSE_DEPENDENCIES));
        self
    }
}

impl Stretch {
    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.oldest_copy = self.oldest_copy.max(other.oldest_copy);
        if self.attempts.len() < other.attempts.len() {
            self.attempts.resize(other.attempts.len(), 0);
        }
        for (sum, more) in self.attempts.iter_mut().zip(&other.attempts) {
            *sum = sum.saturating_add(*more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{DependencySample, Names, Sample, Served};
    use crate::time::{BootId, Mono, Wall};

    fn at(second: u64) -> Moment {
        Moment {
            mono: Mono::from_ns(second * 1_000_000_000),
            wall: Wall::from_unix_ns(0),
            boot: BootId([1; 16]),
        }
    }

    fn second(number: u64, normal: u64, attempts: u64, oldest: u64) -> Second {
        let sample = Sample {
            counts: Counts { normal, ..Counts::default() },
            dependencies: vec![DependencySample { attempts, ..DependencySample::default() }],
            served: Served { oldest: Duration::from_secs(oldest), ..Served::default() },
            ..Sample::default()
        };
        Second { at: at(number), sample, names: Names::new(&[], &["catalog"]) }
    }

    /// By hand: 120 stretches of a second hold seconds 0 to 119; with second 120 they are 61 of two seconds, the last of which
    /// holds it alone.
    #[test]
    fn a_long_incident_has_longer_stretches_and_loses_no_count() {
        let mut course = Course::default();
        for number in 0..120 {
            course.count(&at(0), &second(number, 1, 2, number), |_| Some(0));
        }
        assert_eq!((course.stretches.len(), course.step), (120, Duration::from_secs(1)));
        course.count(&at(0), &second(120, 1, 2, 7), |_| Some(0));
        assert_eq!((course.stretches.len(), course.step), (61, Duration::from_secs(2)));
        let of = |index: usize| {
            let stretch = &course.stretches[index];
            (stretch.counts.normal, stretch.attempts[0], stretch.oldest_copy.as_secs())
        };
        assert_eq!((of(0), of(59), of(60)), ((2, 4, 1), (2, 4, 119), (1, 2, 7)));
    }

    #[test]
    fn a_gap_is_empty_and_a_year_is_bounded() {
        let mut course = Course::default();
        course.count(&at(0), &second(0, 1, 0, 0), |_| Some(0));
        course.count(&at(0), &second(3, 1, 0, 0), |_| Some(0));
        let normal: Vec<u64> = course.stretches.iter().map(|stretch| stretch.counts.normal).collect();
        assert_eq!(normal, [1, 0, 0, 1]);
        course.count(&at(0), &second(31_536_000, 1, 0, 0), |_| Some(0));
        assert!(course.stretches.len() <= COURSE_MAX);
        assert_eq!(course.stretches.iter().map(|stretch| stretch.counts.normal).sum::<u64>(), 3);
    }

    #[test]
    fn only_so_many_dependencies_are_kept() {
        let mut course = Course::default();
        course.count(&at(0), &second(0, 1, 5, 0), |_| Some(COURSE_DEPENDENCIES));
        assert!(course.stretches[0].attempts.is_empty());
    }
}
