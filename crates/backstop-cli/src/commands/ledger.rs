//! `backstop ledger`.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstop::clock::{Clock, ClockError};
use backstop_store::ledger::sqlite::{self, OpenError, flush_time};
use backstop_store::ledger::{BenchReport, Ledger, LedgerError, LedgerOptions, bench};

use crate::args::{Ledger as Arguments, LedgerBench};
use crate::exit::Exit;
use crate::printer::Printer;

/// Operations at once: one client alone, some, and as many as fill a commit.
const CLIENTS: [usize; 3] = [1, 8, 64];
const FLUSHES: usize = 200;
/// Above this one client alone gets through fewer than 25 operations in a second.
const SLOW_FLUSH: Duration = Duration::from_millis(20);
/// How long what waits may take to be written at the end.
const CLOSE: Duration = Duration::from_secs(30);

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("{}: a folder to measure in is needed", .0.display())]
    NoFolder(PathBuf),
    #[error("{}: nothing can be written there", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Clock(#[from] ClockError),
    #[error("the ledger cannot be opened")]
    Open(#[from] OpenError),
    #[error("the ledger refused an operation")]
    Refused(#[from] LedgerError),
}

pub(crate) fn ledger(arguments: &Arguments, printer: Printer) -> Exit {
    let Arguments::Bench(arguments) = arguments;
    match measure(arguments, printer) {
        Ok(()) => Exit::Success,
        Err(error) => {
            let hint = match &error {
                BenchError::NoFolder(_) => {
                    Some("name the folder that `path` of `[store]` names, or any other on the same disk")
                }
                _ => None,
            };
            printer.error(&error, hint.as_ref().map(|hint| hint as &dyn std::fmt::Display));
            Exit::Error
        }
    }
}

/// A folder of its own for what is written, which goes when the measurement ends.
struct Workplace(PathBuf);

impl Workplace {
    fn below(folder: &Path) -> Result<Self, BenchError> {
        if !folder.is_dir() {
            return Err(BenchError::NoFolder(folder.to_owned()));
        }
        let path = folder.join(format!("ledger-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| BenchError::Folder(folder.to_owned(), error))?;
        Ok(Self(path))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

fn measure(arguments: &LedgerBench, printer: Printer) -> Result<(), BenchError> {
    let clock = Clock::system()?;
    let now = || clock.now();
    let workplace = Workplace::below(&arguments.folder)?;
    let flush = flush_time(&workplace.0, FLUSHES, &now)
        .map_err(|error| BenchError::Folder(arguments.folder.clone(), error))?;
    printer.line(format_args!(
        "flush     {} ms for a page of 4 KiB, the median of {FLUSHES}",
        milliseconds(flush)
    ));
    printer.line(format_args!("clients  operations/s  intent p50    intent p99"));
    let random = RandomState::new();
    let ledger = sqlite::open(&workplace.0, LedgerOptions::default(), random.hash_one(0), clock.now())?;
    for (number, clients) in (1_u64..).zip(CLIENTS) {
        let lasting = Duration::from_secs(arguments.seconds.into());
        let BenchReport { operations_per_s, intent_p50, intent_p99, .. } =
            bench(&ledger, clients, lasting, random.hash_one(number), &now)?;
        let (p50, p99) = (milliseconds(intent_p50), milliseconds(intent_p99));
        printer.line(format_args!("{clients:>7}  {operations_per_s:>12.0}  {p50:>7} ms    {p99:>7} ms"));
    }
    ledger.close(CLOSE);
    drop(workplace);
    if flush > SLOW_FLUSH {
        printer.note(format_args!(
            "a flush takes longer than 20 ms here: one client alone gets through fewer than 25 operations in a second"
        ));
    }
    Ok(())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}
