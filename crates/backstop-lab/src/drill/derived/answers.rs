//! What clients may get at all, and by when.

use crate::drill::{Finding, RouteFacts, Sample, View, ask::is_credential, view::TOLERANCE};
use crate::load::Failure;
use crate::proxy::{Call, Ended};

/// Every answer is normal, an accepted alternative of its route's class, or a refusal that says so.
pub(super) fn accepted(view: &View<'_>) -> Finding {
    let promise = "every answer is normal, an alternative that its route accepts, or a refusal";
    let mut finding = Finding::new("accepted", promise);
    for sample in view.samples {
        let Some(route) = view.route(sample) else { continue };
        finding.look(unaccepted(view, route, sample));
    }
    finding
}

fn unaccepted(view: &View<'_>, route: &RouteFacts, sample: &Sample) -> Option<String> {
    if let Some(failure) = sample.failure {
        // What holds nothing back may be cut, where everybody can see it.
        let is_cut = matches!(failure, Failure::CutByFin | Failure::CutByReset);
        let is_somebodys =
            view.ask(sample).is_some_and(|ask| ask.fields.iter().any(|(name, _)| is_credential(name)));
        let may_be_cut = matches!(route.class, "direct" | "guarded") || is_somebodys;
        return (!(is_cut && may_be_cut)).then(|| format!("`{}`: {}", route.name, sample.words()));
    }
    let status = sample.status.unwrap_or_default();
    let wrong = match sample.outcome() {
        "normal" => status >= 500,
        "fallback" => {
            let rules = view.facts.rules(sample.route)?;
            let is_accepted = sample.source().is_some_and(|source| route.accepts(source, rules));
            !is_accepted || (status >= 400 && route.class != "optional")
        }
        "rejected" => status < 400,
        "failed" => status < 500 && sample.reason() != Some("incorrect"),
        _ => true,
    };
    wrong.then(|| format!("`{}`: {}", route.name, sample.words()))
}

/// An answer that says nothing of itself is one that the dependency really gave to this request.
pub(super) fn own(view: &View<'_>) -> Finding {
    let promise = "an answer that does not say it is degraded is the dependency's own, byte for byte";
    let mut finding = Finding::new("own", promise);
    for sample in view.samples.iter().filter(|sample| sample.mark.is_none() && sample.failure.is_none()) {
        let Some(route) = view.route(sample) else { continue };
        let shares = matches!(route.class, "cached_read" | "composed" | "effect");
        let is_get = view.ask(sample).is_some_and(|ask| ask.method != "HEAD" && ask.method != "OPTIONS");
        let is_no = view.facts.denies(sample.route).contains(sample.status.unwrap_or_default());
        if shares || !is_get || is_no {
            continue;
        }
        let gave = |call: &Call| {
            Some(call.upstream) == route.dependency
                && call.ended == Ended::Whole
                && call.status == sample.status
                && call.content == sample.content
        };
        finding.hold(view.calls_of(sample).any(gave), || {
            let calls = view.calls_of(sample).count();
            format!("`{}`: {}, of {calls} calls", route.name, sample.words())
        });
    }
    finding
}

/// 4xx and what nobody classified pass through unchanged; no copy stands in for them.
pub(super) fn passes_through(view: &View<'_>) -> Finding {
    let promise =
        "404, 401, 410, other 4xx and unclassified 5xx pass through, and no copy stands in for them";
    let mut finding = Finding::new("passes-through", promise);
    for sample in view.samples.iter().filter(|sample| sample.failure.is_none()) {
        let Some(route) = view.route(sample) else { continue };
        if matches!(route.class, "composed" | "effect") {
            continue;
        }
        let of_dependency = view.calls_of(sample).filter(|call| Some(call.upstream) == route.dependency);
        let Some(last) = of_dependency.last().filter(|call| call.ended == Ended::Whole) else { continue };
        let Some(status) = last.status.filter(|status| view.facts.passes_through(sample.route, *status))
        else {
            continue;
        };
        // What came after the request's time was over is nobody's answer.
        if last.finished > sample.done || sample.took() >= route.deadline {
            continue;
        }
        let is_same =
            sample.status == Some(status) && sample.source().is_none_or(|source| source == "primary");
        finding.hold(is_same, || {
            format!("`{}` answered {status}, the client got {}", route.name, sample.words())
        });
    }
    finding
}

/// Whatever hangs, every answer is there in time.
pub(super) fn deadline(view: &View<'_>) -> Finding {
    let promise = "every answer is whole within its route's deadline and 50 ms";
    let mut finding = Finding::new("deadline", promise);
    for sample in view.samples {
        let Some(route) = view.route(sample).filter(|route| !route.streams) else { continue };
        let most = route.deadline + TOLERANCE + sample.lag;
        finding.hold(sample.took() <= most, || {
            format!("`{}` took {:?} of {:?}: {}", route.name, sample.took(), route.deadline, sample.words())
        });
    }
    finding
}
