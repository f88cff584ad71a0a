//! The commands, one file each.

mod check;
mod demo;
mod incident;
mod ledger;
mod operations;
mod run;
mod status;

use crate::args::{Arguments, Command};
use crate::exit::Exit;
use crate::printer::Printer;

/// Does what the command line says.
pub(crate) fn dispatch(arguments: Arguments) -> Exit {
    let printer = Printer::new();
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments, printer),
        Command::Check(arguments) => check::check(&arguments, printer),
        Command::Demo(arguments) => demo::demo(&arguments, printer),
        Command::Status(arguments) => status::status(&arguments, printer),
        Command::Incident(arguments) => incident::incident(&arguments, printer),
        Command::Ledger(arguments) => ledger::ledger(&arguments, printer),
        Command::Operations(arguments) => operations::operations(&arguments, printer),
    }
}
