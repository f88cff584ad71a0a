//! Shared caches: what is written about one in several places, its times, and the budget for reads behind it.

use backstop_engine::health::BreakerRules;
use backstop_engine::policy::Origin;
use backstop_engine::resource::ClassShare;

use crate::check::View;
use crate::check::breaker::pause;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::lower::cache;
use crate::read::{At, Context};
use crate::shape::{CacheTable, CachedReadTable};
use crate::value::RedisUrl;

/// The reads of the dependency that a route with a cache may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillBudget {
    /// At once.
    pub(crate) concurrency: u32,
    /// Per second.
    pub(crate) rate: Option<u64>,
}

impl<'a> View<'a> {
    /// Every table of a cache.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &'a CacheTable> + Clone + use<'a> {
        self.routes().filter_map(|route| route.cached_read()?.cache.as_ref()).map(|cache| &cache.value)
    }

    /// Every cache once, in the order of the file.
    pub(crate) fn cache_urls(&self) -> Vec<&'a RedisUrl> {
        let mut urls: Vec<&RedisUrl> = Vec::new();
        for url in self.caches().filter_map(|cache| cache.url.as_ref()) {
            if !urls.contains(&&url.value) {
                urls.push(&url.value);
            }
        }
        urls
    }

    /// What a route with a cache may read behind it: what is written, or half of what there is.
    pub(crate) fn fill_budget(&self, route: RouteView<'a>) -> FillBudget {
        let written = route.cached_read().and_then(|cached| cached.fill.as_ref()).map(|fill| &fill.value);
        let bears = self.bears(route);
        FillBudget {
            concurrency: written
                .and_then(|fill| fill.concurrency.as_ref())
                .map_or((bears.concurrency / 2).max(1), |count| count.value.0),
            rate: match written.and_then(|fill| fill.rate.as_ref()) {
                Some(rate) => Some(rate.value.per_second()),
                None => bears.rate.map(|rate| (rate / 2).max(1)),
            },
        }
    }

    /// What the route's dependency and all that it uses bear.
    fn bears(&self, route: RouteView<'a>) -> FillBudget {
        let Some(dependency) = self.dependency_of(route) else {
            return FillBudget { concurrency: 1, rate: None };
        };
        let used = || {
            let resources = dependency
                .uses()
                .filter_map(|name| self.resources().find(|resource| resource.name.value == name.value));
            resources.map(|resource| &resource.table.value)
        };
        let places = used().filter_map(|table| table.concurrency.as_ref()).map(|count| count.value.0);
        let rates = used().filter_map(|table| table.rate.as_ref()).map(|rate| rate.value.per_second());
        FillBudget {
            concurrency: places.chain([dependency.connections()]).min().unwrap_or(1),
            rate: rates.min(),
        }
    }
}

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    one_cache(view, cx);
    for route in view.routes() {
        let Some(table) = route.cached_read() else { continue };
        timeout(route, table, cx);
        breaker(table, cx);
        local_copy(route, table, cx);
        rules_of_none(route, table, cx);
        fill(view, route, table, cx);
    }
}

/// Routes share a cache by its URL, and there is one breaker and one set of connections for it.
fn one_cache(view: &View<'_>, cx: &mut Context<'_>) {
    let caches: Vec<_> = view.routes().filter_map(|route| route.cached_read()?.cache.as_ref()).collect();
    for (index, cache) in caches.iter().enumerate() {
        let Some(url) = &cache.value.url else { continue };
        let same =
            |other: &&&At<CacheTable>| other.value.url.as_ref().is_some_and(|known| known.value == url.value);
        let Some(first) = caches.iter().take(index).find(same) else { continue };
        let Some(key) = difference(&first.value, &cache.value) else { continue };
        let message = format!("`{key}` of `{}` is not the same as before", url.value.name());
        cx.report(
            Finding::new(Code::OneCache, cache.bytes.clone(), message)
                .related(first.bytes.clone(), "the same cache here")
                .help("routes with one `url` share its connections and its breaker: write the same in both"),
        );
    }
}

/// The first key about which two tables of one cache differ. What is left out means its default, and where something
/// stands makes no difference.
fn difference(one: &CacheTable, other: &CacheTable) -> Option<&'static str> {
    let breaker =
        |table| BreakerRules { origin: Origin::NONE, ..cache::breaker(table, cache::timeout(table)) };
    if cache::timeout(one) != cache::timeout(other) {
        return Some("timeout");
    }
    if cache::connect(one) != cache::connect(other) {
        return Some("connect");
    }
    if cache::prefix(one) != cache::prefix(other) {
        return Some("prefix");
    }
    (breaker(one) != breaker(other)).then_some("breaker")
}

/// The breaker of a cache, by the rules of any breaker with what a cache has by default.
fn breaker(table: &CachedReadTable, cx: &mut Context<'_>) {
    let Some(cache) = table.cache.as_ref().map(|cache| &cache.value) else { return };
    let Some(breaker) = cache.breaker.as_ref().map(|breaker| &breaker.value) else { return };
    pause(breaker, default::CACHE_OPEN, cx);
    let timeout = cache::timeout(cache);
    let Some(slow) = breaker.slow.as_ref().filter(|slow| slow.value.0 >= timeout) else { return };
    let name = cache.url.as_ref().map(|url| format!(" `{}`", url.value.name())).unwrap_or_default();
    let message = format!("no call of the cache{name} ever lasts longer than {timeout:?}");
    let finding = Finding::new(Code::SlowNeverSeen, slow.bytes.clone(), message)
        .help("shorten `slow`, or leave it out: what is cut off counts as failed, not as slow");
    cx.report(match &cache.timeout {
        Some(timeout) => finding.related(timeout.bytes.clone(), "it is cut off then"),
        None => finding,
    });
}

