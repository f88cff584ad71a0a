//! Routes that write operations: what each needs to be sure of its caller, of its answers and of what it asks for later.

mod answers;
mod around;
mod callers;
mod times;
mod verification;

use std::ops::Range;

use backstop_engine::policy::effect::{KeySource, Scope};

use crate::check::View;
use crate::check::keys::repeated;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::lower::effect;
use crate::read::{At, Context};
use crate::shape::EffectTable;
use crate::value::{EditableHeader, Method, Pointer, size_text};

/// A request is held whole, beside many others.
const MOST_BODY_BYTES: u64 = 16 << 20;

/// A route that writes operations.
#[derive(Clone, Copy, Debug)]
struct EffectView<'a> {
    route: RouteView<'a>,
    table: &'a EffectTable,
}

impl EffectView<'_> {
    fn text(&self) -> &str {
        self.route.text()
    }

    /// Where the route is written.
    fn place(&self) -> Range<usize> {
        self.route.entry.at.bytes.clone()
    }

    /// Whether this key is written but could not be read.
    fn is_unreadable(&self, key: &str, cx: &Context<'_>) -> bool {
        cx.is_unreadable(&format!("route.{}.effect.{key}", self.text()))
    }
}

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for route in view.routes() {
        let Some(table) = route.effect() else { continue };
        let effect = EffectView { route, table };
        on_read(route, cx);
        body(route, cx);
        headers(view, effect, cx);
        fingerprint(effect, cx);
        callers::check(view, effect, cx);
        answers::check(effect, cx);
        verification::check(effect, cx);
        times::check(effect, cx);
        around::check(view, effect, cx);
    }
    around::ledger(view, cx);
}

/// A request without a key of its own is refused, and a read has none.
fn on_read(route: RouteView<'_>, cx: &mut Context<'_>) {
    let writes_only = |method: &Method| method.may_write() && *method != Method::Any;
    for rule in route.matches().iter().filter(|rule| !writes_only(&rule.value.method)) {
        let message = format!("`{}` may be a read, and a read is no operation", rule.value);
        cx.report(Finding::new(Code::EffectOnRead, rule.bytes.clone(), message).help(
            "match the methods that have the effect, such as `POST`, and give reads a route of their own",
        ));
    }
}

fn body(route: RouteView<'_>, cx: &mut Context<'_>) {
    let written = route.common().limits.as_ref().and_then(|limits| limits.value.body.as_ref());
    let Some(body) = written.filter(|body| body.value.0 > MOST_BODY_BYTES) else { return };
    let message = format!("a request of `{}` may have {}", route.text(), size_text(body.value.0));
    cx.report(Finding::new(Code::EffectBody, body.bytes.clone(), message).help(format!(
        "what has an effect is held whole before it is written down: at most {}",
        size_text(MOST_BODY_BYTES)
    )));
}

