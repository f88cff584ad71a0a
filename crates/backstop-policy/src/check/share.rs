//! How many calls of a dependency a route makes at once, and how long one may take.
//!
//! Those of most routes belong to a request: they take its place and end with its deadline. What a `cached_read` reads for
//! everybody belongs to nobody: the places and the time are those of its fill.

use std::ops::Range;
use std::time::Duration;

use backstop_engine::deadline::Deadline;
use backstop_engine::retry::Owner;
use backstop_engine::time::Mono;

use crate::check::view::DependencyView;
use crate::check::{RouteView, Verified, View};
use crate::default;

/// Of the time for calls, the first of two takes at most so many hundredths.
const FIRST_OF_TWO: u32 = 60;

/// A bound on a route's calls.
#[derive(Clone, Debug)]
pub(crate) struct Bound<T> {
    pub(crate) value: T,
    /// Where it is written, or what it follows from.
    pub(crate) bytes: Range<usize>,
    /// Whether a fill has it, not a request.
    pub(crate) is_of_fill: bool,
}

impl RouteView<'_> {
    /// What ends its calls at last, whatever is reserved of it.
    pub(crate) fn last_end(&self) -> Option<Bound<Duration>> {
        let deadline = self.common().deadline.as_ref()?;
        let Some(cached) = self.cached_read() else {
            return Some(Bound { value: deadline.value.0, bytes: deadline.bytes.clone(), is_of_fill: false });
        };
        let fill = cached.fill.as_ref().and_then(|fill| fill.value.deadline.as_ref());
        let value = fill.map_or(default::FILL_DEADLINE.max(deadline.value.0), |time| time.value.0);
        Some(Bound { value, bytes: fill.unwrap_or(deadline).bytes.clone(), is_of_fill: true })
    }

    /// Who repeats its calls.
    pub(crate) fn retry_owner(&self) -> Owner {
        let owner = self.retry().and_then(|retry| retry.value.owner.as_ref());
        owner.map_or(Owner::Backstop, |owner| owner.value.0)
    }

    /// How often Backstop sends a call, from 1.
    pub(crate) fn attempts(&self) -> u32 {
        let Some(retry) = self.retry() else { return 1 };
        let by_default = if self.retry_owner() == Owner::Backstop { default::ATTEMPTS } else { 1 };
        retry.value.attempts.as_ref().map_or(by_default, |attempts| attempts.value.0)
    }

    /// Whether Backstop repeats its calls.
    pub(crate) fn retries(&self) -> bool {
        self.retry_owner() == Owner::Backstop && self.attempts() > 1
    }

    /// The time for all calls of dependencies, if the route has a deadline.
    pub(crate) fn call_time(&self) -> Option<Duration> {
        let end = self.last_end()?;
        if end.is_of_fill {
            return Some(end.value);
        }
        let shares = Deadline::new(Mono::from_ns(0), end.value, !self.may_write());
        Some(Duration::from_nanos(shares.attempt_end().as_ns()))
    }

    /// The time for the first call: less where another may follow, here or at a dependency that may stand in.
    pub(crate) fn first_call_time(&self, verified: &Verified) -> Option<Duration> {
        let all = self.call_time()?;
        let is_first_of_two = self.retries() || verified.may_be_asked(*self);
        Some(if is_first_of_two { all / 100 * FIRST_OF_TWO } else { all })
    }

    /// The time for a call of this dependency, which the route asks first or as its alternative.
    pub(crate) fn time_at(&self, dependency: DependencyView<'_>, verified: &Verified) -> Option<Duration> {
        let first = self.common().dependency.as_ref();
        if first.is_none_or(|first| first.value == dependency.name.value) {
            return self.first_call_time(verified);
        }
        // The first one may have failed at once.
        self.call_time()
    }
}

impl<'a> View<'a> {
    /// How many calls the route makes at once, if it has a limit.
    pub(crate) fn calls_at_once(&self, route: RouteView<'a>) -> Option<Bound<u32>> {
        let in_flight = route.common().in_flight.as_ref()?;
        let Some(cached) = route.cached_read() else {
            return Some(Bound {
                value: in_flight.value.0,
                bytes: in_flight.bytes.clone(),
                is_of_fill: false,
            });
        };
        let written = cached.fill.as_ref().and_then(|fill| fill.value.concurrency.as_ref());
        Some(Bound {
            value: self.fill_budget(route).concurrency,
            bytes: written.map_or(route.entry.at.bytes.clone(), |count| count.bytes.clone()),
            is_of_fill: true,
        })
    }

    /// The routes that may ask this dependency, first or as an alternative that may be asked.
    pub(crate) fn may_ask(
        &self,
        dependency: DependencyView<'a>,
        verified: &Verified,
    ) -> impl Iterator<Item = RouteView<'a>> + Clone {
        self.callers(dependency).filter(move |route| {
            let first = route.common().dependency.as_ref();
            first.is_none_or(|first| first.value == dependency.name.value) || verified.may_be_asked(*route)
        })
    }

    /// From when on a call of this dependency counts as slow.
    pub(crate) fn slow(&self, dependency: DependencyView<'a>) -> Duration {
        let written = dependency.table.value.breaker.as_ref().and_then(|breaker| breaker.value.slow.as_ref());
        let deadlines = self.callers(dependency).filter_map(|route| route.common().deadline.as_ref());
        let shortest = deadlines.map(|deadline| deadline.value.0).min();
        let half = shortest.map(|shortest| shortest / 2);
        written.map(|slow| slow.value.0).or(half).unwrap_or(default::SLOW)
    }
}
