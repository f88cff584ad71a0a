//! What is played: who asks what when, what fails when, and what has to hold.

use std::time::Duration;

use crate::proxy::Window;

use super::{Ask, Expect, Facts};

/// One drill, ready to be run.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it rehearses, in a sentence.
    pub about: String,
    /// The different requests.
    pub asks: Vec<Ask>,
    /// When each is sent, in any order.
    pub sendings: Vec<Sending>,
    /// What fails.
    pub windows: Vec<Window>,
    /// How long it lasts: until the last request is sent.
    pub duration: Duration,
    /// What has to hold beside the policy's own promises.
    pub expects: Vec<Expect>,
    /// Routes that it does not concern, with why.
    pub skipped: Vec<(String, String)>,
    /// Whether the gateway is stopped in the end and started anew on the same store with a clock that is an hour behind, and
    /// these requests are sent to it.
    pub restart: Vec<usize>,
    /// Whether writes reach the dependencies.
    pub sandbox: bool,
    /// Whether an expectation that had nothing to look at has not held: it is an operator's own, and a slip in it must not look like
    /// a promise that was kept.
    pub must_look: bool,
}

/// One request that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// When, from the beginning.
    pub at: Duration,
    /// Which of the requests.
    pub ask: usize,
}

/// Why a drill has nothing to rehearse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing to rehearse: {}", reasons(.skipped))]
pub struct NoDrill {
    /// Every route, with why it is not concerned.
    pub skipped: Vec<(String, String)>,
}

fn reasons(skipped: &[(String, String)]) -> String {
    let mut words: Vec<&str> = skipped.iter().map(|(_, why)| why.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    words.join("; ")
}

/// Most requests of one drill.
pub(crate) const SENDINGS_MAX: usize = 200_000;

impl Scenario {
    /// A drill that does nothing yet.
    #[must_use]
    pub fn new(name: &str, about: &str) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), ..Self::default() }
    }

    /// Adds requests and gives their numbers.
    pub fn ask(&mut self, asks: Vec<Ask>) -> Vec<usize> {
        let first = self.asks.len();
        self.asks.extend(asks);
        (first..self.asks.len()).collect()
    }

    /// Sends these requests in turns, so many per second in all, from one moment until before another.
    pub fn send(&mut self, asks: &[usize], per_second: f64, from: Duration, to: Duration) {
        let count = (per_second * to.saturating_sub(from).as_secs_f64()).ceil();
        let count = if count.is_finite() { count as usize } else { 0 };
        let room = SENDINGS_MAX.saturating_sub(self.sendings.len());
        let turns = asks.iter().cycle().enumerate().take(count.min(room));
        let at = |number: usize| from + Duration::from_secs_f64(number as f64 / per_second);
        self.sendings.extend(turns.map(|(number, ask)| Sending { at: at(number), ask: *ask }));
    }

    /// Sends so many of these requests at one moment.
    pub fn burst(&mut self, asks: &[usize], count: usize, at: Duration) {
        let room = SENDINGS_MAX.saturating_sub(self.sendings.len());
        let turns = asks.iter().cycle().take(count.min(room));
        self.sendings.extend(turns.map(|ask| Sending { at, ask: *ask }));
    }

    /// The moment at which the last fault is over; `None` without faults.
    #[must_use]
    pub fn healed(&self) -> Option<Duration> {
        self.windows.iter().map(|window| window.to).max()
    }

    /// The routes that are asked for.
    #[must_use]
    pub fn routes(&self) -> Vec<usize> {
        let mut routes: Vec<usize> = self.asks.iter().map(|ask| ask.route).collect();
        routes.sort_unstable();
        routes.dedup();
        routes
    }

    /// Whether it would call a route with effects though it is no sandbox.
    #[must_use]
    pub fn forbidden_effect<'a>(&self, facts: &'a Facts) -> Option<&'a str> {
        let routes = self.asks.iter().filter_map(|ask| facts.routes().get(ask.route));
        let mut effects = routes.filter(|route| route.has_effects() && !self.sandbox);
        effects.next().map(|route| &*route.name)
    }
}