/// Every header has one purpose, and no edit undoes it.
fn headers(view: &View<'_>, effect: EffectView<'_>, cx: &mut Context<'_>) {
    let table = effect.table;
    let send = effect::send_header(table);
    let place_of_send = table.send.as_ref().and_then(|send| send.value.header.as_ref()).map(|at| &at.bytes);
    let not_after = table.absence.as_ref().and_then(|absence| {
        let header = absence.value.not_after.as_ref()?.value.header.as_ref()?;
        Some((
            header.value.0.clone(),
            header.bytes.clone(),
            "tells the upstream until when it may execute it",
        ))
    });
    let key = match table.operation_id.as_ref().map(|key| (&key.value.0, &key.bytes)) {
        Some((KeySource::Header(name), bytes)) => Some((name.clone(), bytes.clone())),
        Some((KeySource::Body(_), _)) => None,
        None => Some((default::OPERATION_HEADER.into(), effect.place())),
    };
    let is_key = key.as_ref().is_some_and(|(name, _)| *name == send);
    let key = key.map(|(name, bytes)| (name, bytes, "holds the client's key"));
    let sent = (
        send.clone(),
        place_of_send.cloned().unwrap_or(effect.place()),
        "tells the upstream which operation it is",
    );
    let scope = table.scope.as_ref().and_then(|scope| match &scope.value.0 {
        Scope::Header(name) => Some((name.clone(), scope.bytes.clone(), "tells callers apart")),
        Scope::Principal | Scope::Route => None,
    });
    let set: Vec<_> = not_after.iter().map(|(name, ..)| name.clone()).chain([send]).collect();
    let told = view.authorizers().flat_map(|authorizer| {
        let principal = authorizer.table.value.principal.iter().map(|at| (&at.value.0, &at.bytes));
        let tells = authorizer.table.value.tells.iter().flat_map(|tells| &tells.value.0);
        principal.chain(tells.map(|at| (&at.value.0, &at.bytes)))
    });
    let told: Vec<_> =
        told.map(|(name, bytes)| (name.clone(), bytes.clone(), "is an authorizer's to set")).collect();
    let by_authorizers = told.len();
    let own = key.into_iter().chain((!is_key).then_some(sent)).chain(not_after).chain(scope);
    let purposes: Vec<_> = told.into_iter().chain(own).collect();
    for (index, (name, bytes, purpose)) in purposes.iter().enumerate().skip(by_authorizers) {
        let Some((_, other, first)) = purposes.iter().take(index).find(|(known, ..)| known == name) else {
            continue;
        };
        let message = format!("`{name}` {first}, and cannot be what {purpose}");
        cx.report(
            Finding::new(Code::EffectHeader, bytes.clone(), message)
                .related(other.clone(), "its first purpose")
                .help("name another header for one of them"),
        );
    }
    edits(effect, &set, cx);
}

fn edits(effect: EffectView<'_>, set: &[Box<str>], cx: &mut Context<'_>) {
    let Some(edits) = effect.route.common().request_headers.as_ref().map(|edits| &edits.value) else {
        return;
    };
    let names = edits.set.iter().flat_map(|set| set.value.entries.iter().map(|(name, _)| name));
    let removed = edits.remove.iter().flat_map(|remove| &remove.value.0);
    for name in names.chain(removed).filter(|name: &&At<EditableHeader>| set.contains(&name.value.0)) {
        let message = format!("`{}` is not the policy's to change here", name.value.0);
        cx.report(
            Finding::new(Code::ReservedHeader, name.bytes.clone(), message)
                .help("leave it: by it the upstream knows the operation"),
        );
    }
}

fn fingerprint(effect: EffectView<'_>, cx: &mut Context<'_>) {
    repeated(effect.table.redact.iter().flat_map(|list| &list.value.0), written, cx);
    let Some(fingerprint) = &effect.table.fingerprint else { return };
    let (ignore, only) = (&fingerprint.value.ignore, &fingerprint.value.only);
    for list in ignore.iter().chain(only) {
        repeated(list.value.0.iter(), written, cx);
    }
    match (ignore, only) {
        (Some(ignore), None) => {
            let Some(all) = ignore.value.0.iter().find(|pointer| pointer.value.0.is_empty()) else { return };
            let message = format!("any body would be the same request of `{}`", effect.text());
            cx.report(
                Finding::new(Code::Empty, all.bytes.clone(), message)
                    .help("ignore single members, such as `/nonce`; the empty pointer is the whole body"),
            );
        }
        (None, Some(_)) => {}
        (Some(ignore), Some(only)) => {
            cx.report(
                Finding::new(
                    Code::ExactlyOne,
                    only.bytes.clone(),
                    "two rules for what makes requests the same",
                )
                .related(ignore.bytes.clone(), "the other one")
                .help("keep either `ignore` or `only`"),
            );
        }
        (None, None) => {
            let unread = ["fingerprint.ignore", "fingerprint.only"];
            if !unread.into_iter().any(|key| effect.is_unreadable(key, cx)) {
                let message = "nothing says what makes requests the same";
                cx.report(
                    Finding::new(Code::ExactlyOne, fingerprint.bytes.clone(), message).help(
                        "write `ignore` or `only`, or leave `fingerprint` out: then it is the whole body",
                    ),
                );
            }
        }
    }
}

fn written(pointer: &At<Pointer>) -> String {
    pointer.value.0.to_string()
}
