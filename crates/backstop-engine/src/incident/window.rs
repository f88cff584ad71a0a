//! The last minute, second by second.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Mono;

use super::baseline::Baseline;
use super::moment::Moment;
use super::sample::{Counts, DependencySample, Names, Sample};

/// How long a second is kept.
pub(super) const KEPT: Duration = Duration::from_secs(60);
/// Samples kept at most, however often they come.
const KEPT_SAMPLES: usize = 60;

/// One sample with its moment and the names of its time: a new policy may have others.
#[derive(Clone, Debug)]
pub(super) struct Second {
    pub(super) at: Moment,
    pub(super) sample: Sample,
    pub(super) names: Names,
}

impl Second {
    pub(super) fn counts(&self) -> &Counts {
        &self.sample.counts
    }

    /// This second's calls to a dependency that has the place `index` in the newest policy.
    pub(super) fn dependency(&self, index: usize, name: &str) -> Option<&DependencySample> {
        let names = &self.names.dependencies;
        let same_place = names.get(index).is_some_and(|other| &**other == name);
        let place = if same_place { Some(index) } else { names.iter().position(|other| &**other == name) };
        self.sample.dependencies.get(place?)
    }
}

/// Seconds of the last minute, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    seconds: VecDeque<Second>,
}

impl Window {
    /// Adds the newest. What leaves the window goes into the baseline, if there is one to feed: a second is a minute
    /// old by then, so what leads to an incident is not in the baseline that the incident is held against.
    pub(super) fn push(&mut self, second: Second, mut baseline: Option<&mut Baseline>) {
        let newest = second.at.mono;
        self.seconds.push_back(second);
        let is_out = |old: &Second| newest.since(old.at.mono).is_some_and(|age| age >= KEPT);
        while self.seconds.len() > KEPT_SAMPLES || self.seconds.front().is_some_and(is_out) {
            if let (Some(old), Some(baseline)) = (self.seconds.pop_front(), baseline.as_deref_mut()) {
                baseline.feed(&old.sample);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.seconds.clear();
    }

    pub(super) fn newest(&self) -> Option<&Second> {
        self.seconds.back()
    }

    /// From the newest back to the oldest.
    pub(super) fn back(&self) -> impl Iterator<Item = &Second> + Clone {
        self.seconds.iter().rev()
    }

    /// From this moment on, it included, newest first.
    pub(super) fn since(&self, from: Option<Mono>) -> impl Iterator<Item = &Second> + Clone {
        self.back().take_while(move |second| from.is_none_or(|from| second.at.mono >= from))
    }

    /// From this moment on, it included, oldest first.
    pub(super) fn forward_from(&self, from: Mono) -> impl Iterator<Item = &Second> {
        self.seconds.iter().filter(move |second| second.at.mono >= from)
    }
}

/// What some seconds hold together.
pub(super) fn sum<'a>(seconds: impl Iterator<Item = &'a Second>) -> Counts {
    let mut all = Counts::default();
    for second in seconds {
        all.merge(second.counts());
    }
    all
}
