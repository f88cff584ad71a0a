//! What the origin does with one request.
//!
//! A behaviour reads the body (or not), waits (for a time, at a gate), and then acts: it gives an answer, sends raw
//! bytes, closes, resets or hangs. A behaviour may be limited to a number of requests, and may be computed from
//! the request.
//!
//! An origin that has begun to work goes on when its client leaves, as real services do: a wait or a gate is not
//! ended by a closed connection unless [`Behaviour::stop_when_peer_leaves`] says so. A hang is.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{Answer, Gate, Request, Then};

/// One wait before the first byte.
#[derive(Clone, Debug)]
pub(crate) enum Wait {
    For(Duration),
    At(Gate),
}

type Computing = Pin<Box<dyn Future<Output = Behaviour> + Send>>;

/// A behaviour that is made from the request.
#[derive(Clone)]
pub(crate) struct Compute(Arc<dyn Fn(Arc<Request>) -> Computing + Send + Sync>);

impl Compute {
    pub(crate) fn run(&self, request: Arc<Request>) -> Computing {
        (self.0)(request)
    }
}

impl fmt::Debug for Compute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Compute")
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Answer(Box<Answer>),
    Raw(Bytes, Then),
    End(Then),
    Compute(Compute),
}

/// How much of the request is read before acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Head and body.
    Whole,
    /// The head; the connection is closed after the answer, as its body was never read.
    HeadOnly,
    /// The head; nothing more is ever read, so a long upload runs into full buffers.
    Stalls,
}

/// What the origin does with one request.
#[derive(Clone, Debug)]
pub struct Behaviour {
    pub(crate) times: Option<u32>,
    pub(crate) reads: Reads,
    pub(crate) waits: Vec<Wait>,
    pub(crate) keeps_working: bool,
    pub(crate) action: Action,
}

impl From<Answer> for Behaviour {
    fn from(answer: Answer) -> Self {
        Self::acting(Action::Answer(Box::new(answer)))
    }
}

impl Behaviour {
    fn acting(action: Action) -> Self {
        Self { times: None, reads: Reads::Whole, waits: Vec::new(), keeps_working: true, action }
    }

    /// Sends exactly these bytes, which need not be HTTP.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>, then: Then) -> Self {
        Self::acting(Action::Raw(bytes.into(), then))
    }

    /// Reads the request and never answers.
    #[must_use]
    pub fn hang() -> Self {
        Self::acting(Action::End(Then::Hang))
    }

    /// Reads the request and closes without a byte (FIN).
    #[must_use]
    pub fn close() -> Self {
        Self::acting(Action::End(Then::Close))
    }

    /// Reads the request and resets without a byte (RST).
    #[must_use]
    pub fn reset() -> Self {
        Self::acting(Action::End(Then::Reset))
    }

    /// A behaviour computed from each request, body included.
    #[must_use]
    pub fn from_fn<B: Into<Self>>(compute: impl Fn(&Request) -> B + Send + Sync + 'static) -> Self {
        Self::from_async_fn(move |request| {
            let behaviour = compute(&request).into();
            async move { behaviour }
        })
    }

    /// Like [`Behaviour::from_fn`], with a computation that may wait. It runs on the origin's own thread and must
    /// not block it.
    #[must_use]
    pub fn from_async_fn<F>(compute: impl Fn(Arc<Request>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Self> + Send + 'static,
    {
        let boxed = move |request| -> Computing { Box::pin(compute(request)) };
        Self::acting(Action::Compute(Compute(Arc::new(boxed))))
    }

    /// Waits this long before the first byte, after the request was read. Waits add up in the order given.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.waits.push(Wait::For(delay));
        self
    }

    /// Waits at `gate` before the first byte.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.waits.push(Wait::At(gate.clone()));
        self
    }

    /// Holds for the next `times` matching requests only; then the behaviour set before it holds again.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Acts as soon as the head is there, without reading the body, and closes afterwards.
    #[must_use]
    pub fn before_body(mut self) -> Self {
        self.reads = Reads::HeadOnly;
        self
    }

    /// Reads nothing more once the head is there: an upload runs into full buffers, and a peer that leaves is not
    /// noticed.
    #[must_use]
    pub fn stop_reading(mut self) -> Self {
        self.reads = Reads::Stalls;
        self
    }

    /// Gives up, and frees its place, as soon as the peer closes or resets.
    #[must_use]
    pub fn stop_when_peer_leaves(mut self) -> Self {
        self.keeps_working = false;
        self
    }
}
