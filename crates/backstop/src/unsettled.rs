//! A write that was handed to the dependency, until it is known how it ended.

use std::time::Duration;

use backstop_store::Withdrawal;
use http::request::Parts;

use crate::protected::ProtectedRoute;

/// A write that was given up may still be carried out for this long, or for the route's `abandon_hold` if that is longer.
const UNSETTLED: Duration = Duration::from_secs(10);

/// Dropped before the write has come to its end, it withdraws what the write may have changed, and has nothing of that
/// kept for a while: whether the write happened, and when, is unknown. Nobody is left to wait for the disk then; the store
/// keeps the withdrawal until the disk has it.
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

impl ProtectedRoute {
    /// When a write that is given up now is taken to have come to its end.
    pub(crate) fn settled_at(&self) -> backstop_engine::time::Mono {
        let stated = self.state().rules.abandon_hold.unwrap_or_default();
        self.inner.shared.clock.mono().after(stated.max(UNSETTLED))
    }
}
