//! Whether an alternative would hold, found out while nobody needs it.
//!
//! A share of the reads that go well is drawn ([`ExerciseRules`](crate::policy::ExerciseRules)); beside each of them what
//! stands behind its route is tried as it would be in an outage, and what it brings is thrown away:
//! - The copy is loaded, from disk if it lies there, and judged
//! - What is prepared is looked up for this request
//! - The other dependency is called, where the operator has written that it may be
//!
//! The request is decided before anything is drawn, and what is tried neither waits for it nor is waited for. It takes no
//! place that a request could need: with it, half of every limit that it touches is still free, or it is not tried
//! ([`Exercise::draw`]). It is no call that a breaker, a retry's budget or an incident is told of, and no copy that it
//! loads is counted as served or as coverage.
//!
//! What came of it is one word ([`Came`]), with one of four results. `good` and `failed` tell whether the alternative works.
//! `uncovered` is a copy that is missing or too old, which is the coverage's matter and says nothing of whether copies work.
//! `skipped` was not tried. After three in a row that failed an alternative is *broken*, and after three that were good it is
//! whole again: what turns is told once.

mod draw;

use std::sync::Arc;

use crate::admission::Limit;
use crate::alternative::NoAlternative;
use crate::failure::{Failure, FailureKind};
use crate::outcome::Source;
use crate::policy::{Otherwise, Route, RouteClass};
use crate::snapshot::CopyRefusal;
use crate::sync::{AtomicU64, Ordering};
use crate::words::joined;

pub use draw::{Drawn, Exercise};

/// So many in a row turn it.
const IN_A_ROW: u64 = 3;
/// Exercises of one route at once.
const AT_ONCE: u32 = 4;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tried {
    /// The copy of one's own.
    Copy,
    /// What was prepared, or leaves the part out.
    Fixed,
    /// The other dependency.
    Call,
}

impl Tried {
    /// All of it, in declaration order.
    pub const ALL: [Tried; 3] = [Tried::Copy, Tried::Fixed, Tried::Call];

    /// What is tried on a route, were a request of it drawn.
    pub fn of(route: &Route) -> impl Iterator<Item = Self> + '_ {
        let is_drawn = route.exercise.share_per_mille > 0;
        Self::ALL.into_iter().filter(move |tried| is_drawn && tried.is_of(route))
    }

    fn is_of(self, route: &Route) -> bool {
        let reads = matches!(
            route.class,
            RouteClass::PublicRead(_) | RouteClass::CachedRead(_) | RouteClass::Optional(_)
        );
        match self {
            Tried::Copy => route.class.keeps_copies(),
            Tried::Fixed => matches!(route.class, RouteClass::Optional(_)),
            Tried::Call => reads && route.exercise.calls && route.alternative.is_some(),
        }
    }

    /// Where an answer would have come from.
    pub fn source(self, route: &Route) -> Source {
        match (self, &route.class) {
            (Tried::Copy, _) => Source::Snapshot,
            (Tried::Fixed, RouteClass::Optional(optional)) => match optional.otherwise {
                Otherwise::Omit(_) => Source::Omitted,
                Otherwise::Prepared(_) => Source::Prepared,
            },
            (Tried::Fixed, _) => Source::Prepared,
            (Tried::Call, _) => Source::Alternative,
        }
    }
}

/// What came of trying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It would have answered.
    Good,
    /// The copy would not have been served.
    Copy(CopyRefusal),
    /// The other dependency failed.
    Failed(Failure),
    /// The other dependency would not have been asked.
    NotAsked(NoAlternative),
    /// What is wrong with what came.
    Wrong(Wrong),
    /// It was not tried.
    Skipped(Skipped),
}

/// What is wrong with what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It breaks the route's `correct` rules.
    Incorrect,
    /// A server error that is no declared failure.
    ServerError,
    /// Another status than success, although the route's own dependency had an answer.
    OtherStatus,
    /// What was prepared is not what its media type says, or is not there.
    Malformed,
}

/// Why something was not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// Less than half of a limit would be left.
    Busy,
    /// The other dependency's breaker is not closed, or it comes back from an outage.
    Breaker,
    /// The route's own dependency does.
    Recovering,
    /// An incident is under way.
    Incident,
    /// As many are under way on this route as may be.
    UnderWay,
    /// The copy was replaced while it was read.
    Replaced,
}

/// What an exercise says of an alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Good,
    /// It does not.
    Failed,
    /// There is nothing for this request.
    Uncovered,
    /// Nothing.
    Skipped,
}

impl Verdict {
    /// The verdict as one word.
    pub const fn token(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Failed => "failed",
            Verdict::Uncovered => "uncovered",
            Verdict::Skipped => "skipped",
        }
    }
}

const COPIES: usize = 1;
const FAILURES: usize = COPIES + 6;
const NOT_ASKED: usize = FAILURES + FailureKind::TOKENS.len();
const WRONG: usize = NOT_ASKED + NoAlternative::TOKENS.len();
const SKIPPED: usize = WRONG + 4;
const WORDS: usize = SKIPPED + 6;

