//! Breakers: held by hand, and over a restart.
//!
//! An operator may hold a breaker open or closed, and release it. So may the policy, from the start; an operator's word
//! then holds until the next start, which follows the policy again.
//!
//! **Over a restart.** What was open stays open for the rest of its time; what was being tried is tried again; what an
//! operator held stays held. Counters begin empty. It is written within a second of a change, at a clean stop, and before
//! an operator's order is answered. What is lost or damaged counts as closed, with the limits in force; so does what
//! was written about a dependency of another name or at another address. What could be read only later counts as far as it
//! is an operator's order: of everything else this process knows more by then.

mod saved;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstop::clock::Clock;
use backstop_engine::engine::{DependencyState, Engine};
use backstop_engine::health::{Forced, Phase, SavedPhase};
use backstop_engine::incident::Moment;
use backstop_engine::time::Now;
use backstop_policy::DependencySettings;
use tokio::sync::oneshot;

use crate::state::{Folder, Keeper};

/// The breakers of all dependencies.
#[derive(Debug)]
pub(crate) struct Breakers {
    engine: Arc<Engine>,
    clock: Clock,
    /// Where each dependency is, as the policy says.
    addresses: Vec<Vec<String>>,
    keeper: Option<Arc<Keeper>>,
    orders: Mutex<Orders>,
}

#[derive(Debug)]
struct Orders {
    /// What holds each dependency, if something does.
    held: Vec<Option<Held>>,
    /// Whether an operator has ordered something of it since the start.
    ordered: Vec<bool>,
    /// What was written last.
    written: Option<Vec<saved::Line>>,
}

/// Why a breaker is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) by: By,
    pub(crate) reason: Box<str>,
    pub(crate) since: Moment,
}

/// Who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Policy,
    Operator,
}

impl By {
    pub(crate) const fn token(self) -> &'static str {
        match self {
            By::Policy => "policy",
            By::Operator => "operator",
        }
    }
}

/// An operator's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Hold { at: Forced, reason: Box<str> },
    Release,
}

/// What an order changed.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) before: Phase,
    pub(crate) after: Phase,
    /// Whether it will survive a restart; nothing where there is no disk.
    pub(crate) saved: Option<oneshot::Receiver<bool>>,
}

/// Every phase by name, in the order in which a dependency goes through them.
pub(crate) const PHASES: [&str; 7] =
    ["closed", "open", "half_open", "ramp", "watch", "forced_open", "forced_closed"];

/// The name of a phase.
pub(crate) const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Closed => "closed",
        Phase::Open { .. } => "open",
        Phase::HalfOpen => "half_open",
        Phase::Ramp { .. } => "ramp",
        Phase::Watch { .. } => "watch",
        Phase::ForcedOpen => "forced_open",
        Phase::ForcedClosed => "forced_closed",
    }
}

impl Breakers {
    /// Takes up what an earlier process wrote, if there is a folder. Meant for before the first call.
    pub(crate) fn open(
        engine: &Arc<Engine>,
        clock: &Clock,
        dependencies: &[DependencySettings],
        folder: Option<&Folder>,
        keeper: Option<Arc<Keeper>>,
    ) -> Self {
        let now = clock.now();
        let by_policy = |dependency: &DependencyState| {
            dependency.rules.breaker?.forced?;
            Some(Held { by: By::Policy, reason: Box::default(), since: Moment::from(now) })
        };
        let held: Vec<_> = engine.dependencies().iter().map(by_policy).collect();
        let ordered = vec![false; held.len()];
        let breakers = Self {
            engine: Arc::clone(engine),
            clock: clock.clone(),
            addresses: dependencies.iter().map(addresses).collect(),
            keeper,
            orders: Mutex::new(Orders { held, ordered, written: None }),
        };
        if let Some(file) = folder.and_then(saved::read) {
            breakers.take_up(file, now);
        }
        breakers
    }

    /// What a dependency is in, and what holds it there. Nothing if there is no such dependency.
    pub(crate) fn look(&self, name: &str) -> Option<(Phase, Option<Held>)> {
        let index = self.index(name)?;
        let orders = self.orders();
        let phase = self.engine.dependencies().get(index)?.health.phase(self.clock.mono());
        Some((phase, orders.held.get(index).cloned().flatten()))
    }

