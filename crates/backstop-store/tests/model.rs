//! Random lives of a store against the simplest thing that could be right.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, OriginLimit};
use backstop_engine::time::{Mono, Now};
use backstop_store::testing::{FakeMedium, block_on, copy, headers, key, now_in_boot};
use backstop_store::{
    Confirmation, Copies, CopyKey, Judge, Loaded, PutOutcome, ReadTicket, RenewOutcome, Renewal,
    StoreOptions, StoredCopy, VaryField, Withdrawal, Withdrawn,
};
use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Put {
        key: u8,
        language: Option<u8>,
        read: prop::sample::Index,
        length: usize,
    },
    Look {
        key: u8,
        language: u8,
    },
    Renew {
        key: u8,
        language: u8,
        read: prop::sample::Index,
    },
    Target(u8),
    Path(u8),
    Route(u8),
    /// A withdrawal of a target that refuses what is read in the next seconds as well.
    Hold {
        key: u8,
        seconds: u64,
    },
    /// Writes wait for the disk from here on, or go on.
    Stall,
    Reopen,
    /// As `Reopen`, after a boot whose date may be an earlier or a later one.
    Reboot,
}

fn step() -> impl Strategy<Value = Step> {
    let read = any::<prop::sample::Index>;
    prop_oneof![
        3 => Just(Step::Begin),
        6 => (0..8u8, prop::option::of(0..3u8), read(), 0..3000usize)
            .prop_map(|(key, language, read, length)| Step::Put { key, language, read, length }),
        6 => (0..8u8, 0..3u8).prop_map(|(key, language)| Step::Look { key, language }),
        2 => (0..8u8, 0..3u8, read()).prop_map(|(key, language, read)| Step::Renew { key, language, read }),
        1 => (0..8u8).prop_map(Step::Target),
        1 => (0..8u8).prop_map(Step::Path),
        1 => (0..2u8).prop_map(Step::Route),
        1 => (0..8u8, 1..20u64).prop_map(|(key, seconds)| Step::Hold { key, seconds }),
        1 => Just(Step::Stall),
        1 => Just(Step::Reopen),
        1 => Just(Step::Reboot),
    ]
}

/// Eight keys: two paths, two queries, two routes.
fn numbered(number: u8) -> CopyKey {
    let query = if number & 2 == 0 { None } else { Some("q") };
    CopyKey { route: route(number >> 2), ..key(if number & 1 == 0 { "/a" } else { "/b" }, query) }
}

fn route(number: u8) -> Box<str> {
    if number & 1 == 0 { "r".into() } else { "s".into() }
}

fn request(language: u8) -> HeaderMap {
    headers(&[("accept-language", ["es", "en", "de"][usize::from(language % 3)])])
}

/// A read as the model sees it: how many withdrawals came before.
#[derive(Clone, Copy)]
struct Read {
    ticket: ReadTicket,
    before: usize,
    at: Now,
}

/// A copy, and how many were stored before it.
type Numbered = (StoredCopy, usize);

#[derive(Default)]
struct Model {
    copies: BTreeMap<(u8, Option<u8>), Numbered>,
    stored: usize,
    /// Which keys each withdrawal touched.
    withdrawals: Vec<Vec<u8>>,
    /// Which keys are held, and until when.
    held: Vec<(Vec<u8>, Mono)>,
    /// Everything that was ever stored and not withdrawn since, for a store that may forget.
    versions: BTreeMap<u8, Vec<StoredCopy>>,
}

impl Model {
    fn late(&self, key: u8, read: Read) -> bool {
        let held = |(keys, until): &(Vec<u8>, Mono)| keys.contains(&key) && read.at.mono < *until;
        self.withdrawals[read.before..].iter().any(|touched| touched.contains(&key))
            || self.held.iter().any(held)
    }

    fn store(&mut self, place: (u8, Option<u8>), copy: StoredCopy) {
        self.stored += 1;
        self.copies.insert(place, (copy, self.stored));
    }

    fn withdraw(&mut self, touched: impl Fn(&CopyKey) -> bool) {
        let keys: Vec<u8> = (0..8).filter(|number| touched(&numbered(*number))).collect();
        self.copies.retain(|(key, _), _| !keys.contains(key));
        self.versions.retain(|key, _| !keys.contains(key));
        self.withdrawals.push(keys);
    }

    fn look(&self, key: u8, language: u8) -> Option<(Option<u8>, &StoredCopy)> {
        [None, Some(language)]
            .into_iter()
            .filter_map(|language| Some((language, self.copies.get(&(key, language))?)))
            .reduce(|a, b| if is_newer(b.1, a.1) { b } else { a })
            .map(|(language, (copy, _))| (language, copy))
    }
}

/// Within one boot its clock decides, else what was stored later.
fn is_newer(one: &Numbered, other: &Numbered) -> bool {
    let (began, began_other) = (one.0.facts.observed_at, other.0.facts.observed_at);
    if began.boot == began_other.boot { began.mono > began_other.mono } else { one.1 > other.1 }
}