impl Came {
    /// Every word, in the order of `Came::index`.
    pub const TOKENS: [&'static str; WORDS] = joined(&[
        &["none"],
        &["missing", "age", "future", "forbidden", "clock", "unreadable"],
        &FailureKind::TOKENS,
        &NoAlternative::TOKENS,
        &["incorrect", "server_error", "other_status", "malformed"],
        &["busy", "breaker", "recovering", "incident", "under_way", "replaced"],
    ]);

    const fn index(self) -> usize {
        match self {
            Came::Good => 0,
            Came::Copy(refused) => {
                COPIES
                    + match refused {
                        CopyRefusal::Missing => 0,
                        CopyRefusal::TooOld => 1,
                        CopyRefusal::FromFuture => 2,
                        CopyRefusal::ForbiddenByOrigin => 3,
                        CopyRefusal::ClockUntrusted => 4,
                        CopyRefusal::Unreadable => 5,
                    }
            }
            Came::Failed(failure) => FAILURES + failure.kind.index(),
            Came::NotAsked(why) => NOT_ASKED + why as usize,
            Came::Wrong(wrong) => WRONG + wrong as usize,
            Came::Skipped(why) => SKIPPED + why as usize,
        }
    }

    /// Why, as one word.
    pub fn token(self) -> &'static str {
        Self::TOKENS.get(self.index()).copied().unwrap_or("none")
    }

    /// What it says of the alternative.
    pub const fn verdict(self) -> Verdict {
        verdict_at(self.index())
    }
}

/// What the word at this place says.
const fn verdict_at(index: usize) -> Verdict {
    const TOO_OLD: usize = COPIES + 1;
    const EVIDENCE: usize = NOT_ASKED + NoAlternative::Unverified as usize;
    const USED_UP: usize = NOT_ASKED + NoAlternative::Concurrency as usize;
    match index {
        0 => Verdict::Good,
        COPIES..=TOO_OLD => Verdict::Uncovered,
        // What is in trouble now, or used up now, says nothing of what it would be in an outage.
        NOT_ASKED..EVIDENCE | USED_UP..WRONG | SKIPPED.. => Verdict::Skipped,
        _ => Verdict::Failed,
    }
}

/// An alternative turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned {
    /// Which.
    pub tried: Tried,
    /// Whether it is broken now.
    pub is_broken: bool,
    /// Why, as one word: of what it failed with last.
    pub reason: &'static str,
}

/// One counter that is not zero, or the one of what is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExerciseCount {
    /// What it says.
    pub verdict: Verdict,
    /// Why, as a word of [`Came::TOKENS`].
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

/// What came of exercises on one route.
#[derive(Debug)]
pub struct Exercises {
    at_once: Arc<Limit>,
    standings: [Standing; Tried::ALL.len()],
}

impl Default for Exercises {
    fn default() -> Self {
        Self { at_once: Arc::new(Limit::new(AT_ONCE)), standings: std::array::from_fn(|_| Standing::new()) }
    }
}

impl Exercises {
    /// Counts one. Whether the alternative turned with it.
    pub fn record(&self, tried: Tried, came: Came) -> Option<Turned> {
        let standing = self.standings.get(tried as usize)?;
        let is_broken = standing.record(came)?;
        Some(Turned { tried, is_broken, reason: came.token() })
    }

    /// Whether an alternative is broken, as far as is known.
    pub fn is_broken(&self, tried: Tried) -> bool {
        self.standings.get(tried as usize).is_some_and(Standing::is_broken)
    }

    /// What was counted of an alternative.
    pub fn counts(&self, tried: Tried) -> impl Iterator<Item = ExerciseCount> + '_ {
        let counters = self.standings.get(tried as usize).into_iter().flat_map(|standing| &standing.counts);
        counters.zip(Came::TOKENS).enumerate().filter_map(|(index, (counter, reason))| {
            let count = counter.load(Ordering::Relaxed);
            let verdict = verdict_at(index);
            (count > 0 || index == 0).then_some(ExerciseCount { verdict, reason, count })
        })
    }
}

/// One alternative.
#[derive(Debug)]
struct Standing {
    /// Whether it is broken in the lowest bit; above it, how many in a row have said otherwise.
    word: AtomicU64,
    counts: [AtomicU64; WORDS],
}

impl Standing {
    fn new() -> Self {
        Self { word: AtomicU64::new(0), counts: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn is_broken(&self) -> bool {
        self.word.load(Ordering::Relaxed) & 1 == 1
    }

    /// Whether it is broken now, if it has turned.
    fn record(&self, came: Came) -> Option<bool> {
        if let Some(counter) = self.counts.get(came.index()) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let says_broken = match came.verdict() {
            Verdict::Good => false,
            Verdict::Failed => true,
            Verdict::Uncovered | Verdict::Skipped => return None,
        };
        let next = |word: u64| {
            let (is_broken, streak) = (word & 1 == 1, word >> 1);
            if says_broken == is_broken {
                (word & 1, None)
            } else if streak + 1 >= IN_A_ROW {
                (u64::from(says_broken), Some(says_broken))
            } else {
                ((streak + 1) << 1 | u64::from(is_broken), None)
            }
        };
        let mut turned = None;
        let _always_updates = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let (word, has_turned) = next(word);
            turned = has_turned;
            Some(word)
        });
        turned
    }
}

#[cfg(test)]
#[path = "exercise_tests.rs"]
mod tests;
