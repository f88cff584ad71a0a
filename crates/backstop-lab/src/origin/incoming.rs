//! The receiving side of one connection.
//!
//! Bytes are read into one buffer; heads and bodies are taken from its front, so whatever a client sends behind a
//! request (the next one, or garbage) waits there. While an answer is under way the side reads ahead, within a
//! bound, to notice that the peer leaves.

use std::future;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{io::AsyncReadExt as _, net::tcp::ReadHalf};

use crate::{clock::monotonic_ns, wire::Chunked};

use super::{Limits, Request, RequestFraming, head::parse_head, journal::Journal};

/// Bytes asked from the socket in one read.
const READ_BYTES: usize = 16 * 1024;

/// Why no more can be read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The peer closed or reset.
    PeerLeft,
    /// What came is no HTTP request.
    Invalid,
    /// A head or a body over its limit.
    TooLarge,
}

pub(crate) struct Incoming<'a> {
    read: ReadHalf<'a>,
    buffer: BytesMut,
    left: bool,
    /// Whether what is in the buffer, if anything, is the beginning of a head that is awaited.
    awaits_head: bool,
    connection: u64,
    journal: &'a Journal,
    limits: Limits,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(read: ReadHalf<'a>, connection: u64, journal: &'a Journal, limits: Limits) -> Self {
        Self { read, buffer: BytesMut::new(), left: false, awaits_head: false, connection, journal, limits }
    }

    /// Reads once. Cancel safe: bytes read are in the buffer.
    async fn fill(&mut self) -> Result<(), Stop> {
        if self.left {
            return Err(Stop::PeerLeft);
        }
        self.buffer.reserve(READ_BYTES);
        let before = self.buffer.len();
        let reset = match self.read.read_buf(&mut self.buffer).await {
            Ok(0) => false,
            Ok(_) => {
                self.journal.received(self.connection, &self.buffer[before..]);
                return Ok(());
            }
            Err(_) => true,
        };
        self.left = true;
        self.journal.peer_left(self.connection, reset);
        Err(Stop::PeerLeft)
    }

    /// The next head. `None` at an orderly end between requests.
    pub(crate) async fn head(&mut self) -> Result<Option<Request>, Stop> {
        self.awaits_head = true;
        let head = self.next_head().await;
        self.awaits_head = false;
        head
    }

    async fn next_head(&mut self) -> Result<Option<Request>, Stop> {
        loop {
            if !self.buffer.is_empty() {
                match parse_head(&self.buffer) {
                    Ok(Some((mut request, length))) if length <= self.limits.head_bytes => {
                        // Copied: a record must not keep the whole read buffer alive.
                        request.head = Bytes::copy_from_slice(&self.buffer[..length]);
                        self.buffer.advance(length);
                        request.connection = self.connection;
                        request.arrived_ns = monotonic_ns();
                        return Ok(Some(request));
                    }
                    Ok(None) if self.buffer.len() <= self.limits.head_bytes => {}
                    Ok(_) => {
                        self.journal.count(|stats| stats.too_large += 1);
                        return Err(Stop::TooLarge);
                    }
                    Err(_) => {
                        self.journal.count(|stats| stats.invalid_requests += 1);
                        return Err(Stop::Invalid);
                    }
                }
            }
            if let Err(stop) = self.fill().await {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                self.journal.cut_head(&self.buffer);
                return Err(stop);
            }
        }
    }

    /// Whether a byte of the body is already here.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Waits until there is a byte, or the peer left.
    pub(crate) async fn some_bytes(&mut self) {
        while self.buffer.is_empty() && self.fill().await.is_ok() {}
    }

    /// Reads the body of `request` into it. On an error the request has what came before.
    pub(crate) async fn body(&mut self, request: &mut Request) -> Result<(), Stop> {
        let mut body = BodyRecord { kept: BytesMut::new(), length: 0, limits: self.limits };
        let read = match request.framing {
            RequestFraming::None => Ok(()),
            RequestFraming::ContentLength(length) => self.counted_body(length, &mut body).await,
            RequestFraming::Chunked => {
                let mut decoder = Chunked::default();
                let read = self.chunked_body(&mut decoder, &mut body).await;
                request.trailers = decoder.into_trailers();
                read
            }
        };
        request.complete = read.is_ok();
        request.body_bytes = body.length;
        request.body = body.kept.freeze();
        read
    }

    async fn counted_body(&mut self, length: u64, body: &mut BodyRecord) -> Result<(), Stop> {
        while body.length < length {
            if self.buffer.is_empty() {
                self.fill().await?;
            }
            let left = usize::try_from(length - body.length).unwrap_or(usize::MAX);
            let here = self.buffer.len().min(left);
            body.take(&self.buffer[..here]);
            self.buffer.advance(here);
            self.within_limit(body)?;
        }
        Ok(())
    }

    async fn chunked_body(&mut self, decoder: &mut Chunked, body: &mut BodyRecord) -> Result<(), Stop> {
        loop {
            let decoded = decoder.decode(&mut self.buffer, |part| body.take(part));
            self.within_limit(body)?;
            match decoded {
                Ok(true) => return Ok(()),
                Ok(false) => self.fill().await?,
                Err(_) => {
                    self.journal.count(|stats| stats.invalid_requests += 1);
                    return Err(Stop::Invalid);
                }
            }
        }
    }

    fn within_limit(&self, body: &BodyRecord) -> Result<(), Stop> {
        if body.length <= self.limits.body_bytes {
            return Ok(());
        }
        self.journal.count(|stats| stats.too_large += 1);
        Err(Stop::TooLarge)
    }

    /// Ends when the peer closes or resets. Reads ahead no further than one head's limit; behind that it stops
    /// reading and never ends.
    pub(crate) async fn peer_left(&mut self) {
        loop {
            if self.buffer.len() >= self.limits.head_bytes {
                return future::pending().await;
            }
            if self.fill().await.is_err() {
                return;
            }
        }
    }

    /// Reads and drops everything until the peer leaves.
    pub(crate) async fn drain(&mut self) {
        loop {
            self.buffer.clear();
            if self.fill().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Incoming<'_> {
    /// The connection was ended in the midst of a head.
    fn drop(&mut self) {
        if self.awaits_head && !self.buffer.is_empty() {
            self.journal.cut_head(&self.buffer);
        }
    }
}

struct BodyRecord {
    kept: BytesMut,
    length: u64,
    limits: Limits,
}

impl BodyRecord {
    fn take(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        let room = self.limits.recorded_body_bytes.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
    }
}
