//! Authorizers of two kinds: which keys belong to which, and keys of an issuer that are fetched in time.

use std::ops::Range;

use crate::check::View;
use crate::check::view::AuthorizerView;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::{AuthorizerTable, JwtTable};
use crate::value::time_text;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for authorizer in view.authorizers() {
        let name = &authorizer.name.value.0;
        match &authorizer.table.value.jwt {
            Some(jwt) => {
                one_kind(authorizer, jwt, cx);
                fetched_in_time(&jwt.value, cx);
                repeated(&jwt.value, cx);
                date(&jwt.value, cx);
            }
            None if cx.is_unreadable(&format!("authorizer.{name}.jwt")) => {}
            None => asked(authorizer, cx),
        }
    }
}

/// What one that is asked must say.
fn asked(authorizer: AuthorizerView<'_>, cx: &mut Context<'_>) {
    let (name, table) = (&authorizer.name.value.0, &authorizer.table.value);
    let header = &authorizer.table.bytes;
    let is_missing = |key: &str, is_given: bool, cx: &Context<'_>| {
        !is_given && !cx.is_unreadable(&format!("authorizer.{name}.{key}"))
    };
    if is_missing("url", table.url.is_some(), cx) {
        let message = format!("`{name}` neither is asked nor verifies tokens");
        cx.report(Finding::new(Code::ExactlyOne, header.clone(), message).label("add `url` here").help(
            format!("say where it is asked (`url`), or whose tokens are believed: `[authorizer.{name}.jwt]`"),
        ));
        return;
    }
    if is_missing("allow", table.allow.is_some(), cx) {
        let message = format!("`authorizer.{name}.allow` is missing");
        cx.report(
            Finding::new(Code::MissingKey, header.clone(), message)
                .label("add `allow` here")
                .help("say what an explicit yes is, such as `allow = { header = \"x-allowed: yes\" }`"),
        );
    }
    if is_missing("in_flight", table.in_flight.is_some(), cx) {
        let message = format!("`authorizer.{name}.in_flight` is missing and has no default");
        cx.report(
            Finding::new(Code::MissingContract, header.clone(), message)
                .label("add `in_flight` here")
                .help("it is your promise to clients and to the dependency: only you can state it"),
        );
    }
}

/// The keys of one that is asked, where they stand.
fn keys_of_one_that_is_asked(table: &AuthorizerTable) -> Vec<(&'static str, Range<usize>)> {
    fn at<T>(key: &'static str, written: Option<&At<T>>) -> Option<(&'static str, Range<usize>)> {
        written.map(|at| (key, at.bytes.clone()))
    }
    [
        at("allow", table.allow.as_ref()),
        at("deny", table.deny.as_ref()),
        at("tells", table.tells.as_ref()),
        at("send", table.send.as_ref()),
        at("in_flight", table.in_flight.as_ref()),
        at("connect", table.connect.as_ref()),
        at("host", table.host.as_ref()),
        at("idle", table.idle.as_ref()),
        at("breaker", table.breaker.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn one_kind(authorizer: AuthorizerView<'_>, jwt: &At<JwtTable>, cx: &mut Context<'_>) {
    let (name, table) = (&authorizer.name.value.0, &authorizer.table.value);
    if let Some(url) = &table.url {
        let message = format!("`{name}` is asked and verifies tokens itself");
        cx.report(
            Finding::new(Code::ExactlyOne, url.bytes.clone(), message)
                .related(jwt.bytes.clone(), "tokens are verified here")
                .help("make two authorizers of it, each for its own routes"),
        );
        return;
    }
    for (key, bytes) in keys_of_one_that_is_asked(table) {
        let message = format!("`{name}` verifies tokens itself, so `{key}` means nothing");
        cx.report(
            Finding::new(Code::OtherKind, bytes, message)
                .related(jwt.bytes.clone(), "tokens are verified here")
                .help("remove it: beside `jwt` there are `principal` and `timeout`"),
        );
    }
}

/// A fetch that begins in time and takes as long as it may must end before the keys are too old: else each slow one is an
/// outage.
fn fetched_in_time(jwt: &JwtTable, cx: &mut Context<'_>) {
    let Some(max_age) = &jwt.max_age else { return };
    let quarter = max_age.value.0 / 4;
    let refresh = jwt.refresh.as_ref().map_or(quarter, |refresh| refresh.value.0);
    let timeout = jwt.timeout.as_ref().map_or(default::KEYS_TIMEOUT.min(quarter), |timeout| timeout.value.0);
    if refresh.saturating_add(timeout) <= max_age.value.0 {
        return;
    }
    let place = jwt.refresh.as_ref().or(jwt.timeout.as_ref()).map_or(&max_age.bytes, |at| &at.bytes);
    let message = format!(
        "fetched every {}, within {}, keys may be older than {}",
        time_text(refresh),
        time_text(timeout),
        time_text(max_age.value.0)
    );
    cx.report(
        Finding::new(Code::KeysTooOld, place.clone(), message)
            .related(max_age.bytes.clone(), "then they let nobody in")
            .help("let `refresh` and `timeout` together be at most `max_age`, better a half of it"),
    );
}

fn repeated(jwt: &JwtTable, cx: &mut Context<'_>) {
    let mut seen: Vec<(String, &Range<usize>)> = Vec::new();
    let audience = jwt.audience.iter().flat_map(|list| &list.value.0);
    let audience = audience.map(|at| (format!("`{}` as audience", at.value.0), &at.bytes));
    let algorithms = jwt.algorithms.iter().flat_map(|list| &list.value.0);
    let algorithms = algorithms.map(|at| (format!("`{}`", at.value.0.token()), &at.bytes));
    for (what, bytes) in audience.chain(algorithms) {
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == what) {
            let message = format!("{what} stands twice in this list");
            let finding = Finding::new(Code::Repeated, bytes.clone(), message);
            cx.report(finding.related((*first).clone(), "first here"));
        } else {
            seen.push((what, bytes));
        }
    }
}

fn date(jwt: &JwtTable, cx: &mut Context<'_>) {
    if let Some(place) = jwt.unsynchronised.as_ref().filter(|choice| choice.value.0) {
        let message = "tokens are believed by a clock that may be wrong";
        cx.report(
            Finding::new(Code::TrustClock, place.bytes.clone(), message)
                .help("run a time service and keep `refuse`, unless this machine cannot have one"),
        );
    }
}
