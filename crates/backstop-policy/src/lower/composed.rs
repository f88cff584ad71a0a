//! Parts of composed answers.

use backstop_engine::composed::{Composed, Part};
use backstop_engine::policy::RouteId;

use super::position;
use crate::check::{RouteView, View};
use crate::read::At;
use crate::settings::PartSettings;
use crate::shape::PartTable;

fn parts<'a>(route: RouteView<'a>) -> impl Iterator<Item = &'a At<PartTable>> {
    route.composed().and_then(|table| table.parts.as_ref()).into_iter().flat_map(|parts| &parts.value.0)
}

/// The route that answers a part, with its position.
fn asked<'a>(view: &View<'a>, part: &PartTable) -> Option<(RouteId, RouteView<'a>)> {
    let name = &part.route.as_ref()?.value.0;
    let (index, route) = view.routes().enumerate().find(|(_, route)| *route.text() == **name)?;
    Some((RouteId(position(index)), route))
}

/// What the engine decides by.
pub(super) fn rules(view: &View<'_>, route: RouteView<'_>) -> Composed {
    let part = |part: &At<PartTable>| {
        Some(Part {
            route: asked(view, &part.value)?.0,
            at: part.value.at.as_ref()?.value.0.clone(),
            required: part.value.required.as_ref().is_some_and(|required| required.value),
            origin: part.origin,
        })
    };
    Composed { parts: parts(route).filter_map(part).collect() }
}

/// What the gateway asks for.
pub(super) fn settings(view: &View<'_>, route: RouteView<'_>) -> Vec<PartSettings> {
    let part = |part: &At<PartTable>| {
        let (id, asked) = asked(view, &part.value)?;
        let path = part.value.path.as_ref()?.value.0.clone();
        let parameters = asked.rule_for(&path)?.template.takes(&path)?;
        Some(PartSettings { route: id, path, parameters })
    };
    parts(route).filter_map(part).collect()
}
