//! A client's connection: what a slow reader may take, and interim answers in between.
//!
//! - While bytes wait for a client that does not read, a clock runs; when they have waited for the whole reply time, the
//!   connection is an error, and with it everything that the reply holds is returned. Each time a [`STEP`] or all that waits is
//!   taken, the clock starts anew: a large answer is one piece for whoever writes it, and no reason to be faster.
//! - An interim answer may be written only between two messages. The connection is *between* messages when everything
//!   written was flushed since; hyper reads the next request only after that.
//! - An HTTP/1.0 client takes the end of the connection for the end of an answer that has no length (RFC 9112 section 6.3).
//!   So from the beginning of such an answer the connection ends with a reset, whatever ends it: the dependency, a limit, a
//!   stop, the end of the process. Only when all of the answer is with the system it may end plainly.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstop::clock::{Clock, Sleep};
use bytes::{Buf, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::TcpStream;

/// So much of what waits counts as taken: who takes less in the reply time does not take the reply.
pub(crate) const STEP: usize = 16 * 1024;

/// While more than this waits for the client, further interim answers are left out.
const UNSENT_MAX: usize = 64 * 1024;

/// The connection as hyper sees it.
pub(crate) struct TimedIo {
    shared: Rc<Shared>,
    clock: Clock,
    stalled: Option<Sleep>,
    /// Bytes taken since then.
    taken: usize,
}

/// The connection as whoever answers its requests sees it.
#[derive(Clone)]
pub(crate) struct Side(Rc<Shared>);

struct Shared {
    stream: RefCell<TcpStream>,
    /// How long bytes may wait; the route of the present request decides.
    reply_time: Cell<Duration>,
    /// Whether nothing was written since the last complete flush.
    between: Cell<bool>,
    /// The rest of an interim answer that the socket did not take at once.
    unsent: RefCell<BytesMut>,
    end: Cell<End>,
}

/// How the connection ends if it ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With whatever was written.
    Plain,
    /// With a reset: part of an answer that its end would complete was written, or will be.
    Reset,
    /// As before, until what was handed over is written: then plainly.
    ResetUntilFlushed,
}

impl TimedIo {
    pub(crate) fn new(stream: TcpStream, reply_time: Duration, clock: Clock) -> (Self, Side) {
        let shared = Rc::new(Shared {
            stream: RefCell::new(stream),
            reply_time: Cell::new(reply_time),
            between: Cell::new(true),
            unsent: RefCell::default(),
            end: Cell::new(End::Plain),
        });
        let side = Side(Rc::clone(&shared));
        (Self { shared, clock, stalled: None, taken: 0 }, side)
    }

    fn stall(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let end = self.stalled.get_or_insert_with(|| {
            self.taken = 0;
            self.clock.sleep_until(self.clock.mono().after(self.shared.reply_time.get()))
        });
        Pin::new(end)
            .poll(context)
            .map(|()| io::Error::new(io::ErrorKind::TimedOut, "the client did not take the reply"))
    }

