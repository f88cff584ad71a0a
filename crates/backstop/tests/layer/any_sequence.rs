//! Whatever happens in whatever order: a copy that is served is the newest correct read of its key, and within its age.
//!
//! The reference knows no layer, no store and no flow. It keeps, for each key, the newest correct read, forgets it when
//! something withdraws it, and says what a read that fails now must come to.

use std::collections::HashMap;
use std::time::Duration;

use backstop::engine::failure::FailureKind;
use backstop::engine::policy::KeyPart;
use http::Request;
use proptest::prelude::*;

use crate::support::{
    ATTEMPT_END, Does, Gate, MAX_AGE, Pending, Piece, REFUSED, Shop, answers, answers_in_pieces,
    description_with, once_open, request,
};

/// Product and tenant.
type Key = (usize, usize);

const PATHS: [&str; 2] = ["/products/1", "/products/2"];
const TENANTS: [&str; 2] = ["a", "b"];
/// JSON, each of them.
const VERSIONS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

#[derive(Clone, Debug)]
enum Happens {
    Read(Key, Answer),
    /// A read that is still waiting when the next thing happens.
    Begins(Key, usize),
    /// The oldest of those is answered.
    Ends,
    Write(usize, Written),
    Later(Duration),
    /// The date is stepped; within one boot that changes nothing.
    DateStep(i64),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Correct {
        version: usize,
        received_age: u64,
    },
    /// Correct, but somebody's own.
    Private,
    Broken,
    EmptyJson,
    Incorrect,
    ServerError,
    Conflict,
    Gone,
    Unavailable,
    Refused,
}

#[derive(Clone, Copy, Debug)]
enum Written {
    Done,
    Refused,
    Unknown,
    Abandoned,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    began: Duration,
    received_age: Duration,
    version: usize,
}

/// What may be served, said as simply as possible.
#[derive(Default)]
struct Reference {
    now: Duration,
    kept: HashMap<Key, Kept>,
    withdrawn: [u32; 2],
    /// After a write of unknown end, what begins before this is not kept.
    held_until: [Duration; 2],
}

impl Reference {
    fn read(
        &mut self,
        key: Key,
        began: Duration,
        withdrawn_at_begin: u32,
        version: usize,
        received_age: Duration,
    ) {
        let overtaken = self.kept.get(&key).is_some_and(|kept| kept.began > began);
        let held = began < self.held_until[key.0];
        if self.withdrawn[key.0] == withdrawn_at_begin && !overtaken && !held {
            self.kept.insert(key, Kept { began, received_age, version });
        }
    }

    fn withdraw(&mut self, product: usize) {
        self.withdrawn[product] += 1;
        self.kept.retain(|key, _| key.0 != product);
    }

    /// Status, content, and age or reason.
    fn stand_in(&self, key: Key) -> (u16, &'static str, String) {
        let Some(kept) = self.kept.get(&key) else { return (503, "", "missing".to_owned()) };
        let age = self.now - kept.began + kept.received_age;
        if age > MAX_AGE {
            (503, "", "age".to_owned())
        } else {
            (200, VERSIONS[kept.version], age.as_secs().to_string())
        }
    }
}

fn shop() -> Shop {
    Shop::open(description_with(|read| {
        read.key = vec![KeyPart::Header("x-tenant".into())];
        read.correct.media_type = Some("application/json".into());
    }))
}

fn read(key: Key) -> Request<()> {
    request("GET", PATHS[key.0], &[("x-tenant", TENANTS[key.1])])
}

const JSON: (&str, &str) = ("content-type", "application/json");

fn does(answer: Answer) -> Does {
    match answer {
        Answer::Correct { version, received_age } => {
            answers(200, &[JSON, ("age", &received_age.to_string())], VERSIONS[version])
        }
        Answer::Private => answers(200, &[JSON, ("cache-control", "private")], "[\"own\"]"),
        Answer::Broken => answers_in_pieces(200, &[JSON], vec![Piece::Data("[1]"), Piece::Breaks]),
        Answer::EmptyJson => answers(200, &[JSON], ""),
        Answer::Incorrect => answers(200, &[("content-type", "text/html")], "html"),
        Answer::ServerError => answers(500, &[JSON], "oops"),
        Answer::Conflict => answers(409, &[JSON], "conflict"),
        Answer::Gone => answers(404, &[JSON], "gone"),
        Answer::Unavailable => answers(503, &[], ""),
        Answer::Refused => REFUSED,
    }
}

/// What was answered, in the reference's words.
fn told(pending: Pending) -> (u16, String, String) {
    let reply = pending.reply();
    let field = reply.field("backstop").unwrap_or_default().to_owned();
    let member = |name: &str| field.split(", ").find_map(|member| member.strip_prefix(name));
    let word = member("age=").or(member("reason=")).unwrap_or_default().to_owned();
    let content = if reply.status == 503 { String::new() } else { reply.text().to_owned() };
    (reply.status, content, word)
}

