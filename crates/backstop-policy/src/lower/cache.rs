//! `cache` and `fill` of a route.
//!
//! A cache is told by its URL: routes with the same one share it. `check` holds that they agree about the rest.

use std::time::Duration;

use backstop_engine::health::BreakerRules;
use backstop_engine::policy::{CacheId, CacheRules, CachedRead, FillRules, PublicRead};

use super::{health, origin, position};
use crate::check::{RouteView, View};
use crate::default;
use crate::settings::CacheSettings;
use crate::shape::{CacheTable, CachedReadTable};
use crate::value::RedisUrl;

/// Every cache that the file names, in the order of the file.
pub(super) fn caches(view: &View<'_>) -> Vec<(CacheRules, CacheSettings)> {
    let mut seen: Vec<RedisUrl> = Vec::new();
    let mut caches = Vec::new();
    for table in view.caches() {
        let Some(url) = table.url.as_ref().map(|url| &url.value) else { continue };
        if seen.contains(url) {
            continue;
        }
        let timeout = timeout(table);
        let buffers =
            view.routes().filter(|route| route.cached_read().is_some()).filter_map(|route| route.kept());
        let buffers =
            buffers.map(|kept| kept.buffer.as_ref().map_or(default::BUFFER, |buffer| buffer.value.0));
        let settings = CacheSettings {
            id: CacheId(position(caches.len())),
            name: url.name(),
            address: url.address.clone(),
            database: url.database,
            timeout,
            connect: connect(table),
            prefix: prefix(table).into(),
            value_bytes: buffers.max().unwrap_or(default::BUFFER).saturating_add(default::CACHE_HEAD_BYTES),
            origin: origin(table.url.as_ref()),
        };
        caches.push((CacheRules { name: settings.name.clone(), breaker: breaker(table, timeout) }, settings));
        seen.push(url.clone());
    }
    caches
}

/// Longest time to connect.
pub(crate) fn connect(table: &CacheTable) -> Duration {
    table.connect.as_ref().map_or(default::CACHE_CONNECT, |connect| connect.value.0)
}

/// What every key begins with.
pub(crate) fn prefix(table: &CacheTable) -> &str {
    table.prefix.as_ref().map_or(default::CACHE_PREFIX, |prefix| &prefix.value.0)
}

/// How long the cache is waited for.
pub(crate) fn timeout(table: &CacheTable) -> Duration {
    table.timeout.as_ref().map_or(default::CACHE_TIMEOUT, |timeout| timeout.value.0)
}

/// The breaker that is written, or the default one.
pub(crate) fn breaker(table: &CacheTable, timeout: Duration) -> BreakerRules {
    let open = default::CACHE_OPEN;
    let Some(at) = &table.breaker else {
        return BreakerRules { open, slow: timeout, ..BreakerRules::default() };
    };
    let slow = at.value.slow.as_ref().map_or(timeout, |slow| slow.value.0);
    let rules = health::breaker(at, slow);
    if at.value.open.is_some() { rules } else { BreakerRules { open, ..rules } }
}

pub(super) fn cached_read(
    view: &View<'_>,
    route: RouteView<'_>,
    table: &CachedReadTable,
    read: PublicRead,
) -> CachedRead {
    let cache = table.cache.as_ref().map(|cache| &cache.value);
    let url = cache.and_then(|cache| cache.url.as_ref()).map(|url| &url.value);
    let index = view.cache_urls().iter().position(|known| Some(*known) == url);
    CachedRead {
        cache: CacheId(position(index.unwrap_or(usize::MAX))),
        ttl: cache.and_then(|cache| cache.ttl.as_ref()).map_or(Duration::ZERO, |ttl| ttl.value.0),
        timeout: cache.map_or(default::CACHE_TIMEOUT, timeout),
        fill: fill(view, route, table),
        local_copy: table.local_copy.is_some(),
        read,
    }
}

fn fill(view: &View<'_>, route: RouteView<'_>, table: &CachedReadTable) -> FillRules {
    let written = table.fill.as_ref().map(|fill| &fill.value);
    let deadline = route.common().deadline.as_ref().map_or(Duration::ZERO, |deadline| deadline.value.0);
    let budget = view.fill_budget(route);
    FillRules {
        concurrency: budget.concurrency,
        rate: budget.rate,
        deadline: written
            .and_then(|fill| fill.deadline.as_ref())
            .map_or(default::FILL_DEADLINE.max(deadline), |time| time.value.0),
        waiters: written
            .and_then(|fill| fill.waiters.as_ref())
            .map_or(default::FILL_WAITERS, |count| count.value.0),
        origin: origin(table.fill.as_ref()),
    }
}
