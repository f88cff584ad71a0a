//! How the load comes back once a dependency works again.

use std::time::Duration;

use crate::drill::{Finding, View, rates};
use crate::proxy::{Ended, Fault, Moment};

/// An outage of one dependency: everything up to its last fault.
struct Outage {
    upstream: usize,
    from: Duration,
    to: Duration,
    /// Calls per second before it, where that is known.
    usual: Option<f64>,
    /// Requests per second that would ask it afterwards.
    per_second: f64,
}

fn outages(view: &View<'_>) -> Vec<Outage> {
    let dependencies = view.facts.policy().dependencies.len();
    let end = view.samples.iter().filter(|sample| !sample.after_restart).map(|sample| sample.sent).max();
    let end = end.unwrap_or_default();
    let of = |upstream: usize| {
        let own = view.windows.iter().filter(|window| window.upstream == upstream);
        let from = own.clone().map(|window| window.from).min()?;
        let to = own.map(|window| window.to).max()?;
        let calls_before = view.calls_to(upstream).filter(|call| call.began < from).count() as u64;
        let usual = rates::usual(calls_before, from);
        let asks = |sample: &&crate::drill::Sample| {
            let route = view.route(sample);
            sample.sent >= to && route.is_some_and(|route| route.dependency == Some(upstream))
        };
        let after = view.samples.iter().filter(asks).count() as f64;
        let per_second = after / end.saturating_sub(to).as_secs_f64().max(0.001);
        Some(Outage { upstream, from, to, usual, per_second })
    };
    (0..dependencies).filter_map(of).collect()
}

/// Once everything works again, answers are normal again within what breaker and ramp need.
pub(super) fn recovered(view: &View<'_>) -> Finding {
    let promise = "after the last fault every answer is normal again, within what breaker and recovery need";
    let mut finding = Finding::new("recovered", promise);
    let outages = outages(view);
    let within = |outage: &Outage| {
        let rules = view.facts.policy().dependencies.get(outage.upstream)?;
        let length = outage.to.saturating_sub(outage.from);
        Some(outage.to + rates::back_within(rules, length, outage.usual, outage.per_second))
    };
    let Some(healed) = view.windows.iter().map(|window| window.to).max() else { return finding };
    let by = outages.iter().filter_map(within).max().unwrap_or(healed + Duration::from_secs(1));
    for sample in view.samples.iter().filter(|sample| sample.sent >= by && !sample.after_restart) {
        let Some(route) = view.route(sample) else { continue };
        finding.hold(sample.is_normal(), || {
            format!(
                "`{}`, {:?} after the last fault: {}",
                route.name,
                sample.sent.saturating_sub(healed),
                sample.words()
            )
        });
    }
    finding
}

/// How much more than reckoned is no flood yet: chance, and what a proxy sees later than it was sent.
const LENIENCE: f64 = 1.3;
const FEW: f64 = 6.0;

/// While a dependency comes back it gets no more than its ramp lets through.
pub(super) fn ramp(view: &View<'_>) -> Finding {
    let mut finding =
        Finding::new("ramp", "a dependency that comes back gets no more calls than its ramp lets through");
    for outage in outages(view) {
        let Some(rules) = view.facts.policy().dependencies.get(outage.upstream) else { continue };
        let (Some(breaker), Some(recovery), Some(usual)) = (&rules.breaker, rules.recovery, outage.usual)
        else {
            continue;
        };
        if !has_tripped(view, &outage) {
            continue;
        }
        let after = view.calls_to(outage.upstream).filter(|call| call.began >= outage.to);
        let moments: Vec<Duration> = after.map(|call| call.began).collect();
        let Some(first) = moments.first().copied() else { continue };
        let whole = rates::back_within(rules, Duration::ZERO, outage.usual, outage.per_second);
        for (index, at) in moments.iter().enumerate() {
            let since = *at - first;
            if since > whole {
                break;
            }
            // A step may come as much as one tick earlier than reckoned: its ticks are not the proxy's.
            let through = rates::let_through(&recovery, usual, since + recovery.tick);
            let most = through * LENIENCE + f64::from(breaker.probes) + FEW;
            let count = index as f64 + 1.0;
            finding.hold(count <= most, || {
                let name = view.facts.upstream_name(outage.upstream);
                format!("`{name}` had {count} calls {since:?} after the first one, of {most:.0}")
            });
            if count > most {
                break;
            }
        }
    }
    finding
}

/// A breaker trips after ten failures in a row within this; one or two may have been decided before the fault began.
const IN_A_ROW: usize = 12;
const ROW_WITHIN: Duration = Duration::from_secs(5);

/// Whether its breaker was certainly not closed when the fault ended: enough calls failed outright, and none succeeded.
fn has_tripped(view: &View<'_>, outage: &Outage) -> bool {
    let is_outright = |fault: Fault| {
        matches!(
            fault,
            Fault::Refuse | Fault::Reset(Moment::BeforeHead) | Fault::HangUp | Fault::Status(502..=504)
        )
    };
    let own = view.windows.iter().filter(|window| window.upstream == outage.upstream);
    if !own.clone().all(|window| is_outright(window.fault) && window.per_mille >= 1000) {
        return false;
    }
    // Refused connections are no calls of a proxy: requests tell how often it was tried.
    let tried = view.samples.iter().filter(|sample| {
        let route = view.route(sample);
        route.is_some_and(|route| route.dependency == Some(outage.upstream) && route.cache.is_none())
            && sample.sent >= outage.from
            && sample.sent < outage.to.min(outage.from + ROW_WITHIN)
    });
    // Just when it begins, a call may still come through.
    let begins = outage.from + Duration::from_millis(50);
    let succeeded = view.calls_to(outage.upstream).any(|call| {
        call.ended == Ended::Whole && call.began >= begins && call.began < outage.to && call.fault.is_none()
    });
    tried.count() >= IN_A_ROW && !succeeded
}
