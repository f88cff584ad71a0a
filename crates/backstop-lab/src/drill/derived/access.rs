//! Nobody comes in because an authorizer failed, and nobody is told that he may not.

use std::time::Duration;

use crate::drill::{Facts, Finding, Sample, View};
use crate::proxy::{Fault, Moment, Window};

/// Behind an authorizer that fails, every request is a temporary error and its dependency is not called.
pub(super) fn authorized(view: &View<'_>) -> Finding {
    let promise = "while an authorizer fails, answers are 503 and the dependency behind it gets no call";
    let mut finding = Finding::new("authorized", promise);
    for sample in view.samples {
        let Some(route) = view.route(sample) else { continue };
        let Some(authorizer) = route.authorizer else { continue };
        let is_asked = view.ask(sample).is_some_and(|ask| ask.method != "OPTIONS");
        let is_down = view.windows.iter().any(|window| {
            window.upstream == authorizer
                && is_certain(window, view.facts, sample.route)
                && covers(window, sample)
        });
        if !is_asked || !is_down {
            continue;
        }
        let calls = view.calls_of(sample).filter(|call| call.upstream != authorizer).count();
        finding.hold(calls == 0, || format!("`{}` was called: {}", route.name, sample.words()));
        finding.hold(sample.status == Some(503), || format!("`{}`: {}", route.name, sample.words()));
    }
    finding
}

/// Whether every question to it comes to nothing.
fn is_certain(window: &Window, facts: &Facts, route: usize) -> bool {
    let fails = match window.fault {
        Fault::Refuse
        | Fault::Reset(Moment::BeforeHead)
        | Fault::Hang
        | Fault::HangUp
        | Fault::Garbage
        // 200 without the sign of a yes is none.
        | Fault::WrongBody => true,
        Fault::Status(status) => !facts.denies(route).contains(status),
        _ => false,
    };
    fails && window.per_mille >= 1000
}

/// The window was open before the request and after its answer. A connection that was accepted before may just have got an answer.
fn covers(window: &Window, sample: &Sample) -> bool {
    window.from + Duration::from_millis(20) <= sample.sent && sample.done <= window.to
}

/// 401 and 403 come from whoever may say so.
pub(super) fn denied(view: &View<'_>) -> Finding {
    let promise = "401 and 403 are told only if the authorizer or the dependency said so";
    let mut finding = Finding::new("denied", promise);
    for sample in view.samples.iter().filter(|sample| matches!(sample.status, Some(401 | 403))) {
        let Some(route) = view.route(sample).filter(|route| !route.takes_tokens && route.class != "composed")
        else {
            continue;
        };
        let said = |status: Option<u16>| status == sample.status;
        let by_dependency = view.calls_of(sample).any(|call| said(call.status));
        // An authorizer's call carries no number: it is one of those under way meanwhile.
        let by_authorizer = view.calls.iter().any(|call| {
            Some(call.upstream) == route.authorizer
                && said(call.status)
                && sample.sent <= call.finished
                && call.began <= sample.done
        });
        finding.hold(by_dependency || by_authorizer, || format!("`{}`: {}", route.name, sample.words()));
    }
    finding
}
