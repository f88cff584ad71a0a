//! `backstop status`.

mod screen;

use std::fmt::Display;
use std::time::Duration;

use backstop_gateway::status::{FORMAT, View};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::screen::Size;
use super::operations::ask::{AskError, look};
use crate::args::{Port, Status as Arguments};
use crate::exit::Exit;
use crate::printer::Printer;

/// How often a watched gateway is asked.
const EVERY: Duration = Duration::from_secs(1);
/// From the upper left corner on everything is written anew.
const ANEW: &str = "\u{1b}[H\u{1b}[J";

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("the gateway says how it stands in a form that this program does not know")]
    Form(#[source] serde_json::Error),
    #[error("the gateway says how it stands in form {0}, and this program knows form {FORMAT}")]
    Other(u32),
    #[error("the command cannot wait")]
    Wait(#[source] std::io::Error),
}

impl Unknown {
    fn hint(&self) -> Option<&'static str> {
        match self {
            Unknown::Ask(error) => error.hint_to_look(),
            Unknown::Form(_) | Unknown::Other(_) => Some("use the program of the gateway's own version"),
            Unknown::Wait(_) => None,
        }
    }
}

/// Asks a running gateway how it stands. Fails where something is not as it should be; an error is whatever kept it from saying.
pub(crate) fn status(arguments: &Arguments, printer: Printer) -> Exit {
    let done = if arguments.watch { watch(arguments, printer) } else { once(arguments, printer) };
    done.unwrap_or_else(|error| {
        printer.error(&error, error.hint().as_ref().map(|hint| hint as &dyn Display));
        Exit::Error
    })
}

fn once(arguments: &Arguments, printer: Printer) -> Result<Exit, Unknown> {
    let (view, value) = ask(&arguments.port())?;
    if arguments.json {
        printer.line(format_args!("{value:#}"));
    } else {
        let size = Size { lines: usize::MAX, ..Size::of_terminal() };
        printer.raw(&screen::screen(&view, size, printer.colour()));
    }
    Ok(told(&view))
}

fn watch(arguments: &Arguments, printer: Printer) -> Result<Exit, Unknown> {
    let port = arguments.port();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Unknown::Wait)?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        let wait = |kind| signal(kind).map_err(Unknown::Wait);
        (wait(SignalKind::interrupt())?, wait(SignalKind::terminate())?)
    };
    let mut last: Option<View> = None;
    loop {
        match ask(&port) {
            Ok((view, value)) => {
                show(&view, &value, arguments, printer, None);
                last = Some(view);
            }
            Err(Unknown::Ask(AskError::Policy(error))) => return Err(Unknown::Ask(AskError::Policy(error))),
            Err(error) => match &last {
                Some(view) if !arguments.json => show(view, &Value::Null, arguments, printer, Some(&error)),
                _ => printer.note(format_args!("{error}")),
            },
        }
        if is_told_to_stop(&runtime, &mut interrupt, &mut terminate) {
            return Ok(last.as_ref().map_or(Exit::Error, told));
        }
    }
}

fn show(view: &View, value: &Value, arguments: &Arguments, printer: Printer, gone: Option<&Unknown>) {
    if arguments.json {
        printer.line(format_args!("{value}"));
        return;
    }
    let is_terminal = printer.is_terminal();
    let size = Size::of_terminal();
    let size = if is_terminal { size } else { Size { lines: usize::MAX, ..size } };
    let mut text = String::new();
    if is_terminal {
        text.push_str(ANEW);
    }
    if let Some(gone) = gone {
        text.push_str(&screen::gone(view, &gone.to_string(), size));
    }
    text.push_str(&screen::screen(view, size, printer.colour()));
    if !is_terminal {
        text.push('\n');
    }
    printer.raw(&text);
}

/// Waits until the next look is due. Whether the command is over.
fn is_told_to_stop(runtime: &Runtime, interrupt: &mut Signal, terminate: &mut Signal) -> bool {
    runtime.block_on(async {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => false,
            _ = interrupt.recv() => true,
            _ = terminate.recv() => true,
        }
    })
}

fn ask(port: &Port) -> Result<(View, Value), Unknown> {
    let value = look(port, "/status.json")?;
    let format = value["format"].as_u64().and_then(|format| u32::try_from(format).ok()).unwrap_or_default();
    if format != FORMAT {
        return Err(Unknown::Other(format));
    }
    let view = serde_json::from_value(value.clone()).map_err(Unknown::Form)?;
    Ok((view, value))
}

fn told(view: &View) -> Exit {
    if view.state.is_normal() { Exit::Success } else { Exit::Failure }
}
