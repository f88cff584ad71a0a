//! What tells copies apart, and lists that hold an entry twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use backstop_engine::policy::KeyPart;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::KeptTable;
use crate::suggest;
use crate::value::KeyPartText;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for dependency in view.dependencies() {
        repeated(dependency.uses(), |name| name.value.0.to_string(), cx);
    }
    for route in view.routes() {
        repeated(
            route.common().declared.iter().flat_map(|list| &list.value.0),
            |s| s.value.0.to_string(),
            cx,
        );
        let languages = route.languages().into_iter().flat_map(|languages| &languages.value.0);
        repeated(languages, |language| language.value.0.to_ascii_lowercase(), cx);
        prepared_languages(route, cx);
        let Some(read) = route.kept() else { continue };
        let key = || read.key.iter().flat_map(|key| &key.value.0);
        let echo = read.correct.iter().flat_map(|correct| &correct.value.echo);
        for part in key().chain(echo.flat_map(|echo| echo.value.entries.iter().map(|(_, part)| part))) {
            path_parameter(route, part, cx);
            language_without_languages(read, part, cx);
        }
        repeated(key(), |part| written(&part.value.0), cx);
        language_in_key(read, cx);
    }
}

pub(super) fn repeated<'a, T: 'a>(
    entries: impl Iterator<Item = &'a At<T>>,
    name: impl Fn(&At<T>) -> String,
    cx: &mut Context<'_>,
) {
    let mut seen = HashMap::new();
    for entry in entries {
        match seen.entry(name(entry)) {
            Entry::Occupied(first) => {
                let message = format!("`{}` stands twice in this list", first.key());
                let finding = Finding::new(Code::Repeated, entry.bytes.clone(), message);
                cx.report(finding.related(Clone::clone(first.get()), "first here"));
            }
            Entry::Vacant(vacant) => {
                vacant.insert(entry.bytes.clone());
            }
        }
    }
}

/// A prepared answer has languages that the route negotiates, each once.
fn prepared_languages(route: RouteView<'_>, cx: &mut Context<'_>) {
    let otherwise = route.optional().and_then(|optional| optional.otherwise.as_ref());
    let Some(prepared) = otherwise.and_then(|otherwise| otherwise.value.prepared.as_ref()) else { return };
    repeated(prepared.value.languages().map(|(at, _)| at), |whom| whom.value.tag().to_ascii_lowercase(), cx);
    for (at, tag) in prepared.value.languages() {
        let finding = |message: String| Finding::new(Code::PreparedLanguages, at.bytes.clone(), message);
        match route.languages() {
            None => {
                cx.report(
                    finding(format!("`{tag}` is never negotiated: the route states no `languages`"))
                        .help(format!("add `languages = [\"{tag}\"]` to the route")),
                );
                return;
            }
            Some(languages) => {
                let known = || languages.value.0.iter().map(|language| &*language.value.0);
                if known().any(|language| language.eq_ignore_ascii_case(tag)) {
                    continue;
                }
                let finding = finding(format!("`{tag}` is not among the route's `languages`"))
                    .related(languages.bytes.clone(), "negotiated to one of these");
                cx.report(
                    finding
                        .help("nobody would get this answer: add the language there, or leave the file out"),
                );
            }
        }
    }
}

/// A key part as it is written.
fn written(part: &KeyPart) -> String {
    match part {
        KeyPart::Path(name) => format!("path.{name}"),
        KeyPart::Query(name) => format!("query.{name}"),
        KeyPart::Header(name) => format!("header.{name}"),
        KeyPart::Language => "language".to_owned(),
        KeyPart::Principal => "principal".to_owned(),
    }
}

fn path_parameter(route: RouteView<'_>, part: &At<KeyPartText>, cx: &mut Context<'_>) {
    let KeyPart::Path(name) = &part.value.0 else { return };
    let Some(rule) =
        route.matches().iter().find(|rule| !rule.value.template.parameters().any(|p| p == &**name))
    else {
        return;
    };
    let message = format!("`{}` has no parameter `{name}`", rule.value);
    let finding = Finding::new(Code::KeyParameter, part.bytes.clone(), message)
        .related(rule.bytes.clone(), "the path is given here");
    let parameters: Vec<_> = rule.value.template.parameters().collect();
    let close = cx.has_room().then(|| suggest::closest(name, parameters.iter().copied()));
    cx.report(match close.flatten() {
        Some(close) => finding.fix(part.bytes.clone(), format!("\"path.{close}\"")),
        None if parameters.is_empty() => finding.help("the whole path is part of every key; leave this out"),
        None => finding.help(format!("its parameters are {}", suggest::listed(parameters))),
    });
}

fn language_without_languages(read: &KeptTable, part: &At<KeyPartText>, cx: &mut Context<'_>) {
    if part.value.0 == KeyPart::Language && !has_languages(read) {
        let message = "`language` is the negotiated one, but the route states no `languages`";
        cx.report(
            Finding::new(Code::NoLanguages, part.bytes.clone(), message)
                .help("add the languages that the dependency has, such as `languages = [\"es\", \"en\"]`"),
        );
    }
}

fn has_languages(read: &KeptTable) -> bool {
    read.languages.as_ref().is_some_and(|languages| !languages.value.0.is_empty())
}

fn language_in_key(read: &KeptTable, cx: &mut Context<'_>) {
    let Some(languages) = read.languages.as_ref().filter(|languages| languages.value.0.len() > 1) else {
        return;
    };
    let parts = read.key.iter().flat_map(|key| &key.value.0);
    if parts.clone().any(|part| part.value.0 == KeyPart::Language) {
        return;
    }
    let message = "answers in different languages would share a copy unless the origin sends `Vary`";
    let finding = Finding::new(Code::LanguageNotInKey, languages.bytes.clone(), message);
    cx.report(match &read.key {
        Some(key) => finding
            .related(key.bytes.clone(), "`language` is missing here")
            .help("add `\"language\"` to the key"),
        None => finding.help("add `key = [\"language\"]`"),
    });
}
