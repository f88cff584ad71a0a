//! Calling a dependency over a bounded number of HTTP/1.1 connections.
//!
//! A [`Pool`] is one dependency's connections over all threads, a [`Lane`] one thread's way to them. The rules:
//!
//! 1. **Never more connections than allowed.** Those in use, at rest, being opened and being closed are counted as one
//!    number, exactly. The number of calls is bounded before by the permit that comes with each; no call is refused and
//!    none waits while a place is free or a connection rests on any thread.
//! 2. **Nothing begins too late.** Before every phase the clock is asked, and no phase begins at or after
//!    [`Attempt::until`]. Where nothing was begun at all, the dependency was not asked ([`CallError::NotAsked`]): that we
//!    were late, or had no connection to spare, is no failure of its.
//! 3. **Nothing is sent twice.** Another address, or another connection, is tried only when certainly no byte of the
//!    request was written. Everything else is told to the engine, with [`Sent`] as the truth about it. What must be
//!    sent once at most ([`Attempt::is_once`]) is not tried anew even then. It goes on a connection of its own, opened for it
//!    and closed after it: on one that others had, a second answer to their request could come in as the answer to this one.
//! 4. **An answer ends where its framing says**, or it is a failure. Bytes after it are never a second answer.
//! 5. **A connection rests only after a complete exchange**: the request sent wholly, the answer read to its end, both
//!    sides willing. In every other case it is closed.
//! 6. **A call that nobody waits for goes on occupying** its permit and its connection until the dependency has
//!    answered to the end or closed, or the hold is over; before the answer's head and after it alike.
//! 7. **Whose fault it was is told apart**: a client that breaks off its request is [`CallError::Client`], never the
//!    dependency's failure.
//!
//! The files: what is decided by the operator ([`Settings`]), how many there may be (`places`), which one is taken
//! (`pool`), how it comes about (`checkout`, `resolve`, `network`), what happens on it (`exchange`, `upload`), who has it (`lease`,
//! `abandon`, `answer`), what is counted ([`Counts`]). Only `exchange` knows the HTTP/1.1 implementation.

mod abandon;
mod answer;
pub(crate) mod checkout;
mod counts;
mod exchange;
mod lease;
mod network;
mod places;
mod pool;
pub(crate) mod resolve;
mod settings;
mod upload;

use std::convert::Infallible;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use backstop::clock::Clock;
use backstop::upstream::{CallError, Progress, Upstream};
use backstop_engine::failure::{Cause, Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Attempt;
use backstop_engine::time::Mono;
use backstop_store::ledger::checkpoint::{Checkpoint, pass};
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};

use crate::tasks::Tasks;

pub use answer::AnswerBody;
pub use counts::{AddressCounts, Closed, Counts, Durations, Timed};
pub use exchange::Interim;
pub use network::{Connecting, Network, Script, Stream};
pub use settings::{Address, Settings};
pub use upload::{ClientBody, RequestBody};

use abandon::{Handed, Hold, Occupied};
use counts::Tally;
use exchange::Broken;
use pool::{Shared, Shelf};

/// One dependency's connections, over all threads. Cheap to clone.
///
/// `B` is the body of the requests.
pub struct Pool<B>(Arc<Shared<B>>);

impl<B> Pool<B> {
    /// No connection is opened before it is needed.
    pub fn new(settings: Settings, clock: Clock) -> Self {
        Self(Arc::new(Shared::new(settings, clock)))
    }

    /// A way to the dependency for the present thread.
    ///
    /// # Panics
    /// Outside a [`LocalSet`](tokio::task::LocalSet) or a local runtime, as [`tokio::task::spawn_local`] does: the
    /// connections that this thread opens are driven there, and so are the calls that it abandons.
    pub fn lane(&self) -> Lane<B> {
        let tasks = Tasks::of_this_thread();
        Lane(Rc::new(Thread { shared: Arc::clone(&self.0), shelf: self.0.add_shelf(), tasks }))
    }

    /// Changes how many connections there may be. Those that are too many are not closed, but no new one is opened.
    pub fn set_connections(&self, connections: u32) {
        self.0.places.set_limit(connections);
    }

    /// Closes connections that have rested too long or that the other side closed. To be called about once a second.
    pub fn sweep(&self, now: Mono) {
        self.0.sweep(now);
    }

    /// Closes all connections at rest, and from now on each one that would go to rest. Calls are still possible.
    pub fn close_idle(&self) {
        self.0.stop();
    }

    /// What there is now and what there was so far.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }
}

impl<B> Clone for Pool<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// One thread's way to a dependency. Cheap to clone, and bound to its thread.
pub struct Lane<B>(Rc<Thread<B>>);

struct Thread<B> {
    shared: Arc<Shared<B>>,
    shelf: Arc<Shelf<B>>,
    tasks: Tasks,
}

impl<B> Lane<B> {
    fn shared(&self) -> &Shared<B> {
        &self.0.shared
    }

    fn shelf(&self) -> &Arc<Shelf<B>> {
        &self.0.shelf
    }

    fn tally(&self) -> &Tally {
        &self.0.shelf.tally
    }

    /// Has a task driven on this thread.
    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.tasks.spawn(task);
    }
}

impl<B> Drop for Thread<B> {
    fn drop(&mut self) {
        self.shelf.abolish();
    }
}

impl<B> Clone for Lane<B> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<B> fmt::Debug for Lane<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("settings", &self.0.shared.settings).finish_non_exhaustive()
    }
}

impl<B: RequestBody> Upstream<B> for Lane<B> {
    type Body = AnswerBody<B>;
    type Error = Infallible;

    async fn call(
        &self,
        attempt: Attempt,
        request: Request<B>,
        progress: &Progress,
    ) -> Result<Response<AnswerBody<B>>, CallError<Infallible>> {
        let Attempt { mut places, until, end, abandon_hold, is_once, .. } = attempt;
        let (mut request, watch) = exchange::prepare(request);
        if is_once {
            // RFC 9112 section 9.6: who will send nothing more on a connection says so.
            request.headers_mut().append(CONNECTION, HeaderValue::from_static("close"));
        }
        loop {
            let (lease, now) = self.lease(until, is_once, progress).await.map_err(|cause| match cause {
                Cause::Failed(failure) => CallError::Failed(failure),
                Cause::NotAsked(reason) => CallError::NotAsked(reason),
            })?;
            if is_once {
                pass(Checkpoint::ForwardBegun);
            }
            let occupied = Occupied { lease, places };
            let hold = Hold::new(abandon_hold, end, now);
            let (answer, occupied, hold) = Handed::over(request, occupied, hold, progress).await;
            let broken = match answer {
                Ok(answer) => {
                    return Ok(answer.map(|received| AnswerBody::new(received, occupied, watch, hold)));
                }
                Err(broken) => broken,
            };
            let was_reused = occupied.lease.was_reused();
            match broken {
                Broken::NotSent(again) if was_reused => {
                    occupied.lease.replace();
                    (request, places) = (*again, occupied.places);
                }
                Broken::NotSent(_) => {
                    occupied.lease.close(Closed::Failed);
                    return Err(CallError::Failed(Failure::new(FailureKind::Reset, Phase::Send, Sent::No)));
                }
                Broken::Failed(failure) => {
                    occupied.lease.close(Closed::Failed);
                    return Err(CallError::Failed(failure));
                }
                Broken::Client(fault) => {
                    occupied.lease.close(Closed::Left);
                    return Err(CallError::Client(fault));
                }
            }
        }
    }
}