fn run(happenings: &[Happens]) {
    let shop = shop();
    let mut reference = Reference::default();
    let mut under_way: Vec<(Key, Duration, u32, usize, Gate, Pending)> = Vec::new();
    for happens in happenings {
        match *happens {
            Happens::Read(key, answer) => {
                shop.catalog.does(does(answer));
                let told = told(shop.send(read(key)));
                let (now, withdrawn) = (reference.now, reference.withdrawn[key.0]);
                let (status, content, word) = match answer {
                    Answer::Correct { version, received_age } => {
                        let received_age = Duration::from_secs(received_age);
                        reference.read(key, now, withdrawn, version, received_age);
                        (200, VERSIONS[version], String::new())
                    }
                    Answer::Private => {
                        reference.withdraw(key.0);
                        (200, "[\"own\"]", String::new())
                    }
                    Answer::Incorrect => (200, "html", "incorrect".to_owned()),
                    Answer::ServerError => (500, "oops", "server_error".to_owned()),
                    Answer::Conflict => (409, "conflict", String::new()),
                    Answer::Gone => {
                        reference.withdraw(key.0);
                        (404, "gone", String::new())
                    }
                    Answer::Broken | Answer::EmptyJson | Answer::Unavailable | Answer::Refused => {
                        reference.stand_in(key)
                    }
                };
                assert_eq!(told, (status, content.to_owned(), word), "{answer:?}");
            }
            Happens::Begins(key, version) => {
                let gate = Gate::default();
                shop.catalog.does(once_open(&gate, does(Answer::Correct { version, received_age: 0 })));
                let mut pending = shop.send(read(key));
                assert!(pending.is_pending());
                under_way.push((key, reference.now, reference.withdrawn[key.0], version, gate, pending));
            }
            Happens::Ends if under_way.is_empty() => {}
            Happens::Ends => {
                let (key, began, withdrawn, version, gate, pending) = under_way.remove(0);
                gate.open();
                let (status, content, word) = if reference.now - began < ATTEMPT_END {
                    reference.read(key, began, withdrawn, version, Duration::ZERO);
                    (200, VERSIONS[version], String::new())
                } else {
                    reference.stand_in(key)
                };
                assert_eq!(told(pending), (status, content.to_owned(), word));
            }
            Happens::Write(product, written) => {
                shop.catalog.does(match written {
                    Written::Done => answers(204, &[], ""),
                    Written::Refused => answers(409, &[], ""),
                    Written::Unknown => Does::Fails(Some(FailureKind::Reset)),
                    Written::Abandoned => Does::Hangs,
                });
                let mut write = shop.send(request("PUT", PATHS[product], &[]));
                assert_eq!(write.is_pending(), matches!(written, Written::Abandoned));
                drop(write);
                if !matches!(written, Written::Refused) {
                    reference.withdraw(product);
                }
                if matches!(written, Written::Unknown | Written::Abandoned) {
                    reference.held_until[product] = reference.now + Duration::from_secs(10);
                }
            }
            Happens::Later(by) => {
                shop.later(by);
                reference.now += by;
            }
            Happens::DateStep(seconds) => shop.clock.set(|now| {
                let ns = now.wall.as_unix_ns() + seconds * 1_000_000_000;
                now.wall = backstop::engine::time::Wall::from_unix_ns(ns);
            }),
        }
    }
    drop(under_way);
    assert_eq!(shop.in_flight(), [0; 4]);
}

fn key() -> impl Strategy<Value = Key> {
    (0..2_usize, 0..2_usize)
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => (0..8_usize, prop_oneof![3 => Just(0_u64), 1 => 0..70_u64])
            .prop_map(|(version, received_age)| Answer::Correct { version, received_age }),
        6 => prop_oneof![Just(Answer::Broken), Just(Answer::Unavailable), Just(Answer::Refused)],
        3 => prop_oneof![
            Just(Answer::Private),
            Just(Answer::EmptyJson),
            Just(Answer::Incorrect),
            Just(Answer::ServerError),
            Just(Answer::Conflict),
        ],
        1 => Just(Answer::Gone),
    ]
}

/// Short enough to end a read in time, and long enough to reach the age's limit from either side.
fn later() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::from_nanos(1)),
        (0..200_u64).prop_map(Duration::from_millis),
        Just(ATTEMPT_END),
        (1..40_u64).prop_map(Duration::from_secs),
        Just(MAX_AGE),
        Just(MAX_AGE - Duration::from_nanos(1)),
    ]
}

fn happens() -> impl Strategy<Value = Happens> {
    let written = prop_oneof![
        Just(Written::Done),
        Just(Written::Refused),
        Just(Written::Unknown),
        Just(Written::Abandoned)
    ];
    prop_oneof![
        8 => (key(), answer()).prop_map(|(key, answer)| Happens::Read(key, answer)),
        2 => (key(), 0..8_usize).prop_map(|(key, version)| Happens::Begins(key, version)),
        2 => Just(Happens::Ends),
        1 => (0..2_usize, written).prop_map(|(product, written)| Happens::Write(product, written)),
        5 => later().prop_map(Happens::Later),
        1 => (-4000..4000_i64).prop_map(Happens::DateStep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_the_newest_correct_read_within_its_age_is_ever_served(
        happenings in prop::collection::vec(happens(), 1..60)
    ) {
        run(&happenings);
    }
}
