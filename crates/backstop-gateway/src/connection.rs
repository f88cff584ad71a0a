//! One client connection, from accept to close.

use std::future::pending;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{cell::Cell, convert::Infallible};

use backstop::clock::Clock;
use backstop_engine::time::Mono;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::interim::Writer;
use crate::stack::{Shared, Thread};
use crate::taken::{Replies, Taken};
use crate::telemetry::observe;
use crate::timed_io::TimedIo;

/// What a client may send and take on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) head_bytes: usize,
    pub(crate) head_time: Duration,
    pub(crate) reply_time: Duration,
    /// How many may be open in the whole process.
    pub(crate) connections: u64,
}

/// How long an HTTP/2 connection may rest between requests. HTTP/1.1 connections may for the time of a head, which begins
/// with the end of the answer before it.
const REST: Duration = Duration::from_secs(60);
/// The same for one that came after the stop began.
const LATE_REST: Duration = Duration::from_secs(1);

/// Spawns onto the thread that accepted the connection.
#[derive(Clone, Copy, Debug)]
struct Here;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// One counted connection.
pub(crate) struct Open {
    shared: Arc<Shared>,
    late: bool,
}

impl Open {
    /// `None` if too many are open. A `late` one comes after the stop began.
    pub(crate) fn count(shared: &Arc<Shared>, most: u64, late: bool) -> Option<Self> {
        shared.tallies.open(most, late).then(|| Self { shared: Arc::clone(shared), late })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.tallies.closed(self.late);
    }
}

/// What a connection is used for.
struct Use {
    since: Mono,
    /// The version of its first request.
    version: Cell<Option<Version>>,
    streams: Cell<u32>,
    /// When the last stream ended.
    rests_since: Cell<Mono>,
    clock: Clock,
}

/// Why a connection is not kept.
enum Unused {
    /// No request came in time.
    Silent,
    /// It rests.
    Rests,
}

impl Use {
    fn new(clock: Clock) -> Self {
        let since = clock.mono();
        Self { since, version: Cell::new(None), streams: Cell::new(0), rests_since: Cell::new(since), clock }
    }

    fn stream(self: &Rc<Self>, version: Version) -> Streaming {
        self.version.set(Some(version));
        self.streams.set(self.streams.get() + 1);
        Streaming(Rc::clone(self))
    }

    /// Ends when no request has come in the time of a head, or when an HTTP/2 connection has rested too long since then
    /// and since the call. hyper has such limits only for what it knows to be HTTP/1.1.
    async fn unused(&self, head_time: Duration, rest: Duration) -> Unused {
        let from = self.clock.mono();
        self.clock.sleep_until(self.since.after(head_time)).await;
        match self.version.get() {
            None => return Unused::Silent,
            Some(Version::HTTP_2) => {}
            Some(_) => pending().await,
        }
        loop {
            let now = self.clock.mono();
            let rests = if self.streams.get() == 0 { self.rests_since.get().max(from) } else { now };
            let end = rests.after(rest);
            if end <= now {
                return Unused::Rests;
            }
            self.clock.sleep_until(end).await;
        }
    }
}

/// One request and its answer.
pub(crate) struct Streaming(Rc<Use>);

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get() - 1);
        self.0.rests_since.set(self.0.clock.mono());
    }
}

/// Serves a connection until it ends, or until the stop and the answers under way at that moment are over.
pub(crate) async fn serve(
    thread: Rc<Thread>,
    open: Open,
    stream: TcpStream,
    peer: SocketAddr,
    limits: ConnectionLimits,
    clock: Clock,
    mut stop: watch::Receiver<bool>,
) {
    // Who comes after the stop began is still told so, once: a graceful shutdown would close without a word.
    let comes_late = open.late;
    let used = Rc::new(Use::new(clock.clone()));
    let replies = Rc::new(Replies::new(limits.reply_time, clock.clone()));
    let (io, side) = TimedIo::new(stream, limits.reply_time, clock);
    let interim = Rc::new(Writer::new(side.clone()));
    let service = service_fn({
        let (thread, replies, used) = (Rc::clone(&thread), Rc::clone(&replies), Rc::clone(&used));
        move |request: Request<Incoming>| {
            let streaming = used.stream(request.version());
            let (thread, interim, replies) = (Rc::clone(&thread), Rc::clone(&interim), Rc::clone(&replies));
            let (side, is_old, method) =
                (side.clone(), request.version() == Version::HTTP_10, request.method().clone());
            async move {
                let client = (request.version() < Version::HTTP_2).then_some(&*interim);
                let response = observe(&thread, peer, client, request).await;
                let side = (is_old && ends_with_the_connection(&method, &response)).then_some(side);
                Ok::<_, Infallible>(response.map(|body| match client {
                    Some(_) => Taken::by_connection(body, side),
                    None => replies.watch(body, streaming),
                }))
            }
        }
    });
    let server = builder(limits, !comes_late);
    let connection = server.serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let (head_time, rest) =
        if comes_late { (limits.head_time.min(LATE_REST), LATE_REST) } else { (limits.head_time, REST) };
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = replies.stuck() => return,
        unused = used.unused(head_time, rest) => match unused {
            Unused::Silent => return,
            Unused::Rests => None,
        },
        _ = stop.wait_for(|stop| *stop), if !comes_late => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            ended = connection => ended,
            () = replies.stuck() => return,
            _ = used.unused(head_time, rest) => return,
        }
    };
    if let Err(error) = ended
        && error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
    {
        thread.shared.tallies.malformed();
    }
}

/// Whether an HTTP/1.0 client sees the end of this answer by the end of the connection alone (RFC 9112 section 6.3).
fn ends_with_the_connection<B: Body>(method: &Method, response: &Response<B>) -> bool {
    let has_content = *method != Method::HEAD
        && !matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    has_content
        && !response.headers().contains_key(CONTENT_LENGTH)
        && response.body().size_hint().exact().is_none()
}

fn builder(limits: ConnectionLimits, keep_alive: bool) -> auto::Builder<Here> {
    let mut server = auto::Builder::new(Here);
    server
        .http1()
        .keep_alive(keep_alive)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        // What is no larger when it is complete is measured again. Less than one read hyper does not accept, nor does the
        // policy file.
        .max_buf_size(limits.head_bytes.max(8192))
        .half_close(false)
        .writev(false);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(128)
        .max_send_buf_size(64 * 1024)
        .keep_alive_interval(Duration::from_secs(20));
    server
}
