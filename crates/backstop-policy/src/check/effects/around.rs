//! What stands around a route that writes operations: other routes of its dependency, other gateways.

use backstop_engine::retry::Owner;

use super::EffectView;
use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::Context;

pub(super) fn check(view: &View<'_>, effect: EffectView<'_>, cx: &mut Context<'_>) {
    let Some(dependency) = &effect.route.common().dependency else { return };
    let asks = |other: &RouteView<'_>| {
        other.common().dependency.as_ref().is_some_and(|its| its.value == dependency.value)
    };
    let name = &dependency.value.0;
    for other in view.routes() {
        let owner = other.retry().and_then(|retry| retry.value.owner.as_ref());
        let upstream = owner.filter(|owner| asks(&other) && owner.value.0 == Owner::Upstream);
        if let Some(owner) = upstream {
            let message =
                format!("`{name}` repeats what it is asked for, and `{}` has an effect", effect.text());
            cx.report(
                Finding::new(Code::EffectRepeated, dependency.bytes.clone(), message)
                    .related(owner.bytes.clone(), format!("`{}` says so", other.text()))
                    .help("end its retries, or send effects to a dependency that repeats nothing: what is sent twice may be done twice"),
            );
        }
        if let Some(retry) = other.retry().filter(|_| asks(&other) && other.retries()) {
            let message = format!("`{}` repeats its reads at `{name}`, which also has effects", other.text());
            cx.report(
                Finding::new(Code::EffectNeighbour, dependency.bytes.clone(), message)
                    .related(retry.bytes.clone(), "repeated here")
                    .help("let reads and effects have a dependency each, so that a failing read costs no payment its place"),
            );
        }
        let alternative = other.alternative().and_then(|alternative| alternative.value.dependency.as_ref());
        if let Some(alternative) = alternative.filter(|alternative| alternative.value == dependency.value) {
            let message = format!(
                "when its own dependency fails, `{}` turns to `{name}`, which has effects",
                other.text()
            );
            cx.report(
                Finding::new(Code::EffectNeighbour, dependency.bytes.clone(), message)
                    .related(alternative.bytes.clone(), "turned to here")
                    .help("name another alternative, so that a failure elsewhere costs no payment its place"),
            );
        }
    }
}

/// A ledger in a file of one's own is known to one gateway only.
pub(super) fn ledger(view: &View<'_>, cx: &mut Context<'_>) {
    let instances = view.gateway().and_then(|gateway| gateway.instances.as_ref());
    let Some(instances) = instances.filter(|instances| instances.value.0 > 1 && view.has_effects()) else {
        return;
    };
    let message = format!("{} gateways would each have a ledger of their own", instances.value.0);
    let finding = Finding::new(Code::LedgerOfOne, instances.bytes.clone(), message).help(
        "let one gateway alone answer routes with effects: a key that two of them get is executed twice",
    );
    let ledger = view.store().and_then(|store| store.ledger.as_ref());
    cx.report(match ledger {
        Some(ledger) => finding.related(ledger.bytes.clone(), "a file that only one process opens"),
        None => finding,
    });
}
