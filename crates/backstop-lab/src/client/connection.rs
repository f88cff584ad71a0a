//! One connection of the raw client.

use std::{io, net::SocketAddr, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{self, Instant},
};

use crate::wire::{Chunked, Fields, has_bare_line_end, head_length};

use super::{ClientError, Completeness, Ending, RequestBytes, Response, ResponseFraming, ResponseHead, Tail};

/// Bound of each operation to begin with.
pub const DEFAULT_BOUND: Duration = Duration::from_secs(5);
/// Longest head read, in bytes.
const HEAD_MAX: usize = 256 * 1024;
/// Longest body read, in bytes.
const BODY_MAX: usize = 256 * 1024 * 1024;
/// Most 1xx answers before the final one.
const INFORMATIONAL_MAX: usize = 64;
const READ_BYTES: usize = 16 * 1024;

/// One connection. It sends what it is told and reads one answer at a time; bytes behind an answer wait for the
/// next read.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    buffer: BytesMut,
    ended: Option<Ending>,
    bound: Duration,
    sent_at: Instant,
}

impl Connection {
    /// Connects within [`DEFAULT_BOUND`].
    ///
    /// # Errors
    ///
    /// [`ClientError::Connect`] or [`ClientError::ConnectTimeout`].
    pub async fn open(peer: SocketAddr) -> Result<Self, ClientError> {
        Self::open_within(peer, DEFAULT_BOUND).await
    }

    /// Connects within `bound`, which then also bounds each later operation.
    ///
    /// # Errors
    ///
    /// [`ClientError::Connect`] or [`ClientError::ConnectTimeout`].
    pub async fn open_within(peer: SocketAddr, bound: Duration) -> Result<Self, ClientError> {
        let connected = time::timeout(bound, TcpStream::connect(peer)).await;
        let stream =
            connected.map_err(|_over| ClientError::ConnectTimeout(bound))?.map_err(ClientError::Connect)?;
        stream.set_nodelay(true).map_err(ClientError::Connect)?;
        let buffer = BytesMut::with_capacity(READ_BYTES);
        Ok(Self { stream, peer, buffer, ended: None, bound, sent_at: Instant::now() })
    }

    /// Bounds each operation from now on.
    #[must_use]
    pub fn bound(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }

    /// The client's own address.
    ///
    /// # Errors
    ///
    /// When the socket has none any more.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    // === Sending ===

