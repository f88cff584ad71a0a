//! What reached the origin.

use bytes::Bytes;
use serde::Serialize;

use crate::wire::Fields;

use super::matcher::path_of;

/// How a request told the end of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestFraming {
    /// No body was declared.
    None,
    /// `Content-Length` with this value.
    ContentLength(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// One request, exactly as it was received. It is recorded when its head is whole, and completed when its body is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Order of arrival over all connections, from 0.
    pub order: u64,
    /// The connection it came on, numbered from 0 in the order accepted.
    pub connection: u64,
    /// Monotonic nanoseconds ([`crate::clock::monotonic_ns`]) when the head was whole.
    pub arrived_ns: u64,
    /// Every byte of the head, request line and final empty line included.
    pub head: Bytes,
    /// The method.
    pub method: String,
    /// The request target, as sent.
    pub target: String,
    /// The minor version: 1 for HTTP/1.1.
    pub minor_version: u8,
    /// The header lines, in order.
    pub fields: Fields,
    /// How the body was framed. With both length and chunked coding, chunked; see `ambiguous`.
    pub framing: RequestFraming,
    /// Whether the head had both `Content-Length` and `Transfer-Encoding`, or either of them twice.
    pub ambiguous: bool,
    /// The body without its framing, up to the recording limits.
    pub body: Bytes,
    /// Length of the whole body received, recorded or not.
    pub body_bytes: u64,
    /// Whether the body came to its declared end. `false` while it still comes.
    pub complete: bool,
    /// Trailer lines of a chunked body.
    pub trailers: Fields,
}

impl Request {
    /// The path of the target, without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        path_of(&self.target)
    }

    /// The value of the first header line with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// The recorded body as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether the client wants to keep the connection.
    pub(crate) fn keeps_alive(&self) -> bool {
        if self.minor_version == 0 {
            self.fields.lists("connection", "keep-alive")
        } else {
            !self.fields.lists("connection", "close")
        }
    }
}
