//! What really came of requests that were only observed, beside what would have come.

use std::sync::atomic::{AtomicU64, Ordering};

use backstop_engine::outcome::Outcome;
use backstop_engine::policy::RouteId;
use http::StatusCode;

/// What the client really got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Really {
    /// An answer of the dependency below 500.
    Answered,
    /// One from 500 on.
    ServerError,
    /// One that broke off.
    Cut,
    /// No answer of the dependency.
    Nothing,
    /// The client left before.
    Left,
}

impl Really {
    /// Every one, in the order of the counters.
    pub(crate) const ALL: [Self; 5] =
        [Self::Answered, Self::ServerError, Self::Cut, Self::Nothing, Self::Left];

    pub(super) fn of(status: StatusCode) -> Self {
        if status.is_server_error() { Self::ServerError } else { Self::Answered }
    }

    /// Its name in metrics.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ServerError => "server_error",
            Self::Cut => "cut",
            Self::Nothing => "nothing",
            Self::Left => "left",
        }
    }
}

const OUTCOMES: usize = Outcome::ALL.len();
type OfRoute = [[AtomicU64; Really::ALL.len()]; OUTCOMES];

/// One counter for each route, outcome and what really came.
#[derive(Debug)]
pub(crate) struct Counts(Box<[OfRoute]>);

impl Counts {
    pub(crate) fn new(routes: usize) -> Self {
        Self((0..routes).map(|_| OfRoute::default()).collect())
    }

    pub(super) fn record(&self, route: RouteId, would: Outcome, really: Really) {
        if let Some(counter) = self.counter(route, would, really) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests of a route would have come to this and really came to that.
    pub(crate) fn count(&self, route: RouteId, would: Outcome, really: Really) -> u64 {
        self.counter(route, would, really).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    fn counter(&self, route: RouteId, would: Outcome, really: Really) -> Option<&AtomicU64> {
        let position = Outcome::ALL.iter().position(|outcome| *outcome == would)?;
        self.0.get(usize::from(route.0))?.get(position)?.get(really as usize)
    }
}
