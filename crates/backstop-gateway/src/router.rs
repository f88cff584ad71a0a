//! From host, method and path to a route.
//!
//! The most specific rule wins, whatever its place in the file: an exact host before a wildcard before none; then,
//! segment by segment, a literal before a parameter before a rest; then a named method before any. A rule for `GET`
//! answers `HEAD` too, and one for a named method on a route with an authorizer or with `cors` answers `OPTIONS`, where nobody else does: a
//! browser asks so what it may ask. Paths are compared in their one spelling ([`canonical`]), on both sides.

use std::collections::{HashMap, HashSet};

use backstop::canonical;
use backstop::request::PathParameters;
use backstop_engine::policy::RouteId;
use backstop_policy::{HostPattern, MatchRule, Method, RouteSettings, Segment, Template};

/// Finds routes.
#[derive(Debug, Default)]
pub(crate) struct Router {
    exact: HashMap<Box<str>, Site>,
    /// Longest suffix first.
    wildcard: Vec<(HostPattern, Site)>,
    any: Site,
}

/// The rules of one host.
#[derive(Debug, Default)]
struct Site {
    named: HashMap<Box<str>, Table>,
    any: Table,
}

/// The rules of one method. A tree cannot hold a parameter and a rest at the same place, so a rule that finds no room in one
/// stands in the next. All of them are asked, and the most specific of what they find is it: a rest in the second may begin
/// with a literal where the first one's rule begins with a parameter.
#[derive(Debug, Default)]
struct Table {
    trees: Vec<matchit::Router<Rule>>,
    /// Which patterns stand in them: of two that are the same, the one that came first is the rule.
    patterns: HashSet<Box<str>>,
}

#[derive(Clone, Debug)]
struct Rule {
    route: RouteId,
    /// The template's own names, in order.
    parameters: Vec<Box<str>>,
    /// How much each of its segments leaves open: nothing, one segment, or all that follows. Of two that match one path, the
    /// first one that differs decides, so the lesser one is the more specific.
    open: Box<[u8]>,
}

/// A route that answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) route: RouteId,
    pub(crate) parameters: PathParameters,
}

/// Two rules claim the same requests. The policy file's checks leave none.
#[derive(Debug, thiserror::Error)]
#[error("route `{route}`: another rule claims the requests for `{pattern}`")]
pub struct RouteConflict {
    route: Box<str>,
    pattern: Box<str>,
}

impl Router {
    pub(crate) fn new(routes: &[RouteSettings]) -> Result<Self, RouteConflict> {
        let mut router = Self::default();
        let mut rules: Vec<_> =
            routes.iter().flat_map(|route| route.matches.iter().map(move |rule| (route, rule))).collect();
        // What comes first is not displaced: named methods by a rule for any, a rule for `HEAD` by what `GET` implies, a
        // parameter by a rest.
        rules.sort_by_key(|(_, rule)| {
            let is_get = matches!(&rule.method, Method::Named(name) if **name == *"GET");
            (rule.method == Method::Any, ends_in_rest(&rule.template), is_get)
        });
        let first_any = rules.partition_point(|(_, rule)| rule.method != Method::Any);
        let (named, any) = rules.split_at(first_any);
        let implied = named
            .iter()
            .filter(|(route, _)| (route.verifies || route.cors.is_some()) && route.parts.is_empty());
        let written = |(route, rule): &(&RouteSettings, &MatchRule), router: &mut Self| {
            router.sites(&route.hosts).into_iter().try_for_each(|site| {
                site.insert(&rule.method, &rule.template, route.id)
                    .map_err(|Claimed(pattern)| RouteConflict { route: route.name.clone(), pattern })
            })
        };
        named.iter().try_for_each(|rule| written(rule, &mut router))?;
        let options: Box<str> = "OPTIONS".into();
        for (route, _) in implied.clone() {
            for site in router.sites(&route.hosts) {
                site.named.entry(options.clone()).or_default();
            }
        }
        any.iter().try_for_each(|rule| written(rule, &mut router))?;
        for (route, rule) in implied {
            for site in router.sites(&route.hosts) {
                let _what_is_written_wins =
                    site.insert(&Method::Named(options.clone()), &rule.template, route.id);
            }
        }
        Ok(router)
    }

