//! Which routes are followed, and how, as the policy has it.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::engine::Engine;
use backstop_engine::operation::Retention;
use backstop_engine::policy::RouteClass;
use backstop_engine::policy::effect::EffectRules;
use backstop_policy::{DependencySettings, HostHeader, RouteSettings, WebhookSettings};
use http::HeaderValue;

use super::calibration::Calibration;
use super::webhook::Webhook;
use crate::edits::Edits;
use crate::upstream::Address;

/// One route whose operations are followed.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// Its name.
    pub(crate) name: Box<str>,
    pub(crate) rules: EffectRules,
    /// Where its dependency is.
    pub(crate) addresses: Vec<Address>,
    /// The longest that connecting may take.
    pub(crate) connect: Duration,
    /// What is sent as `Host`.
    pub(crate) host: HeaderValue,
    /// The route's changes to requests: with them go the operator's credentials.
    pub(crate) edits: Arc<Edits>,
}

impl Followed {
    pub(super) fn retention(&self) -> Retention {
        let kept = self.rules.retention;
        Retention { content: kept.body, tombstone: kept.tombstone, trusts_date: false }
    }
}

/// The routes of a policy that have operations.
pub(crate) fn followed(
    engine: &Engine,
    routes: &[RouteSettings],
    dependencies: &[DependencySettings],
) -> Vec<Followed> {
    let one = |route: &RouteSettings| {
        let rules = &engine.route(route.id).rules;
        let RouteClass::Effect(effect) = &rules.class else { return None };
        let dependency = dependencies.get(usize::from(rules.dependency.0))?;
        let own_host = dependency.addresses.first().map_or_else(String::new, ToString::to_string);
        let host = match &dependency.host {
            HostHeader::Client => &*own_host,
            HostHeader::Fixed(host) => host,
        };
        let address = |address: &backstop_policy::Address| Address::new(&address.host, address.port);
        Some(Followed {
            name: route.name.clone(),
            rules: (**effect).clone(),
            addresses: dependency.addresses.iter().map(address).collect(),
            connect: dependency.connect,
            // The policy file has checked it.
            host: HeaderValue::from_str(host).ok()?,
            edits: Arc::new(Edits::new(&route.request_headers)),
        })
    };
    routes.iter().filter_map(one).collect()
}

/// The places where known successes of these routes are offered.
pub(super) fn calibration(routes: &[Followed]) -> Calibration {
    Calibration::of(routes.iter().filter_map(|route| {
        let absence = route.rules.verification.as_ref()?.absence.as_ref()?;
        Some((&*route.name, absence.verdict.calibration()?))
    }))
}

/// Who is told, as the policy has it, which has checked it.
pub(super) fn webhook(settings: &WebhookSettings) -> Option<Webhook> {
    let WebhookSettings { address, path } = settings;
    Some(Webhook {
        host: HeaderValue::from_str(&address.to_string()).ok()?,
        address: Address::new(&address.host, address.port),
        path: path.parse().ok()?,
    })
}
