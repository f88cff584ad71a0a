//! Waivers: warnings that the file accepts, each with a reason.

use std::ops::Range;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Finding};
use crate::load::Waived;
use crate::read::Context;
use crate::shape::{File, WaiverTable};
use crate::suggest;

/// One accepted warning.
#[derive(Debug)]
pub(crate) struct Waiver {
    code: Code,
    reason: Box<str>,
    bytes: Range<usize>,
}

/// The file's waivers; wrong ones are reported.
pub(crate) fn read(file: &File, cx: &mut Context<'_>) -> Vec<Waiver> {
    let allow = file.check.as_ref().and_then(|check| check.value.allow.as_ref());
    let Some(allow) = allow else { return Vec::new() };
    allow.value.0.iter().filter_map(|entry| read_one(&entry.value, cx)).collect()
}

fn read_one(table: &WaiverTable, cx: &mut Context<'_>) -> Option<Waiver> {
    let (code, reason) = (table.code.as_ref()?, table.reason.as_ref()?);
    if reason.value.0.trim().is_empty() {
        let finding = Finding::new(Code::WaiverReason, reason.bytes.clone(), "a waiver needs a reason");
        cx.report(finding.help("say why it is accepted, for whoever reads the file next"));
    }
    let text = &*code.value.0;
    match Code::find(text) {
        Some(found) if found.may_be_waived() => {
            Some(Waiver { code: found, reason: reason.value.0.clone(), bytes: code.bytes.clone() })
        }
        Some(found) => {
            let message = format!("{found} cannot be waived: {}", found.title());
            cx.report(
                Finding::new(Code::UnknownWaiver, code.bytes.clone(), message).help("repair it instead"),
            );
            None
        }
        None => {
            let finding = Finding::new(
                Code::UnknownWaiver,
                code.bytes.clone(),
                format!("there is no diagnostic `{text}`"),
            );
            let waivable = Code::ALL.iter().filter(|code| code.may_be_waived()).map(|code| code.as_str());
            let close = cx.has_room().then(|| suggest::closest(text, waivable));
            cx.report(match close.flatten() {
                Some(close) => finding.fix(code.bytes.clone(), format!("\"{close}\"")),
                None => finding.help("codes are written like `BS0501`"),
            });
            None
        }
    }
}

/// Reports waivers that waive nothing.
pub(crate) fn report_unused(waivers: &[Waiver], cx: &mut Context<'_>) {
    for waiver in waivers.iter().filter(|waiver| !cx.has(waiver.code)).collect::<Vec<_>>() {
        let message = format!("{} does not occur in this policy", waiver.code);
        cx.report(
            Finding::new(Code::UnusedWaiver, waiver.bytes.clone(), message)
                .help("remove the waiver, so that it does not hide the next one"),
        );
    }
}

/// Splits what is waived from what is not.
pub(crate) fn apply(waivers: &[Waiver], diagnostics: Vec<Diagnostic>) -> (Vec<Diagnostic>, Vec<Waived>) {
    let mut waived = Vec::new();
    let mut kept = Vec::new();
    for diagnostic in diagnostics {
        match waivers.iter().find(|waiver| waiver.code == diagnostic.code) {
            Some(waiver) => waived.push(Waived { diagnostic, reason: waiver.reason.to_string() }),
            None => kept.push(diagnostic),
        }
    }
    (kept, waived)
}
