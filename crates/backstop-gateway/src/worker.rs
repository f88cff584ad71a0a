//! One thread: its own runtime, its own accepting, its own ways to the dependencies.

use std::cell::Cell;
use std::future::Future;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::engine::Engine;
use backstop_engine::time::Mono;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use crate::authorizer::{self, Fetch};
use crate::caches::Caches;
use crate::client_body::RequestContent;
use crate::connection::{ConnectionLimits, Open, serve};
use crate::probe::{self, Probe};
use crate::stack::{Draws, Shared, Thread};
use crate::upstream::Pool;

/// What a worker is given.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Vec<StdListener>,
    pub(crate) pools: Vec<Pool<RequestContent>>,
    pub(crate) caches: Caches,
    pub(crate) limits: ConnectionLimits,
    pub(crate) clock: Clock,
    pub(crate) stages: watch::Receiver<Stage>,
    /// Dependencies that this thread probes: all, on one thread.
    pub(crate) probes: Vec<Probe>,
    /// Issuers whose keys this thread fetches: all, on one thread.
    pub(crate) fetches: Vec<Fetch>,
    pub(crate) engine: Arc<Engine>,
}

/// How far the service has come with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Not at all.
    Serving,
    /// New requests are refused, those under way go on.
    Draining,
    /// Nothing is accepted any more; connections end.
    Closed,
}

/// After the listening socket failed (too many open files, say), before it is asked again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Between two lines in the log about it.
const ACCEPT_LINES: Duration = Duration::from_secs(1);

impl Worker {
    /// Serves until the stop is complete. Connections that are then still open are cut.
    pub(crate) fn run(self) -> std::io::Result<()> {
        on_own_runtime(self.serve())?
    }

    async fn serve(mut self) -> std::io::Result<()> {
        let thread = Rc::new(Thread {
            lanes: self.pools.iter().map(Pool::lane).collect(),
            shared: Arc::clone(&self.shared),
            caches: self.caches.lanes(),
            draws: Draws::Secret(std::hash::RandomState::new()),
            begun: Cell::new(0),
        });
        for probe in std::mem::take(&mut self.probes) {
            if let Some(lane) = thread.lanes.get(usize::from(probe.id.0)).cloned() {
                tokio::task::spawn_local(probe::run(
                    probe,
                    Arc::clone(&self.engine),
                    lane,
                    self.clock.clone(),
                ));
            }
        }
        for fetch in std::mem::take(&mut self.fetches) {
            if let Some(lane) = thread.lanes.get(fetch.dependency()).cloned() {
                let (engine, clock) = (Arc::clone(&self.engine), self.clock.clone());
                tokio::task::spawn_local(authorizer::fetch(fetch, engine, lane, clock));
            }
        }
        let (stop, stopped) = watch::channel(false);
        let mut accepting = JoinSet::new();
        for listener in std::mem::take(&mut self.listeners) {
            let listener = TcpListener::from_std(listener)?;
            let (thread, limits, clock) = (Rc::clone(&thread), self.limits, self.clock.clone());
            accepting.spawn_local(accept(listener, thread, limits, clock, stopped.clone()));
        }
        // From here on idle connections end after their present request; new ones are still answered, with a refusal.
        if self.stages.wait_for(|stage| *stage >= Stage::Draining).await.is_ok() {
            let _connections_listen = stop.send(true);
        }
        let _ended_either_way = self.stages.wait_for(|stage| *stage == Stage::Closed).await;
        accepting.shutdown().await;
        Ok(())
    }
}

/// Runs something to its end on a runtime of this thread, and drops whatever it has begun besides.
pub(crate) fn on_own_runtime<F: Future>(work: F) -> std::io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let output = local.block_on(&runtime, work);
    drop(local);
    // A name lookup may hang in the system, on one of the runtime's blocking threads: a stop has a bound all the same.
    runtime.shutdown_background();
    Ok(output)
}

async fn accept(
    listener: TcpListener,
    thread: Rc<Thread>,
    limits: ConnectionLimits,
    clock: Clock,
    stopped: watch::Receiver<bool>,
) {
    let mut told: Option<Mono> = None;
    let mut left_out = 0_u32;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let late = *stopped.borrow();
                let Some(open) = Open::count(&thread.shared, limits.connections, late) else { continue };
                let _small_answers_wait_otherwise = stream.set_nodelay(true);
                tokio::task::spawn_local(serve(
                    Rc::clone(&thread),
                    open,
                    stream,
                    peer,
                    limits,
                    clock.clone(),
                    stopped.clone(),
                ));
            }
            // The connection is gone, not the listener.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                thread.shared.tallies.accept_failed();
                let now = clock.mono();
                if told.is_none_or(|told| now >= told.after(ACCEPT_LINES)) {
                    tracing::warn!(%error, left_out, "cannot accept connections; trying again");
                    told = Some(now);
                    left_out = 0;
                } else {
                    left_out = left_out.saturating_add(1);
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A blocking call that does not return, as a lookup at a name server that says nothing, is left behind.
    #[test]
    fn a_stop_does_not_wait_for_a_lookup_that_hangs() {
        let (release, hung) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let output = on_own_runtime(async move {
                tokio::task::spawn_blocking(move || {
                    begun.send(()).expect("the test waits");
                    hung.recv()
                });
                has_begun.recv().expect("it begins");
                7
            });
            ended.send(output.expect("a runtime")).expect("the test waits");
        });
        let output = has_ended.recv_timeout(Duration::from_secs(10));
        release.send(()).expect("it hangs until now");
        thread.join().expect("it ends");
        assert_eq!(output, Ok(7), "the stop waited for the call that hangs");
    }
}