    /// Sends these bytes.
    ///
    /// # Errors
    ///
    /// [`ClientError::Send`] or [`ClientError::SendTimeout`].
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.sent_at = Instant::now();
        self.write(bytes).await
    }

    /// Sends these pieces one by one, each in a segment of its own as far as the kernel allows, with a pause of
    /// `interval` between them.
    ///
    /// # Errors
    ///
    /// [`ClientError::Send`] or [`ClientError::SendTimeout`], the bound being one piece's.
    pub async fn send_pieces(&mut self, pieces: &[&[u8]], interval: Duration) -> Result<(), ClientError> {
        self.sent_at = Instant::now();
        for (at, piece) in pieces.iter().enumerate() {
            if at > 0 {
                time::sleep(interval).await;
            }
            self.write(piece).await?;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let written = time::timeout(self.bound, self.stream.write_all(bytes)).await;
        written.map_err(|_over| ClientError::SendTimeout(self.bound))?.map_err(ClientError::Send)
    }

    /// Sends FIN and can go on reading: a half close.
    ///
    /// # Errors
    ///
    /// [`ClientError::Send`] when the connection is gone.
    pub async fn finish(&mut self) -> Result<(), ClientError> {
        self.stream.shutdown().await.map_err(ClientError::Send)
    }

    /// Ends the connection with RST.
    ///
    /// # Errors
    ///
    /// When the socket refuses the option.
    pub fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    // === Exchanges ===

    /// Sends one request and reads its answer. `Host` and, for a body, `Content-Length` are added unless `fields`
    /// have them.
    ///
    /// # Errors
    ///
    /// When it cannot be sent, or there is no head or a malformed one.
    pub async fn exchange(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, ClientError> {
        let request = RequestBytes::new(&self.peer.to_string(), method, target, fields, body);
        self.send(&request.0).await?;
        self.read_response_to(method).await
    }

    /// `GET` on this connection, which is kept.
    ///
    /// # Errors
    ///
    /// As [`Connection::exchange`].
    pub async fn get(&mut self, target: &str, fields: &[(&str, &str)]) -> Result<Response, ClientError> {
        self.exchange("GET", target, fields, b"").await
    }

    // === Reading ===

    /// Reads the answer to a request that was no `HEAD`.
    ///
    /// # Errors
    ///
    /// When there is no head within the bound or before the end, or a malformed one. A body that breaks off is
    /// told by [`Response::completeness`].
    pub async fn read_response(&mut self) -> Result<Response, ClientError> {
        self.read_response_to("GET").await
    }

    /// Reads the answer to a request with this method.
    ///
    /// # Errors
    ///
    /// As [`Connection::read_response`].
    pub async fn read_response_to(&mut self, method: &str) -> Result<Response, ClientError> {
        let deadline = Instant::now() + self.bound;
        let mut informational = Vec::new();
        let head = loop {
            let head = self.head(deadline).await?;
            if head.status >= 200 || head.status == 101 {
                break head;
            }
            if informational.len() >= INFORMATIONAL_MAX {
                return Err(malformed("too many informational answers", &head.raw));
            }
            informational.push(head);
        };
        let head_after = self.sent_at.elapsed();
        let framing = head.framing(method).map_err(|reason| malformed(reason, &head.raw))?;
        let mut body = BytesMut::new();
        let mut trailers = Fields::default();
        let completeness = match framing {
            ResponseFraming::None => Completeness::Complete,
            ResponseFraming::ContentLength(length) => self.counted_body(length, &mut body, deadline).await,
            ResponseFraming::Chunked => self.chunked_body(&mut body, &mut trailers, deadline).await,
            ResponseFraming::CloseDelimited => self.body_until_close(&mut body, deadline).await,
        };
        let took = self.sent_at.elapsed();
        let body = body.freeze();
        Ok(Response { informational, head, framing, body, trailers, completeness, head_after, took })
    }

    /// Reads every byte until the end, or until the bound is over.
    pub async fn read_to_end(&mut self) -> Tail {
        let deadline = Instant::now() + self.bound;
        loop {
            if let Err(ending) = self.fill(deadline).await {
                return Tail { bytes: self.buffer.split().freeze(), ending };
            }
        }
    }

    /// Reads until at least `count` bytes are there that no answer took yet, and takes them all.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoHead`] with what there was, when they end before.
    pub async fn read_at_least(&mut self, count: usize) -> Result<Bytes, ClientError> {
        let deadline = Instant::now() + self.bound;
        while self.buffer.len() < count {
            if let Err(ending) = self.fill(deadline).await {
                return Err(ClientError::NoHead { ending, received: self.buffer.split().freeze() });
            }
        }
        Ok(self.buffer.split().freeze())
    }

    /// Bytes read that no answer took.
    #[must_use]
    pub fn leftover(&self) -> &[u8] {
        &self.buffer
    }

    /// Whether the peer has ended the connection, as far as can be told without waiting. Bytes that came unasked
    /// are kept for the next read.
    pub fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => Some(Ending::Fin),
                Ok(_) => None,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                Err(_) => Some(Ending::Reset),
            };
        }
        self.ended.is_some()
    }

    /// Reads once. An end by FIN or RST is remembered; a timeout is not.
    async fn fill(&mut self, deadline: Instant) -> Result<(), Ending> {
        if let Some(ending) = self.ended {
            return Err(ending);
        }
        self.buffer.reserve(READ_BYTES);
        let ending = match time::timeout_at(deadline, self.stream.read_buf(&mut self.buffer)).await {
            Err(_) => return Err(Ending::TimedOut),
            Ok(Ok(0)) => Ending::Fin,
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(_)) => Ending::Reset,
        };
        self.ended = Some(ending);
        Err(ending)
    }

    async fn head(&mut self, deadline: Instant) -> Result<ResponseHead, ClientError> {
        loop {
            let length = head_length(&self.buffer);
            let head = &self.buffer[..length.unwrap_or(self.buffer.len())];
            if has_bare_line_end(head) {
                return Err(malformed("a line does not end in CR LF", head));
            }
            if !b"HTTP/1.".starts_with(&head[..head.len().min(7)]) {
                return Err(malformed("the status line is not HTTP/1.x", head));
            }
            if let Some(length) = length {
                let raw = Bytes::copy_from_slice(head);
                self.buffer.advance(length);
                return ResponseHead::parse(raw.clone()).map_err(|reason| malformed(reason, &raw));
            }
            if head.len() > HEAD_MAX {
                return Err(malformed("the head is too long", head));
            }
            if let Err(ending) = self.fill(deadline).await {
                return Err(ClientError::NoHead { ending, received: self.buffer.clone().freeze() });
            }
        }
    }

    async fn counted_body(&mut self, length: u64, body: &mut BytesMut, deadline: Instant) -> Completeness {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        loop {
            let here = self.buffer.len().min(length - body.len());
            body.extend_from_slice(&self.buffer[..here]);
            self.buffer.advance(here);
            if body.len() == length {
                return Completeness::Complete;
            }
            if body.len() > BODY_MAX {
                return Completeness::TooLong;
            }
            if let Err(ending) = self.fill(deadline).await {
                return cut_by(ending);
            }
        }
    }

    async fn chunked_body(
        &mut self,
        body: &mut BytesMut,
        trailers: &mut Fields,
        deadline: Instant,
    ) -> Completeness {
        let mut decoder = Chunked::default();
        let completeness = loop {
            match decoder.decode(&mut self.buffer, |part| body.extend_from_slice(part)) {
                Ok(true) => break Completeness::Complete,
                Ok(false) if body.len() > BODY_MAX => break Completeness::TooLong,
                Ok(false) => {}
                Err(_) => break Completeness::Malformed,
            }
            if let Err(ending) = self.fill(deadline).await {
                break cut_by(ending);
            }
        };
        *trailers = decoder.into_trailers();
        completeness
    }

    async fn body_until_close(&mut self, body: &mut BytesMut, deadline: Instant) -> Completeness {
        loop {
            body.extend_from_slice(&self.buffer);
            self.buffer.clear();
            if body.len() > BODY_MAX {
                return Completeness::TooLong;
            }
            match self.fill(deadline).await {
                Ok(()) => {}
                Err(Ending::Fin) => return Completeness::Complete,
                Err(ending) => return cut_by(ending),
            }
        }
    }
}

fn cut_by(ending: Ending) -> Completeness {
    match ending {
        Ending::Fin => Completeness::CutByFin,
        Ending::Reset => Completeness::CutByReset,
        Ending::TimedOut => Completeness::TimedOut,
    }
}

fn malformed(reason: &'static str, bytes: &[u8]) -> ClientError {
    ClientError::MalformedHead { reason, received: Bytes::copy_from_slice(bytes) }
}
