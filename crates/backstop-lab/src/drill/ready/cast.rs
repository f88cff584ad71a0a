//! Who takes part in a ready drill: the routes that it concerns, with requests for each.

use std::time::Duration;

use crate::drill::{Ask, Expect, Facts, RouteFacts, Samples, Scenario, Selector, expect::Kind};
use crate::proxy::{Fault, Window, Writes};

use super::WARM;

/// A policy, what may be asked of it, and who was left out.
pub(super) struct Cast<'a> {
    pub(super) facts: &'a Facts,
    pub(super) samples: &'a Samples,
    pub(super) sandbox: bool,
    pub(super) skipped: Vec<(String, String)>,
}

/// A route that takes part, and its requests by their place in the scenario.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) route: usize,
    pub(super) asks: Vec<usize>,
    pub(super) facts: RouteFacts,
}

impl<'a> Cast<'a> {
    pub(super) const fn new(facts: &'a Facts, samples: &'a Samples, sandbox: bool) -> Self {
        Self { facts, samples, sandbox, skipped: Vec::new() }
    }

    /// Leaves a route out, and says why.
    pub(super) fn skip(&mut self, route: &RouteFacts, why: impl Into<String>) {
        self.skipped.push((route.name.to_string(), why.into()));
    }

    /// The routes that a drill of reads concerns: `why` says why it does not.
    pub(super) fn readers(
        &mut self,
        scenario: &mut Scenario,
        why: impl Fn(&RouteFacts) -> Option<&'static str>,
    ) -> Vec<Part> {
        let reads = |method: &str| !Writes::is_write(method) && method != "OPTIONS";
        self.parts(scenario, reads, |route| match route.class {
            "effect" => Some("it has effects"),
            "composed" => Some("its parts are rehearsed by themselves"),
            _ => why(route),
        })
    }

    /// The routes that a drill concerns, asked by these methods.
    pub(super) fn parts(
        &mut self,
        scenario: &mut Scenario,
        methods: fn(&str) -> bool,
        why: impl Fn(&RouteFacts) -> Option<&'static str>,
    ) -> Vec<Part> {
        let mut parts = Vec::new();
        for (index, route) in self.facts.routes().iter().enumerate() {
            if let Some(why) = why(route) {
                self.skip(route, why);
                continue;
            }
            let asks = self.samples.asks(self.facts, index, methods);
            if asks.is_empty() {
                self.skip(route, "nothing that it is asked for is of this kind");
                continue;
            }
            parts.push(Part { route: index, asks: scenario.ask(asks), facts: route.clone() });
        }
        parts
    }

    /// The further requests of a route that nobody has asked yet: the same with a query of their own.
    pub(super) fn strangers(
        &self,
        scenario: &mut Scenario,
        part: &Part,
        name: &str,
        count: usize,
    ) -> Vec<usize> {
        let first: Vec<Ask> = part.asks.iter().filter_map(|ask| scenario.asks.get(*ask)).cloned().collect();
        let stranger = |(number, ask): (usize, &Ask)| {
            let joint = if ask.target.contains('?') { '&' } else { '?' };
            let target = format!("{}{joint}{name}={number}", ask.target);
            let body = ask.body.clone();
            Ask { body, ..Ask::new(self.facts, ask.route, &ask.method, &target, ask.fields.clone()) }
        };
        let asks = first.iter().cycle().take(count).enumerate().map(stranger).collect();
        scenario.ask(asks)
    }
}

/// Requests per second of one route, such that its limits are far away.
pub(super) fn rate(part: &Part, total: Duration) -> f64 {
    let deadline = part.facts.deadline.as_secs_f64().max(0.05);
    let bearable = f64::from(part.facts.in_flight) / deadline / 4.0;
    // A long drill asks less often.
    let patient = 6000.0 / total.as_secs_f64().max(1.0);
    let lively = 8.0 * part.asks.len().clamp(1, 4) as f64;
    lively.min(bearable).min(patient).max(1.0)
}

/// The dependencies that these routes ask, alternatives and caches included if wanted.
pub(super) fn upstreams(parts: &[Part], of: impl Fn(&RouteFacts) -> Vec<usize>) -> Vec<usize> {
    let mut all: Vec<usize> = parts.iter().flat_map(|part| of(&part.facts)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Everything that a route may ask.
pub(super) fn everything(route: &RouteFacts) -> Vec<usize> {
    route.asks().collect()
}

/// What a route asks first.
pub(super) fn first(route: &RouteFacts) -> Vec<usize> {
    route.dependency.into_iter().collect()
}

/// All of these fail so.
pub(super) fn fail(scenario: &mut Scenario, upstreams: &[usize], fault: Fault, from: Duration, to: Duration) {
    scenario.windows.extend(upstreams.iter().map(|upstream| Window::new(*upstream, fault, from, to)));
}

/// Before anything fails, answers are normal: else nothing that follows would show anything.
pub(super) fn healthy(scenario: &mut Scenario, parts: &[Part], to: Duration) {
    for part in parts {
        let of = Selector::within(&[part.route], Duration::ZERO, to);
        let promise = format!("`{}` answers as usual before anything fails", part.facts.name);
        let promise = format!(
            "{promise}; if its sample is unknown, `--sample` names another, and `--header` a credential"
        );
        scenario.expects.push(mostly(&promise, of, Kind::outcome("normal")));
        // A page that says "not found" is normal, and nothing can be kept of it.
        if part.facts.max_age.is_some() {
            let of = Selector::within(&[part.route], Duration::ZERO, to);
            scenario.expects.push(mostly(&promise, of, Kind::status(&[200, 203, 204, 206])));
        }
    }
}

/// How long before the first fault everything is read once more.
pub(super) const FRESH: Duration = Duration::from_millis(80);

/// Four of five: a single answer that was late on a busy machine says nothing of what is rehearsed.
fn mostly(promise: &str, of: Selector, kind: Kind) -> Expect {
    Expect::Share {
        name: "healthy".to_owned(),
        promise: promise.to_owned(),
        of,
        kind,
        at_least: 800,
        at_most: 1000,
    }
}

/// Asks everybody until this moment, so that copies are there.
pub(super) fn warm(scenario: &mut Scenario, parts: &[Part]) {
    for part in parts {
        scenario.send(&part.asks, rate(part, WARM), Duration::ZERO, WARM - FRESH * 2);
        if part.facts.max_age.is_some() {
            // Once more each, so that it is known how old copies are.
            let from = WARM - FRESH;
            let spread = FRESH.as_secs_f64() / 2.0;
            scenario.send(&part.asks, part.asks.len() as f64 / spread, from, from + FRESH / 2);
        }
    }
    healthy(scenario, parts, WARM);
}

/// The longest of their deadlines.
pub(super) fn longest_deadline(parts: &[Part]) -> Duration {
    parts.iter().map(|part| part.facts.deadline).max().unwrap_or_default()
}
