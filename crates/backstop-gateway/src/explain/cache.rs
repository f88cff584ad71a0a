//! A shared cache in memory, which does what it is told.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstop::fill::ForCache;
use backstop::upstream::CacheAnswer;
use backstop_engine::policy::CacheId;
use backstop_store::{CopyKey, StoredCopy};
use http::HeaderMap;

/// A cache of one's own.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    values: HashMap<CopyKey, StoredCopy>,
    does: Does,
}

/// What it does when it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Does {
    /// It answers, and keeps what it is given.
    #[default]
    Works,
    /// It says that it has nothing, and keeps nothing.
    Forgets,
    /// It gives no answer.
    Fails,
}

#[cfg_attr(
    all(not(feature = "redis"), not(test)),
    expect(dead_code, reason = "only a shared cache is asked")
)]
impl Told {
    pub(crate) fn does(&self, does: Does) {
        self.lock().does = does;
    }

    pub(crate) fn cached(&self, _: CacheId, key: &CopyKey, request: &HeaderMap) -> CacheAnswer {
        let state = self.lock();
        match state.does {
            Does::Fails => return CacheAnswer::Failed,
            Does::Forgets => return CacheAnswer::Miss,
            Does::Works => {}
        }
        let is_for_it = |copy: &&StoredCopy| copy.vary.iter().all(|field| field.matches(request));
        match state.values.get(key).filter(is_for_it) {
            Some(copy) => CacheAnswer::Copy(Box::new(copy.clone())),
            None => CacheAnswer::Miss,
        }
    }

    pub(crate) fn keep(&self, done: ForCache) {
        let mut state = self.lock();
        if state.does != Does::Works {
            return;
        }
        match done {
            ForCache::Put(key, copy) => drop(state.values.insert(key, (*copy).clone())),
            ForCache::Remove(key) => drop(state.values.remove(&key)),
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
