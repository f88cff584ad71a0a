//! `backstop operations`.

pub(super) mod ask;
mod table;

use std::fmt::Display;

use backstop_engine::operation::Decision;
use serde_json::{Value, json};

use self::ask::{AskError, ask};
use crate::args::{List, Operations as Arguments, Resolve, Show};
use crate::exit::Exit;
use crate::printer::Printer;

/// Asks a running gateway about its operations. Fails where the gateway says no; an error is whatever kept it from answering.
pub(crate) fn operations(arguments: &Arguments, printer: Printer) -> Exit {
    let done = match arguments {
        Arguments::List(arguments) => list(arguments, printer),
        Arguments::Show(arguments) => show(arguments, printer),
        Arguments::Resolve(arguments) => resolve(arguments, printer),
    };
    match done {
        Ok(()) => Exit::Success,
        Err(error) => {
            let hint = error.hint(arguments);
            printer.error(&error, hint.as_ref().map(|hint| hint as &dyn Display));
            if error.is_an_answer() { Exit::Failure } else { Exit::Error }
        }
    }
}

fn list(arguments: &List, printer: Printer) -> Result<(), AskError> {
    let List { port, state, from, limit, after, json } = arguments;
    let mut target = format!("/operations?limit={limit}");
    if let Some(state) = state {
        target.push_str(&format!("&state={state}"));
    }
    if let Some(from) = from {
        target.push_str(&format!("&from={}", ask::encoded(from)));
    }
    if let Some(after) = after {
        target.push_str(&format!("&after={}", ask::encoded(after)));
    }
    let page = ask(port, "GET", &target, None)?;
    if *json {
        printer.line(format_args!("{page:#}"));
        return Ok(());
    }
    let found = page["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if found.is_empty() {
        let state = state.as_ref().map(|state| format!(" in {state}")).unwrap_or_default();
        let from = from.as_ref().map(|from| format!(" from {from} on")).unwrap_or_default();
        printer.line(format_args!("no operations{state}{from}"));
        return Ok(());
    }
    printer.raw(&table::list(found));
    let next = page["next"].as_str().and_then(|next| next.split_once("after="));
    if let Some((_, mark)) = next {
        printer.note(format_args!("there are more: add --after {}", table::shown(mark)));
    }
    Ok(())
}

fn show(arguments: &Show, printer: Printer) -> Result<(), AskError> {
    let Show { id, port, json } = arguments;
    let whole = ask(port, "GET", &format!("/operations/{id}"), None)?;
    if *json {
        printer.line(format_args!("{whole:#}"));
    } else {
        printer.raw(&table::one(&whole));
    }
    Ok(())
}

fn resolve(arguments: &Resolve, printer: Printer) -> Result<(), AskError> {
    let Resolve { id, port, outcome, reason, by } = arguments;
    let by = by.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    if by.trim().is_empty() {
        return Err(AskError::Nobody);
    }
    let order = json!({ "outcome": Decision::from(*outcome).token(), "by": by, "reason": reason });
    let said: Value = ask(port, "POST", &format!("/operations/{id}/resolve"), Some(&order))?;
    printer.raw(&table::resolved(&said));
    Ok(())
}
