//! Log lines on standard error.

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;

/// Begins to write log lines. Backstop's own decisions and warnings from everywhere; nothing else.
pub(crate) fn start(format: LogFormat) {
    let targets = Targets::new().with_default(Level::WARN).with_target("backstop", Level::INFO);
    let registry = tracing_subscriber::registry().with(targets);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // A second start in one process changes nothing.
    let _already_started = match format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
        LogFormat::Text => registry.with(layer.with_ansi(false)).try_init(),
    };
}
