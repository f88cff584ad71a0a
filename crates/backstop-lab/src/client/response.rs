//! One answer, and whether it is whole.

use std::time::Duration;

use bytes::Bytes;

use crate::wire::Fields;

use super::{Mark, MarkError, ResponseHead};

/// How the end of a body was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// There is no body: `HEAD`, 204, 304.
    None,
    /// `Content-Length` with this value.
    ContentLength(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// By the close of the connection.
    CloseDelimited,
}

/// Whether a body is whole, and if not, what ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It came to the end that its framing told.
    Complete,
    /// FIN before the end.
    CutByFin,
    /// RST before the end; for a body ended by the close too.
    CutByReset,
    /// The bound was over before the end.
    TimedOut,
    /// The chunked framing is broken.
    Malformed,
    /// It is longer than the client reads.
    TooLong,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The 1xx answers before it.
    pub informational: Vec<ResponseHead>,
    /// The final head.
    pub head: ResponseHead,
    /// How the end of the body was told.
    pub framing: ResponseFraming,
    /// The body without its framing, as far as it came.
    pub body: Bytes,
    /// Trailer lines.
    pub trailers: Fields,
    /// Whether the body is whole.
    pub completeness: Completeness,
    /// From the start of the last send on this connection until the final head was whole.
    pub head_after: Duration,
    /// From the start of the last send on this connection until the answer was whole, or broken.
    pub took: Duration,
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The value of the first header line with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.fields.get(name)
    }

    /// Whether the body came to the end that its framing told.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.completeness == Completeness::Complete
    }

    /// The body as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as one JSON value.
    ///
    /// # Errors
    ///
    /// When it is not exactly one.
    pub fn json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
    }

    /// What the `Backstop` field says; `None` without one.
    ///
    /// # Errors
    ///
    /// When the field is no dictionary of the agreed members.
    pub fn mark(&self) -> Result<Option<Mark>, MarkError> {
        Mark::of(&self.head.fields)
    }

    /// Whether the connection may carry another request.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        let fields = &self.head.fields;
        self.is_complete()
            && self.framing != ResponseFraming::CloseDelimited
            && !fields.lists("connection", "close")
            && (self.head.minor_version == 1 || fields.lists("connection", "keep-alive"))
    }
}

/// Whether an answer with this status may have a body and so a framing.
pub(crate) fn framing_allowed(status: u16) -> bool {
    !matches!(status, 100..=199 | 204 | 304)
}
