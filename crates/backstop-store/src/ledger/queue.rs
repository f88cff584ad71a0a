//! What waits for the writing thread.
//!
//! Three lanes, taken in this order: **outcomes**, which finish what was begun and are never refused (there are no more of them
//! than intents and claims were handed out); **upkeep**, of which there are few; **requests**, bounded by
//! [`LedgerOptions::queue_len`](super::LedgerOptions::queue_len), of which one more is refused.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::Command;

/// Claims and sweeps that may wait.
const UPKEEP: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Outcomes,
    Upkeep,
    Requests,
}

#[derive(Debug, Default)]
struct Lanes {
    outcomes: VecDeque<Command>,
    upkeep: VecDeque<Command>,
    requests: VecDeque<Command>,
    is_closing: bool,
    has_ended: bool,
}

impl Lanes {
    fn len(&self) -> usize {
        self.outcomes.len() + self.upkeep.len() + self.requests.len()
    }
}

/// Why a command was not queued.
pub(super) enum NotQueued {
    Full,
    Closed,
}

#[derive(Debug)]
pub(super) struct Queue {
    lanes: Mutex<Lanes>,
    work: Condvar,
    ended: Condvar,
    requests: usize,
}

impl Queue {
    pub(super) fn new(requests: usize) -> Self {
        Self { lanes: Mutex::default(), work: Condvar::new(), ended: Condvar::new(), requests }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, lane: Lane, command: Command) -> Result<(), NotQueued> {
        let mut lanes = self.lanes();
        if lanes.is_closing && lane != Lane::Outcomes || lanes.has_ended {
            return Err(NotQueued::Closed);
        }
        let most = self.requests;
        let (lane, most) = match lane {
            Lane::Outcomes => (&mut lanes.outcomes, usize::MAX),
            Lane::Upkeep => (&mut lanes.upkeep, UPKEEP),
            Lane::Requests => (&mut lanes.requests, most),
        };
        if lane.len() >= most {
            return Err(NotQueued::Full);
        }
        lane.push_back(command);
        self.work.notify_one();
        Ok(())
    }

    /// Waits for work and takes what is there, at most so much; nothing once the ledger is closing and nothing waits. There is no
    /// delay to make a batch larger: what comes while one is synced is the next one.
    pub(super) fn take(&self, most: usize) -> Vec<Command> {
        let lanes = self.lanes();
        let is_idle = |lanes: &mut Lanes| lanes.len() == 0 && !lanes.is_closing;
        let mut lanes = self.work.wait_while(lanes, is_idle).unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::with_capacity(most.min(lanes.len()));
        let Lanes { outcomes, upkeep, requests, .. } = &mut *lanes;
        for lane in [outcomes, upkeep, requests] {
            let room = most.saturating_sub(taken.len()).min(lane.len());
            taken.extend(lane.drain(..room));
        }
        taken
    }

    pub(super) fn waiting(&self) -> u64 {
        self.lanes().len() as u64
    }

    pub(super) fn close(&self) {
        self.lanes().is_closing = true;
        self.work.notify_all();
    }

    /// The thread has ended. Whoever still waits is told by the loss of its other end.
    pub(super) fn end(&self) {
        let mut lanes = self.lanes();
        *lanes = Lanes { is_closing: true, has_ended: true, ..Lanes::default() };
        self.ended.notify_all();
    }

    pub(super) fn wait_ended(&self, bound: Duration) -> bool {
        let lanes = self.lanes();
        let waited = self.ended.wait_timeout_while(lanes, bound, |lanes| !lanes.has_ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }
}
