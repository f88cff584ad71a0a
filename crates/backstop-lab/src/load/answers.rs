//! What every answer of a load says of itself, counted, so that none is overlooked.
//!
//! Each request has exactly one name: `200 live` for an answer without a `Backstop` field, the status and the words of
//! the field where it has one (`200 fallback snapshot breaker_open`), and `no answer: reset_before_head` where there was
//! none. Whoever knows which names the policy allows asks for [all others](Answers::beyond).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Sample;

/// Most different names counted apart; any further one is `other`.
const NAMES_MAX: usize = 256;

/// Counts of answers by name. Filled by [`Plan::on_sample`](super::Plan::on_sample).
#[derive(Debug, Default)]
pub struct Answers(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    names: BTreeMap<String, u64>,
    oldest_s: i64,
}

impl Answers {
    /// Counts one request.
    pub fn count(&self, sample: &Sample) {
        let mut counts = self.counts();
        counts.oldest_s = counts.oldest_s.max(sample.age_s.unwrap_or(0));
        let name = name_of(sample);
        let is_known = counts.names.contains_key(&name) || counts.names.len() < NAMES_MAX;
        *counts.names.entry(if is_known { name } else { "other".to_owned() }).or_default() += 1;
    }

    /// How many requests had which name.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        self.counts().names.clone()
    }

    /// How many requests had this name.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.counts().names.get(name).copied().unwrap_or(0)
    }

    /// The names that are not among those allowed.
    #[must_use]
    pub fn beyond(&self, allowed: &[&str]) -> BTreeMap<String, u64> {
        let mut names = self.by_name();
        names.retain(|name, _| !allowed.contains(&name.as_str()));
        names
    }

    /// The greatest age that an answer told, in whole seconds; 0 if none told any.
    #[must_use]
    pub fn oldest_s(&self) -> i64 {
        self.counts().oldest_s
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(sample: &Sample) -> String {
    if let Some(failure) = sample.failure {
        return format!("no answer: {}", failure.name());
    }
    let mut name = sample.status.unwrap_or_default().to_string();
    let words = [sample.outcome.as_deref(), sample.source.as_deref(), sample.reason.as_deref()];
    for word in words.into_iter().flatten() {
        name.push(' ');
        name.push_str(word);
    }
    if sample.outcome.is_none() {
        name.push_str(" live");
    }
    if sample.right == Some(false) {
        name.push_str(" wrong");
    }
    name
}
