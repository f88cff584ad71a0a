//! What every store keeps.

use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, OriginLimit};
use backstop_engine::time::Now;
use bytes::Bytes;
use http::HeaderMap;

use super::samples::{block_on, copy, headers, key, now, now_in_boot};
use crate::copies::{Copies, Loaded, PutOutcome, RenewOutcome, Renewal, Withdrawal, Withdrawn};
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
        restart,
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
    let facts =
        CopyFacts { observed_at: ticket.observed_at(Duration::ZERO), origin_limit: OriginLimit::Never };
    let (same, other) = (headers(&[("etag", "W/\"1\"")]), headers(&[("etag", "\"2\"")]));
    let fields = headers(&[("cache-control", "max-age=5"), ("content-type", "text/html")]);
    let renew = |validators, ticket| {
        store.renew(&key, &none, Renewal { validators, headers: &fields, facts }, ticket, now(10))
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
