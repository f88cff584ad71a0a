//! `backstop demo`.

use std::path::Path;
use std::time::Duration;

use backstop_policy::{FileSource, Loaded};

use crate::args::Demo;
use crate::demo::{self, Verdict};
use crate::exit::Exit;
use crate::printer::Printer;

/// The example policy and the file that it names: part of the binary, so that the demo needs nothing else.
const POLICY: &str = include_str!("../../../../examples/shop.toml");
const POLICY_FILE: &str = "examples/shop.toml";
const PREPARED: &[u8] = include_bytes!("../../../../examples/general-recommendations.json");

struct BuiltIn;

impl FileSource for BuiltIn {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("general-recommendations.json") => Ok(PREPARED.to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

/// Serves the page, or plays an incident in the terminal, which fails if any answer was one that the policy forbids.
pub(crate) fn demo(arguments: &Demo, printer: Printer) -> Exit {
    if arguments.terminal {
        return play(arguments, printer);
    }
    match demo::page::serve(arguments.seconds.map(Duration::from_secs), !arguments.no_open, printer) {
        Ok(()) => Exit::Success,
        Err(error) => {
            printer.error(&*error, None);
            Exit::Error
        }
    }
}

fn play(arguments: &Demo, printer: Printer) -> Exit {
    let loaded = match load(arguments) {
        Ok(loaded) => loaded,
        Err(error) => {
            printer.error(&*error, None);
            return Exit::Error;
        }
    };
    match demo::play(loaded, arguments.rate, printer) {
        Ok(Verdict::AsAccepted) => Exit::Success,
        Ok(Verdict::Forbidden) => Exit::Failure,
        Err(error) => {
            printer.error(&*error, None);
            Exit::Error
        }
    }
}

fn load(arguments: &Demo) -> Result<Loaded, Box<dyn std::error::Error>> {
    match &arguments.policy {
        Some(path) => Ok(backstop_policy::load(path)?),
        None => backstop_policy::parse(POLICY, POLICY_FILE, &BuiltIn)
            .map_err(|diagnostics| backstop_policy::render_human(&diagnostics, POLICY, false).into()),
    }
}
