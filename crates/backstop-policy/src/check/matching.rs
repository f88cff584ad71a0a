//! Which requests come to which route.

use std::collections::HashMap;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::value::{HostPattern, MatchRule, Segment, Template};

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    same_match(view, cx);
    for route in view.routes() {
        writes_with_alternative(route, cx);
        strip_prefix(route, cx);
    }
}

/// Rules of equal rank for the same request: equal in method, path (but for names) and host.
fn same_match(view: &View<'_>, cx: &mut Context<'_>) {
    let rules = view.routes().flat_map(|route| route.matches().iter().map(move |rule| (route, rule)));
    let mut seen: HashMap<_, Vec<(RouteView<'_>, &At<MatchRule>)>> = HashMap::new();
    for (route, rule) in rules {
        let alike = seen.entry((&rule.value.method, shape(&rule.value.template))).or_default();
        for (other, earlier) in alike.iter() {
            let itself = std::ptr::eq(route.entry, other.entry);
            if itself {
                let message = format!("`{}` stands twice in this route", rule.value);
                cx.report(
                    Finding::new(Code::Repeated, rule.bytes.clone(), message)
                        .related(earlier.bytes.clone(), "first here"),
                );
            } else if let Some(host) = shared_host(hosts(route), hosts(*other)) {
                let message = format!(
                    "the routes `{}` and `{}` both match `{}`{host}",
                    other.text(),
                    route.text(),
                    rule.value
                );
                cx.report(
                    Finding::new(Code::SameMatch, rule.bytes.clone(), message)
                        .related(earlier.bytes.clone(), format!("`{}` matches it here", other.text()))
                        .help("give one of them another method, path or host; names of parameters make no difference"),
                );
            }
            if !cx.has_room() {
                break;
            }
        }
        alike.push((route, rule));
    }
}

/// The same for templates of the same shape: parameters without their names, which no literal can be taken for.
fn shape(template: &Template) -> Vec<&str> {
    let parts = template.segments.iter().map(|segment| match segment {
        Segment::Literal(text) => text,
        Segment::Parameter(_) => "{}",
        Segment::Rest(_) => "{*}",
    });
    parts.collect()
}

fn hosts(route: RouteView<'_>) -> &[At<HostPattern>] {
    route.common().host.as_ref().map_or(&[], |host| &host.value.0)
}

/// A host that both name (or that neither names), in words for the message.
fn shared_host(one: &[At<HostPattern>], other: &[At<HostPattern>]) -> Option<String> {
    if one.is_empty() && other.is_empty() {
        return Some(String::new());
    }
    let shared = one.iter().find(|host| other.iter().any(|other| other.value == host.value))?;
    Some(match &shared.value {
        HostPattern::Exact(host) => format!(" for the host `{host}`"),
        HostPattern::Suffix(suffix) => format!(" for the host `*{suffix}`"),
    })
}

/// A stand-in for a write would be an invented success.
fn writes_with_alternative(route: RouteView<'_>, cx: &mut Context<'_>) {
    if route.may_write() {
        return;
    }
    for rule in route.matches().iter().filter(|rule| !rule.value.method.only_reads()) {
        let class = route.class();
        let message = format!("`{}` is more than a read, and `{class}` answers in its place", rule.value);
        cx.report(
            Finding::new(Code::WritesWithAlternative, rule.bytes.clone(), message)
                .related(route.entry.at.bytes.clone(), "this class has an alternative")
                .help("match `GET` here, and give other methods a `direct` route: a stand-in for a write is an invented success"),
        );
    }
}

fn strip_prefix(route: RouteView<'_>, cx: &mut Context<'_>) {
    let Some(prefix) = &route.common().strip_prefix else { return };
    for rule in route.matches().iter().filter(|rule| !rule.value.template.begins_with(&prefix.value)) {
        let message = format!("not every path of `{}` begins with `{}`", rule.value, prefix.value.0);
        cx.report(
            Finding::new(Code::StripPrefix, prefix.bytes.clone(), message)
                .related(rule.bytes.clone(), "matches other paths too")
                .help("strip literal segments that stand at the start of every match"),
        );
    }
}
