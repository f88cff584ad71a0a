//! One answer, as it will stand on the wire.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{Behaviour, Gate, Request};

/// How the end of the body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length` with the body's length.
    ContentLength,
    /// `Transfer-Encoding: chunked` in chunks of `chunk` bytes (the last one may be shorter; 0 counts as 1).
    Chunked {
        /// Payload bytes in each chunk.
        chunk: usize,
    },
    /// No framing field: the close of the connection ends the body.
    CloseDelimited,
    /// No framing field is added and the connection is kept: whatever the given header fields claim is the claim.
    AsWritten,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It stays for the next request.
    KeepAlive,
    /// It is closed in order (FIN).
    Close,
    /// It is reset (RST, by `SO_LINGER` 0).
    Reset,
    /// It stays open and nothing more is sent, until the peer leaves.
    Hang,
}

/// Where an answer breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutAt {
    /// After this many bytes of the head.
    Head(usize),
    /// After the whole head and this many bytes of payload; chunked payload is cut behind a whole chunk frame of
    /// exactly these bytes.
    Body(usize),
    /// After the whole payload, where the last chunk would follow. For other framings: after the payload.
    LastChunk,
}

/// Where the `Date` field comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Date {
    /// The origin's wall clock.
    Now,
    /// The wall clock, this far ahead.
    Ahead(Duration),
    /// The wall clock, this far behind.
    Behind(Duration),
    /// These words.
    Text(String),
    /// No field.
    Omitted,
}

/// How fast bytes leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) bytes: usize,
    pub(crate) interval: Duration,
}

/// Where the body comes from.
#[derive(Clone)]
pub(crate) enum Body {
    Fixed(Bytes),
    Computed(Arc<dyn Fn(&Request) -> Bytes + Send + Sync>),
    /// This byte for ever, one per interval.
    Endless(u8, Duration),
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(formatter, "Fixed({} bytes)", bytes.len()),
            Self::Computed(_) => formatter.write_str("Computed"),
            Self::Endless(_, interval) => write!(formatter, "Endless(every {interval:?})"),
        }
    }
}

/// Field lines to be written, in order.
pub type Lines = Vec<(String, String)>;

/// An answer: head, body, framing, and where it goes wrong.
///
/// Without further words it is well formed: `Date` now, the body framed by `Content-Length`, the connection kept.
/// A `HEAD` request gets the head alone; 204 and 304 get no body and no framing field.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) reason: Option<String>,
    pub(crate) fields: Lines,
    pub(crate) body: Body,
    pub(crate) framing: Framing,
    pub(crate) informational: Vec<(u16, Lines)>,
    pub(crate) trailers: Lines,
    pub(crate) date: Date,
    pub(crate) head_pace: Option<Pace>,
    pub(crate) body_pace: Option<Pace>,
    pub(crate) cut: Option<(CutAt, Then)>,
    pub(crate) then: Then,
}

impl Answer {
    /// An answer with this status and an empty body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self {
            status,
            reason: None,
            fields: Vec::new(),
            body: Body::Fixed(Bytes::new()),
            framing: Framing::ContentLength,
            informational: Vec::new(),
            trailers: Vec::new(),
            date: Date::Now,
            head_pace: None,
            body_pace: None,
            cut: None,
            then: Then::KeepAlive,
        }
    }

    /// A 200 with this JSON text.
    #[must_use]
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self::new(200).header("Content-Type", "application/json").body(text)
    }

    /// Replaces the reason phrase.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Adds a header line; neither name nor value is checked, so that wrong ones can be sent too.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Body::Fixed(body.into());
        self
    }

    /// The body, computed from each request.
    #[must_use]
    pub fn body_with(mut self, body: impl Fn(&Request) -> Bytes + Send + Sync + 'static) -> Self {
        self.body = Body::Computed(Arc::new(body));
        self
    }

    /// How the end of the body is told.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Chunked, in chunks of `chunk` bytes.
    #[must_use]
    pub fn chunked(self, chunk: usize) -> Self {
        self.framing(Framing::Chunked { chunk })
    }

    /// Adds a 1xx answer before the final one, in the order given.
    #[must_use]
    pub fn informational(mut self, status: u16, fields: &[(&str, &str)]) -> Self {
        let lines = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.informational.push((status, lines));
        self
    }

    /// Adds a trailer line; sent with chunked framing only.
    #[must_use]
    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where `Date` comes from.
    #[must_use]
    pub fn date(mut self, date: Date) -> Self {
        self.date = date;
        self
    }

    /// Sends the head one byte per `interval` (informational heads included).
    #[must_use]
    pub fn slow_head(mut self, interval: Duration) -> Self {
        self.head_pace = Some(Pace { bytes: 1, interval });
        self
    }

    /// Sends the head at once and the body in pieces of `bytes` payload bytes, one per `interval`.
    #[must_use]
    pub fn drip(mut self, bytes: usize, interval: Duration) -> Self {
        self.body_pace = Some(Pace { bytes: bytes.max(1), interval });
        self
    }

    /// Sends the head at once, then one byte per `interval` for ever. With `Content-Length` the declared length is
    /// 1 000 000 000.
    #[must_use]
    pub fn endless(mut self, interval: Duration) -> Self {
        self.body = Body::Endless(b' ', interval);
        self
    }

    /// Breaks off at `at`, and then.
    #[must_use]
    pub fn cut(mut self, at: CutAt, then: Then) -> Self {
        self.cut = Some((at, then));
        self
    }

    /// What becomes of the connection after a whole answer. No `Connection` field is added: a close that was not
    /// announced is one of the faults.
    #[must_use]
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// Waits before the first byte.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Behaviour {
        Behaviour::from(self).delay(delay)
    }

    /// Waits at `gate` before the first byte.
    #[must_use]
    pub fn gate(self, gate: &Gate) -> Behaviour {
        Behaviour::from(self).gate(gate)
    }

    /// Holds for the next `times` matching requests only.
    #[must_use]
    pub fn times(self, times: u32) -> Behaviour {
        Behaviour::from(self).times(times)
    }
}
