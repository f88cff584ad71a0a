//! The record of what reached the upstreams, or would have.

use std::{
    hash::{DefaultHasher, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::site::Clock;

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// Not yet.
    #[default]
    UnderWay,
    /// With a whole answer.
    Whole,
    /// Without one, or with a part of one.
    Broken,
    /// Whoever called left first.
    CallerLeft,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Which of the upstreams.
    pub upstream: usize,
    /// The number in [`MARKER`](super::MARKER), if it has one.
    pub marker: Option<u64>,
    /// The method; empty where no HTTP is spoken.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// When its head was there, from the beginning.
    pub began: Duration,
    /// When it ended.
    pub finished: Duration,
    /// How it ended.
    pub ended: Ended,
    /// The fault that it met.
    pub fault: Option<&'static str>,
    /// The status that was answered, by whomever.
    pub status: Option<u16>,
    /// A hash of the whole body that was answered.
    pub content: Option<u64>,
    /// How old the answer said it was.
    pub age: Duration,
    /// Whether it was passed on.
    pub passed_on: bool,
}

/// The hash by which bodies are compared.
#[must_use]
pub fn content_hash(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    hasher.finish()
}

#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Vec<Call>>);

impl Journal {
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().clone()
    }

    /// Writes down that a call began. It ends with what is returned.
    pub(crate) fn begin(self: &Arc<Self>, call: Call, clock: &Clock) -> Entry {
        let mut calls = self.lock();
        calls.push(call);
        let index = calls.len() - 1;
        Entry { journal: Arc::clone(self), clock: clock.clone(), index, ended: Ended::Broken }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    journal: Arc<Journal>,
    clock: Clock,
    index: usize,
    ended: Ended,
}

impl Entry {
    pub(crate) fn note(&self, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.journal.lock().get_mut(self.index) {
            change(call);
        }
    }

    pub(crate) fn ends(mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let (now, ended) = (self.clock.elapsed(), self.ended);
        self.note(|call| {
            call.finished = now;
            call.ended = ended;
        });
    }
}
