//! What clients of one side got, counted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::judge::{Judged, Verdict};

/// How long single answers are remembered.
pub(super) const REMEMBERED: Duration = Duration::from_secs(60);
/// Most of them, for each kind.
const ANSWERS_MAX: usize = 4000;

/// One of the two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Plain,
    Backstop,
}

/// A kind of request: a row of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Products,
    Reviews,
    Recommendations,
    Account,
    Payments,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Products, Self::Reviews, Self::Recommendations, Self::Account, Self::Payments];

    pub(super) fn slug(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::Reviews => "reviews",
            Self::Recommendations => "recommendations",
            Self::Account => "account",
            Self::Payments => "payments",
        }
    }
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    pub(super) at: Instant,
    pub(super) judged: Judged,
    pub(super) took: Duration,
}

/// Answers that had one status, or none, in numbers that never shrink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) answers: u64,
    pub(super) status_200: u64,
    pub(super) normal: u64,
}

impl Counted {
    pub(super) fn add(&mut self, judged: &Judged) {
        self.answers += 1;
        self.status_200 += u64::from(judged.status.is_some_and(|status| (200..300).contains(&status)));
        self.normal += u64::from(judged.verdict == Verdict::Normal);
    }
}

/// Everything that clients of one side got.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Book>);

#[derive(Debug, Default)]
pub(super) struct Book {
    kinds: [VecDeque<Got>; Kind::ALL.len()],
    pub(super) in_all: Counted,
}

impl Record {
    pub(super) fn count(&self, kind: Kind, got: Got) {
        let mut book = self.lock();
        book.in_all.add(&got.judged);
        let Some(answers) = book.kinds.get_mut(kind as usize) else { return };
        answers.push_back(got);
        let is_old = |one: &Got| got.at.saturating_duration_since(one.at) > REMEMBERED;
        while answers.len() > ANSWERS_MAX || answers.front().is_some_and(is_old) {
            answers.pop_front();
        }
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Book) -> T) -> T {
        look(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// The answers of a kind, the oldest first.
    pub(super) fn of(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Got> {
        self.kinds.get(kind as usize).into_iter().flatten()
    }

    /// All that came within a time before now.
    pub(super) fn within(&self, now: Instant, time: Duration) -> impl Iterator<Item = &Got> {
        let is_within = move |got: &&Got| now.saturating_duration_since(got.at) <= time;
        self.kinds.iter().flat_map(move |kind| kind.iter().rev().take_while(is_within))
    }
}
