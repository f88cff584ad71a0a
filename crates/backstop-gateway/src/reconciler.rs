//! The reconciler: what becomes of operations whose outcome is unknown.
//!
//! It asks for their status, by each route's own contract, until there is evidence or a person has to decide. It never sends an
//! operation: all that it ever sends to a dependency is a GET. What it finds out is decided by the engine
//! ([`operation`](backstop_engine::operation)) and written by the ledger.
//!
//! It has a thread and connections of its own, no place among requests and none of their breakers: a flood of requests does not
//! stop it, and it takes nothing away from them. Nothing of its state has to survive: what is unknown, and when it is asked for
//! next, is in the ledger.
//!
//! | room | what is done there |
//! |---|---|
//! | [`lives`] | another life after a panic |
//! | [`turn`] | once a second, and when something is due: sweep, look at each route, say that it is at work |
//! | [`route`] | what is claimed of a route, and when |
//! | [`budget`], [`breaker`] | how many queries, how far apart, and whether at all |
//! | [`ask`], [`query`] | one query, on a connection of its own |
//! | [`answer`] | what it says |
//! | [`credentials`], [`calibration`] | whether an absence may count |
//! | [`again`] | asking again about what was decided by absence |
//! | [`attention`], [`webhook`] | calling a person |
//! | [`followed`] | which routes are followed, as the policy has it |
//! | [`counts`] | what is counted |

mod again;
mod answer;
mod ask;
mod attention;
mod breaker;
mod budget;
mod calibration;
mod counts;
mod credentials;
mod followed;
mod lives;
mod query;
mod route;
mod turn;
mod webhook;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstop::clock::Clock;
use backstop_policy::WebhookSettings;
use tokio::sync::watch;

use crate::operations::{self, Operations};

pub(crate) use calibration::Calibration;
pub(crate) use counts::{Counts, RouteCounts};
pub use followed::CannotFollow;
pub(crate) use followed::{Followed, followed};
#[cfg(feature = "otlp")]
pub(crate) use query::Way;
pub(crate) use webhook::Webhook;

/// What the reconciler is given.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) operations: Arc<Operations>,
    /// Every route that has operations.
    pub(crate) routes: Vec<Followed>,
    pub(crate) clock: Clock,
    /// Who is told of operations that need a person.
    pub(crate) webhook: Option<Webhook>,
    /// Where known successes are offered.
    pub(crate) calibration: Calibration,
}

impl Settings {
    /// For these routes, as the policy has it.
    ///
    /// # Errors
    /// If the webhook cannot be told as the policy says.
    pub(crate) fn new(
        operations: Arc<Operations>,
        routes: Vec<Followed>,
        webhook: Option<&WebhookSettings>,
        clock: &Clock,
    ) -> Result<Self, CannotFollow> {
        let webhook = webhook.map(followed::webhook).transpose()?;
        let calibration = followed::calibration(&routes);
        let samples = calibration.clone();
        operations.successes.tell(move |route, upstream_id, now| samples.offer(route, upstream_id, now.mono));
        Ok(Self { operations, webhook, calibration, routes, clock: clock.clone() })
    }
}

/// Follows unknown operations.
#[derive(Debug)]
pub(crate) struct Reconciler;

/// A reconciler at work. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Handle {
    stop: watch::Sender<bool>,
    ended: Mutex<Receiver<()>>,
    counts: Arc<Counts>,
}

impl Reconciler {
    /// Starts it on a thread of its own.
    ///
    /// # Errors
    /// If the system has no thread or no random numbers to give.
    pub(crate) fn start(settings: Settings) -> io::Result<Handle> {
        let counts = Arc::new(Counts::of(settings.routes.iter().map(|route| &*route.name)));
        let id = operations::draw_id()?;
        let seed = id.as_bytes().iter().fold(0_u64, |seed, byte| seed.rotate_left(8) ^ u64::from(*byte));
        // From the first request on it is true that somebody follows; a thread that never begins is silent soon.
        settings.operations.following.is_at_work(None, settings.clock.mono());
        let (stop, stopped) = watch::channel(false);
        let (tell, ended) = channel::<()>();
        let counted = Arc::clone(&counts);
        std::thread::Builder::new().name("backstop-reconciler".into()).spawn(move || {
            // Dropped however this ends: that tells whoever waits for it.
            let _tell = tell;
            lives::run(&settings, &counted, seed, &stopped);
        })?;
        Ok(Handle { stop, ended: Mutex::new(ended), counts })
    }
}

impl Handle {
    /// What was counted so far.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Ends it: what is being asked is given up, and asked again in the next life. `false` if that took longer than `bound`.
    pub(crate) fn close(&self, bound: Duration) -> bool {
        let _it_may_have_ended = self.stop.send(true);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(bound);
        ended == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests;
