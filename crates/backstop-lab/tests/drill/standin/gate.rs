//! Places, breakers and ramps behind one lock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

use backstop_engine::health::{BreakerRules, RecoveryRules};

#[derive(Debug, Default)]
pub(crate) struct Gates(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    taken: HashMap<String, u32>,
    health: HashMap<usize, Health>,
}

#[derive(Debug, Default)]
struct Health {
    failures: u32,
    open_until: Option<Instant>,
    /// When it answered again, and how many were asked since.
    returned: Option<(Instant, u32)>,
    has_failed: bool,
}

/// A place that is given back when dropped.
pub(crate) struct Place(Arc<Mutex<State>>, String);

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.lock().unwrap().taken.entry(self.1.clone()).or_default() -= 1;
    }
}

impl Gates {
    pub(crate) fn place(&self, name: &str, most: u32) -> Option<Place> {
        let mut state = self.0.lock().unwrap();
        let taken = state.taken.entry(name.to_owned()).or_default();
        (*taken < most).then(|| {
            *taken += 1;
            Place(Arc::clone(&self.0), name.to_owned())
        })
    }

    /// Whether breaker and ramp let a call through now.
    pub(crate) fn may_ask(
        &self,
        dependency: usize,
        breaker: Option<&BreakerRules>,
        recovery: Option<&RecoveryRules>,
        never_back: bool,
    ) -> Result<(), String> {
        let mut state = self.0.lock().unwrap();
        let health = state.health.entry(dependency).or_default();
        if never_back && health.has_failed {
            return Err("breaker_open".to_owned());
        }
        let Some(breaker) = breaker else { return Ok(()) };
        let now = Instant::now();
        if let Some(until) = health.open_until {
            if now < until {
                return Err("breaker_open".to_owned());
            }
            // One at a time tries it.
            health.open_until = Some(now + breaker.open);
            return Ok(());
        }
        let Some((since, asked)) = health.returned.as_mut() else { return Ok(()) };
        let Some(recovery) = recovery else { return Ok(()) };
        let (mut rate, mut left, mut through) = (3.0, (now - *since).as_secs_f64(), 0.0);
        while left > 0.0 {
            let lasts = recovery.tick.as_secs_f64().max(5.0 / rate);
            through += rate * left.min(lasts);
            left -= lasts;
            rate *= f64::from(recovery.up.0) / 1000.0;
        }
        if f64::from(*asked) >= through {
            return Err("ramping".to_owned());
        }
        *asked += 1;
        if rate > 200.0 {
            health.returned = None;
        }
        Ok(())
    }

    pub(crate) fn heard(&self, dependency: usize, is_good: bool, breaker: Option<&BreakerRules>) {
        let mut state = self.0.lock().unwrap();
        let health = state.health.entry(dependency).or_default();
        if is_good {
            health.failures = 0;
            if health.open_until.take().is_some() {
                health.returned = Some((Instant::now(), 0));
            }
            return;
        }
        health.failures += 1;
        health.has_failed = true;
        let trips = breaker.filter(|rules| health.failures >= rules.min_calls.min(10));
        if let Some(rules) = trips {
            health.open_until = Some(Instant::now() + rules.open.max(Duration::from_millis(1)));
        }
    }
}
