//! Copies in a map, and their age.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

use super::Heard;

#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) heard: Heard,
    pub(crate) begun: Instant,
    pub(crate) age: Duration,
}

impl Kept {
    /// How old it is by a clock that is so far behind, and whether it seems to come from the future.
    pub(crate) fn age_at(&self, now: Instant, behind: Duration, by_date: bool) -> (Duration, bool) {
        if self.heard.date.is_some_and(|date| by_date && date > SystemTime::now()) {
            // What lies ahead is no time old.
            return (Duration::ZERO, false);
        }
        let age = now - self.begun + self.age;
        (age.saturating_sub(behind), age < behind)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<HashMap<String, Kept>>);

impl Copies {
    pub(crate) fn put(&self, key: String, kept: Kept) {
        self.0.lock().unwrap().insert(key, kept);
    }

    pub(crate) fn get(&self, key: &str) -> Option<Kept> {
        self.0.lock().unwrap().get(key).cloned()
    }
}
