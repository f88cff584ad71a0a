//! What is kept of one incident: plain data, all of it bounded, to be written down by whoever can write.
//!
//! Times count from `began`, the first second that belongs to the incident; it is `detected` a little later, when it is
//! certain. What happened in between is counted.

use std::time::Duration;

use crate::failure::FailureKind;
use crate::tally::AGE_BUCKETS_SECONDS;

use super::course::Course;
use super::moment::Moment;
use super::named::{self, Merge, Named};
use super::phase::Phase;
use super::sample::{Counts, DependencySample, DependencyState};
use super::signal::{Signal, Signals};
use super::timeline::{Timeline, What};
use super::window::Second;

/// Functions, and dependencies, that are kept by name.
pub const NAMES_MAX: usize = 256;
/// Reasons, and signals, and kinds of failure, that are kept by name.
pub const TOKENS_MAX: usize = 64;

/// One incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The date on which it began and its number: `20260131T235959Z-7`. The number never comes again.
    pub id: Box<str>,
    /// Where it stands.
    pub phase: Phase,
    /// The first second that belongs to it.
    pub began: Moment,
    /// When it was certain.
    pub detected: Moment,
    /// When everything was green for the first time.
    pub first_green: Option<Moment>,
    /// Since when breakers are closed, traffic is whole and full quality is within bounds. None while it is not.
    pub full: Option<Moment>,
    /// When it ended.
    pub ended: Option<Moment>,
    /// Requests by outcome.
    pub counts: Counts,
    /// Requests by outcome, per business function.
    pub functions: Vec<Named<Counts>>,
    /// What dependencies did.
    pub dependencies: Vec<Named<DependencyRecord>>,
    /// Requests by reason.
    pub reasons: Vec<Named<u64>>,
    /// Alternatives that were served, by where they came from.
    pub sources: Vec<Named<u64>>,
    /// Copies that were served, by age: each of [`AGE_BUCKETS_SECONDS`], and one above all.
    pub ages: [u64; AGE_BUCKETS_SECONDS.len() + 1],
    /// The oldest copy that was served.
    pub oldest_copy: Duration,
    /// How it went.
    pub course: Course,
    /// Seconds in which each signal was not green.
    pub signals: Vec<Named<u64>>,
    /// What was counted in the second in which most requests were not completed.
    pub worst: Option<Counts>,
    /// What happened.
    pub timeline: Timeline,
    /// Effects whose end is unknown and which are followed up, as last heard. They may outlive the incident.
    pub tracked_effects: u64,
    /// How often the process was restarted meanwhile.
    pub restarts: u64,
}

/// One dependency in an incident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DependencyRecord {
    /// How it stands, or stood when it was last heard of.
    pub state: DependencyState,
    /// Requests that called it.
    pub requests: u64,
    /// Calls made for them.
    pub attempts: u64,
    /// Failed calls by kind.
    pub failures: Vec<Named<u64>>,
    /// Calls per 1000 seconds in the minute before the incident, as far as it was counted. None where nothing was.
    pub before_per_1000_s: Option<u64>,
}

impl Record {
    pub(super) fn new(began: Moment, detected: Moment, number: u64) -> Self {
        Self {
            id: format!("{}-{number}", began.compact_date()).into(),
            phase: Phase::Degraded,
            began,
            detected,
            first_green: None,
            full: None,
            ended: None,
            counts: Counts::default(),
            functions: Vec::new(),
            dependencies: Vec::new(),
            reasons: Vec::new(),
            sources: Vec::new(),
            ages: [0; AGE_BUCKETS_SECONDS.len() + 1],
            oldest_copy: Duration::ZERO,
            course: Course::default(),
            signals: Vec::new(),
            worst: None,
            timeline: Timeline::default(),
            tracked_effects: 0,
            restarts: 0,
        }
    }

    /// Makes its number so much higher.
    pub(super) fn number_from(&mut self, first: u64) {
        if let Some((date, number)) = self.id.rsplit_once('-')
            && let Ok(number) = number.parse::<u64>()
        {
            self.id = format!("{date}-{}", number.saturating_add(first)).into();
        }
    }

    /// How long it took to be certain.
    pub fn time_to_detect(&self) -> Duration {
        self.detected.since(&self.began)
    }

    /// How long it took until everything was green for the first time.
    pub fn time_to_first_green(&self) -> Option<Duration> {
        self.first_green.map(|moment| moment.since(&self.began))
    }

    /// How long it took until traffic was whole again and stayed so.
    pub fn time_to_full(&self) -> Option<Duration> {
        self.full.map(|moment| moment.since(&self.began))
    }

    /// How long it took in all.
    pub fn time_to_end(&self) -> Option<Duration> {
        self.ended.map(|moment| moment.since(&self.began))
    }

