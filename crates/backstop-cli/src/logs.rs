//! Log lines on standard error.
//!
//! They are written by a thread of their own, from a bounded queue: whoever reads them slowly, or not at all, costs lines
//! and never a request or a stop.

use std::io::Write;

use tracing::Level;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;

/// Lines that may wait to be written; further ones are lost.
const WAITING_MAX: usize = 8192;

/// Begins to write log lines to `out`: Backstop's own decisions, and warnings from everywhere. What still waits when the
/// guard is dropped is written then, within about a second.
#[must_use = "dropping the guard ends the log"]
pub(crate) fn start(format: LogFormat, out: impl Write + Send + 'static) -> WorkerGuard {
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING_MAX).finish(out);
    let targets = Targets::new().with_default(Level::WARN).with_target("backstop", Level::INFO);
    let registry = tracing_subscriber::registry().with(targets);
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    // A second start in one process changes nothing.
    let _already_started = match format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
        LogFormat::Text => registry.with(layer.with_ansi(false)).try_init(),
    };
    guard
}
