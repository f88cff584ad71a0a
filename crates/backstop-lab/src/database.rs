//! A model of a database that bears only so much, as it is seen by the service in front of it.
//!
//! - A query takes [`Settings::query`] while at most [`Settings::capacity`] are under way. Beyond that all of them take longer,
//!   and longer than in proportion: what contends for locks, memory and disk heads also does less in all. With `n` under way a
//!   query takes `(n / capacity) ^ 1.2` as long, so that at four times the capacity three quarters of the work get done.
//! - More than [`Settings::connections`] are refused at once.
//! - After an outage its memory is empty: the first queries take [`Settings::cold`] times as long, and each one that ends warms it.
//!   What was under way when it went down is gone: it takes no place afterwards and warms nothing.
//! - A query that has begun goes on, whoever still waits for it. So what clients gave up on goes on costing.
//!
//! The factor is fixed when a query begins: those that come later do not slow down those that are under way. That is kinder than
//! real databases are.
//!
//! Limits that a database really has show the same collapse, and why it outlasts its cause: N. Bronson et al., "Metastable
//! Failures in Distributed Systems", HotOS 2021.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// By how much more than in proportion queries take longer.
const CONTENTION: f64 = 1.2;

/// What a database bears.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Queries that it works on at once without any of them taking longer.
    pub capacity: u32,
    /// Most queries under way.
    pub connections: u32,
    /// How long a query takes that nothing slows down.
    pub query: Duration,
    /// How many times as long it takes right after an outage.
    pub cold: f64,
    /// After so many queries about two thirds of the cold are gone.
    pub warms_after: u32,
}

/// A database. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Database {
    settings: Settings,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    load: Load,
    /// How often it was down.
    outages: u64,
}

/// What can be seen of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Queries under way.
    pub under_way: u32,
    /// Queries that came, in all.
    pub queries: u64,
    /// Of them, those that were refused.
    pub refused: u64,
    /// How cold it is: 1 right after an outage, 0 when it is warm.
    pub cold: f64,
}

/// As many queries as it has connections are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many connections")]
pub struct TooMany;

impl Database {
    /// A warm database with nothing to do.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, state: Arc::default() }
    }

    /// What it bears.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What can be seen of it now.
    #[must_use]
    pub fn load(&self) -> Load {
        self.lock().load
    }

    /// It was down: its memory is empty, and nothing is under way.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.outages += 1;
        state.load.cold = 1.0;
        state.load.under_way = 0;
    }

    /// One query, to its end.
    ///
    /// # Errors
    ///
    /// When it has no connection left.
    pub async fn query(&self) -> Result<(), TooMany> {
        let (takes, place) = self.begin()?;
        tokio::time::sleep(takes).await;
        let mut state = self.lock();
        if state.outages == place.outages {
            state.load.cold *= 1.0 - 1.0 / f64::from(self.settings.warms_after.max(1));
        }
        Ok(())
    }

    fn begin(&self) -> Result<(Duration, Place<'_>), TooMany> {
        let mut state = self.lock();
        let outages = state.outages;
        let load = &mut state.load;
        load.queries += 1;
        if load.under_way >= self.settings.connections {
            load.refused += 1;
            return Err(TooMany);
        }
        load.under_way += 1;
        let crowd = f64::from(load.under_way) / f64::from(self.settings.capacity.max(1));
        let cold = 1.0 + load.cold * (self.settings.cold - 1.0).max(0.0);
        let takes = self.settings.query.mul_f64(cold * crowd.max(1.0).powf(CONTENTION));
        Ok((takes, Place { database: self, outages }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query under way.
#[derive(Debug)]
struct Place<'a> {
    database: &'a Database,
    outages: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.database.lock();
        if state.outages == self.outages {
            state.load.under_way = state.load.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        Database::new(Settings {
            capacity: 2,
            connections: 8,
            query: Duration::from_millis(100),
            cold: 3.0,
            warms_after: 2,
        })
    }

    /// 8 / 2 = 4, and 4 to the power of 1.2 is 5.278.
    #[test]
    fn up_to_its_capacity_nothing_takes_longer_and_beyond_it_all_does() {
        let database = database();
        let begun: Vec<_> = std::iter::repeat_with(|| database.begin()).take(9).collect();
        let takes: Vec<_> =
            begun.iter().map(|one| one.as_ref().map(|(takes, _)| takes.as_millis())).collect();
        assert_eq!((takes[0], takes[1]), (Ok(100), Ok(100)));
        assert_eq!((takes[7], takes[8]), (Ok(527), Err(&TooMany)));
        let load = database.load();
        assert_eq!((load.under_way, load.queries, load.refused), (8, 9, 1));
        drop(begun);
        assert_eq!(database.load().under_way, 0);
    }

    /// Whoever holds a place over an outage gives none back and warms nothing.
    #[tokio::test(flavor = "current_thread")]
    async fn what_was_under_way_when_it_went_down_is_gone() {
        let database = database();
        let mut before = Box::pin(database.query());
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(before.as_mut().poll(context)))
                .await
                .is_pending()
        );
        database.restart();
        let after = database.begin();
        before.await.unwrap();
        let load = database.load();
        assert_eq!((load.under_way, load.cold), (1, 1.0));
        drop(after);
        assert_eq!(database.load().under_way, 0);
    }

    /// Three times as long at first; one of two queries takes half of the cold away.
    #[tokio::test(flavor = "current_thread")]
    async fn after_an_outage_queries_warm_it() {
        let database = database();
        database.restart();
        let takes = |database: &Database| database.begin().map(|(takes, _)| takes.as_millis());
        assert_eq!(takes(&database), Ok(300));
        database.query().await.unwrap();
        assert_eq!(takes(&database), Ok(200));
    }
}
