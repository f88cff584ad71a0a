//! Which copies a write withdraws beside those of its own path.
//!
//! A route that `withdraws` names is withdrawn where the write points: if all parameters of that route's path stand in the
//! write's own path, only that path is (whatever its query); else all copies of the route are, because nothing tells
//! which of them changed.

use backstop::Withdraws;
use backstop::request::{PathParameters, target};
use backstop_policy::{HostPattern, RouteSettings, Segment, Template};
use backstop_store::Withdrawal;
use http::request::Parts;

/// The withdrawals of a route's writes.
pub(crate) fn withdraws(route: &RouteSettings, all: &[RouteSettings]) -> Box<Withdraws> {
    let named: Vec<Named> =
        route.withdraws.iter().filter_map(|id| all.get(usize::from(id.0))).map(Named::new).collect();
    Box::new(move |write: &Parts| {
        let parameters = write.extensions.get::<PathParameters>();
        let written = target(write);
        named.iter().flat_map(|named| named.withdrawals(parameters, written.host())).collect()
    })
}

struct Named {
    route: Box<str>,
    templates: Vec<Template>,
    hosts: Vec<HostPattern>,
}

impl Named {
    fn new(route: &RouteSettings) -> Self {
        let templates = route.matches.iter().map(|rule| rule.template.clone()).collect();
        Self { route: route.name.clone(), templates, hosts: route.hosts.clone() }
    }

    fn withdrawals(&self, parameters: Option<&PathParameters>, host: &str) -> Vec<Withdrawal> {
        let whole = || vec![Withdrawal::Route(self.route.clone())];
        let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
        if !self.hosts.is_empty() && !self.hosts.iter().any(|pattern| pattern.matches(bare)) {
            return whole();
        }
        let paths: Option<Vec<String>> =
            self.templates.iter().map(|template| path(template, parameters)).collect();
        match paths {
            Some(paths) => paths
                .into_iter()
                .map(|path| Withdrawal::Path { host: host.into(), path: path.into() })
                .collect(),
            None => whole(),
        }
    }
}

/// The template's path with the write's parameters, if all of them are there.
fn path(template: &Template, parameters: Option<&PathParameters>) -> Option<String> {
    let mut path = String::new();
    for segment in &template.segments {
        path.push('/');
        match segment {
            Segment::Literal(text) => path.push_str(text),
            Segment::Parameter(name) => path.push_str(parameters?.get(name)?),
            Segment::Rest(_) => return None,
        }
    }
    Some(if path.is_empty() { "/".to_owned() } else { path })
}
