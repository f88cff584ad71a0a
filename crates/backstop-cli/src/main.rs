//! The binary `backstop`.

mod args;
mod commands;
mod demo;
mod drill;
mod exit;
mod harmless;
mod logs;
mod panics;
mod printer;
#[cfg(feature = "test-hooks")]
mod test_hooks;

use clap::Parser;

fn main() -> std::process::ExitCode {
    commands::dispatch(args::Arguments::parse()).into()
}
