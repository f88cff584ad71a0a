//! What every store keeps.

use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, OriginLimit};
use backstop_engine::time::Now;
use bytes::Bytes;
use http::HeaderMap;

use super::samples::{block_on, copy, headers, key, now, now_in_boot};
use crate::copies::{Copies, Judge, Loaded, PutOutcome, RenewOutcome, Renewal, Withdrawal, Withdrawn};
use crate::copy::StoredCopy;
use crate::key::CopyKey;
use crate::vary::VaryField;

/// Long enough for any flush.
const FLUSH: Duration = Duration::from_secs(60);

/// Something to keep copies on.
pub trait Backend {
    /// Opens an empty store, forgetting what was before.
    fn fresh(&mut self, now: Now) -> Copies;

    /// Opens the store again after it was closed; `None` if nothing survives that.
    fn again(&mut self, now: Now) -> Option<Copies>;
}

/// Holds a backend against the whole contract.
///
/// # Panics
/// At the first promise that is not kept.
pub fn contract(backend: &mut dyn Backend) {
    for check in [
        comes_back,
        newest_wins,
        variants,
        full_keys,
        late_reads,
        reach,
        renewal,
        renewed_limits,
        renewed_variants,
        restart,
        another_boot,
        stays_withdrawn,
        high_water,
    ] {
        check(backend);
    }
}

fn put(store: &Copies, key: &CopyKey, body: &'static str, at: Now) -> PutOutcome {
    let ticket = store.begin_read(at);
    store.put(key, copy(body, ticket), ticket, at)
}

/// The copy for a request, wherever it lies.
fn load(store: &Copies, key: &CopyKey, request: &HeaderMap) -> Option<StoredCopy> {
    let copy = match store.load(key, request) {
        Loaded::Ready(copy) => Some(copy),
        Loaded::Disk(pending) => block_on(pending).ok(),
        Loaded::Missing | Loaded::Unreadable => None,
    };
    copy.map(|copy| (*copy).clone())
}

fn body(store: &Copies, key: &CopyKey) -> Option<Bytes> {
    load(store, key, &HeaderMap::new()).map(|copy| copy.body)
}

fn withdraw(store: &Copies, withdrawal: Withdrawal, at: Now) -> bool {
    match store.withdraw(withdrawal, at) {
        Withdrawn::NothingStored => false,
        Withdrawn::Pending(confirmation) => {
            assert_eq!(block_on(confirmation), Ok(()));
            true
        }
    }
}

fn comes_back(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let key = key("/p", Some("a=1"));
    assert!(store.peek(&key, &HeaderMap::new()).is_none());
    let ticket = store.begin_read(now(5));
    let mut stored = copy(vec![7; 100_000], ticket);
    stored.facts.observed_at.received_age = Duration::from_nanos(3);
    stored.facts.origin_limit = OriginLimit::UpTo(Duration::from_secs(9));
    stored.headers.append("x-many", http::HeaderValue::from_static("1"));
    stored.headers.append("x-many", http::HeaderValue::from_static("2"));
    assert_eq!(store.put(&key, stored.clone(), ticket, now(6)), PutOutcome::Stored);
    assert_eq!(store.peek(&key, &HeaderMap::new()), Some(stored.facts));
    assert_eq!(load(&store, &key, &HeaderMap::new()).as_ref(), Some(&stored));
    store.close(FLUSH);
    if let Some(store) = backend.again(now(7)) {
        assert_eq!(store.peek(&key, &HeaderMap::new()), Some(stored.facts));
        assert_eq!(load(&store, &key, &HeaderMap::new()), Some(stored));
    }
}

fn newest_wins(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let key = key("/p", None);
    let (early, late) = (store.begin_read(now(1)), store.begin_read(now(2)));
    assert_eq!(store.put(&key, copy("late", late), late, now(3)), PutOutcome::Stored);
    assert_eq!(store.put(&key, copy("early", early), early, now(4)), PutOutcome::OlderThanStored);
    assert_eq!(body(&store, &key).as_deref(), Some(&b"late"[..]));
}

