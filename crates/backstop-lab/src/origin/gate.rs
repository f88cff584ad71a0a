//! A gate that a test opens: the origin waits on an event instead of on a time.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    open: bool,
    waiting: usize,
}

/// A gate that starts closed. Clones are the same gate; it may be used from any runtime or thread.
#[derive(Clone)]
pub struct Gate(Arc<watch::Sender<State>>);

/// The gate did not see as many waiters as expected within the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} of {expected} requests waited at the gate within {bound:?}")]
pub struct GateTimeout {
    /// How many waited when the bound was over.
    pub waiting: usize,
    /// How many were expected.
    pub expected: usize,
    /// The bound.
    pub bound: Duration,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }

    /// Lets every waiter through, and everyone who comes later.
    pub fn open(&self) {
        self.0.send_modify(|state| state.open = true);
    }

    /// Stops those who come from now on.
    pub fn close(&self) {
        self.0.send_modify(|state| state.open = false);
    }

    /// How many wait at the gate now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.borrow().waiting
    }

    /// Waits until at least `expected` requests wait at the gate.
    ///
    /// # Errors
    ///
    /// [`GateTimeout`] when there are fewer after `bound`.
    pub async fn wait_for_waiting(&self, expected: usize, bound: Duration) -> Result<(), GateTimeout> {
        let mut states = self.0.subscribe();
        let enough = states.wait_for(|state| state.waiting >= expected);
        match tokio::time::timeout(bound, enough).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(GateTimeout { waiting: self.waiting(), expected, bound }),
        }
    }

    /// Waits until the gate is open.
    pub(crate) async fn pass(&self) {
        let _waiter = Waiter::enter(&self.0);
        let mut states = self.0.subscribe();
        // The sender lives in `self`, so the wait can only end by an open gate.
        let _opened = states.wait_for(|state| state.open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = *self.0.borrow();
        formatter.debug_struct("Gate").field("open", &state.open).field("waiting", &state.waiting).finish()
    }
}

/// Counts one waiter for as long as it lives, cancellation included.
struct Waiter<'a>(&'a watch::Sender<State>);

impl<'a> Waiter<'a> {
    fn enter(gate: &'a watch::Sender<State>) -> Self {
        gate.send_modify(|state| state.waiting += 1);
        Self(gate)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.waiting -= 1);
    }
}
