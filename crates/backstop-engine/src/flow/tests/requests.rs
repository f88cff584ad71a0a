//! Arbitrary things that happen, as the property tests make and shrink them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{CopyUse, Method, RequestFacts};

use super::model::End;
use super::reference::Content;
use super::support::{MS, SECOND};

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
}

/// Failures that a driver reports, and the words that they are counted under.
pub(super) const FAILURES: [(Failure, &str); 6] = [
    (Failure::new(FailureKind::Dns, Phase::Resolve, Sent::No), "dns"),
    (Failure::new(FailureKind::ConnectTimeout, Phase::Connect, Sent::No), "connect_timeout"),
    (Failure::new(FailureKind::Reset, Phase::Send, Sent::Maybe), "reset"),
    (Failure::new(FailureKind::ReadTimeout, Phase::Head, Sent::Maybe), "read_timeout"),
    (Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe), "incomplete"),
    (Failure::new(FailureKind::Protocol, Phase::Head, Sent::Maybe), "protocol"),
];

fn facts() -> impl Strategy<Value = RequestFacts> {
    let method = prop_oneof![
        6 => Just(Method::Get),
        1 => Just(Method::Head),
        1 => Just(Method::OtherSafe),
        1 => Just(Method::Unsafe),
    ];
    let copies =
        prop_oneof![6 => Just(CopyUse::Full), 1 => Just(CopyUse::ServeOnly), 1 => Just(CopyUse::Never)];
    (method, copies, any::<bool>()).prop_map(|(method, copies, credential)| RequestFacts {
        method,
        copies,
        credential,
        ..RequestFacts::GET
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
    (
        stored_copy(),
        call_end(),
        call_end(),
        status,
        any::<bool>(),
        degraded,
        content(),
        0..FAILURES.len(),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(copy, call, body, status, has_body, degraded_s, content, failure, is_over)| Reply {
            copy,
            call,
            body,
            status,
            has_body,
            degraded_s,
            content,
            failure,
            is_over,
        })
}

fn op() -> impl Strategy<Value = Op> {
    let slot = || 0..64_usize;
    let end = prop_oneof![4 => Just(End::Complete), 1 => Just(End::BreakOff), 1 => Just(End::ClientLeaves)];
    let pass =
        select(vec![1, 100_000, MS, 19 * MS, 20 * MS, 38 * MS, 80 * MS, 294 * MS, SECOND, 61 * SECOND]);
    prop_oneof![
        200 => (0..4_usize, facts()).prop_map(|(route, facts)| Op::Begin { route, facts }),
        400 => (slot(), reply()).prop_map(|(slot, reply)| Op::Reply { slot, reply }),
        40 => (slot(), 1..3_u32, 0..4_usize).prop_map(|(slot, other, kind)| Op::Late { slot, other, kind }),
        20 => (slot(), 0..100 * MS).prop_map(|(slot, ns)| Op::Waited { slot, ns }),
        15 => slot().prop_map(|slot| Op::Slow { slot }),
        30 => slot().prop_map(|slot| Op::Leave { slot }),
        120 => (slot(), end, 0..FAILURES.len())
            .prop_map(|(slot, end, failure)| Op::Settle { slot, end, failure }),
        120 => slot().prop_map(|slot| Op::EndCall { slot }),
        120 => pass.prop_map(|ns| Op::Pass { ns }),
        1 => Just(Op::Drain),
    ]
}

pub(super) fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..200)
}