fn variants(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let key = key("/p", None);
    let language = |tag: &str| headers(&[("accept-language", tag)]);
    let vary = |request: &HeaderMap| vec![VaryField::of(http::header::ACCEPT_LANGUAGE, request)];
    for second in 0..40 {
        let ticket = store.begin_read(now(second));
        let request = language(&second.to_string());
        let copy = StoredCopy { vary: vary(&request), ..copy(second.to_string(), ticket) };
        assert_eq!(store.put(&key, copy, ticket, now(second)), PutOutcome::Stored);
    }
    let found = (0..40).filter(|second| store.peek(&key, &language(&second.to_string())).is_some());
    let found: Vec<u64> = found.collect();
    assert!(found.len() <= 16 && found.contains(&39) && !found.contains(&0), "{found:?}");
    assert_eq!(load(&store, &key, &language(" 39 ")).map(|copy| copy.body), Some("39".into()));
    assert!(store.peek(&key, &HeaderMap::new()).is_none());
    // A later answer that does not vary is more recent than all of them.
    put(&store, &key, "same for all", now(50));
    assert_eq!(load(&store, &key, &language("39")).map(|copy| copy.body), Some("same for all".into()));
}

fn full_keys(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let base = key("/p", None);
    let others = [
        key("/p", Some("")),
        key("/q", None),
        CopyKey { route: "s".into(), ..base.clone() },
        CopyKey { partition: b"x"[..].into(), ..base.clone() },
    ];
    put(&store, &base, "base", now(1));
    for other in &others {
        assert!(store.peek(other, &HeaderMap::new()).is_none(), "{other:?}");
    }
}

fn late_reads(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let key = key("/p", Some("a"));
    let withdrawals = [
        Withdrawal::Route("r".into()),
        Withdrawal::Target(key.target.clone()),
        Withdrawal::Path { host: "h".into(), path: "/p".into() },
    ];
    for (second, withdrawal) in (1..).zip(withdrawals) {
        let before = store.begin_read(now(second));
        assert!(!withdraw(&store, withdrawal, now(second)));
        assert_eq!(store.put(&key, copy("late", before), before, now(second)), PutOutcome::Withdrawn);
        assert!(store.peek(&key, &HeaderMap::new()).is_none());
    }
    assert_eq!(put(&store, &key, "new", now(10)), PutOutcome::Stored);
}

fn reach(backend: &mut dyn Backend) {
    let targets = [key("/p", None), key("/p", Some("a")), key("/q", None)];
    let other_route = CopyKey { route: "s".into(), ..targets[0].clone() };
    let all = [&targets[0], &targets[1], &targets[2], &other_route];
    let cases = [
        (Withdrawal::Target(targets[0].target.clone()), [false, true, true, false]),
        (Withdrawal::Path { host: "h".into(), path: "/p".into() }, [false, false, true, false]),
        (Withdrawal::Route("r".into()), [false, false, false, true]),
    ];
    for (withdrawal, left) in cases {
        let store = backend.fresh(now(0));
        for key in all {
            put(&store, key, "x", now(1));
        }
        assert!(withdraw(&store, withdrawal.clone(), now(2)));
        let found = all.map(|key| store.peek(key, &HeaderMap::new()).is_some());
        assert_eq!(found, left, "{withdrawal:?}");
        store.close(FLUSH);
        if let Some(store) = backend.again(now(3)) {
            let found = all.map(|key| store.peek(key, &HeaderMap::new()).is_some());
            assert_eq!(found, left, "after a restart: {withdrawal:?}");
        }
    }
}

fn renewal(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let key = key("/p", None);
    let none = HeaderMap::new();
    put(&store, &key, "content", now(1));
    let ticket = store.begin_read(now(9));
    let observed_at = ticket.observed_at(Duration::ZERO);
    let facts = CopyFacts { observed_at, origin_limit: OriginLimit::Never };
    let (same, other) = (headers(&[("etag", "W/\"1\"")]), headers(&[("etag", "\"2\"")]));
    let fields = headers(&[("cache-control", "max-age=5"), ("content-type", "text/html")]);
    let renew = |validators, ticket| {
        let judge: Judge = |_| Some(OriginLimit::Never);
        store.renew(
            &key,
            &none,
            Renewal { validators, headers: &fields, observed_at, judge },
            ticket,
            now(10),
        )
    };
    assert_eq!(renew(&other, ticket), RenewOutcome::OtherContent);
    assert_eq!(renew(&same, ticket), RenewOutcome::Renewed);
    let renewed = load(&store, &key, &none).unwrap_or_else(|| copy("missing", ticket));
    assert_eq!((renewed.facts, &renewed.body[..]), (facts, &b"content"[..]));
    assert_eq!(renewed.headers["cache-control"], "max-age=5");
    assert_eq!(renewed.headers["content-type"], "text/plain");
    let late = store.begin_read(now(11));
    assert!(withdraw(&store, Withdrawal::Target(key.target.clone()), now(12)));
    assert_eq!(renew(&same, late), RenewOutcome::Missing);
    assert_eq!(put(&store, &key, "content", now(13)), PutOutcome::Stored);
    assert_eq!(renew(&same, late), RenewOutcome::Withdrawn);
}

