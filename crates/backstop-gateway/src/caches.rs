//! The shared caches of a policy: what all threads share, one thread's ways to them, and what a request asks of them.

use std::sync::Arc;

use backstop::fill::ForCache;
use backstop::upstream::CacheAnswer;
use backstop_engine::engine::Engine;
use backstop_engine::policy::{CacheId, RouteId};
use backstop_engine::time::Mono;
use backstop_policy::CacheSettings;
use backstop_store::CopyKey;
use http::HeaderMap;

use crate::cache::{Cache, CacheError, CacheSettings as Settings, Cached, Lane};
use crate::explain::Told;
use crate::upstream::Address;

/// Every cache of a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches(Vec<Cache>);

impl Caches {
    pub(crate) fn new(settings: &[CacheSettings], clock: &backstop::clock::Clock) -> Self {
        let cache = |settings: &CacheSettings| {
            let address = Address::new(&settings.address.host, settings.address.port);
            let made = Settings {
                database: settings.database,
                prefix: settings.prefix.clone(),
                value_bytes: usize::try_from(settings.value_bytes).unwrap_or(usize::MAX),
                ..Settings::new(vec![address], settings.timeout, settings.connect)
            };
            Cache::new(made, clock.clone())
        };
        Self(settings.iter().map(cache).collect())
    }

    /// In the policy's order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cache> {
        self.0.iter()
    }

    /// One thread's ways to them. Its runtime drives them.
    pub(crate) fn lanes(&self) -> Lanes {
        let entropy = |cache: &Cache| {
            std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), cache.counts().opened)
        };
        Lanes::Real(self.0.iter().map(|cache| cache.lane(entropy(cache))).collect())
    }
}

/// One thread's ways to the caches.
#[derive(Debug)]
pub(crate) enum Lanes {
    /// Over the system's network.
    Real(Vec<Lane>),
    /// To one that does what it is told.
    Told(Arc<Told>),
}

impl Lanes {
    /// To one that does what it is told.
    pub(crate) fn told(told: Arc<Told>) -> Self {
        Self::Told(told)
    }

    /// What a cache has for a read.
    pub(crate) async fn cached(
        &self,
        cache: CacheId,
        key: &CopyKey,
        request: &HeaderMap,
        until: Mono,
    ) -> CacheAnswer {
        let lanes = match self {
            Self::Real(lanes) => lanes,
            Self::Told(told) => return told.cached(cache, key, request),
        };
        let Some(lane) = lanes.get(usize::from(cache.0)) else { return CacheAnswer::NotAsked };
        match lane.get_copy(key, request, until).await {
            Ok(Cached::Hit(copy)) => CacheAnswer::Copy(copy),
            Ok(Cached::Absent | Cached::OtherVariant | Cached::Damaged) => CacheAnswer::Miss,
            Err(CacheError::TooLarge) => CacheAnswer::Miss,
            Err(error) if error.is_failure() => CacheAnswer::Failed,
            Err(_) => CacheAnswer::NotAsked,
        }
    }

    /// Does with a cache's value what a fill came to. Nobody waits for it: what fails is counted, and the value of before
    /// is judged by its own date.
    pub(crate) async fn keep(&self, engine: &Arc<Engine>, route: RouteId, done: ForCache, now: Mono) {
        let Some(rules) = engine.route(route).rules.class.cached() else { return };
        // A cache that is left alone is not written to either.
        if engine.cache(rules.cache).health.refuses(now, true).is_some() {
            return;
        }
        let lanes = match self {
            Self::Real(lanes) => lanes,
            Self::Told(told) => return told.keep(done),
        };
        let Some(lane) = lanes.get(usize::from(rules.cache.0)) else { return };
        let until = now.after(rules.timeout);
        let _counted = match done {
            ForCache::Put(key, copy) => lane.set_copy(&key, &copy, rules.ttl, until).await,
            ForCache::Remove(key) => lane.delete_copy(&key, until).await.map(|_| ()),
            _ => Ok(()),
        };
    }
}
