//! Header edits: what the policy may not change, and what contradicts itself.

use std::collections::HashMap;

use backstop_engine::policy::KeyPart;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::HeaderEditsTable;
use crate::value::{EditableHeader, is_of_content, is_telling};

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for route in view.routes() {
        let common = route.common();
        for edits in common.request_headers.iter().chain(&common.response_headers) {
            conflict(&edits.value, cx);
        }
        if let Some(edits) = &common.request_headers {
            meaning(&edits.value, route.kept().is_some(), cx);
        }
        if let Some(edits) = &common.response_headers {
            telling(&edits.value, cx);
        }
        negotiated_language(route, cx);
        coding(route, cx);
        ignored_cookie(route, cx);
        removed_key_header(route, cx);
    }
}

fn set(edits: &HeaderEditsTable) -> impl Iterator<Item = &At<EditableHeader>> + Clone {
    edits.set.iter().flat_map(|set| set.value.entries.iter().map(|(name, _)| name))
}

fn removed(edits: &HeaderEditsTable) -> impl Iterator<Item = &At<EditableHeader>> + Clone {
    edits.remove.iter().flat_map(|remove| &remove.value.0)
}

fn conflict(edits: &HeaderEditsTable, cx: &mut Context<'_>) {
    let mut seen = HashMap::new();
    for later in set(edits).chain(removed(edits)) {
        let first = *seen.entry(&later.value.0).or_insert(later);
        if !std::ptr::eq(first, later) {
            let message = format!("`{}` is edited twice", later.value.0);
            cx.report(
                Finding::new(Code::EditConflict, later.bytes.clone(), message)
                    .related(first.bytes.clone(), "first here")
                    .help("setting a field replaces it; removing it as well is not needed"),
            );
        }
    }
}

/// Request fields by which gateways know a request: their own when it comes back (RFC 9110 section 7.6.3: a proxy must
/// send `Via`), and one that was tried before.
const PASSED: [&str; 2] = ["via", "backstop-attempt"];

/// Request fields that change which answer comes.
const MEANING: [&str; 8] = [
    "cache-control",
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
];

fn meaning(edits: &HeaderEditsTable, has_copies: bool, cx: &mut Context<'_>) {
    for name in set(edits).chain(removed(edits)).filter(|name| PASSED.contains(&&*name.value.0)) {
        let message = format!("`{}` is not the policy's to change", name.value.0);
        cx.report(
            Finding::new(Code::ReservedHeader, name.bytes.clone(), message)
                .help("leave it: by it gateways know a loop, and that a request was tried already"),
        );
    }
    for name in set(edits).filter(|name| has_copies && MEANING.contains(&&*name.value.0)) {
        let message = format!("`{}` is not the policy's to set here", name.value.0);
        cx.report(
            Finding::new(Code::ReservedHeader, name.bytes.clone(), message)
                .help("leave it: set for all, no answer would be whole, or none could be kept"),
        );
    }
}

fn telling(edits: &HeaderEditsTable, cx: &mut Context<'_>) {
    for name in set(edits).chain(removed(edits)) {
        let field = &*name.value.0;
        let (what, why) = if is_telling(field) {
            (
                "tells where an answer comes from and how old it is",
                "leave it: an answer never looks newer or other than it is",
            )
        } else if is_of_content(field) {
            (
                "says what the content is",
                "leave it: content is passed on as it came, and clients read it by this",
            )
        } else {
            continue;
        };
        let message = format!("`{field}` {what}");
        cx.report(Finding::new(Code::ReservedHeader, name.bytes.clone(), message).help(why));
    }
}

fn negotiated_language(route: RouteView<'_>, cx: &mut Context<'_>) {
    let Some(languages) = route.languages() else { return };
    if let Some(edits) = &route.common().request_headers {
        for name in set(&edits.value).chain(removed(&edits.value)) {
            if &*name.value.0 == "accept-language" {
                let message = "`accept-language` is already negotiated by `languages`";
                cx.report(
                    Finding::new(Code::ReservedHeader, name.bytes.clone(), message)
                        .related(languages.bytes.clone(), "negotiated to one of these"),
                );
            }
        }
    }
}

/// What the classes that look into answers ask for, whatever the policy would.
const CODING: &str = "accept-encoding";

fn coding(route: RouteView<'_>, cx: &mut Context<'_>) {
    if route.kept().is_none() {
        return;
    }
    let edits = route.common().request_headers.iter().flat_map(|edits| {
        let edits = &edits.value;
        set(edits).chain(removed(edits))
    });
    for name in edits.filter(|name| &*name.value.0 == CODING) {
        let message = format!("`{CODING}` is always `identity` on a `{}`", route.class());
        cx.report(Finding::new(Code::ReservedHeader, name.bytes.clone(), message).help(
            "leave it out: a coded body cannot be looked into; compress for clients in front of Backstop",
        ));
    }
}

fn ignored_cookie(route: RouteView<'_>, cx: &mut Context<'_>) {
    let Some(ignore) = route.kept().and_then(|read| read.ignore_cookie.as_ref()) else { return };
    let mut edits = route.common().request_headers.iter();
    if ignore.value && !edits.any(|edits| removed(&edits.value).any(|name| &*name.value.0 == "cookie")) {
        let message = "the Cookie is ignored in the key, but the dependency still sees it";
        cx.report(
            Finding::new(Code::CookieForwarded, ignore.bytes.clone(), message).help(
                "add `request_headers = { remove = [\"cookie\"] }`, so that no answer can depend on it",
            ),
        );
    }
}

fn removed_key_header(route: RouteView<'_>, cx: &mut Context<'_>) {
    let Some(key) = route.kept().and_then(|read| read.key.as_ref()) else { return };
    for part in &key.value.0 {
        let KeyPart::Header(header) = &part.value.0 else { continue };
        if &**header == CODING {
            let message = format!(
                "the dependency never sees the client's `{header}`, so its answers cannot depend on it"
            );
            cx.report(
                Finding::new(Code::KeyHeaderRemoved, part.bytes.clone(), message)
                    .help("leave it out of the key: this class always asks for `identity`"),
            );
            continue;
        }
        if let Some(edits) = &route.common().request_headers {
            for name in set(&edits.value).chain(removed(&edits.value)).filter(|name| name.value.0 == *header)
            {
                let message = format!(
                    "the dependency never sees the client's `{header}`, so its answers cannot depend on it"
                );
                cx.report(
                    Finding::new(Code::KeyHeaderRemoved, part.bytes.clone(), message)
                        .related(name.bytes.clone(), "changed before forwarding")
                        .help("leave it out of the key, or forward it"),
                );
            }
        }
    }
}
