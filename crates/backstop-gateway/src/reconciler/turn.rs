//! The reconciler's turns.
//!
//! In each it does what time makes necessary, has asked what may be asked, and says that it is at work. One that is stuck,
//! because the ledger does not answer, says nothing; and then nobody hears "in verification".

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::entropy::Entropy;
use backstop_engine::operation::Retention;
use backstop_engine::time::{Mono, Wall};
use backstop_store::ledger::{Filter, Ledger, LedgerError, Upkeep};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::Settings;
use super::attention::Caller;
use super::calibration::Calibration;
use super::counts::{Counts, add};
use super::route::{EVERY, Route};
use crate::operations::Operations;

/// After a sweep that did as much as one may.
const AGAIN: Duration = Duration::from_millis(20);

/// What all that goes on on the reconciler's thread shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) operations: Arc<Operations>,
    pub(super) clock: Clock,
    pub(super) counts: Arc<Counts>,
    /// A query has ended.
    pub(super) ended: Notify,
    entropy: Cell<Entropy>,
}

impl Shared {
    pub(super) fn ledger(&self) -> &dyn Ledger {
        &*self.operations.ledger
    }

    /// 64 random bits.
    pub(super) fn bits(&self) -> u64 {
        let mut entropy = self.entropy.get();
        let bits = entropy.bits();
        self.entropy.set(entropy);
        bits
    }
}

/// Works until it is told to stop. What is asked then is given up: it is asked again in the next life.
pub(super) async fn run(
    settings: Settings,
    counts: Arc<Counts>,
    seed: u64,
    mut stopped: watch::Receiver<bool>,
) {
    let Settings { operations, routes, clock, webhook, calibration } = settings;
    let entropy = Cell::new(Entropy::new(seed));
    let shared = Rc::new(Shared { operations, clock, counts, ended: Notify::new(), entropy });
    let (caller, telling) = Caller::new(webhook, &shared);
    let work = async {
        // Routes that the policy does not name any more may have operations still.
        if let Some(known) = known(&shared).await {
            Turns::new(routes, known, &calibration, shared, caller).run().await;
        }
    };
    tokio::select! {
        biased;
        _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
        () = panics(telling) => {}
        () = work => {}
    }
}

/// Panics as this task does, so that a life does not go on without it.
async fn panics(task: Option<JoinHandle<()>>) {
    if let Some(task) = task
        && let Err(error) = task.await
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
    std::future::pending().await
}

/// The routes of all operations, asked for until the ledger tells. `None` once it is closed.
async fn known(shared: &Shared) -> Option<Vec<Box<str>>> {
    let mut trouble = Trouble::default();
    loop {
        match shared.ledger().routes().await {
            Ok(known) => return Some(known),
            Err(LedgerError::Closed) => {
                tracing::error!(
                    target: "backstop::operations",
                    "unknown operations are not followed: the ledger cannot be read"
                );
                return None;
            }
            Err(error) => trouble.is_told(&error, shared),
        }
        shared.clock.sleep_until(shared.clock.mono().after(EVERY)).await;
    }
}

/// Whether the log was told that the ledger does not do its part. Once for all that follow each other.
#[derive(Debug, Default)]
struct Trouble(bool);

impl Trouble {
    fn is_told(&mut self, error: &LedgerError, shared: &Shared) {
        add(&shared.counts.turns_failed);
        if !std::mem::replace(&mut self.0, true) {
            tracing::warn!(
                target: "backstop::operations",
                %error,
                "unknown operations cannot be looked after just now; trying again each second"
            );
        }
    }

    const fn is_over(&mut self) {
        self.0 = false;
    }
}

struct Turns {
    shared: Rc<Shared>,
    routes: Vec<Rc<Route>>,
    upkeep: Arc<[Upkeep]>,
    caller: Caller,
    next_sweep: Mono,
    /// Whether a person was told of what needed one before this life.
    has_summarised: bool,
}

