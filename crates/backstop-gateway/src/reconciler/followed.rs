//! Which routes are followed, and how, as the policy has it.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::engine::Engine;
use backstop_engine::operation::Retention;
use backstop_engine::policy::RouteClass;
use backstop_engine::policy::effect::EffectRules;
use backstop_policy::{DependencySettings, RouteSettings, WebhookSettings};
use http::HeaderValue;

use super::calibration::Calibration;
use super::webhook::Webhook;
use crate::edits::Edits;
use crate::forward::sent_host;
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
        Retention { content: kept.body, tombstone: kept.tombstone }
    }
}

/// What a policy says of how operations are followed cannot be done. Never passed over: nobody would follow them, and nobody would
/// know.
#[derive(Debug, thiserror::Error)]
#[error("operations of {of} cannot be followed: its {part} `{text}` is none")]
pub struct CannotFollow {
    of: String,
    part: &'static str,
    text: String,
}

/// The routes of a policy that have operations.
///
/// # Errors
/// A route that cannot be followed. A policy that was checked has none.
pub(crate) fn followed(
    engine: &Engine,
    routes: &[RouteSettings],
    dependencies: &[DependencySettings],
) -> Result<Vec<Followed>, CannotFollow> {
    let one = |route: &RouteSettings| {
        let rules = &engine.route(route.id).rules;
        let RouteClass::Effect(effect) = &rules.class else { return None };
        let cannot = |part, text| CannotFollow { of: format!("route `{}`", route.name), part, text };
        let index = usize::from(rules.dependency.0);
        let Some(dependency) = dependencies.get(index) else {
            return Some(Err(cannot("dependency", index.to_string())));
        };
        let host = sent_host(dependency);
        let Ok(host_field) = HeaderValue::from_str(&host) else { return Some(Err(cannot("host", host))) };
        let address = |address: &backstop_policy::Address| Address::new(&address.host, address.port);
        Some(Ok(Followed {
            name: route.name.clone(),
            rules: (**effect).clone(),
            addresses: dependency.addresses.iter().map(address).collect(),
            connect: dependency.connect,
            host: host_field,
            edits: Arc::new(Edits::new(&route.request_headers)),
        }))
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

/// Who is told, as the policy has it.
pub(super) fn webhook(settings: &WebhookSettings) -> Result<Webhook, CannotFollow> {
    let WebhookSettings { address, path } = settings;
    let cannot = |part, text| CannotFollow { of: "the webhook `attention`".into(), part, text };
    let host = address.to_string();
    Ok(Webhook {
        host: HeaderValue::from_str(&host).map_err(|_| cannot("host", host))?,
        address: Address::new(&address.host, address.port),
        path: path.parse().map_err(|_| cannot("path", path.to_string()))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No policy that was checked has these, and should one have them nobody would be told without an error.
    #[test]
    fn what_cannot_be_told_is_an_error_and_never_left_out() {
        let told = |host: &str, path: &str| {
            let address = backstop_policy::Address { host: host.into(), port: 80 };
            webhook(&WebhookSettings { address, path: path.into() })
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(told("people.internal", "/hooks"), Ok(()));
        let expected = "operations of the webhook `attention` cannot be followed: its path `no path` is none";
        assert_eq!(told("people.internal", "no path"), Err(expected.to_owned()));
        assert!(told("people\ninternal", "/hooks").is_err());
    }
}
