//! Parts of composed answers: that each can be asked for, whatever the request, and that each has a place of its own.

use backstop_engine::composed::MOST_PARTS;

use crate::check::View;
use crate::check::references::unknown;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::{PartTable, RouteTable};
use crate::suggest;
use crate::value::{HostPattern, MatchRule, Pointer, Segment};

/// A JSON Pointer of more steps than any page has.
const MOST_STEPS: usize = 32;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for route in view.routes() {
        let Some(parts) = route.composed().and_then(|table| table.parts.as_ref()) else { continue };
        count(&parts.value.0, parts, cx);
        places(&parts.value.0, cx);
        for part in &parts.value.0 {
            parameters(route, &part.value, cx);
            asked(view, route, &part.value, cx);
        }
    }
}

fn count<T>(entries: &[At<PartTable>], parts: &At<T>, cx: &mut Context<'_>) {
    if entries.is_empty() {
        let finding = Finding::new(Code::Empty, parts.bytes.clone(), "an answer is composed of nothing");
        cx.report(finding.help(
            "add a part: `{ at = \"/product\", route = \"NAME\", path = \"/products/{product}\", required = true }`",
        ));
    }
    if let Some(first) = entries.get(MOST_PARTS) {
        let message = format!("{} parts, and one answer has at most {MOST_PARTS}", entries.len());
        cx.report(
            Finding::new(Code::TooManyParts, first.bytes.clone(), message)
                .related(parts.bytes.start..parts.bytes.start + 1, "the parts begin here")
                .help("every part is a request of its own: let a service behind bring some of them together"),
        );
    }
}

/// The steps of a pointer.
fn steps(pointer: &str) -> Vec<&str> {
    pointer.split('/').skip(1).collect()
}

fn places(parts: &[At<PartTable>], cx: &mut Context<'_>) {
    let places: Vec<_> = parts.iter().filter_map(|part| part.value.at.as_ref()).collect();
    for (index, place) in places.iter().enumerate() {
        let own = steps(&place.value.0);
        if own.is_empty() {
            let message = "a part stands at a member of the answer, not in place of all of it";
            cx.report(
                Finding::new(Code::PartPlaces, place.bytes.clone(), message)
                    .help("name a member, such as `/product`"),
            );
            continue;
        }
        if own.len() > MOST_STEPS {
            let message = format!("{} steps, and a place has at most {MOST_STEPS}", own.len());
            cx.report(Finding::new(Code::Pointer, place.bytes.clone(), message).help("nest less deeply"));
        }
        let within = |other: &&&At<Pointer>| {
            let other = steps(&other.value.0);
            !other.is_empty() && (own.starts_with(&other) || other.starts_with(&own))
        };
        if let Some(other) = places.iter().take(index).find(within) {
            let message = match other.value == place.value {
                true => format!("two parts at `{}`", place.value.0),
                false => format!("`{}` and `{}` stand one within the other", other.value.0, place.value.0),
            };
            cx.report(
                Finding::new(Code::PartPlaces, place.bytes.clone(), message)
                    .related(other.bytes.clone(), "the other part")
                    .help("give each part a member of its own"),
            );
        }
    }
}

/// Every parameter of the path is one that each of the route's own paths has.
fn parameters(route: RouteView<'_>, part: &PartTable, cx: &mut Context<'_>) {
    let Some(path) = &part.path else { return };
    for name in path.value.0.parameters() {
        let has = |rule: &&At<MatchRule>| {
            rule.value
                .template
                .segments
                .iter()
                .any(|segment| matches!(segment, Segment::Parameter(own) if **own == *name))
        };
        let Some(rule) = route.matches().iter().find(|rule| !has(rule)) else { continue };
        let own: Vec<&str> = rule
            .value
            .template
            .segments
            .iter()
            .filter_map(|segment| match segment {
                Segment::Parameter(name) => Some(&**name),
                Segment::Literal(_) | Segment::Rest(_) => None,
            })
            .collect();
        let is_rest = rule.value.template.parameters().any(|own| own == name);
        let message = match is_rest {
            true => format!("`{{{name}*}}` of `{}` is no single segment", rule.value),
            false => format!("`{}` has no parameter `{name}`", rule.value),
        };
        let finding = Finding::new(Code::PartParameter, path.bytes.clone(), message)
            .related(rule.bytes.clone(), "the request's path is given here");
        let close = cx.has_room().then(|| suggest::closest(name, own.iter().copied())).flatten();
        cx.report(match close {
            Some(close) => {
                let repaired =
                    path.value.0.to_string().replace(&format!("{{{name}}}"), &format!("{{{close}}}"));
                finding
                    .help(format!("did you mean `{{{close}}}`?"))
                    .fix(path.bytes.clone(), format!("{repaired:?}"))
            }
            None if own.is_empty() => finding.help("it has no parameters: write the path out"),
            None => finding.help(format!("its parameters are {}", suggest::listed(own))),
        });
    }
}

