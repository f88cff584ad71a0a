//! What is known of each route: when its copies were last withdrawn.
//!
//! A route may have very many copies, so its withdrawal touches none of them: it raises the route's mark, and a copy
//! whose ticket is older than the mark is as good as absent. The copies themselves are swept later.
//!
//! Route names come from the policy, never from a request, so there are few and they are short; should there be too many, copies of a further route are
//! refused, and its withdrawal refuses every read that began before it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use backstop_engine::time::Mono;

/// Routes that are told apart.
const MAX_ROUTES: usize = 4096;

/// One route. Shared by all its copies.
#[derive(Debug, Default)]
pub(crate) struct Route {
    withdrawn: AtomicU64,
    /// One more than the moment of it, in ns of the boot clock; 0 is never.
    withdrawn_at: AtomicU64,
    stored: AtomicBool,
}

impl Route {
    /// Whether what was read under a ticket of `generation` has been withdrawn.
    pub(crate) fn refuse(&self, generation: u64) -> bool {
        generation < self.withdrawn.load(Ordering::SeqCst)
    }

    /// Whether it was withdrawn at `moment` or later.
    pub(crate) fn withdrawn_since(&self, moment: Mono) -> bool {
        self.withdrawn_at.load(Ordering::SeqCst) > moment.as_ns()
    }

    /// Says that a copy is about to be stored. Called *before* [`Route::refuse`] is asked, so that a withdrawal which
    /// runs at the same time either refuses the copy or knows of it; and once more when the copy is in its place, before
    /// its shard is free. In between may fall a withdrawal from before the copy was read: it refuses nothing of it, and
    /// takes note that the route has no copies.
    pub(crate) fn about_to_store(&self) {
        if !self.stored.load(Ordering::SeqCst) {
            self.stored.store(true, Ordering::SeqCst);
        }
    }

    #[cfg(test)]
    pub(crate) fn may_have_copies(&self) -> bool {
        self.stored.load(Ordering::SeqCst)
    }

    /// Withdraws everything read under older tickets; says whether there may have been any copy.
    pub(crate) fn withdraw(&self, generation: u64, now: Mono) -> bool {
        self.withdrawn.fetch_max(generation, Ordering::SeqCst);
        self.withdrawn_at.fetch_max(now.as_ns().saturating_add(1), Ordering::SeqCst);
        self.stored.swap(false, Ordering::SeqCst)
    }
}

/// All routes by name.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_name: RwLock<HashMap<Box<str>, Arc<Route>>>,
    /// Reads below it are refused on every route.
    horizon: AtomicU64,
}

impl Routes {
    /// The route of this name, or `None` if there are too many.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Route>> {
        if let Some(route) = self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Some(route.clone());
        }
        let mut routes = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if routes.len() >= MAX_ROUTES && !routes.contains_key(name) {
            return None;
        }
        Some(routes.entry(name.into()).or_default().clone())
    }

    /// Whether a read of `generation` is refused whatever its route.
    pub(crate) fn refuse(&self, generation: u64) -> bool {
        generation < self.horizon.load(Ordering::SeqCst)
    }

    /// Refuses every read that began before `generation`.
    pub(crate) fn raise_horizon(&self, generation: u64) {
        self.horizon.fetch_max(generation, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_withdrawal_says_once_that_there_were_copies() {
        let routes = Routes::default();
        let route = routes.get("a").unwrap();
        assert!(!route.withdraw(1, Mono::from_ns(1)));
        route.about_to_store();
        assert!(routes.get("a").unwrap().withdraw(2, Mono::from_ns(2)));
        assert!(!route.withdraw(3, Mono::from_ns(3)));
        assert!(route.refuse(2) && !route.refuse(3));
        assert!(route.withdrawn_since(Mono::from_ns(3)) && !route.withdrawn_since(Mono::from_ns(4)));
    }

    #[test]
    fn routes_are_bounded() {
        let routes = Routes::default();
        for name in 0..MAX_ROUTES {
            assert!(routes.get(&name.to_string()).is_some());
        }
        assert!(routes.get("one more").is_none() && routes.get("0").is_some());
    }
}
