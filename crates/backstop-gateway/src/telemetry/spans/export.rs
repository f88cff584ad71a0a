//! The thread that sends spans to a collector.
//!
//! It takes what waits, 512 at once or what came within a second, and posts it with one exchange. It does so once: spans that a
//! collector does not take, because it is away, slow or against it, are lost and counted, and it is said in the log when that
//! begins and when it is over.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use backstop::clock::Clock;
use backstop_policy::TraceSettings;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use prost::Message as _;

use super::proto::{ExportRequest, Resource, ResourceSpans, Scope, ScopeSpans, Span, text};
use crate::reconciler::Way;
use crate::telemetry::queue::Counts;
use crate::upstream::Address;
use crate::worker::on_own_runtime;

/// Spans that are sent at once.
const AT_ONCE: usize = 512;
/// How long the first of them waits for others.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest that a collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is put into the queue.
#[derive(Debug)]
pub(super) enum Item {
    Span(Box<Span>),
    /// Whoever waits until all that was put in before is sent.
    End(Sender<()>),
}

impl Item {
    pub(super) fn of(span: Span) -> Self {
        Self::Span(Box::new(span))
    }
}

/// A collector, and what it is told of itself.
pub(super) struct Collector {
    address: Address,
    path: Uri,
    host: HeaderValue,
    service: String,
    counts: Arc<Counts>,
    clock: Clock,
}

impl Collector {
    pub(super) fn new(
        settings: &TraceSettings,
        service: &str,
        clock: &Clock,
        counts: &Arc<Counts>,
    ) -> Option<Self> {
        Some(Self {
            address: Address::new(&settings.address.host, settings.address.port),
            path: settings.path.parse().ok()?,
            host: HeaderValue::try_from(settings.address.to_string()).ok()?,
            service: service.to_owned(),
            counts: Arc::clone(counts),
            clock: clock.clone(),
        })
    }

    /// Sends until nobody puts anything in any more.
    pub(super) fn run(self, items: &Receiver<Item>) {
        if let Err(error) = on_own_runtime(self.send_all(items)) {
            tracing::error!(target: "backstop::telemetry", %error, "traces cannot be sent");
        }
    }

    async fn send_all(self, items: &Receiver<Item>) {
        let way = Way::new(vec![self.address.clone()], TIMEOUT, 1, &self.clock);
        let mut is_failing = false;
        // Nothing else runs on this thread, so waiting for items may block it.
        while let Some((spans, ended)) = self.next(items) {
            if !spans.is_empty() {
                let count = spans.len();
                let until = self.clock.mono().after(TIMEOUT);
                let is_taken = way.give(self.message(spans), until).await;
                if is_taken {
                    self.counts.add_told(count);
                } else {
                    self.counts.add_dropped(count);
                }
                if is_failing == is_taken {
                    is_failing = !is_taken;
                    self.say(is_failing);
                }
            }
            if let Some(ended) = ended {
                let _nobody_waits = ended.send(());
            }
        }
    }

    fn message(&self, spans: Vec<Span>) -> Request<Full<Bytes>> {
        let version = env!("CARGO_PKG_VERSION");
        let attributes = vec![text("service.name", &*self.service), text("service.version", version)];
        let scope = Scope { name: "backstop".to_owned(), version: version.to_owned() };
        let message = ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes }),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        };
        let mut request = Request::new(Full::from(message.encode_to_vec()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        request.headers_mut().insert(HOST, self.host.clone());
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        request
    }

    fn say(&self, is_failing: bool) {
        let collector = &self.address;
        if is_failing {
            tracing::warn!(
                target: "backstop::telemetry",
                %collector,
                "the collector does not take spans: they are lost until it does; requests are answered as usual"
            );
        } else {
            tracing::info!(target: "backstop::telemetry", %collector, "the collector takes spans again");
        }
    }

    /// What is to be sent next, and who waits for it. `None` once nothing more can come. Blocks.
    fn next(&self, items: &Receiver<Item>) -> Option<(Vec<Span>, Option<Sender<()>>)> {
        let mut spans = Vec::new();
        let mut item = items.recv().ok()?;
        let end = self.clock.mono().after(PATIENCE);
        loop {
            match item {
                Item::Span(span) => spans.push(*span),
                Item::End(ended) => return Some((spans, Some(ended))),
            }
            if spans.len() >= AT_ONCE {
                return Some((spans, None));
            }
            match items.recv_timeout(self.clock.mono().until(end)) {
                Ok(next) => item = next,
                Err(_) => return Some((spans, None)),
            }
        }
    }
}
