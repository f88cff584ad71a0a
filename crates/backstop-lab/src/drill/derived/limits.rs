//! What dependencies, routes and resources bear at once and per second.

use std::time::Duration;

use crate::drill::{
    Finding, View,
    view::{TOLERANCE, most_within_a_second, peak, under_way},
};
use crate::proxy::Call;

/// A dependency never has more calls than `connections`.
pub(super) fn connections(view: &View<'_>) -> Finding {
    let mut finding =
        Finding::new("connections", "no dependency has more calls at once than its `connections`");
    for (index, upstream) in
        view.facts.upstreams().iter().enumerate().filter(|(_, upstream)| !upstream.is_cache)
    {
        let calls: Vec<&Call> = view.calls_to(index).collect();
        if calls.is_empty() {
            continue;
        }
        let (most, when) = peak(calls.iter().map(|call| under_way(call)));
        finding.hold(most <= u64::from(upstream.connections), || {
            format!(
                "`{}` had {most} of {} at {:.3} s",
                upstream.name,
                upstream.connections,
                when.as_secs_f64()
            )
        });
    }
    finding
}

/// A route never has more requests under way than it lets in, as far as its dependency sees them.
pub(super) fn in_flight(view: &View<'_>) -> Finding {
    let mut finding = Finding::new(
        "in-flight",
        "no route has more requests at its dependency at once than its `in_flight`",
    );
    for (index, route) in view.facts.routes().iter().enumerate() {
        // What is read for a cache goes on for others when its request has left.
        if route.class == "cached_read" || route.class == "composed" {
            continue;
        }
        let mut spans = Vec::new();
        for sample in view.samples.iter().filter(|sample| sample.route == index) {
            for call in view.calls_of(sample).filter(|call| Some(call.upstream) == route.dependency) {
                // Its place is free when it has been answered, though the call may go on.
                let (from, to) = under_way(call);
                spans.push((from, to.min(sample.done)));
            }
        }
        if spans.is_empty() {
            continue;
        }
        let (most, when) = peak(spans);
        finding.hold(most <= u64::from(route.in_flight), || {
            format!("`{}` had {most} of {} at {:.3} s", route.name, route.in_flight, when.as_secs_f64())
        });
    }
    finding
}

/// What is too much is refused at once.
pub(super) fn refused_at_once(view: &View<'_>) -> Finding {
    let mut finding = Finding::new("refused-at-once", "what a limit refuses is refused within 50 ms");
    let refused = view.samples.iter().filter(|sample| sample.reason() == Some("capacity"));
    for sample in refused.filter(|sample| sample.outcome() == "rejected") {
        finding.hold(sample.took() <= TOLERANCE + sample.lag, || {
            format!("{:?}: {}", sample.took(), sample.words())
        });
    }
    finding
}

/// What dependencies share is never used beyond its limits, all of its users together.
pub(super) fn resources(view: &View<'_>) -> Finding {
    let promise = "no resource is used by more calls at once, or more often in a second, than its limits";
    let mut finding = Finding::new("resources", promise);
    let policy = view.facts.policy();
    for (index, resource) in policy.resources.iter().enumerate() {
        let uses = |dependency: &backstop_engine::policy::Dependency| {
            dependency.uses.iter().any(|used| usize::from(used.0) == index)
        };
        let users = policy.dependencies.iter().enumerate().filter(|(_, dependency)| uses(dependency));
        let calls: Vec<&Call> = users.flat_map(|(user, _)| view.calls_to(user)).collect();
        if calls.is_empty() {
            continue;
        }
        if let Some(places) = resource.concurrency {
            let (most, when) = peak(calls.iter().map(|call| under_way(call)));
            finding.hold(most <= u64::from(places), || {
                format!("`{}` had {most} of {places} at {:.3} s", resource.name, when.as_secs_f64())
            });
        }
        if let Some(rate) = resource.rate {
            let moments: Vec<Duration> = calls.iter().map(|call| call.began).collect();
            let (most, when) = most_within_a_second(&moments);
            // A full burst, 50 ms of the rate, may go before what a second brings; a call may come late.
            let allowed = rate + (rate / 20).max(1) + 1;
            finding.hold(most <= allowed, || {
                format!(
                    "`{}` had {most} calls from {:.3} s on, of {rate}/s",
                    resource.name,
                    when.as_secs_f64()
                )
            });
        }
    }
    finding
}
