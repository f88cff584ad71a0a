//! Without the feature `redis` there are no shared caches: a policy that names one cannot be run.

use std::sync::Arc;

use backstop::fill::ForCache;
use backstop::upstream::CacheAnswer;
use backstop_engine::engine::Engine;
use backstop_engine::policy::{CacheId, RouteId};
use backstop_engine::time::Mono;
use backstop_policy::CacheSettings;
use backstop_store::CopyKey;
use http::HeaderMap;

use crate::explain::Told;

/// None.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches;

impl Caches {
    pub(crate) fn new(_: &[CacheSettings], _: &backstop::clock::Clock) -> Self {
        Self
    }

    pub(crate) fn lanes(&self) -> Lanes {
        Lanes
    }
}

/// None.
#[derive(Debug)]
pub(crate) struct Lanes;

impl Lanes {
    pub(crate) fn told(_: Arc<Told>) -> Self {
        Self
    }

    pub(crate) async fn cached(&self, _: CacheId, _: &CopyKey, _: &HeaderMap, _: Mono) -> CacheAnswer {
        CacheAnswer::NotAsked
    }

    pub(crate) async fn keep(&self, _: &Arc<Engine>, _: RouteId, _: ForCache, _: Mono) {}
}