/// The route that is asked: known, of a class that can be a part, and matching the path always.
fn asked(view: &View<'_>, route: RouteView<'_>, part: &PartTable, cx: &mut Context<'_>) {
    let Some(name) = &part.route else { return };
    let names: Vec<_> = view.route_names().collect();
    if !names.contains(&&*name.value.0) {
        cx.report(unknown("route", &name.value, name.bytes.clone(), &names, cx.has_room()));
        return;
    }
    let Some(asked) = view.route(&name.value.0) else { return };
    if let Some((what, help)) = never_a_part(&asked.entry.table) {
        let message = format!("`{}` {what}", asked.text());
        cx.report(
            Finding::new(Code::PartClass, name.bytes.clone(), message)
                .related(asked.entry.at.bytes.clone(), "this route")
                .help(help),
        );
        return;
    }
    let Some(path) = &part.path else { return };
    if asked.matches().is_empty() {
        return;
    }
    if asked.rule_for(&path.value.0).is_none() {
        let message = format!("`{}` does not answer `GET {}` for every request", asked.text(), path.value.0);
        cx.report(
            Finding::new(Code::PartNotMatched, path.bytes.clone(), message)
                .related(
                    asked.matches().first().map_or(name.bytes.clone(), |rule| rule.bytes.clone()),
                    "it answers this",
                )
                .help("write a path that the route matches whatever the parameters are"),
        );
    } else if let Some(host) = unanswered_host(route, asked) {
        let message = format!("`{}` does not answer for {host}", asked.text());
        cx.report(
            Finding::new(Code::PartNotMatched, name.bytes.clone(), message)
                .related(
                    asked.common().host.as_ref().map_or(name.bytes.clone(), |host| host.bytes.clone()),
                    "its hosts",
                )
                .help("give this route the same `host`"),
        );
    }
}

/// Why a route of this class cannot be a part, and what to do.
fn never_a_part(table: &RouteTable) -> Option<(&'static str, &'static str)> {
    match table {
        RouteTable::Direct(direct) => direct
            .idle
            .as_ref()
            .map(|_| ("may stream without end, and a part must end", "ask a route without `idle`")),
        RouteTable::PublicRead(_)
        | RouteTable::CachedRead(_)
        | RouteTable::Optional(_)
        | RouteTable::Guarded(_) => None,
        RouteTable::Effect(_) => Some(("has effects, and a part is a read", "ask a route that reads")),
        RouteTable::Composed(_) => {
            Some(("is composed itself, and parts do not nest", "name its parts here one by one"))
        }
    }
}

/// A host of the one route for which the other does not answer.
fn unanswered_host(route: RouteView<'_>, asked: RouteView<'_>) -> Option<String> {
    let hosts = |route: RouteView<'_>| -> Vec<HostPattern> {
        route.common().host.iter().flat_map(|hosts| &hosts.value.0).map(|host| host.value.clone()).collect()
    };
    let (own, answered) = (hosts(route), hosts(asked));
    if answered.is_empty() {
        return None;
    }
    if own.is_empty() {
        return Some("every host".to_owned());
    }
    let covers = |host: &HostPattern| {
        answered.iter().any(|pattern| match (pattern, host) {
            (HostPattern::Suffix(pattern), HostPattern::Suffix(host)) => host.ends_with(&**pattern),
            (pattern, HostPattern::Exact(host)) => pattern.matches(host),
            (HostPattern::Exact(_), HostPattern::Suffix(_)) => false,
        })
    };
    own.iter().find(|host| !covers(host)).map(|host| match host {
        HostPattern::Exact(host) => format!("`{host}`"),
        HostPattern::Suffix(suffix) => format!("`*{suffix}`"),
    })
}
