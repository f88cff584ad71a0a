//! What is told to others of each request: a line in the access log, and spans of a trace.
//!
//! Neither holds a request up. What is told is put into a bounded queue, or counted as lost where there is no room; a thread of
//! its own takes it from there to a disk or a collector, which may be slow, full or away. Where neither is asked for, a request
//! costs one look at that.

mod access_log;
mod context;
mod line;
mod queue;
mod seen;
#[cfg(feature = "otlp")]
mod spans;
#[cfg(not(feature = "otlp"))]
#[path = "telemetry/spans_absent.rs"]
mod spans;

use std::io;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_policy::{AccessLogSettings, DependencySettings, RouteSettings, TraceSettings};

pub(crate) use access_log::AccessLog;
pub use access_log::Reopen;
pub(crate) use context::{TRACEPARENT, Told, take_part};
pub(crate) use queue::Counts;
pub(crate) use seen::observe;
pub(crate) use spans::{Calling, Spans};

/// Where requests are told of.
pub(crate) struct Telemetry {
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) spans: Option<Spans>,
}

/// What cannot be told as the policy says.
#[derive(Debug, thiserror::Error)]
pub enum CannotTell {
    /// The access log cannot be opened.
    #[error("the access log {path} cannot be opened")]
    AccessLog {
        /// The file.
        path: Box<str>,
        /// Why.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("no thread can be started that tells of requests")]
    Thread(#[source] io::Error),
    /// This build has no traces.
    #[error("this build sends no traces (feature `otlp`), and the policy has `telemetry.traces`")]
    NoTraces,
    /// The address of the collector cannot be used.
    #[error("the collector's `url` cannot be used")]
    Collector,
}

impl Telemetry {
    pub(crate) fn start(
        access_log: Option<&AccessLogSettings>,
        traces: Option<&TraceSettings>,
        name: &str,
        clock: &Clock,
    ) -> Result<Self, CannotTell> {
        Ok(Self {
            access_log: access_log.map(AccessLog::start).transpose()?,
            spans: traces.map(|traces| Spans::start(traces, name, clock)).transpose()?,
        })
    }

    /// Nobody is told.
    pub(crate) const fn off() -> Self {
        Self { access_log: None, spans: None }
    }

    /// Whether anybody wants to know of requests.
    pub(crate) fn is_on(&self) -> bool {
        self.access_log.is_some() || self.spans.is_some()
    }

    /// What waits is told; `false` if that was not done within the time. Blocks.
    pub(crate) fn close(&self, within: Duration) -> bool {
        let log = self.access_log.as_ref().is_none_or(|log| log.close(within));
        self.spans.as_ref().is_none_or(|spans| spans.close(within)) && log
    }

    /// What was told and what was lost, by the word for it.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, &Counts)> {
        let access_log = self.access_log.as_ref().map(|log| ("access_log", log.counts()));
        let spans = self.spans.as_ref().map(|spans| ("traces", spans.counts()));
        access_log.into_iter().chain(spans)
    }
}

/// The one path that its requests have, whatever their methods.
pub(crate) fn template(route: &RouteSettings) -> Option<Box<str>> {
    let mut templates = route.matches.iter().map(|rule| &rule.template);
    let first = templates.next()?;
    templates.all(|template| template == first).then(|| first.to_string().into())
}

/// What a dependency is told of as: the first of its addresses.
pub(crate) fn address(dependency: &DependencySettings) -> (Box<str>, u16) {
    dependency.addresses.first().map_or_else(Default::default, |address| (address.host.clone(), address.port))
}
