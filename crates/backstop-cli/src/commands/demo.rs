//! `backstop demo`.

use crate::args::Demo;
use crate::exit::Exit;
use crate::printer::Printer;

/// Plays an incident.
pub(crate) fn demo(_arguments: &Demo, printer: Printer) -> Exit {
    printer.note(format_args!("not yet"));
    Exit::Error
}