    fn write_with(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TokioIo<&mut TcpStream>>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.shared.between.set(false);
        let written = match self.shared.poll_unsent(context) {
            Poll::Ready(Ok(())) => {
                let mut stream = self.shared.stream.borrow_mut();
                write(Pin::new(&mut TokioIo::new(&mut *stream)), context)
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        match written {
            Poll::Pending => self.stall(context).map(Err),
            Poll::Ready(Ok(bytes)) => {
                self.taken += bytes;
                if self.taken >= STEP {
                    self.start_anew();
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    fn start_anew(&mut self) {
        self.stalled = None;
        self.taken = 0;
    }
}

impl Shared {
    /// What is not taken now goes out before the next message; an error will meet that message too.
    fn try_unsent(&self, unsent: &mut BytesMut) {
        if let Ok(stream) = self.stream.try_borrow()
            && let Ok(bytes) = stream.try_write(unsent)
        {
            unsent.advance(bytes);
        }
    }

    /// A reset instead of the usual end. It takes effect when the socket is closed, also by the system.
    fn set_reset(&self, reset: bool) {
        if let Ok(stream) = self.stream.try_borrow() {
            let _gone_already = SockRef::from(&*stream).set_linger(reset.then_some(Duration::ZERO));
        }
    }

    fn flushed(&self) {
        self.between.set(true);
        if self.end.get() == End::ResetUntilFlushed {
            self.end.set(End::Plain);
            self.set_reset(false);
        }
    }

    fn poll_unsent(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut unsent = self.unsent.borrow_mut();
        while !unsent.is_empty() {
            let mut stream = self.stream.borrow_mut();
            match Pin::new(&mut TokioIo::new(&mut *stream)).poll_write(context, &unsent) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => unsent.advance(bytes),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Side {
    /// From now on bytes may wait this long for the client to take them.
    pub(crate) fn set_reply_time(&self, reply_time: Duration) {
        self.0.reply_time.set(reply_time);
    }

    /// An answer begins whose end is the end of the connection.
    pub(crate) fn reset_unless_whole(&self) {
        self.0.end.set(End::Reset);
        self.0.set_reset(true);
    }

    /// All of that answer was handed over.
    pub(crate) fn is_whole(&self) {
        if self.0.end.get() == End::Reset {
            self.0.end.set(End::ResetUntilFlushed);
        }
    }

    /// Writes an interim answer now, or leaves it out if the connection is in the middle of a message.
    pub(crate) fn interim(&self, head: &[u8]) {
        let shared = &self.0;
        let mut unsent = shared.unsent.borrow_mut();
        if !shared.between.get() {
            return;
        }
        if unsent.len() > UNSENT_MAX {
            shared.try_unsent(&mut unsent);
        }
        if unsent.len() <= UNSENT_MAX {
            unsent.extend_from_slice(head);
            shared.try_unsent(&mut unsent);
        }
    }
}

impl Read for TimedIo {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut stream = self.shared.stream.borrow_mut();
        Pin::new(&mut TokioIo::new(&mut *stream)).poll_read(context, buffer)
    }
}

impl Write for TimedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_with(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_with(context, |stream, context| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        // Small answers cost less as one copy and one plain write.
        false
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.shared.poll_unsent(context) {
            Poll::Ready(Ok(())) => {
                self.shared.flushed();
                self.start_anew();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.stall(context).map(Err),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.shared.stream.borrow_mut();
        Pin::new(&mut TokioIo::new(&mut *stream)).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::time::Now;
    use std::task::Waker;

    const REPLY_TIME: Duration = Duration::from_secs(30);

    type Written = Poll<io::Result<usize>>;

    /// A connection whose client takes what it is told to take.
    struct Client(TimedIo);

    impl Client {
        fn goes_on(&mut self, taken: usize) {
            let mut taken = Some(taken);
            let mut write = || {
                let answer = taken.take().map_or(Poll::Pending, |bytes| Poll::Ready(Ok(bytes)));
                self.0.write_with(&mut Context::from_waker(Waker::noop()), |_, _| answer)
            };
            assert!(matches!(write(), Poll::Ready(Ok(_))));
            assert!(write().is_pending());
        }

        fn takes_nothing(&mut self) -> Written {
            self.0.write_with(&mut Context::from_waker(Waker::noop()), |_, _| Poll::Pending)
        }
    }

    /// 29 s before each step: what waits is never taken as a whole.
    #[tokio::test]
    async fn who_takes_a_step_in_each_reply_time_is_waited_for() {
        let (mut client, hand) = client().await;
        assert!(client.takes_nothing().is_pending());
        for _ in 0..10 {
            hand.advance(REPLY_TIME - Duration::from_secs(1));
            client.goes_on(STEP);
        }
        hand.advance(REPLY_TIME - Duration::from_nanos(1));
        assert!(client.takes_nothing().is_pending());
        hand.advance(Duration::from_nanos(1));
        assert!(is_cut(client.takes_nothing()));
    }

    /// In pieces, as the system takes them, and with the byte that is missing for a step.
    #[tokio::test]
    async fn a_trickle_is_no_step() {
        let (mut client, hand) = client().await;
        assert!(client.takes_nothing().is_pending());
        for bytes in [1, 100, STEP - 102] {
            hand.advance(REPLY_TIME / 4);
            client.goes_on(bytes);
        }
        hand.advance(REPLY_TIME / 4);
        assert!(is_cut(client.takes_nothing()));

        let (mut client, hand) = self::client().await;
        assert!(client.takes_nothing().is_pending());
        for bytes in [1, 100, STEP - 101] {
            hand.advance(REPLY_TIME / 4);
            client.goes_on(bytes);
        }
        hand.advance(REPLY_TIME / 4);
        assert!(client.takes_nothing().is_pending());
    }

    /// What was taken while nothing waited is no part of the next step.
    #[tokio::test]
    async fn only_what_was_taken_since_counts() {
        let (mut client, hand) = client().await;
        client.goes_on(STEP - 1);
        client.goes_on(1);
        hand.advance(REPLY_TIME);
        assert!(is_cut(client.takes_nothing()));
    }

    fn is_cut(written: Written) -> bool {
        matches!(written, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut)
    }

    async fn client() -> (Client, backstop::clock::ManualClock) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (clock, hand) = Clock::manual(Now::default());
        (Client(TimedIo::new(stream, REPLY_TIME, clock).0), hand)
    }
}