impl Turns {
    fn new(
        followed: Vec<super::Followed>,
        known: Vec<Box<str>>,
        calibration: &Calibration,
        shared: Rc<Shared>,
        caller: Caller,
    ) -> Self {
        let mut retentions: Vec<Retention> = followed.iter().map(super::Followed::retention).collect();
        // Of a route that the policy does not name any more nothing is forgotten sooner than of any other.
        let longest = |of: fn(&Retention) -> Duration| {
            let default = of(&Retention::default());
            retentions.iter().map(of).fold(default, Duration::max)
        };
        let (content, tombstone) = (longest(|kept| kept.content), longest(|kept| kept.tombstone));
        let mut routes: Vec<_> = followed
            .into_iter()
            .enumerate()
            .map(|(index, followed)| Rc::new(Route::new(followed, index, calibration, &shared)))
            .collect();
        for name in known {
            if routes.iter().all(|route| route.name != name) {
                tracing::warn!(
                    target: "backstop::operations",
                    route = &*name,
                    "the ledger has operations of a route that the policy does not name: nobody can ask for their status, and if it \
                     was renamed, every key of it is a new one and would be executed again"
                );
                routes.push(Rc::new(Route::gone(name)));
                retentions.push(Retention { content, tombstone });
            }
        }
        let upkeep = routes.iter().zip(retentions).map(|(route, retention)| Upkeep {
            route: route.name.clone(),
            retention,
            schedule: route.schedule,
        });
        let upkeep = upkeep.collect();
        shared.operations.following.follows(routes.iter().map(|route| route.name.clone()));
        Self { shared, routes, upkeep, caller, next_sweep: Mono::default(), has_summarised: false }
    }

    async fn run(mut self) {
        let mut trouble = Trouble::default();
        loop {
            let turned = self.turn().await;
            let now = self.shared.clock.mono();
            let wake = match &turned {
                Ok(()) => {
                    add(&self.shared.counts.turns);
                    trouble.is_over();
                    self.next(now)
                }
                // There is nothing to be done without a ledger.
                Err(LedgerError::Closed) => return,
                Err(error) => {
                    trouble.is_told(error, &self.shared);
                    now.after(EVERY)
                }
            };
            tokio::select! {
                () = self.shared.clock.sleep_until(wake) => {}
                () = self.shared.ended.notified(), if turned.is_ok() => {}
            }
        }
    }

    async fn turn(&mut self) -> Result<(), LedgerError> {
        if !self.has_summarised {
            // Before the first sweep, which raises what belongs to this life.
            self.summary().await?;
            self.has_summarised = true;
        }
        let now = self.shared.clock.now();
        if now.mono >= self.next_sweep {
            let upkeep = Arc::clone(&self.upkeep);
            let swept = self.shared.ledger().sweep(upkeep, self.shared.bits(), now).await?;
            self.next_sweep = now.mono.after(if swept.has_more { AGAIN } else { EVERY });
            self.caller.call(swept.raised, swept.raised_left_out);
        }
        for route in &self.routes {
            // Not by `next_look`: a query may end while the route is being looked at, and that look sets it.
            if route.is_woken.replace(false) || self.shared.clock.mono() >= route.next_look.get() {
                route.look(&self.shared).await?;
            }
        }
        let following = &self.shared.operations.following;
        for route in &self.routes {
            following.is_due(&route.name, route.oldest_due.get());
            following.asks_from(&route.name, route.earliest());
        }
        let oldest_due = self.routes.iter().filter_map(|route| route.oldest_due.get()).min();
        following.is_at_work(oldest_due, self.shared.clock.mono());
        Ok(())
    }

    /// When there is something to do again.
    fn next(&self, now: Mono) -> Mono {
        let looks = self.routes.iter().map(|route| route.next_look.get());
        looks.fold(self.next_sweep, Mono::min).min(now.after(EVERY))
    }

    /// What needed a person before this life began is told once, as one.
    async fn summary(&self) -> Result<(), LedgerError> {
        let now = self.shared.clock.now();
        let filter =
            Filter { state: Some("attention"), from: Wall::from_unix_ns(i64::MIN), after: None, most: 1 };
        let oldest = self.shared.ledger().list(filter).await?;
        let Some(oldest) = oldest.first() else { return Ok(()) };
        let states = self.shared.ledger().standing(now).states;
        let count = states.iter().find(|state| state.state == "attention").map_or(0, |state| state.count);
        self.caller.summarise(count, oldest);
        Ok(())
    }
}
