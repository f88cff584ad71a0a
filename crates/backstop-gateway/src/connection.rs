//! One client connection, from accept to close.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use std::{cell::Cell, convert::Infallible};

use backstop::clock::Clock;
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::interim::Writer;
use crate::stack::{Thread, handle};
use crate::taken::{Replies, Taken};
use crate::timed_io::TimedIo;

/// What a client may send and take on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) head_bytes: usize,
    pub(crate) head_time: Duration,
    pub(crate) reply_time: Duration,
}

/// Spawns onto the thread that accepted the connection.
#[derive(Clone, Copy, Debug)]
struct Here;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Serves a connection until it ends, or until the stop and the answers under way at that moment are over.
pub(crate) async fn serve(
    thread: Rc<Thread>,
    stream: TcpStream,
    peer: SocketAddr,
    limits: ConnectionLimits,
    clock: Clock,
    mut stop: watch::Receiver<bool>,
) {
    thread.shared.tallies.opened();
    let _closed = Closed(&thread);
    let replies = Rc::new(Replies::new(limits.reply_time, clock.clone()));
    let (io, side) = TimedIo::new(stream, limits.reply_time, clock);
    let interim = Rc::new(Writer::new(side));
    let numbers = Cell::new(0_u64);
    let service = service_fn({
        let (thread, replies) = (Rc::clone(&thread), Rc::clone(&replies));
        move |request: Request<Incoming>| {
            numbers.set(numbers.get() + 1);
            let number = numbers.get() ^ (u64::from(peer.port()) << 48);
            let (thread, interim, replies) = (Rc::clone(&thread), Rc::clone(&interim), Rc::clone(&replies));
            async move {
                let client = (request.version() < Version::HTTP_2).then_some(&*interim);
                let response = handle(&thread, peer, client, number, request).await;
                Ok::<_, Infallible>(response.map(|body| match client {
                    Some(_) => Taken::unwatched(body),
                    None => replies.watch(body),
                }))
            }
        }
    });
    // Who comes after the stop began is still told so, once: a graceful shutdown would close without a word.
    let comes_late = *stop.borrow();
    let server = builder(limits, !comes_late);
    let connection = server.serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = replies.stuck() => return,
        _ = stop.wait_for(|stop| *stop), if !comes_late => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = replies.stuck() => return,
            }
        }
    };
    if let Err(error) = ended
        && error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
    {
        thread.shared.tallies.malformed();
    }
}

struct Closed<'a>(&'a Thread);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.shared.tallies.closed();
    }
}

fn builder(limits: ConnectionLimits, keep_alive: bool) -> auto::Builder<Here> {
    let mut server = auto::Builder::new(Here);
    server
        .http1()
        .keep_alive(keep_alive)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        // hyper needs room for a minimum of one read.
        .max_buf_size(limits.head_bytes.max(8192))
        .half_close(false)
        .writev(false);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(128)
        .keep_alive_interval(Duration::from_secs(20));
    server
}