/// Renews the copy for a request with the fields of a 304 about the samples' content, and waits until that is done.
fn renew(store: &Copies, key: &CopyKey, request: &HeaderMap, sent: &HeaderMap, at: Now) -> RenewOutcome {
    let judge: Judge = |fields| match fields.get("cache-control").and_then(|value| value.to_str().ok()) {
        Some("no-store") => None,
        Some("must-revalidate") => Some(OriginLimit::Never),
        _ => Some(OriginLimit::Unlimited),
    };
    let ticket = store.begin_read(at);
    let validators = &headers(&[("etag", "\"1\"")]);
    let observed_at = ticket.observed_at(Duration::ZERO);
    let renewal = Renewal { validators, headers: sent, observed_at, judge };
    let before = store.peek(key, request);
    let outcome = store.renew(key, request, renewal, ticket, at);
    while outcome == RenewOutcome::Pending && store.peek(key, request) == before {
        std::thread::yield_now();
    }
    outcome
}

/// What the origin forbids is read from all of its fields, also from those that a 304 does not repeat.
fn renewed_limits(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let (key, none) = (key("/p", None), HeaderMap::new());
    let ticket = store.begin_read(now(1));
    let mut stored = copy("content", ticket);
    stored.facts.origin_limit = OriginLimit::Never;
    stored.headers.extend(headers(&[("cache-control", "must-revalidate")]));
    assert_eq!(store.put(&key, stored, ticket, now(1)), PutOutcome::Stored);
    let limit =
        |store: &Copies| store.peek(&key, &none).map(|facts| (facts.observed_at.mono, facts.origin_limit));
    assert_eq!(renew(&store, &key, &none, &none, now(2)), RenewOutcome::Renewed);
    assert_eq!(limit(&store), Some((now(2).mono, OriginLimit::Never)));
    let (other, forbids) = (super::key("/q", None), headers(&[("cache-control", "no-store")]));
    put(&store, &other, "content", now(1));
    assert_eq!(renew(&store, &other, &none, &forbids, now(3)), RenewOutcome::NotKept);
    assert!(store.peek(&other, &none).is_none(), "what may not be kept is not");
    assert!(store.close(FLUSH));
    if let Some(store) = backend.again(now(4)) {
        assert!(store.peek(&other, &none).is_none(), "nor after a restart");
        assert_eq!(renew(&store, &key, &none, &none, now(5)), RenewOutcome::Pending);
        assert_eq!(limit(&store), Some((now(5).mono, OriginLimit::Never)));
        let allows = headers(&[("cache-control", "public")]);
        assert_eq!(renew(&store, &key, &none, &allows, now(6)), RenewOutcome::Renewed);
        assert_eq!(limit(&store), Some((now(6).mono, OriginLimit::Unlimited)));
    }
}

/// RFC 9111 section 4.1: what a 304 names in `Vary` selects the copy from then on.
fn renewed_variants(backend: &mut dyn Backend) {
    let (key, other) = (key("/p", None), key("/q", None));
    let (es, en) = (headers(&[("accept-language", "es")]), headers(&[("accept-language", "en")]));
    let (by_language, by_all) = (headers(&[("vary", "Accept-Language")]), headers(&[("vary", "*")]));
    // Whether the content is in memory or is read back for it.
    for from_disk in [false, true] {
        let mut store = backend.fresh(now(0));
        put(&store, &key, "for all", now(1));
        put(&store, &other, "for all", now(1));
        if from_disk {
            assert!(store.close(FLUSH));
            match backend.again(now(2)) {
                Some(again) => store = again,
                None => return,
            }
        }
        let expected = if from_disk { RenewOutcome::Pending } else { RenewOutcome::Renewed };
        assert_eq!(renew(&store, &key, &es, &by_language, now(3)), expected);
        let seen = |store: &Copies| [&es, &en].map(|request| store.peek(&key, request).is_some());
        assert_eq!(seen(&store), [true, false], "only whom the origin spoke to");
        let renewed = load(&store, &key, &es).unwrap_or_else(|| copy("", store.begin_read(now(3))));
        assert_eq!((&renewed.body[..], renewed.vary.len()), (&b"for all"[..], 1));
        let expected = if from_disk { RenewOutcome::Pending } else { RenewOutcome::Unselectable };
        assert_eq!(renew(&store, &other, &es, &by_all, now(4)), expected);
        assert!(store.peek(&other, &es).is_none());
        assert!(store.close(FLUSH));
        if let Some(store) = backend.again(now(5)) {
            assert_eq!(seen(&store), [true, false], "after a restart");
            assert!(store.peek(&other, &es).is_none());
        }
    }
}

