//! What is to be sent.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use super::{Kind, LoadError, Sample};

type OnSample = Arc<dyn Fn(&Sample) + Send + Sync>;

/// Most connections of one run.
const CONNECTIONS_MAX: usize = 10_000;
/// Highest rate, in requests per second.
const RATE_MAX: f64 = 1_000_000.0;

/// What is to be sent, how fast, for how long and within which bounds.
#[derive(Clone)]
pub struct Plan {
    pub(crate) target: SocketAddr,
    pub(crate) rate_per_second: f64,
    pub(crate) duration: Duration,
    pub(crate) connections: usize,
    pub(crate) waiting_max: usize,
    pub(crate) timeout: Duration,
    pub(crate) drain: Duration,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) samples_max: usize,
    pub(crate) on_sample: Option<OnSample>,
}

impl Plan {
    /// A plan for `GET /` at `rate_per_second` for `duration`, on up to 64 connections.
    #[must_use]
    pub fn new(target: SocketAddr, rate_per_second: f64, duration: Duration) -> Self {
        Self {
            target,
            rate_per_second,
            duration,
            connections: 64,
            waiting_max: 100_000,
            timeout: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            kinds: Vec::new(),
            samples_max: 0,
            on_sample: None,
        }
    }

    /// Most connections, and so most requests in flight (1 to 10 000). Default: 64.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Most requests that wait for a connection; more are counted as excess. Default: 100 000.
    #[must_use]
    pub fn waiting_max(mut self, waiting_max: usize) -> Self {
        self.waiting_max = waiting_max;
        self
    }

    /// How long an answer may take from when its request is sent; then it is a failure. Default: 10 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the requests that wait at the end may go on being sent. Default: 10 s.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Adds a kind of request. Without any, `GET /` is sent.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Keeps up to this many samples for the summary. Default: none.
    #[must_use]
    pub fn keep_samples(mut self, samples_max: usize) -> Self {
        self.samples_max = samples_max;
        self
    }

    /// Is given every sample as soon as its answer is there or has failed. Runs on the generator's thread and must
    /// be quick.
    #[must_use]
    pub fn on_sample(mut self, on_sample: impl Fn(&Sample) + Send + Sync + 'static) -> Self {
        self.on_sample = Some(Arc::new(on_sample));
        self
    }

    /// The plan with its defaults filled in, if it can be run.
    pub(crate) fn checked(mut self) -> Result<Self, LoadError> {
        if !self.target.ip().is_loopback() {
            return Err(LoadError::NotLoopback(self.target));
        }
        if !(self.rate_per_second > 0.0 && self.rate_per_second <= RATE_MAX) {
            return Err(LoadError::Plan("the rate must be over 0 and at most 1 000 000 requests per second"));
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(LoadError::Plan("the connections must be 1 to 10 000"));
        }
        if self.kinds.is_empty() {
            self.kinds.push(Kind::get("/"));
        }
        if self.kinds.iter().all(|kind| kind.weight == 0) {
            return Err(LoadError::Plan("every kind has weight 0"));
        }
        if self.kinds.iter().any(|kind| kind.prepare(self.target).requests.is_empty()) {
            return Err(LoadError::Plan("a kind has no target"));
        }
        Ok(self)
    }

    /// How many requests the run offers.
    pub(crate) fn requests(&self) -> u64 {
        (self.rate_per_second * self.duration.as_secs_f64()).round() as u64
    }

    /// When request number `sequence` should be sent, from the start of the run.
    pub(crate) fn intended(&self, sequence: u64) -> Duration {
        let sequence = u32::try_from(sequence).unwrap_or(u32::MAX);
        Duration::try_from_secs_f64(f64::from(sequence) / self.rate_per_second).unwrap_or(Duration::MAX)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("target", &self.target)
            .field("rate_per_second", &self.rate_per_second)
            .field("duration", &self.duration)
            .field("connections", &self.connections)
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}
