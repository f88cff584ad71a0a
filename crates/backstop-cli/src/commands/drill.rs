//! `backstop drill POLICY [DRILL]`.

mod capacity;

use std::fmt::Display;
use std::path::Path;

use backstop_lab::drill::{self as lab, Facts, Report, RunError, Verdict};
use backstop_policy::DrillSettings;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Drill, DrillCommand};
use crate::drill::{InProcess, Watch, choose, list, table};
use crate::exit::Exit;
use crate::printer::Printer;

type Failed = Box<dyn std::error::Error>;

/// Plays drills. Fails if anything did not hold.
pub(crate) fn drill(arguments: &Drill, printer: Printer) -> Exit {
    let played = match &arguments.command {
        Some(DrillCommand::Capacity(arguments)) => capacity::capacity(arguments, printer),
        None => play(arguments, printer),
    };
    played.unwrap_or_else(|error| {
        let hint = error.downcast_ref::<RunError>().and_then(hint);
        printer.error(&*error, hint.as_ref().map(|hint| hint as &dyn Display));
        Exit::Error
    })
}

fn hint(error: &RunError) -> Option<&'static str> {
    match error {
        RunError::Unreachable { .. } => {
            Some("a drill breaks what works: start the dependency, or a stand-in for it, at this address")
        }
        RunError::Effect(_) => {
            Some("write `sandbox = true` in the drill file if everything behind it is one")
        }
        _ => None,
    }
}

fn play(arguments: &Drill, printer: Printer) -> Result<Exit, Failed> {
    let path = arguments.policy.as_deref().ok_or("no policy is named")?;
    let loaded = backstop_policy::load(path)?;
    let settings = arguments.drill.as_deref().map(|file| backstop_policy::load_drill(file, &loaded));
    let settings: Option<DrillSettings> = settings.transpose().map_err(|refused| refused_drill(&refused))?;
    let facts = Facts::new(loaded);
    let chosen = choose(arguments, &facts, settings.as_ref())?;
    if arguments.list {
        printer.raw(&list(&chosen, &facts));
        return Ok(Exit::Success);
    }
    if chosen.scenarios.is_empty() {
        printer.raw(&table(&Report::new("", 0, Vec::new(), chosen.skipped), printer.colour()));
        return Err("there is nothing to rehearse".into());
    }
    let (count, seconds) = (chosen.scenarios.len(), chosen.duration().as_secs_f64());
    printer.note(format_args!("{count} drills, about {seconds:.0} s and what starting takes"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let mut reports = Vec::new();
    for scenario in &chosen.scenarios {
        let mut watch = Watch::new(scenario, printer);
        let mut tell = |progress: lab::Progress| watch.tell(&progress);
        let played = runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupt.recv() => Err(2),
                _ = terminate.recv() => Err(15),
                report = lab::run(&facts, scenario, &InProcess, arguments.seed, &mut tell) => Ok(report),
            }
        });
        watch.end();
        match played {
            Ok(report) => reports.push(report?),
            Err(number) => {
                // Its folder is gone already, and nobody waits for a gateway that nobody asks any more.
                runtime.shutdown_background();
                return Ok(Exit::Signal(number));
            }
        }
    }
    let report = Report::new(&path.to_string_lossy(), arguments.seed, reports, chosen.skipped);
    printer.raw(&table(&report, printer.colour()));
    write(arguments, &report)?;
    let has_failed = report.drills.iter().any(|drill| drill.verdict == Verdict::Failed);
    let has_held = report.drills.iter().any(|drill| drill.verdict == Verdict::Held);
    Ok(match (has_failed, has_held) {
        (true, _) => Exit::Failure,
        (false, true) => Exit::Success,
        (false, false) => Exit::Error,
    })
}

/// A drill file that is refused, shown as a policy's faults are.
fn refused_drill(refused: &backstop_policy::Refused) -> Failed {
    let shown = backstop_policy::render_human(&refused.diagnostics, &refused.text, false);
    format!("the drill file is refused\n\n{shown}").into()
}

fn write(arguments: &Drill, report: &Report) -> Result<(), Failed> {
    if let Some(path) = &arguments.html {
        file(path, &lab::html(report))?;
    }
    if let Some(path) = &arguments.json {
        file(path, &format!("{}\n", serde_json::to_string_pretty(report)?))?;
    }
    if let Some(path) = &arguments.junit {
        file(path, &lab::junit(report)?)?;
    }
    Ok(())
}

fn file(path: &Path, text: &str) -> Result<(), Failed> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
