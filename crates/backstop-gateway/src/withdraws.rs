//! Which copies a write withdraws beside those of its own path.
//!
//! A route that `withdraws` names is withdrawn where the write points: if all parameters of that route's path stand in the
//! write's own path, only that path is (whatever its query); else all copies of the route are, because nothing tells
//! which of them changed. Parameters of one name are taken to mean one thing.
//!
//! The same goes for hosts: a route for certain hosts is withdrawn on each of them, a route for every host where the write
//! came in; where neither tells (a wildcard, a write for certain hosts that names a route for all), all copies of the route
//! are. Ports make no difference: the copies of a host are withdrawn under each of them.

use backstop::Withdraws;
use backstop::canonical;
use backstop::request::{PathParameters, target};
use backstop_policy::{HostPattern, RouteSettings, Segment, Template};
use backstop_store::Withdrawal;
use http::request::Parts;

/// The withdrawals of a route's writes.
pub(crate) fn withdraws(route: &RouteSettings, all: &[RouteSettings]) -> Box<Withdraws> {
    let named: Vec<Named> = {
        let named = route.withdraws.iter().filter_map(|id| all.get(usize::from(id.0)));
        named.map(|read| Named::new(read, !route.hosts.is_empty())).collect()
    };
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
    write_has_hosts: bool,
}

impl Named {
    fn new(route: &RouteSettings, write_has_hosts: bool) -> Self {
        let templates = route.matches.iter().map(|rule| rule.template.clone()).collect();
        Self { route: route.name.clone(), templates, hosts: route.hosts.clone(), write_has_hosts }
    }

    fn withdrawals(&self, parameters: Option<&PathParameters>, host: &str) -> Vec<Withdrawal> {
        let hosts = self.hosts(host);
        let paths: Option<Vec<String>> =
            self.templates.iter().map(|template| path(template, parameters)).collect();
        let (Some(hosts), Some(paths)) = (hosts, paths) else {
            return vec![Withdrawal::Route(self.route.clone())];
        };
        let at = |host: &str, path: &str| Withdrawal::Path {
            host: host.into(),
            path: canonical::meaning(path).into(),
        };
        hosts.iter().flat_map(|host| paths.iter().map(|path| at(host, path))).collect()
    }

    /// The hosts under which the route's copies lie, if they can be told.
    fn hosts(&self, written: &str) -> Option<Vec<String>> {
        if self.hosts.is_empty() {
            // A write that is for certain hosts alone says nothing of those on which others read.
            return (!self.write_has_hosts).then(|| vec![written.to_owned()]);
        }
        let exact = |pattern: &HostPattern| match pattern {
            HostPattern::Exact(host) => Some(canonical::without_port(&canonical::host(host)).0.to_owned()),
            HostPattern::Suffix(_) => None,
        };
        self.hosts.iter().map(exact).collect()
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
