//! A write that was handed to the dependency, until it is known how it ended.

use std::time::Duration;

use backstop_engine::flow::{CopyAction, Method, after_write};
use backstop_engine::time::Mono;
use backstop_store::{DiskState, Withdrawal, Withdrawn};
use http::StatusCode;
use http::request::Parts;

use crate::driver::within;
use crate::protected::ProtectedRoute;
use crate::request::method;

/// A write that was given up may still be carried out for this long, or for the route's `abandon_hold` if that is longer.
const UNSETTLED: Duration = Duration::from_secs(10);
/// A request waits this long for the disk to confirm a withdrawal. In memory it holds at once.
const WITHDRAWAL_WAIT: Duration = Duration::from_millis(50);

/// Dropped before the write has come to its end, it withdraws what the write may have changed, and has nothing of that
/// kept for a while: whether the write happened, and when, is unknown. Nobody is left to wait for the disk then; the store
/// keeps the withdrawal until the disk has it.
#[derive(Debug)]
pub(crate) struct UnsettledWrite {
    route: ProtectedRoute,
    withdrawals: Vec<Withdrawal>,
}

impl UnsettledWrite {
    pub(crate) fn begun(route: &ProtectedRoute, parts: &Parts) -> Self {
        Self { route: route.clone(), withdrawals: route.withdrawn_by_write(parts) }
    }

    /// It is known how the write ended, or somebody else sees to what it may have changed.
    pub(crate) fn settle(mut self) {
        self.withdrawals.clear();
    }
}

impl Drop for UnsettledWrite {
    fn drop(&mut self) {
        if self.withdrawals.is_empty() {
            return;
        }
        let shared = &self.route.inner.shared;
        let (now, until) = (shared.clock.now(), self.route.settled_at());
        for withdrawal in self.withdrawals.drain(..) {
            let _nobody_waits = shared.copies.withdraw_until(withdrawal, now, until);
        }
    }
}

/// A write that is carried out whatever is decided about it, as on a route that is only observed: what it may have changed is
/// withdrawn by what really came of it.
///
/// Dropped before its end is known it counts as a write of unknown end.
#[derive(Debug)]
#[must_use = "a write that is dropped is one of unknown end"]
pub struct ForwardedWrite {
    route: ProtectedRoute,
    withdrawals: Vec<Withdrawal>,
    until_known: UnsettledWrite,
}

impl ForwardedWrite {
    /// One that is about to be sent; `None` for a request that changes nothing (RFC 9110 section 9.2.1).
    pub fn begin(route: &ProtectedRoute, request: &Parts) -> Option<Self> {
        (method(&request.method) == Method::Unsafe).then(|| Self {
            route: route.clone(),
            withdrawals: route.withdrawn_by_write(request),
            until_known: UnsettledWrite::begun(route, request),
        })
    }

    /// The dependency answered so, and its answer may still break off. What is withdrawn is withdrawn before this returns, in
    /// memory at once and on disk within a bound.
    pub async fn answered(mut self, status: StatusCode) -> Option<Self> {
        let until = match after_write(status.as_u16()) {
            CopyAction::Withdraw => None,
            CopyAction::WithdrawUnsettled => Some(self.route.settled_at()),
            CopyAction::Keep | CopyAction::Store | CopyAction::Renew => {
                self.until_known.settle();
                return None;
            }
        };
        withdraw(&self.route, std::mem::take(&mut self.withdrawals), until).await;
        Some(self)
    }

    /// Its answer has come to its end.
    pub fn ended(self) {
        self.until_known.settle();
    }
}

/// Withdraws copies, for a write that may still be carried out until a moment. Waits a little for the disk.
pub(crate) async fn withdraw(route: &ProtectedRoute, withdrawals: Vec<Withdrawal>, until: Option<Mono>) {
    let shared = &route.inner.shared;
    let now = shared.clock.now();
    let pending: Vec<_> = withdrawals
        .into_iter()
        .map(|withdrawal| match until {
            Some(until) => shared.copies.withdraw_until(withdrawal, now, until),
            None => shared.copies.withdraw(withdrawal, now),
        })
        .filter_map(|withdrawn| match withdrawn {
            Withdrawn::Pending(confirmation) => Some(confirmation),
            Withdrawn::NothingStored => None,
        })
        .collect();
    if pending.is_empty() {
        return;
    }
    // A disk that is known to be in trouble is not waited for: it costs copies, never requests.
    let disk_works = matches!(shared.copies.health().disk, DiskState::Ok | DiskState::Off);
    let until = if disk_works { now.mono.after(WITHDRAWAL_WAIT) } else { now.mono };
    for confirmation in pending {
        if !matches!(within(confirmation, &shared.clock, until).await, Some(Ok(()))) {
            shared.withdrawals.count_late();
        }
    }
}

impl ProtectedRoute {
    /// When a write that is given up now is taken to have come to its end.
    pub(crate) fn settled_at(&self) -> Mono {
        let stated = self.state().rules.abandon_hold.unwrap_or_default();
        self.inner.shared.clock.mono().after(stated.max(UNSETTLED))
    }
}