/// What this boot has read is newer than what any boot before it has, whatever their dates were.
fn another_boot(backend: &mut dyn Backend) {
    // Boots are dated by their number here: the fifth comes first, with a date that is wrong.
    let store = backend.fresh(now_in_boot(5, 0));
    let keys = [key("/put", None), key("/renewed", None), key("/varied", None)];
    for key in &keys {
        put(&store, key, "future", now_in_boot(5, 900));
    }
    let language = headers(&[("accept-language", "es")]);
    assert!(store.close(FLUSH));
    let Some(store) = backend.again(now_in_boot(1, 1)) else { return };
    assert_eq!(put(&store, &keys[0], "past", now_in_boot(1, 2)), PutOutcome::Stored);
    assert_eq!(body(&store, &keys[0]).as_deref(), Some(&b"past"[..]));
    assert!(body(&store, &keys[1]).is_some(), "in memory from here on");
    let none = HeaderMap::new();
    assert_eq!(renew(&store, &keys[1], &none, &none, now_in_boot(1, 3)), RenewOutcome::Renewed);
    let varied = |store: &Copies, at: Now, body: &'static str| {
        let ticket = store.begin_read(at);
        let vary = vec![VaryField::of(http::header::ACCEPT_LANGUAGE, &language)];
        store.put(&keys[2], StoredCopy { vary, ..copy(body, ticket) }, ticket, at)
    };
    assert_eq!(varied(&store, now_in_boot(1, 4), "past"), PutOutcome::Stored);
    let selected = |store: &Copies| load(store, &keys[2], &language).map(|copy| copy.body);
    assert_eq!(selected(&store), Some("past".into()));
    assert!(store.close(FLUSH));
    let Some(store) = backend.again(now_in_boot(3, 1)) else { return };
    assert_eq!(selected(&store), Some("past".into()), "what was stored later, among those of other boots");
    for key in &keys[..2] {
        let boot = store.peek(key, &none).map(|facts| facts.observed_at.boot);
        assert_eq!(boot, Some(now_in_boot(1, 0).boot));
    }
    assert_eq!(put(&store, &keys[0], "present", now_in_boot(3, 2)), PutOutcome::Stored);
}

fn restart(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let keys: Vec<CopyKey> = (0..200).map(|number| key(&format!("/p/{number}"), None)).collect();
    for key in &keys {
        put(&store, key, "x", now(3));
    }
    let dates: Vec<_> = keys.iter().map(|key| store.peek(key, &HeaderMap::new())).collect();
    assert!(store.close(FLUSH));
    if let Some(store) = backend.again(now_in_boot(2, 1)) {
        let again: Vec<_> = keys.iter().map(|key| store.peek(key, &HeaderMap::new())).collect();
        assert_eq!(again, dates);
        assert_eq!(store.health().entries, 200);
        // What was read in this life is newer, whatever its clock since boot says.
        assert_eq!(put(&store, &keys[0], "y", now_in_boot(2, 2)), PutOutcome::Stored);
    }
}

fn stays_withdrawn(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    let key = key("/p", None);
    put(&store, &key, "x", now(1));
    assert!(withdraw(&store, Withdrawal::Target(key.target.clone()), now(2)));
    assert!(!withdraw(&store, Withdrawal::Target(key.target.clone()), now(3)), "withdrawn twice");
    drop(store);
    if let Some(store) = backend.again(now(4)) {
        assert!(store.peek(&key, &HeaderMap::new()).is_none());
    }
}

fn high_water(backend: &mut dyn Backend) {
    let store = backend.fresh(now(0));
    store.note_wall(now(1_000));
    store.note_wall(now(500));
    assert_eq!(store.high_water_wall(), now(1_000).wall);
    store.close(FLUSH);
    if let Some(store) = backend.again(now(1)) {
        assert_eq!(store.high_water_wall(), now(1_000).wall);
    }
}
