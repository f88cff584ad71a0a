//! `retry` and `alternative` of a route, and the resources that they are measured by.

use backstop_engine::alternative::Verified;
use backstop_engine::policy::{AlternativeRules, DependencyId, ResourceId, RetryRules};
use backstop_engine::resource::ResourceRules;

use super::{origin, position};
use crate::check::{DependencyView, Evidence, ResourceView, RouteView, View};
use crate::settings::EvidenceSettings;
use crate::value::Name;

/// Evidence of this version is bound to no policy.
use backstop_engine::alternative::ANY_POLICY;

pub(super) fn resource(view: ResourceView<'_>) -> ResourceRules {
    let table = &view.table.value;
    ResourceRules {
        name: view.name.value.0.clone(),
        concurrency: table.concurrency.as_ref().map(|concurrency| concurrency.value.0),
        rate: table.rate.as_ref().map(|rate| rate.value.per_second()),
        origin: view.table.origin,
    }
}

/// The resources that a dependency uses.
pub(super) fn uses(view: &View<'_>, dependency: DependencyView<'_>) -> Vec<ResourceId> {
    let index = |name: &Name| view.resources().position(|resource| resource.name.value == *name);
    dependency.uses().filter_map(|name| index(&name.value)).map(|index| ResourceId(position(index))).collect()
}

pub(super) fn retry(route: RouteView<'_>) -> Option<RetryRules> {
    let retry = route.retry()?;
    Some(RetryRules { attempts: route.attempts(), owner: route.retry_owner(), origin: origin(Some(retry)) })
}

pub(super) fn alternative(
    view: &View<'_>,
    route: RouteView<'_>,
    evidence: Option<&Evidence>,
) -> Option<AlternativeRules> {
    let alternative = route.alternative()?;
    let name = &alternative.value.dependency.as_ref()?.value;
    let index = view.dependencies().position(|dependency| dependency.name.value == *name)?;
    Some(AlternativeRules {
        dependency: DependencyId(position(index)),
        verified: evidence.map(verified),
        origin: origin(Some(alternative)),
    })
}

/// What is known of the measurement, beside its figures.
pub(super) fn evidence(route: RouteView<'_>, evidence: &Evidence) -> Option<EvidenceSettings> {
    Some(EvidenceSettings {
        file: route.alternative()?.value.verified.as_ref()?.value.0.clone(),
        p95: evidence.p95,
        measured: evidence.measured.text.clone(),
        valid_until: evidence.valid_until.text.clone(),
        load: evidence.load.clone(),
    })
}

fn verified(evidence: &Evidence) -> Verified {
    Verified {
        rate_per_second: evidence.rate.per_second(),
        concurrency: evidence.concurrency,
        valid_from: evidence.measured.first,
        valid_until: evidence.valid_until.last,
        policy: ANY_POLICY,
    }
}