/// How two variants of the same date are told apart is not promised.
fn ambiguous(model: &Model, key: u8, language: u8) -> bool {
    let date = |language| model.copies.get(&(key, language)).map(|(copy, _)| copy.facts.observed_at);
    date(None).is_some() && date(None) == date(Some(language))
}

fn load(store: &Copies, key: u8, language: u8) -> Option<StoredCopy> {
    match store.load(&numbered(key), &request(language)) {
        Loaded::Ready(copy) => Some((*copy).clone()),
        Loaded::Disk(pending) => block_on(pending).ok().map(|copy| (*copy).clone()),
        Loaded::Missing => None,
        Loaded::Unreadable => panic!("the queue of reads is long enough"),
    }
}

struct Life {
    disk: Option<FakeMedium>,
    options: StoreOptions,
    /// Whether the store has room for everything, so that it must remember exactly what the model does.
    exact: bool,
}

impl Life {
    fn open(&self, now: Now) -> Copies {
        match &self.disk {
            Some(disk) => Copies::open_on(Box::new(disk.clone()), self.options.clone(), now).0,
            None => Copies::memory_with(self.options.clone()),
        }
    }

    fn live(&self, steps: Vec<Step>) -> Result<(), TestCaseError> {
        // Boots are dated by their number, and the first of them is neither the earliest nor the latest.
        let (mut boot, mut booted, mut boots) = (4, 0, [1, 7, 2, 6, 3, 8, 5, 4].into_iter().cycle());
        let first = now_in_boot(boot, 0);
        let mut store = self.open(first);
        let mut model = Model::default();
        let mut reads = vec![Read { ticket: store.begin_read(first), before: 0, at: first }];
        let mut stalled = false;
        let mut unconfirmed = Vec::new();
        for (second, step) in (1..).zip(steps) {
            let at = now_in_boot(boot, second - booted);
            let mut withdraw = |withdrawn: Withdrawn| match withdrawn {
                Withdrawn::Pending(confirmation) if stalled => unconfirmed.push(confirmation),
                Withdrawn::Pending(confirmation) => confirmed(confirmation),
                Withdrawn::NothingStored => {}
            };
            match step {
                Step::Begin => {
                    reads.push(Read { ticket: store.begin_read(at), before: model.withdrawals.len(), at });
                }
                Step::Put { key, language, read, length } => {
                    let read = *read.get(&reads);
                    let vary = language.map(|language| VaryField::of(ACCEPT_LANGUAGE, &request(language)));
                    let vary: Vec<VaryField> = vary.into_iter().collect();
                    let copy = StoredCopy { vary, ..copy(vec![second as u8; length], read.ticket) };
                    let outcome = store.put(numbered(key), copy.clone(), read.ticket, at);
                    // What another boot has read is older.
                    let newer = model.copies.get(&(key, language)).is_some_and(|(old, _)| {
                        let (old, new) = (old.facts.observed_at, copy.facts.observed_at);
                        old.boot == new.boot && old.mono > new.mono
                    });
                    if model.late(key, read) {
                        prop_assert_eq!(outcome, PutOutcome::Withdrawn);
                    } else if self.exact {
                        let expected = if newer { PutOutcome::OlderThanStored } else { PutOutcome::Stored };
                        prop_assert_eq!(outcome, expected);
                    } else {
                        prop_assert!(matches!(outcome, PutOutcome::Stored | PutOutcome::OlderThanStored));
                    }
                    if outcome == PutOutcome::Stored {
                        model.versions.entry(key).or_default().push(copy.clone());
                        model.store((key, language), copy);
                    }
                }
                Step::Look { key, language } => {
                    let (facts, found) =
                        (store.peek(&numbered(key), &request(language)), load(&store, key, language));
                    if self.exact {
                        if !ambiguous(&model, key, language) {
                            let expected = model.look(key, language).map(|(_, copy)| copy);
                            prop_assert_eq!(facts, expected.map(|copy| copy.facts));
                            prop_assert_eq!(found.as_ref(), expected);
                        }
                    } else if let Some(found) = found {
                        let versions = model.versions.get(&key).map_or(&[][..], Vec::as_slice);
                        prop_assert!(versions.contains(&found), "{:?} was withdrawn or never stored", found);
                        prop_assert!(found.vary.iter().all(|field| field.matches(&request(language))));
                    }
                }
                Step::Renew { key, language, read } => {
                    let read = *read.get(&reads);
                    let observed_at = read.ticket.observed_at(Duration::ZERO);
                    let facts = CopyFacts { observed_at, origin_limit: OriginLimit::Never };
                    let judge: Judge = |_| Some(OriginLimit::Never);
                    let same = headers(&[("etag", "\"1\""), ("x-renewed", &second.to_string())]);
                    let renewal = Renewal { validators: &same, headers: &same, observed_at, judge };
                    let outcome = store.renew(&numbered(key), &request(language), renewal, read.ticket, at);
                    if model.late(key, read) {
                        prop_assert!(matches!(outcome, RenewOutcome::Withdrawn | RenewOutcome::Missing));
                    }
                    if outcome == RenewOutcome::Pending {
                        // Reads are done in order, so whatever is read after it sees it done.
                        let probe =
                            (0..8).find_map(|key| match store.load(&numbered(key), &request(language)) {
                                Loaded::Disk(pending) => Some(pending),
                                _ => None,
                            });
                        probe.map(block_on);
                    }
                    if matches!(outcome, RenewOutcome::Renewed | RenewOutcome::Pending) {
                        let renewed: Vec<_> = [None, Some(language)]
                            .into_iter()
                            .filter_map(|language| {
                                Some(((key, language), model.copies.get(&(key, language))?.0.clone()))
                            })
                            .map(|(place, old)| {
                                let mut new = StoredCopy { facts, ..old };
                                new.headers.insert("x-renewed", second.to_string().parse().unwrap());
                                (place, new)
                            })
                            .collect();
                        let selected = model.look(key, language).map(|(language, _)| (key, language));
                        let unsure = ambiguous(&model, key, language) || !self.exact;
                        for (place, new) in renewed {
                            model.versions.entry(key).or_default().push(new.clone());
                            if unsure {
                                // Which of the two was renewed shows only later: forget both.
                                if self.exact {
                                    return Ok(());
                                }
                            } else if Some(place) == selected {
                                model.store(place, new);
                            }
                        }
                        if !self.exact {
                            // A store that forgets may have renewed an older version.
                            let older: Vec<_> = model.versions[&key]
                                .iter()
                                .map(|old| {
                                    let mut new = StoredCopy { facts, ..old.clone() };
                                    new.headers.insert("x-renewed", second.to_string().parse().unwrap());
                                    new
                                })
                                .collect();
                            model.versions.entry(key).or_default().extend(older);
                        }
                    }
                }
                Step::Target(key) => {
                    let target = numbered(key).target;
                    withdraw(store.withdraw(Withdrawal::Target(target.clone()), at));
                    model.withdraw(|key| key.target == target);
                }
                Step::Hold { key, seconds } => {
                    let target = numbered(key).target;
                    let until = at.mono.after(Duration::from_secs(seconds));
                    withdraw(store.withdraw_until(Withdrawal::Target(target.clone()), at, until));
                    model.withdraw(|key| key.target == target);
                    let keys = model.withdrawals.last().cloned().unwrap_or_default();
                    model.held.push((keys, until));
                }
                Step::Path(key) => {
                    let path = numbered(key).target.path().to_owned();
                    withdraw(
                        store.withdraw(Withdrawal::Path { host: "h".into(), path: path.as_str().into() }, at),
                    );
                    model.withdraw(|key| key.target.path() == path);
                }
                Step::Route(number) => {
                    withdraw(store.withdraw(Withdrawal::Route(route(number)), at));
                    model.withdraw(|key| key.route == route(number));
                }
                Step::Stall => {
                    stalled = self.disk.is_some() && !stalled;
                    self.disk.iter().for_each(|disk| disk.stall(stalled));
                    if !stalled {
                        unconfirmed.drain(..).for_each(confirmed);
                    }
                }
                Step::Reopen | Step::Reboot => {
                    stalled = false;
                    self.disk.iter().for_each(|disk| disk.stall(false));
                    prop_assert!(store.close(Duration::from_secs(60)));
                    unconfirmed.drain(..).for_each(confirmed);
                    if matches!(step, Step::Reboot) {
                        (boot, booted) = (boots.next().unwrap_or(boot), second);
                    }
                    let at = now_in_boot(boot, second - booted);
                    store = self.open(at);
                    if self.disk.is_none() {
                        model = Model::default();
                    }
                    model.withdrawals.clear();
                    model.held.clear();
                    reads = vec![Read { ticket: store.begin_read(at), before: 0, at }];
                }
            }
        }
        self.disk.iter().for_each(|disk| disk.stall(false));
        Ok(())
    }
}

fn confirmed(confirmation: Confirmation) {
    assert_eq!(block_on(confirmation), Ok(()));
}

fn options(memory_bytes: u64) -> StoreOptions {
    StoreOptions { memory_bytes, ..StoreOptions::new("") }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_with_room_remembers_exactly(steps in vec(step(), 1..120)) {
        Life { disk: None, options: options(16 << 20), exact: true }.live(steps)?;
    }

    #[test]
    fn a_store_with_a_disk_remembers_exactly(steps in vec(step(), 1..120)) {
        Life { disk: Some(FakeMedium::default()), options: options(16 << 20), exact: true }.live(steps)?;
    }

    #[test]
    fn a_store_without_room_forgets_but_never_invents(steps in vec(step(), 1..120), disk in any::<bool>()) {
        let disk = disk.then(FakeMedium::default);
        Life { disk, options: StoreOptions { queue_len: 1, ..options(9_000) }, exact: false }.live(steps)?;
    }
}
