//! The only place that prints. Results go to standard output, everything about the work itself to standard error;
//! colour only where a terminal shows it and nobody said `NO_COLOR`.

use std::fmt::{Arguments, Display};
use std::io::{IsTerminal, Write};

/// Prints for one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    colour: bool,
    terminal: bool,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        Self { colour, terminal }
    }

    /// Whether colour may be used in results.
    pub(crate) fn colour(self) -> bool {
        self.colour
    }

    /// Whether a person watches.
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    /// Whether a person watches how the work goes.
    pub(crate) fn is_error_terminal(self) -> bool {
        std::io::stderr().is_terminal()
    }

    /// A line of the result. A reader that went away is no error.
    pub(crate) fn line(self, line: Arguments<'_>) {
        let mut out = anstream::stdout().lock();
        let _reader_left = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Part of the result, as it is.
    pub(crate) fn raw(self, text: &str) {
        let mut out = anstream::stdout().lock();
        let _reader_left = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// What went wrong, with its causes, and what to do about it.
    pub(crate) fn error(self, what: &dyn std::error::Error, hint: Option<&dyn Display>) {
        let mut err = anstream::stderr().lock();
        let (red, cyan, plain) = ("\u{1b}[1;31m", "\u{1b}[1;36m", "\u{1b}[0m");
        let mut text = format!("{red}error{plain}: {what}\n");
        let mut source = what.source();
        while let Some(cause) = source {
            text.push_str(&format!("  caused by: {cause}\n"));
            source = cause.source();
        }
        if let Some(hint) = hint {
            text.push_str(&format!("\n{cyan}hint{plain}: {hint}\n"));
        }
        let _nobody_listens = err.write_all(text.as_bytes());
    }

    /// Something worth knowing about the work itself.
    pub(crate) fn note(self, note: Arguments<'_>) {
        let _nobody_listens = writeln!(anstream::stderr().lock(), "{note}");
    }
}