    /// Carries out an operator's order. Nothing if there is no such dependency.
    pub(crate) fn order(&self, name: &str, order: Order) -> Option<Changed> {
        let index = self.index(name)?;
        let health = &self.engine.dependencies().get(index)?.health;
        let mut orders = self.orders();
        let now = self.clock.now();
        let before = health.phase(now.mono);
        let held = match order {
            Order::Hold { at, reason } => {
                match at {
                    Forced::Open => health.force_open(now.mono),
                    Forced::Closed => health.force_closed(now.mono),
                }
                Some(Held { by: By::Operator, reason, since: Moment::from(now) })
            }
            Order::Release => {
                health.release(now.mono);
                None
            }
        };
        let after = health.phase(now.mono);
        let reason = held.as_ref().map(|held| &*held.reason);
        tracing::warn!(
            target: "backstop::breaker",
            dependency = name,
            before = self::name(before),
            after = self::name(after),
            reason,
            "an operator's order"
        );
        if let Some(slot) = orders.held.get_mut(index) {
            *slot = held;
        }
        if let Some(slot) = orders.ordered.get_mut(index) {
            *slot = true;
        }
        let saved = self.write(&mut orders, now);
        Some(Changed { before, after, saved })
    }

    /// Writes how they stand, if that is not what was written last.
    pub(crate) fn note(&self, now: Now) {
        let mut orders = self.orders();
        let lines = self.lines(&orders, now);
        let is_like =
            |written: &Vec<saved::Line>| written.iter().zip(&lines).all(|(one, other)| one.is_like(other));
        if !orders.written.as_ref().is_some_and(is_like) {
            let _nobody_waits = self.write(&mut orders, now);
        }
    }

    fn write(&self, orders: &mut Orders, now: Now) -> Option<oneshot::Receiver<bool>> {
        let keeper = self.keeper.as_ref()?;
        let lines = self.lines(orders, now);
        let answer = keeper.write(saved::FILE, saved::text(&lines, now));
        orders.written = Some(lines);
        Some(answer)
    }

    fn lines(&self, orders: &Orders, now: Now) -> Vec<saved::Line> {
        let all = self.engine.dependencies().iter().zip(&self.addresses).zip(&orders.held);
        all.map(|((dependency, addresses), held)| {
            saved::Line::new(&dependency.rules.name, addresses, &dependency.health, held.as_ref(), now)
        })
        .collect()
    }

    fn take_up(&self, file: saved::File, now: Now) {
        let mut orders = self.orders();
        let elapsed = file.elapsed(now);
        for line in file.lines {
            let Some(index) = self.index(&line.name) else { continue };
            let Some(dependency) = self.engine.dependencies().get(index) else { continue };
            if self.addresses.get(index) != Some(&line.addresses) {
                tracing::info!(
                    target: "backstop::breaker",
                    dependency = line.name,
                    "is at another address now: what its breaker was in is forgotten"
                );
                continue;
            }
            // What the policy says holds from the start.
            if orders.held.get(index).is_some_and(Option::is_some) {
                continue;
            }
            dependency.health.restore(now.mono, line.state, elapsed);
            let phase = dependency.health.phase(now.mono);
            if matches!(phase, Phase::ForcedOpen | Phase::ForcedClosed)
                && let Some(slot) = orders.held.get_mut(index)
            {
                *slot = line.held;
            }
            if phase != Phase::Closed {
                tracing::warn!(
                    target: "backstop::breaker",
                    dependency = line.name,
                    phase = self::name(phase),
                    "its breaker goes on as it was"
                );
            }
        }
    }

    /// Takes up the orders that an earlier process wrote and that could not be read at the start. The policy's word and what an
    /// operator has said since then are newer.
    pub(crate) fn take_up_late(&self, folder: &Folder) {
        let Some(file) = saved::read(folder) else { return };
        let now = self.clock.now();
        let mut orders = self.orders();
        for line in file.lines {
            let (Some(index), Some(held)) = (self.index(&line.name), line.held) else { continue };
            let Some(dependency) = self.engine.dependencies().get(index) else { continue };
            let is_newer = orders.held.get(index).is_none_or(Option::is_some)
                || orders.ordered.get(index).is_none_or(|ordered| *ordered);
            if is_newer || self.addresses.get(index) != Some(&line.addresses) {
                continue;
            }
            match line.state.phase {
                SavedPhase::ForcedOpen => dependency.health.force_open(now.mono),
                SavedPhase::ForcedClosed => dependency.health.force_closed(now.mono),
                _ => continue,
            }
            tracing::warn!(
                target: "backstop::breaker",
                dependency = line.name,
                phase = self::name(dependency.health.phase(now.mono)),
                reason = &*held.reason,
                "an operator's order from before the start holds again: it could not be read until now"
            );
            if let Some(slot) = orders.held.get_mut(index) {
                *slot = Some(held);
            }
        }
        let _nobody_waits = self.write(&mut orders, now);
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.engine.dependencies().iter().position(|dependency| *dependency.rules.name == *name)
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn addresses(dependency: &DependencySettings) -> Vec<String> {
    dependency.addresses.iter().map(ToString::to_string).collect()
}