    /// The tables in which a route's rules stand. A rule for any method stands in every method's table of its host, so
    /// the tables of all methods must exist before; they are made as rules for them come.
    fn sites(&mut self, hosts: &[HostPattern]) -> Vec<&mut Site> {
        if hosts.is_empty() {
            return vec![&mut self.any];
        }
        for host in hosts {
            match host {
                HostPattern::Exact(name) => {
                    self.exact.entry(name.clone()).or_default();
                }
                HostPattern::Suffix(_) => {
                    if !self.wildcard.iter().any(|(known, _)| known == host) {
                        self.wildcard.push((host.clone(), Site::default()));
                    }
                }
            }
        }
        self.wildcard.sort_by_key(|(host, _)| std::cmp::Reverse(suffix_length(host)));
        let exact = self.exact.iter_mut().filter(|(name, _)| {
            hosts.iter().any(|host| matches!(host, HostPattern::Exact(wanted) if wanted == *name))
        });
        let wildcard = self.wildcard.iter_mut().filter(|(host, _)| hosts.contains(host));
        exact.map(|(_, site)| site).chain(wildcard.map(|(_, site)| site)).collect()
    }

    /// The route for a request. `host` is in lower case, without a port and without the dot that ends an absolute name;
    /// `path` is in its one spelling.
    pub(crate) fn find(&self, host: &str, method: &http::Method, path: &str) -> Option<Found> {
        let exact = self.exact.get(host).into_iter();
        let wildcard =
            self.wildcard.iter().filter(|(pattern, _)| pattern.matches(host)).map(|(_, site)| site);
        exact.chain(wildcard).chain([&self.any]).find_map(|site| site.find(method, path))
    }
}

fn ends_in_rest(template: &Template) -> bool {
    matches!(template.segments.last(), Some(Segment::Rest(_)))
}

fn suffix_length(host: &HostPattern) -> usize {
    match host {
        HostPattern::Exact(name) | HostPattern::Suffix(name) => name.len(),
    }
}

impl Site {
    fn insert(&mut self, method: &Method, template: &Template, route: RouteId) -> Result<(), Claimed> {
        let parameters = template.parameters().map(Into::into).collect();
        let open = template.segments.iter().map(|segment| match segment {
            Segment::Literal(_) => 0,
            Segment::Parameter(_) => 1,
            Segment::Rest(_) => 2,
        });
        let rule = Rule { route, parameters, open: open.collect() };
        match method {
            Method::Named(name) => {
                insert(self.named.entry(name.clone()).or_default(), template, &rule)?;
                if &**name == "GET" {
                    // Explicit rules for HEAD come in their own right and may already stand there.
                    let _explicit_wins =
                        insert(self.named.entry("HEAD".into()).or_default(), template, &rule);
                }
                Ok(())
            }
            Method::Any => {
                for table in self.named.values_mut() {
                    let _named_wins = insert(table, template, &rule);
                }
                insert(&mut self.any, template, &rule)
            }
        }
    }

    fn find(&self, method: &http::Method, path: &str) -> Option<Found> {
        let table = self.named.get(method.as_str()).unwrap_or(&self.any);
        let matching = table.trees.iter().filter_map(|tree| tree.at(path).ok());
        let found = matching.min_by(|one, other| one.value.open.cmp(&other.value.open))?;
        let values = found.params.iter().map(|(_, value)| value);
        let parameters = found.value.parameters.iter().zip(values);
        let parameters = parameters.map(|(name, value)| (name.clone(), value.into())).collect();
        Some(Found { route: found.value.route, parameters: PathParameters(parameters) })
    }
}

/// The pattern is another rule's.
struct Claimed(Box<str>);

fn insert(table: &mut Table, template: &Template, rule: &Rule) -> Result<(), Claimed> {
    let mut pattern = String::new();
    for (index, segment) in template.segments.iter().enumerate() {
        match segment {
            Segment::Literal(text) => {
                pattern.push('/');
                let text = canonical::escapes(text);
                pattern.push_str(&text.replace('{', "{{").replace('}', "}}"));
            }
            // Numbered, so that rules may name the same place differently.
            Segment::Parameter(_) => pattern.push_str(&format!("/{{p{index}}}")),
            Segment::Rest(_) => {
                // A rest may be empty.
                let _more_specific_wins = table.insert(&format!("{pattern}/"), rule);
                return table.insert(&format!("{pattern}/{{*p{index}}}"), rule);
            }
        }
    }
    if pattern.is_empty() {
        pattern.push('/');
    }
    table.insert(&pattern, rule)
}

impl Table {
    fn insert(&mut self, pattern: &str, rule: &Rule) -> Result<(), Claimed> {
        if self.patterns.contains(pattern) {
            return Err(Claimed(pattern.into()));
        }
        let has_room = |tree: &mut matchit::Router<Rule>| tree.insert(pattern, rule.clone()).is_ok();
        if !self.trees.iter_mut().any(has_room) {
            let mut tree = matchit::Router::new();
            // The policy file's checks leave no template that fits nowhere.
            tree.insert(pattern, rule.clone()).map_err(|_| Claimed(pattern.into()))?;
            self.trees.push(tree);
        }
        self.patterns.insert(pattern.into());
        Ok(())
    }
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
