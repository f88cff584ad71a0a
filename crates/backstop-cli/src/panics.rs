//! Panics as log lines.
//!
//! A panic is contained where it happens: by the thread, the task or the call whose work is lost. What a damaged file makes
//! of the store's own code is told by whoever contains it; here it becomes one line like all others, which whoever reads
//! the log can parse.

use std::backtrace::{Backtrace, BacktraceStatus};

/// From now on a panic is one line of the log, with a backtrace only if `RUST_BACKTRACE` asks for one.
pub(crate) fn log() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
        // As fields and not as the message: they are written on one line, whatever is in them.
        tracing::error!(
            target: "backstop::panic",
            panic = panic.payload_as_str().unwrap_or("not a text"),
            location,
            thread = std::thread::current().name(),
            backtrace,
            "a panic"
        );
    }));
}
