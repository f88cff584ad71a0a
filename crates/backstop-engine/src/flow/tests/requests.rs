//! Arbitrary things that happen, as the property tests make and shrink them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{CopyUse, Method, RequestFacts};

use super::reference::Content;
use super::request::End;
use super::support::{MS, SECOND};
use super::worlds::VALID_NS;

/// One thing that happens. A slot names one of those under way, modulo how many there are.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A request arrives.
    Begin { route: usize, facts: RequestFacts },
    /// What a request was asked for is answered.
    Reply { slot: usize, reply: Reply },
    /// A result comes for another attempt.
    Late { slot: usize, other: u32, kind: usize },
    /// The client was slow to send, for this long in all.
    Waited { slot: usize, ns: u64 },
    /// The client was too slow to send.
    Slow { slot: usize },
    /// The client leaves before the decision.
    Leave { slot: usize },
    /// A decided request ends.
    Settle { slot: usize, end: End, failure: usize },
    /// A call's work at its dependency ends, whoever still waits for it.
    EndCall { slot: usize },
    /// Time passes.
    Pass { ns: u64 },
    /// So many requests arrive one after the other, and each gets the same answer to whatever it asks.
    Crowd { route: usize, count: u32, reply: Reply },
    /// Time passes until a breaker lets a probe go, if it is open, and its first safe calls are answered well.
    Recover { dependency: usize, route: usize },
    /// An operator's order: open, closed, or what there was.
    Order { dependency: usize, kind: usize },
    /// A limit becomes another one: of the process, a route, a dependency or a resource.
    Reconfigure { scope: usize, which: usize, places: u32 },
    /// The date is stepped, or is believed or not.
    Date { ns: i64, is_synchronised: bool },
    /// The service begins to stop.
    Drain,
}

/// An answer to whatever is asked.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) copy: StoredCopy,
    pub(super) call: CallEnd,
    pub(super) body: CallEnd,
    pub(super) status: u16,
    pub(super) has_body: bool,
    pub(super) degraded_s: Option<u64>,
    pub(super) content: Content,
    pub(super) failure: usize,
    /// In a queue: the wait is over, rather than that a place may be free.
    pub(super) is_over: bool,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) database_wait_ms: Option<u64>,
}

impl Reply {
    /// All is well.
    pub(super) const GOOD: Self = Self {
        copy: StoredCopy::Missing,
        call: CallEnd::Answer,
        body: CallEnd::Answer,
        status: 200,
        has_body: true,
        degraded_s: None,
        content: Content::Whole { correct: true, storable: true },
        failure: 0,
        is_over: false,
        retry_after_ms: None,
        database_wait_ms: Some(1),
    };
}

#[derive(Clone, Copy, Debug)]
pub(super) enum StoredCopy {
    Missing,
    Unreadable,
    Aged { ns: i64, forbidden: bool },
}

/// How a call, or the collection of its answer, ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallEnd {
    Answer,
    Failure,
    TimeUp,
    Error,
    /// It was allowed and then not begun.
    NotBegun,
}

/// Failures that a driver reports, and the words that they are counted under.
pub(super) const FAILURES: [(Failure, &str); 9] = [
    (Failure::new(FailureKind::Connect, Phase::Connect, Sent::No), "connect"),
    (Failure::new(FailureKind::Write, Phase::Send, Sent::Maybe), "write"),
    (Failure::new(FailureKind::Reset, Phase::Body, Sent::Maybe), "reset"),
    (Failure::new(FailureKind::Dns, Phase::Resolve, Sent::No), "dns"),
    (Failure::new(FailureKind::ConnectTimeout, Phase::Connect, Sent::No), "connect_timeout"),
    (Failure::new(FailureKind::Reset, Phase::Send, Sent::Maybe), "reset"),
    (Failure::new(FailureKind::ReadTimeout, Phase::Head, Sent::Maybe), "read_timeout"),
    (Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe), "incomplete"),
    (Failure::new(FailureKind::Protocol, Phase::Head, Sent::Maybe), "protocol"),
];

/// What the next moment may not have: no answer at all, and no timeout.
pub(super) fn is_of_a_moment(failure: usize) -> bool {
    let (failure, word) = FAILURES[failure];
    match word {
        "dns" | "connect" | "write" => true,
        "reset" => failure.phase != Phase::Body,
        _ => false,
    }
}

fn facts() -> impl Strategy<Value = RequestFacts> {
    let method = prop_oneof![
        6 => Just(Method::Get),
        1 => Just(Method::Head),
        1 => Just(Method::OtherSafe),
        1 => Just(Method::Unsafe),
    ];
    let copies =
        prop_oneof![6 => Just(CopyUse::Full), 1 => Just(CopyUse::ServeOnly), 1 => Just(CopyUse::Never)];
    let mostly = || prop::bool::weighted(0.85);
    let others = (any::<bool>(), mostly(), mostly(), prop_oneof![8 => Just(1_u32), 1 => Just(2)]);
    (method, copies, others).prop_map(|(method, copies, (credential, repeatable, elsewhere, attempt))| {
        RequestFacts {
            method,
            copies,
            credential,
            attempt,
            repeatable,
            has_content: false,
            is_open: false,
            elsewhere,
            accepts_later: false,
            looks: false,
            part_until: None,
        }
    })
}