/// Whoever waits for the cache until the deadline cannot read anything after it.
fn timeout(route: RouteView<'_>, table: &CachedReadTable, cx: &mut Context<'_>) {
    let Some(cache) = &table.cache else { return };
    let (Some(deadline), timeout) = (&route.common().deadline, &cache.value.timeout) else { return };
    let limit = cache::timeout(&cache.value);
    if limit < deadline.value.0 / 2 {
        return;
    }
    let place = timeout.as_ref().map_or(cache.bytes.clone(), |timeout| timeout.bytes.clone());
    let message = format!(
        "`{}` waits {limit:?} for its cache, of {:?} in all: too little is left to read the dependency",
        route.text(),
        deadline.value.0
    );
    cx.report(
        Finding::new(Code::CacheTimeout, place, message)
            .related(deadline.bytes.clone(), "the deadline of the whole request")
            .help("a cache that is slower than half of the deadline is of no use: lower `timeout`"),
    );
}

fn local_copy(route: RouteView<'_>, table: &CachedReadTable, cx: &mut Context<'_>) {
    let ttl = table.cache.as_ref().and_then(|cache| cache.value.ttl.as_ref());
    match (&table.local_copy, route.max_age(), ttl) {
        (Some(_), Some(max_age), Some(ttl)) if max_age.value.0 <= ttl.value.0 => {
            let message =
                format!("the local copy of `{}` is never older than what its cache gives", route.text());
            cx.report(
                Finding::new(Code::LocalCopyTooYoung, max_age.bytes.clone(), message)
                    .related(ttl.bytes.clone(), "what the cache gives")
                    .help("a local copy stands in when nothing younger can be had: accept an older one, or leave it out"),
            );
        }
        (None, ..) => {
            let message = format!(
                "while neither cache nor dependency answers, every request of `{}` is refused",
                route.text()
            );
            cx.report(
                Finding::new(Code::NoLocalCopy, route.entry.at.bytes.clone(), message)
                    .help("say how old an answer may be then: `local_copy = { max_age = \"30s\" }`"),
            );
        }
        (Some(_), ..) => {}
    }
}

/// What says how a copy of one's own is served, where none is kept.
fn rules_of_none(route: RouteView<'_>, table: &CachedReadTable, cx: &mut Context<'_>) {
    let path = format!("route.{}.cached_read.local_copy", route.text());
    if table.local_copy.is_some() || cx.is_unreadable(&path) {
        return;
    }
    let lane = table.kept.fallback_in_flight.as_ref().map(|lane| ("fallback_in_flight", &lane.bytes));
    let status = table.kept.unavailable_status.as_ref().map(|status| ("unavailable_status", &status.bytes));
    for (key, bytes) in lane.into_iter().chain(status) {
        let message = format!("`{key}` is about the local copy, and this route keeps none");
        cx.report(Finding::new(Code::NeedsLocalCopy, bytes.clone(), message).help(
            "say how old a copy may be, such as `local_copy = { max_age = \"30s\" }`, or leave this out",
        ));
    }
}

fn fill(view: &View<'_>, route: RouteView<'_>, table: &CachedReadTable, cx: &mut Context<'_>) {
    let Some(fill) = table.fill.as_ref().map(|fill| &fill.value) else { return };
    let bears = view.bears(route);
    let share = ClassShare::Read.places(bears.concurrency);
    if let Some(count) = fill.concurrency.as_ref().filter(|count| count.value.0 > share) {
        let message = format!(
            "`{}` may read {} at once, and its dependency bears {}, {share} of them for reads",
            route.text(),
            count.value.0,
            bears.concurrency
        );
        cx.report(
            Finding::new(Code::FillAbove, count.bytes.clone(), message)
                .help("the budget never acts: leave room for everybody else who reads there"),
        );
    }
    if let (Some(rate), Some(bears)) = (&fill.rate, bears.rate)
        && rate.value.per_second() > bears
    {
        let message = format!(
            "`{}` may read {} times per second, and a resource of its dependency bears {bears}",
            route.text(),
            rate.value.per_second()
        );
        cx.report(
            Finding::new(Code::FillAbove, rate.bytes.clone(), message)
                .help("the budget never acts: leave room for everybody else who reads there"),
        );
    }
    if let Some(rate) = fill.rate.as_ref().filter(|rate| !rate.value.is_whole_per_second()) {
        let message = "a rate that is not a whole number per second: not available in this version";
        cx.report(
            Finding::new(Code::NotAvailable, rate.bytes.clone(), message)
                .help("write it per second, such as `\"2/s\"`, or as a multiple of `\"60/m\"`"),
        );
    }
    if let (Some(time), Some(deadline)) = (&fill.deadline, &route.common().deadline)
        && time.value.0 < deadline.value.0
    {
        let message =
            format!("a read for `{}` ends before those who wait for it have to leave", route.text());
        cx.report(
            Finding::new(Code::FillTooShort, time.bytes.clone(), message)
                .related(deadline.bytes.clone(), "the deadline of the request")
                .help("a read that is late still fills the cache: give it more time than one request has"),
        );
    }
}
