//! Times against each other.

use std::ops::Range;
use std::time::Duration;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::Context;

/// Few clients wait longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for route in view.routes() {
        let Some(deadline) = &route.common().deadline else { continue };
        let (limit, bytes) = (deadline.value.0, deadline.bytes.clone());
        phases(view, route, cx);
        drain(view, limit, &bytes, cx);
        if limit > PATIENCE {
            let message = format!("few clients wait {limit:?} for an answer");
            cx.report(
                Finding::new(Code::LongDeadline, bytes.clone(), message).help(
                    "a request that nobody waits for still holds its permits; for a stream, use `idle`",
                ),
            );
        }
    }
}

/// Phases of the dependency that are written down and could never end in their own way.
fn phases(view: &View<'_>, route: RouteView<'_>, cx: &mut Context<'_>) {
    let (Some(dependency), Some(end)) = (view.dependency_of(route), route.last_end()) else { return };
    let (whose, label) = match end.is_of_fill {
        true => ("a read for ", format!("a read behind the cache has {:?}", end.value)),
        false => ("", format!("{:?}", end.value)),
    };
    let table = &dependency.table.value;
    let connect = table.connect.as_ref().map(|connect| ("connect", connect.value.0, connect.bytes.clone()));
    let queue = table.queue.as_ref().map(|queue| ("queue", queue.value.0, queue.bytes.clone()));
    for (phase, limit, place) in connect.into_iter().chain(queue).filter(|(_, limit, _)| *limit >= end.value)
    {
        let message = format!("the deadline of {whose}`{}` ends before `{phase}` may", route.text());
        cx.report(
            Finding::new(Code::PhaseTooLong, end.bytes.clone(), message)
                .label(label.clone())
                .related(place, format!("`{phase}` may take {limit:?}"))
                .help(
                    "shorten the phase: the deadline holds everything, the answer and its transfer included",
                ),
        );
    }
}

fn drain(view: &View<'_>, deadline: Duration, bytes: &Range<usize>, cx: &mut Context<'_>) {
    let written = view.gateway().and_then(|gateway| gateway.drain.as_ref());
    let drain = written.map_or(default::DRAIN, |drain| drain.value.0);
    if deadline > drain {
        let message = format!("a graceful stop takes at most {drain:?} and would cut this route's requests");
        let finding =
            Finding::new(Code::DrainTooShort, bytes.clone(), message).label(format!("{deadline:?}"));
        cx.report(match written {
            Some(written) => finding
                .related(written.bytes.clone(), "the bound of a graceful stop")
                .help("lengthen `drain`"),
            None => finding.help("set `drain` in `[gateway]` to at least the longest deadline"),
        });
    }
}