fn stored_copy() -> impl Strategy<Value = StoredCopy> {
    let second = SECOND as i64;
    let ages =
        vec![0, 1, 30 * second, 60 * second - 1, 60 * second, 60 * second + 1, 90 * second, -1, -second];
    prop_oneof![
        2 => Just(StoredCopy::Missing),
        1 => Just(StoredCopy::Unreadable),
        8 => (select(ages), prop::bool::weighted(0.1))
            .prop_map(|(ns, forbidden)| StoredCopy::Aged { ns, forbidden }),
    ]
}

fn call_end() -> impl Strategy<Value = CallEnd> {
    prop_oneof![12 => body_end(), 1 => Just(CallEnd::NotBegun)]
}

fn body_end() -> impl Strategy<Value = CallEnd> {
    prop_oneof![
        6 => Just(CallEnd::Answer),
        3 => Just(CallEnd::Failure),
        2 => Just(CallEnd::TimeUp),
        1 => Just(CallEnd::Error),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        6 => (prop::bool::weighted(0.8), any::<bool>())
            .prop_map(|(correct, storable)| Content::Whole { correct, storable }),
        1 => Just(Content::TooLarge),
        1 => Just(Content::Broken),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let status = prop_oneof![
        4 => Just(200_u16),
        4 => select(vec![204, 206, 301, 304, 401, 404, 409, 410, 422, 429, 500, 502, 503, 504, 599]),
    ];
    let degraded = prop_oneof![8 => Just(None), 2 => select(vec![0_u64, 60, 61]).prop_map(Some)];
    let retry_after =
        prop_oneof![8 => Just(None), 1 => select(vec![0_u64, 40, 1_000, 100_000]).prop_map(Some)];
    let database_wait = prop_oneof![3 => Just(None), 6 => select(vec![0_u64, 5, 20]).prop_map(Some),
        1 => select(vec![6_u64, 21]).prop_map(Some)];
    (
        stored_copy(),
        call_end(),
        body_end(),
        status,
        any::<bool>(),
        degraded,
        content(),
        0..FAILURES.len(),
        (prop::bool::weighted(0.3), retry_after, database_wait),
    )
        .prop_map(|(copy, call, body, status, has_body, degraded_s, content, failure, others)| Reply {
            copy,
            call,
            body,
            status,
            has_body,
            degraded_s,
            content,
            failure,
            is_over: others.0,
            retry_after_ms: others.1,
            database_wait_ms: others.2,
        })
}

/// Things that happen at this many routes. Whole milliseconds where a breaker counts in them.
fn op(routes: usize, steps: Vec<u64>) -> BoxedStrategy<Op> {
    let slot = || 0..64_usize;
    let end = prop_oneof![
        4 => Just(End::Complete),
        1 => Just(End::BreakOff),
        1 => Just(End::ClientLeaves),
        2 => prop_oneof![Just(1000_u64), Just(1001), 0..1500_u64].prop_map(|ms| End::Dawdles { ms }),
    ];
    prop_oneof![
        200 => (0..routes, facts()).prop_map(|(route, facts)| Op::Begin { route, facts }),
        400 => (slot(), reply()).prop_map(|(slot, reply)| Op::Reply { slot, reply }),
        40 => (slot(), 1..3_u32, 0..5_usize).prop_map(|(slot, other, kind)| Op::Late { slot, other, kind }),
        20 => (slot(), 0..100 * MS).prop_map(|(slot, ns)| Op::Waited { slot, ns }),
        15 => slot().prop_map(|slot| Op::Slow { slot }),
        30 => slot().prop_map(|slot| Op::Leave { slot }),
        120 => (slot(), end, 0..FAILURES.len())
            .prop_map(|(slot, end, failure)| Op::Settle { slot, end, failure }),
        120 => slot().prop_map(|slot| Op::EndCall { slot }),
        120 => select(steps).prop_map(|ns| Op::Pass { ns }),
        1 => Just(Op::Drain),
    ]
    .boxed()
}

/// Without breakers, down to the nanosecond.
pub(super) fn ops(routes: usize) -> impl Strategy<Value = Vec<Op>> {
    let steps = vec![1, 100_000, MS, 19 * MS, 20 * MS, 38 * MS, 80 * MS, 294 * MS, SECOND, 61 * SECOND];
    vec(op(routes, steps), 1..200)
}

/// With breakers, orders, and limits that change.
pub(super) fn ops_of_everything(routes: usize, dependencies: usize) -> impl Strategy<Value = Vec<Op>> {
    let steps =
        vec![MS, 5 * MS, 20 * MS, 40 * MS, 100 * MS, 290 * MS, SECOND, 5 * SECOND, 11 * SECOND, 61 * SECOND];
    let dependency = move || 0..dependencies;
    let one = prop_oneof![
        24 => op(routes, steps),
        2 => (0..routes, 1..12_u32, reply())
            .prop_map(|(route, count, reply)| Op::Crowd { route, count, reply }),
        2 => (dependency(), 0..routes).prop_map(|(dependency, route)| Op::Recover { dependency, route }),
        1 => (0..routes).prop_map(|route| Op::Crowd { route, count: 6, reply: Reply::GOOD }),
        1 => (dependency(), 0..6_usize).prop_map(|(dependency, kind)| Op::Order { dependency, kind }),
        1 => (0..4_usize, 0..8_usize, 0..16_u32)
            .prop_map(|(scope, which, places)| Op::Reconfigure { scope, which, places }),
        1 => (select(vec![VALID_NS.0 - 1, VALID_NS.0, VALID_NS.1, VALID_NS.1 + 1]), prop::bool::weighted(0.7))
            .prop_map(|(ns, is_synchronised)| Op::Date { ns, is_synchronised }),
    ];
    vec(one, 1..160)
}
