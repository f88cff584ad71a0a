//! From a request to its route, by the gateway's own rule.
//!
//! A drill judges each answer by its route's rules, and calls no route with effects: so it must never take a request for another route's
//! than the gateway does. An exact host goes before a wildcard, the longest one first, and that before none; then, segment by
//! segment, a literal before a parameter before a rest; then a named method before any. Hosts and paths are compared in their one
//! spelling ([`canonical`]), on both sides.

use backstop::canonical;
use backstop_policy::{HostPattern, MatchRule, Method, RouteSettings, Segment};

/// The place of the route among these.
pub(crate) fn find(routes: &[RouteSettings], host: &str, method: &str, target: &str) -> Option<usize> {
    let path = canonical::escapes(target.split('?').next().unwrap_or_default());
    let host = canonical::host(host);
    let host = canonical::without_port(&host).0;
    let rules = routes.iter().enumerate().flat_map(|(index, route)| {
        let of_host = of_host(&route.hosts, host);
        let rules = route.matches.iter().map(move |rule| (of_host, route, rule, index));
        rules.filter_map(|(of_host, route, rule, index)| Some((of_host?, route, rule, index)))
    });
    let ranked = rules.filter_map(|(of_host, route, rule, index)| {
        let of_method = of_method(route, rule, method)?;
        Some((of_host, open(rule, &path)?, of_method, index))
    });
    ranked.min().map(|(.., index)| index)
}

/// How open hosts are of which one matches; less is more specific.
fn of_host(hosts: &[HostPattern], host: &str) -> Option<(u8, usize)> {
    if hosts.is_empty() {
        return Some((2, 0));
    }
    let matching = hosts.iter().filter(|pattern| pattern.matches(host));
    let ranked = matching.map(|pattern| match pattern {
        HostPattern::Exact(_) => (0, 0),
        HostPattern::Suffix(suffix) => (1, usize::MAX - suffix.len()),
    });
    ranked.min()
}

fn of_method(route: &RouteSettings, rule: &MatchRule, method: &str) -> Option<u8> {
    // A browser asks so what it may ask, where nobody else answers it.
    let implies = (route.verifies || route.cors.is_some()) && route.parts.is_empty();
    match &rule.method {
        Method::Any => Some(2),
        Method::Named(name) if **name == *method => Some(0),
        Method::Named(name) if &**name == "GET" && method == "HEAD" => Some(1),
        Method::Named(_) if method == "OPTIONS" && implies => Some(3),
        Method::Named(_) => None,
    }
}

/// What each segment of a rule leaves open that matches this path.
fn open(rule: &MatchRule, path: &str) -> Option<Vec<u8>> {
    let segments = &rule.template.segments;
    if segments.is_empty() {
        return (path == "/").then(Vec::new);
    }
    let mut parts = path.strip_prefix('/')?.split('/');
    let mut open = Vec::new();
    for segment in segments {
        let part = parts.next()?;
        match segment {
            // It may be empty, but the slash before it is there.
            Segment::Rest(_) => {
                open.push(2);
                return Some(open);
            }
            Segment::Literal(text) if canonical::escapes(text) == part => open.push(0),
            Segment::Parameter(_) if !part.is_empty() => open.push(1),
            Segment::Literal(_) | Segment::Parameter(_) => return None,
        }
    }
    parts.next().is_none().then_some(open)
}
