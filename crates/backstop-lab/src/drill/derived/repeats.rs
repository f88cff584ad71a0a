//! How often a request reaches a dependency.

use std::collections::BTreeMap;

use crate::drill::{Finding, Sample, View};

/// A request that may write reaches its dependency at most once.
pub(super) fn writes_once(view: &View<'_>) -> Finding {
    let mut finding =
        Finding::new("writes-once", "a request that may write reaches a dependency at most once");
    for sample in view.samples {
        let Some(ask) = view.ask(sample).filter(|ask| ask.is_write()) else { continue };
        let Some(route) = view.route(sample) else { continue };
        let writes = view.calls_of(sample).filter(|call| call.method == ask.method).count();
        finding.hold(writes <= 1, || {
            format!("`{}`: {} {} came {writes} times: {}", route.name, ask.method, ask.target, sample.words())
        });
    }
    finding
}

/// A retry budget begins with so much, and each success adds a tenth.
const BUDGET_AT_FIRST: f64 = 3.0;
const BUDGET_PER_SUCCESS: f64 = 0.1;

/// A read is repeated as often as its route says, and all of them together only as far as successes pay for it.
pub(super) fn retries(view: &View<'_>) -> Finding {
    let promise =
        "a read reaches a dependency as often as `attempts` says, and retries stay within their budget";
    let mut finding = Finding::new("retries", promise);
    let mut repeated: BTreeMap<usize, u64> = BTreeMap::new();
    for sample in view.samples {
        let is_read = view.ask(sample).is_some_and(|ask| !ask.is_write());
        let Some(route) = view.route(sample).filter(|route| is_read && route.class != "composed") else {
            continue;
        };
        for upstream in route.dependency.into_iter().chain(route.alternative) {
            let calls = calls_to(view, sample, upstream);
            if calls == 0 {
                continue;
            }
            finding.hold(calls <= u64::from(route.attempts), || {
                format!("`{}`: {calls} calls of {}: {}", route.name, route.attempts, sample.words())
            });
            *repeated.entry(upstream).or_default() += calls.saturating_sub(1);
        }
    }
    for (upstream, retries) in repeated.into_iter().filter(|(_, retries)| *retries > 0) {
        let successes =
            view.calls_to(upstream).filter(|call| call.status.is_some_and(|status| status < 500)).count();
        let budget = BUDGET_AT_FIRST + BUDGET_PER_SUCCESS * successes as f64;
        finding.hold(retries as f64 <= budget, || {
            let name = view.facts.upstream_name(upstream);
            format!("`{name}` got {retries} retries after {successes} successes")
        });
    }
    finding
}

fn calls_to(view: &View<'_>, sample: &Sample, upstream: usize) -> u64 {
    view.calls_of(sample).filter(|call| call.upstream == upstream).count() as u64
}
