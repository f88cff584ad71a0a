//! One request in plain numbers, and the numbers that all of them share.

use std::collections::BTreeMap;

use crate::admission::ClassShare;
use crate::flow::{Method, RequestFacts};
use crate::health::tests::{Admitted, Begun};
use crate::policy::Route;

use super::naive::{Calls, Shared};
use super::reference::{Expected, Happened, Trouble, reads};

pub(super) type Words = (&'static str, &'static str, &'static str);

/// One route's numbers.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) rules: Route,
    /// What is kept of the deadline for the reply, and before that for an alternative.
    pub(super) shares_ns: (u64, u64),
    pub(super) places: u32,
    pub(super) in_flight: u32,
    pub(super) lane: u32,
    pub(super) counted: BTreeMap<Words, u64>,
    pub(super) ages: u64,
    /// Every read: when, and whether a usable copy existed.
    pub(super) coverage: Vec<(u64, bool)>,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) places: u32,
    pub(super) in_flight: u32,
    pub(super) draining: bool,
    /// The date, and whether it may be believed.
    pub(super) date_ns: i64,
    pub(super) is_synchronised: bool,
    pub(super) routes: Vec<Reads>,
    pub(super) dependencies: Vec<Calls>,
    pub(super) resources: Vec<Shared>,
}

/// One request's numbers.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) route: usize,
    pub(super) facts: RequestFacts,
    pub(super) begun: u64,
    /// The date at which it began, and whether it could be believed.
    pub(super) begun_date: (i64, bool),
    pub(super) waited: u64,
    pub(super) calls: u32,
    /// When the last call began, and what the client had been waited for until then.
    pub(super) called: u64,
    pub(super) waited_before: u64,
    /// Who is asked now.
    pub(super) asked: usize,
    /// Calls of the route's own dependency.
    pub(super) own_calls: u32,
    pub(super) retries: u32,
    /// The end of a call that leaves time for another, less what the client has been waited for.
    pub(super) cut: Option<u64>,
    /// What the route's own dependency came to.
    pub(super) cause: Option<Trouble>,
    pub(super) has_stood_in: bool,
    pub(super) ticket: Option<Admitted>,
    /// An answer that goes to the client as it comes, and how it was counted when it began.
    pub(super) streaming: Option<Begun>,
    pub(super) full: Option<usize>,
    pub(super) holds_process: bool,
    pub(super) holds_route: bool,
    pub(super) holds_lane: bool,
    pub(super) holds_retry: bool,
    pub(super) retry_is_made: bool,
    pub(super) holds_evidence: bool,
    pub(super) evidence_taken: (u64, u64),
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Arriving,
    Known,
    Placing,
    Queueing { until: u64 },
    Calling,
    Paused { until: u64 },
    Head,
    Body { status: u16, degraded_ns: Option<u128> },
    Elsewhere { cause: Trouble },
    Loading { why: Option<Happened> },
    Answering(Answer),
    Over,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) expected: Expected,
    /// Its dependency is counted when the answer is through.
    pub(super) streams: bool,
}

/// What a request is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Peek,
    Wait { until: u64, class: ClassShare },
    Attempt { id: u32, dependency: usize, number: u32, until: u64, end: u64 },
    Pause { until: u64 },
    Collect { id: u32, until: u64 },
    Load { until: u64 },
    Done { expected: Expected, until: u64 },
}

/// How a call failed, as far as that decides about another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failing {
    pub(super) trouble: Trouble,
    /// The next moment may not have it.
    pub(super) of_a_moment: bool,
    /// It was not answered in time, by our clock or by its own word (504).
    pub(super) is_late: bool,
    /// By an answer, which takes up its places until it is let go.
    pub(super) is_answer: bool,
    pub(super) retry_after_ns: Option<u64>,
}

/// What a dependency says about itself and what it uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) status: u16,
    pub(super) has_body: bool,
    pub(super) degraded_ns: Option<u128>,
    pub(super) retry_after_ns: Option<u64>,
    pub(super) database_wait_ns: Option<u64>,
}

/// How a decided request ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Complete,
    BreakOff,
    ClientLeaves,
    /// Not yet: its rest keeps its reader waiting.
    Dawdles {
        ms: u64,
    },
}

impl Request {
    pub(super) const fn new(route: usize, facts: RequestFacts, begun: u64, begun_date: (i64, bool)) -> Self {
        Self {
            route,
            facts,
            begun,
            begun_date,
            waited: 0,
            calls: 0,
            called: 0,
            waited_before: 0,
            asked: usize::MAX,
            own_calls: 0,
            retries: 0,
            cut: None,
            cause: None,
            has_stood_in: false,
            ticket: None,
            streaming: None,
            full: None,
            holds_process: false,
            holds_route: false,
            holds_lane: false,
            holds_retry: false,
            retry_is_made: false,
            holds_evidence: false,
            evidence_taken: (0, 0),
            phase: Phase::Arriving,
        }
    }

    pub(super) const fn call(&self) -> u32 {
        self.calls
    }

    /// Whose answer is waited for.
    pub(super) const fn asked(&self) -> usize {
        self.asked
    }

    pub(super) const fn has_stood_in(&self) -> bool {
        self.has_stood_in
    }

    /// The client was slow: the deadline moves back by that, and the call under way took less.
    pub(super) fn waited(&mut self, sum_ns: u64) {
        self.waited = self.waited.max(sum_ns);
        if let Some(ticket) = &mut self.ticket {
            ticket.waited_ns = self.waited - self.waited_before;
        }
    }

    pub(super) fn reads(&self) -> bool {
        matches!(self.facts.method, Method::Get | Method::Head)
    }

    pub(super) fn is_safe(&self) -> bool {
        self.facts.method != Method::Unsafe
    }

    pub(super) fn may_repeat(&self) -> bool {
        reads(self.facts) && self.facts.repeatable
    }
}

pub(super) const fn answer(expected: Expected, streams: bool) -> Phase {
    Phase::Answering(Answer { expected, streams })
}

pub(super) const fn refused(word: &'static str, status: u16) -> Phase {
    answer(Expected::new(("rejected", "none", word), status), false)
}
