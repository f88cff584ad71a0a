//! The socket under a connection, and what it has seen of writing.
//!
//! A failed write is kept to itself until reading has told the rest. A peer that refuses a long request in its middle
//! answers, closes, and so makes the kernel fail the writing that goes on; the answer lies in the socket already and must
//! be found there. If there is none, reading finds the end, and then the failed write is the reason.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use backstop_store::ledger::checkpoint::{self, Checkpoint};
use hyper_util::rt::TokioIo;

use crate::upstream::network::Stream;

/// What the socket has seen of writing.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    written: AtomicU64,
    behind: AtomicBool,
    failed: AtomicBool,
}

impl Gauge {
    /// Bytes that the kernel has taken so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether it did not take all that it was last given.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// Whether it takes nothing any more.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The socket.
pub(super) struct Wire {
    stream: TokioIo<Stream>,
    gauge: Arc<Gauge>,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> (Self, Arc<Gauge>) {
        let gauge = Arc::new(Gauge::default());
        (Self { stream: TokioIo::new(stream), gauge: Arc::clone(&gauge) }, gauge)
    }
}

/// A head with something behind it.
fn head_of(bytes: &[u8]) -> Option<&[u8]> {
    const END: &[u8] = b"\r\n\r\n";
    let end = bytes.windows(END.len()).position(|window| window == END)? + END.len();
    bytes.get(..end).filter(|head| head.len() < bytes.len())
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.gauge.has_failed() {
            return Poll::Pending;
        }
        // For whoever watches how far a request has come, its head leaves apart.
        let head = checkpoint::is_watched().then(|| head_of(bytes)).flatten();
        match Pin::new(&mut self.stream).poll_write(context, head.unwrap_or(bytes)) {
            Poll::Ready(Ok(written)) => {
                if head.is_some() {
                    checkpoint::pass(Checkpoint::ForwardPartlySent);
                }
                self.gauge.written.fetch_add(written as u64, Ordering::Relaxed);
                self.gauge.behind.store(written < bytes.len(), Ordering::Relaxed);
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(_)) => {
                // The reading side is woken by the same event, and finds the answer or the end.
                self.gauge.behind.store(true, Ordering::Relaxed);
                self.gauge.failed.store(true, Ordering::Relaxed);
                Poll::Pending
            }
            Poll::Pending => {
                self.gauge.behind.store(true, Ordering::Relaxed);
                Poll::Pending
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