    /// Counts one second.
    pub(super) fn count(&mut self, second: &Second) {
        let Second { at, sample, names } = second;
        self.counts.merge(&sample.counts);
        for (index, counts) in sample.functions.iter().enumerate() {
            named::add(&mut self.functions, names.function(index), NAMES_MAX, counts);
        }
        for (index, calls) in sample.dependencies.iter().enumerate() {
            let name = names.dependency(index);
            if let Some(dependency) = named::slot(&mut self.dependencies, name, NAMES_MAX) {
                dependency.count(calls);
            }
        }
        for &(reason, count) in sample.reasons.iter().filter(|&&(reason, _)| reason != "none") {
            named::add(&mut self.reasons, reason, TOKENS_MAX, &count);
        }
        for (source, count) in &sample.served.sources {
            named::add(&mut self.sources, source, TOKENS_MAX, count);
        }
        for (sum, more) in self.ages.iter_mut().zip(sample.served.ages) {
            *sum = sum.saturating_add(more);
        }
        self.oldest_copy = self.oldest_copy.max(sample.served.oldest);
        let places = &self.dependencies;
        self.course.count(&self.began, second, |name| places.iter().position(|one| *one.name == *name));
        self.tracked_effects = sample.tracked_effects;
        let badness = |counts: &Counts| (counts.not_completed(), counts.reduced());
        if badness(&sample.counts) > self.worst.as_ref().map_or((0, 0), badness) {
            self.worst = Some(sample.counts);
            self.timeline.note_worst(*at, sample.counts);
        }
    }

    /// Notes how much each dependency was called before, over the seconds that are told.
    pub(super) fn note_before<'a>(&mut self, seconds: impl Iterator<Item = &'a Second>) {
        let mut sums: Vec<(Box<str>, u64)> = Vec::new();
        let mut count = 0_u64;
        for Second { sample, names, .. } in seconds {
            count += 1;
            for (index, calls) in sample.dependencies.iter().enumerate() {
                let name = names.dependency(index);
                match sums.iter_mut().find(|(known, _)| **known == *name) {
                    Some((_, sum)) => *sum = sum.saturating_add(calls.attempts),
                    None => sums.push((name.into(), calls.attempts)),
                }
            }
        }
        for (name, sum) in sums.into_iter().take(NAMES_MAX) {
            if let Some(dependency) = named::slot(&mut self.dependencies, &name, NAMES_MAX) {
                dependency.before_per_1000_s = Some(sum.saturating_mul(1000) / count.max(1));
            }
        }
    }

    /// Notes every dependency that stands otherwise than before. One that is heard of for the first time stood well.
    pub(super) fn note_states(&mut self, second: &Second) {
        for (index, calls) in second.sample.dependencies.iter().enumerate() {
            let name = second.names.dependency(index);
            let known = self.dependencies.iter_mut().find(|dependency| *dependency.name == *name);
            // One that has no place of its own shares its place with others, and has no state there.
            let Some(dependency) = known.filter(|_| name != super::sample::OTHER) else { continue };
            if dependency.value.state == calls.state {
                continue;
            }
            dependency.value.state = calls.state;
            match calls.state {
                DependencyState::Ramp { percent } => self.timeline.note_ramp(second.at, name, percent),
                state => self.timeline.note(second.at, What::Dependency { name: name.into(), state }),
            }
        }
    }

    /// Notes what is not green in this second, and what that means for the times.
    pub(super) fn note_signals(&mut self, at: Moment, signals: Signals) {
        for signal in signals.iter() {
            named::add(&mut self.signals, signal.token(), TOKENS_MAX, &1);
        }
        if signals.is_green() {
            self.first_green.get_or_insert(at);
        }
        let is_full = !signals.any_of(Signals::BREAKERS.with(Signal::Quality));
        self.full = is_full.then(|| self.full.unwrap_or(at));
    }

    /// The same within its bounds: it comes from a file.
    pub(super) fn bounded(mut self) -> Self {
        self.functions = named::bounded(&self.functions, NAMES_MAX);
        self.dependencies = named::bounded(&self.dependencies, NAMES_MAX);
        self.reasons = named::bounded(&self.reasons, TOKENS_MAX);
        self.signals = named::bounded(&self.signals, TOKENS_MAX);
        self.sources = named::bounded(&self.sources, TOKENS_MAX);
        self.course = self.course.bounded();
        self.timeline = self.timeline.bounded();
        self
    }
}

impl DependencyRecord {
    fn count(&mut self, calls: &DependencySample) {
        self.requests = self.requests.saturating_add(calls.requests);
        self.attempts = self.attempts.saturating_add(calls.attempts);
        for (kind, count) in FailureKind::TOKENS.iter().zip(&calls.failures).filter(|&(_, &count)| count > 0)
        {
            named::add(&mut self.failures, kind, TOKENS_MAX, count);
        }
    }
}

impl Merge for DependencyRecord {
    fn merge(&mut self, other: &Self) {
        self.state = other.state;
        self.requests = self.requests.saturating_add(other.requests);
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.before_per_1000_s = self.before_per_1000_s.or(other.before_per_1000_s);
        for named in &other.failures {
            named::add(&mut self.failures, &named.name, TOKENS_MAX, &named.value);
        }
    }
}
