//! Whose operation it is, and who may see its answer.

use backstop_engine::policy::effect::{KeyForm, Scope};

use super::EffectView;
use crate::check::View;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::lower::effect;
use crate::read::Context;

pub(super) fn check(view: &View<'_>, effect: EffectView<'_>, cx: &mut Context<'_>) {
    if effect.is_unreadable("scope", cx) || effect.is_unreadable("authorizer", cx) {
        return;
    }
    match effect::scope(effect.table) {
        None => {
            let message = format!("nothing says among whom the keys of `{}` are told apart", effect.text());
            cx.report(Finding::new(Code::NoScope, effect.place(), message).help(
                "name an `authorizer`, or write `scope`: two callers with one key would share an operation",
            ));
        }
        Some(scope) => {
            verified(view, effect, &scope, cx);
            named(view, effect, &scope, cx);
            shared_account(effect, &scope, cx);
        }
    }
    bodies(effect, cx);
}

/// Somebody vouches for the scope.
fn verified(view: &View<'_>, effect: EffectView<'_>, scope: &Scope, cx: &mut Context<'_>) {
    let Some(written) = &effect.table.scope else { return };
    match scope {
        Scope::Principal if effect.table.common.authorizer.is_none() => {
            let message = format!("`{}` has no authorizer that could say who calls", effect.text());
            cx.report(Finding::new(Code::ScopeNotVerified, written.bytes.clone(), message).help(
                "name one in `authorizer`, or a header that a trusted proxy sets: `scope = \"header.NAME\"`",
            ));
        }
        Scope::Header(name) => {
            let trusted = view.gateway().and_then(|gateway| gateway.trusted.as_ref());
            let nobody = trusted.is_none_or(|trusted| trusted.value.0.is_empty());
            if nobody && !cx.is_unreadable("gateway.trusted") {
                let message = format!("no proxy is trusted to set `{name}`");
                cx.report(
                    Finding::new(Code::ScopeNotVerified, written.bytes.clone(), message)
                        .help("name the proxies that set it in `trusted` of `[gateway]`: a client that sets it could take another's place"),
                );
            }
        }
        Scope::Route => {
            let message =
                format!("whoever calls `{}` with a key of another caller gets its operation", effect.text());
            cx.report(
                Finding::new(Code::SharedScope, written.bytes.clone(), message)
                    .help("tell callers apart by an `authorizer` or by a header of a trusted proxy, unless there is only one caller"),
            );
        }
        Scope::Principal => {}
    }
}

/// The authorizer names whom it verified.
fn named(view: &View<'_>, effect: EffectView<'_>, scope: &Scope, cx: &mut Context<'_>) {
    let (Some(written), Some(authorizer)) =
        (&effect.table.common.authorizer, view.authorizer_of(effect.route))
    else {
        return;
    };
    let name = &authorizer.name.value.0;
    let is_unreadable = cx.is_unreadable(&format!("authorizer.{name}.principal"));
    if *scope != Scope::Principal || authorizer.table.value.principal.is_some() || is_unreadable {
        return;
    }
    let message = format!("`{name}` says that a caller may, and not who it is");
    cx.report(
        Finding::new(Code::ScopeNotVerified, written.bytes.clone(), message)
            .related(authorizer.name.bytes.clone(), "the route's authorizer")
            .help("say which field of its answer names the caller, such as `principal = \"header.x-user\"`"),
    );
}

/// Callers of different scopes may choose the same key, and the upstream may take them for one.
fn shared_account(effect: EffectView<'_>, scope: &Scope, cx: &mut Context<'_>) {
    let table = effect.table;
    let send = table.send.as_ref().and_then(|send| send.value.form.as_ref());
    let is_derived = send.is_some_and(|form| form.value.0 == KeyForm::Derived);
    let shared = table.shared_account.as_ref();
    let is_apart = shared.is_some_and(|shared| !shared.value);
    if *scope == Scope::Route || is_derived || is_apart || effect.is_unreadable("shared_account", cx) {
        return;
    }
    let place = shared.map_or_else(|| effect.place(), |shared| shared.bytes.clone());
    let message = match shared {
        Some(_) => {
            format!("two tenants of `{}` with one key are one operation to their upstream", effect.text())
        }
        None => format!(
            "if tenants of `{}` share an account upstream, two with one key are one operation there",
            effect.text()
        ),
    };
    cx.report(Finding::new(Code::SharedAccount, place, message).help(
        "write `send = { as = \"derived\" }`, or `shared_account = false` if each has an account of its own",
    ));
}

/// What is kept of an answer is shown to who repeats the operation.
fn bodies(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let table = effect.table;
    let Some(store) = table.store_body.as_ref().filter(|store| store.value.0) else { return };
    if effect::has_card_data(table) {
        let message = format!("answers of `{}` may hold card data, and would be kept", effect.text());
        let finding = Finding::new(Code::CardData, store.bytes.clone(), message)
            .help("write `store_body = \"none\"`, or leave it out: what must never be stored is easily missed by `redact`");
        cx.report(match &table.card_data {
            Some(card_data) => finding.related(card_data.bytes.clone(), "says so"),
            None => finding,
        });
    }
    if let Some(scope) = table.scope.as_ref().filter(|scope| scope.value.0 == Scope::Route) {
        let message = format!("an answer of `{}` would be shown to whoever sends its key", effect.text());
        cx.report(
            Finding::new(Code::SharedBodies, store.bytes.clone(), message)
                .related(scope.bytes.clone(), "all callers share operations")
                .help("write `store_body = \"none\"`, or leave it out; who repeats an operation then gets its status"),
        );
    }
}
