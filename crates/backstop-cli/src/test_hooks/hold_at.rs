//! Keeps whoever passes a named moment of an operation there, until it is let go.
//!
//! Who stands still is the thread that passes: a worker with everything on it, or the ledger's own.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use backstop_store::ledger::checkpoint::{self, AlreadyWatched, Checkpoint};

/// How many stand at each of the moments that hold.
static HELD: Mutex<BTreeMap<Checkpoint, usize>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();
static WATCHED: OnceLock<Result<(), AlreadyWatched>> = OnceLock::new();

/// From now on nobody passes this moment. `None`: the process is to end at one.
pub(super) fn hold(point: Checkpoint) -> Option<()> {
    held().entry(point).or_insert(0);
    WATCHED.get_or_init(|| checkpoint::watch(passed)).ok()
}

/// Waits until somebody stands there. `None`: nobody is held there.
pub(super) fn arrived(point: Checkpoint) -> Option<()> {
    let waited = CHANGED.wait_while(held(), |held| held.get(&point) == Some(&0));
    waited.unwrap_or_else(PoisonError::into_inner).contains_key(&point).then_some(())
}

/// Everybody passes again, those who stand there first.
pub(super) fn release(point: Checkpoint) -> Option<()> {
    let was_held = held().remove(&point);
    CHANGED.notify_all();
    was_held.map(|_| ())
}

fn passed(point: Checkpoint) {
    let mut held = held();
    let Some(standing) = held.get_mut(&point) else { return };
    *standing += 1;
    CHANGED.notify_all();
    let _gone = CHANGED.wait_while(held, |held| held.contains_key(&point));
}

fn held() -> MutexGuard<'static, BTreeMap<Checkpoint, usize>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
