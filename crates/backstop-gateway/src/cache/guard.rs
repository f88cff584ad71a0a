//! A stream on which nothing comes but bounded replies, and no more of them than were asked for.
//!
//! Replies carry no name: the first one belongs to the first command. A server, or something between, that sends one too
//! many shifts all that follow (<https://github.com/redis/redis/issues/13240>). So replies are counted as they come, and
//! one too many ends the connection before anybody gets it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::Frames;

/// What both sides of a connection know.
#[derive(Debug, Default)]
pub(super) struct Watch {
    asked: AtomicU64,
    is_foreign: AtomicBool,
}

impl Watch {
    /// A command is about to be sent.
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether something came that is no answer to what was sent.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign.load(Ordering::Relaxed)
    }
}

/// The stream.
#[derive(Debug)]
pub(super) struct Guard<S> {
    stream: S,
    frames: Frames,
    begun: u64,
    watch: Arc<Watch>,
}

impl<S> Guard<S> {
    pub(super) fn new(stream: S, value_bytes: u64, watch: Arc<Watch>) -> Self {
        Self { stream, frames: Frames::new(value_bytes), begun: 0, watch }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let came = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        let is_asked_for = this.frames.take(came).is_ok_and(|begun| {
            this.begun += begun;
            this.begun <= this.watch.asked.load(Ordering::Relaxed)
        });
        if is_asked_for {
            return Poll::Ready(Ok(()));
        }
        // Not even what was right before it is handed on.
        buffer.set_filled(before);
        this.watch.is_foreign.store(true, Ordering::Relaxed);
        // Of this kind the library knows that the connection is over.
        Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn as_many_replies_come_through_as_were_asked_for() {
        let watch = Arc::new(Watch::default());
        watch.ask();
        watch.ask();
        let mut guard = Guard::new(&b"+OK\r\n$1\r\nx\r\n"[..], 10, Arc::clone(&watch));
        let mut read = Vec::new();
        guard.read_to_end(&mut read).await.expect("both");
        assert_eq!(read, b"+OK\r\n$1\r\nx\r\n");
        assert!(!watch.is_foreign());
    }

    #[tokio::test]
    async fn one_reply_too_many_ends_the_stream_and_is_not_handed_on() {
        let watch = Arc::new(Watch::default());
        watch.ask();
        let mut guard = Guard::new(&b"+OK\r\n+OK\r\n"[..], 10, Arc::clone(&watch));
        let mut read = Vec::new();
        assert!(guard.read_to_end(&mut read).await.is_err());
        assert!(read.is_empty() && watch.is_foreign());
    }
}
