//! From the decision to the last byte: what was decided, and what it finally came to.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::Permit;
use crate::composed::PartSet;
use crate::engine::Engine;
use crate::failure::{Cause, Failure};
use crate::health::Began;
use crate::outcome::{Outcome, Reason, Source};
use crate::policy::{DependencyId, Origin, RouteId};
use crate::status::{OperationReply, Refusal};
use crate::time::Mono;

use super::step::AttemptId;
use super::trace::Trace;

/// What a request is answered with.
#[derive(Debug)]
pub struct Decision {
    /// The answer.
    pub reply: Reply,
    /// What happens to the copy.
    pub copy: CopyAction,
    /// What the answer tells about itself.
    pub account: Account,
    /// The dependency must have given its last byte by then.
    pub until: Mono,
    /// The steps that led here.
    pub trace: Trace,
    /// Kept until the client has its last byte.
    pub settlement: Settlement,
}

/// What an answer tells about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// What the request came to.
    pub outcome: Outcome,
    /// Where the answer comes from.
    pub source: Source,
    /// Why.
    pub reason: Reason,
    /// What went wrong before an alternative was looked for, if anything.
    pub cause: Option<Cause>,
    /// The age of a copy.
    pub age: Option<Duration>,
    /// The rule that decided.
    pub rule: Origin,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The dependency's, already complete.
    Collected(AttemptId),
    /// The dependency's, as it comes. After its first byte no other answer is lawful.
    Streamed(AttemptId),
    /// The dependency's error, unchanged (library only).
    Propagated(AttemptId),
    /// What the cache had.
    Cached {
        /// Its age.
        age: Duration,
    },
    /// What was read for everybody who asked for it.
    Shared {
        /// Its age.
        age: Duration,
    },
    /// The copy that was loaded.
    Copy {
        /// Its age.
        age: Duration,
    },
    /// The route's prepared answer, or the one that leaves the part out.
    Fixed,
    /// The parts that fit, each in its place.
    Composed {
        /// Those that stand in it.
        placed: PartSet,
        /// Those that are omitted, by the composed route or by their own.
        omitted: PartSet,
    },
    /// The answer of a required part, as it came.
    Part {
        /// Its number in the policy's order, from 0.
        number: usize,
    },
    /// The authorizer's, whole: the caller may not.
    Denied,
    /// What the ledger says of an operation.
    Operation(OperationReply),
    /// Backstop's own.
    Refusal(Refusal),
}

/// What happens to the copy of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyAction {
    /// Nothing.
    Keep,
    /// The collected answer becomes the copy.
    Store,
    /// The origin confirmed it: its date is renewed.
    Renew,
    /// It is withdrawn, and so are those that the route names.
    Withdraw,
    /// As [`CopyAction::Withdraw`], after a write whose end is unknown: it may still be carried out, so for a while
    /// nothing is kept either.
    WithdrawUnsettled,
}

/// Holds the permits and the count of one decided request until its last byte.
///
/// Exactly one of [`complete`](Settlement::complete), [`break_off`](Settlement::break_off) or the drop (the client
/// left, or the request's own code panicked) counts the request.
#[derive(Debug)]
pub struct Settlement {
    engine: Arc<Engine>,
    /// `None` for what is nobody's request.
    route: Option<RouteId>,
    account: Account,
    /// An answer that still streams can still fail; its dependency is counted at the end.
    streaming: Option<Streaming>,
    /// Process, then route or lane.
    _permits: [Option<Permit>; 2],
    settled: bool,
}

/// Whose answer streams, and what is still to be said of it.
#[derive(Clone, Copy, Debug)]
pub struct Streaming {
    pub(super) from: DependencyId,
    /// When the call began.
    pub(super) called: Mono,
    /// What is known of the call so far.
    pub(super) began: Option<Began>,
    /// Whether it pays for retries once it is complete.
    pub(super) pays: bool,
}

/// The duty to say what comes of a streamed answer, on its way to whoever gets it. Dropped before, nobody gets it: the call
/// was an abandoned one.
#[derive(Debug)]
pub struct HandedOver {
    engine: Arc<Engine>,
    streaming: Option<Streaming>,
}

impl HandedOver {
    /// It has come to whoever gets the answer.
    pub fn take(mut self) -> Option<Streaming> {
        self.streaming.take()
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        if let Some(streaming) = self.streaming {
            self.engine.dependency(streaming.from).tally.abandon();
        }
    }
}

impl Settlement {
    pub(super) fn new(
        engine: Arc<Engine>,
        route: Option<RouteId>,
        account: Account,
        streaming: Option<Streaming>,
        permits: [Option<Permit>; 2],
    ) -> Self {
        Self { engine, route, account, streaming, _permits: permits, settled: false }
    }

    /// Hands the duty to say what comes of a streamed answer to whoever gets it.
    pub fn hand_over(mut self) -> HandedOver {
        self.settled = true;
        HandedOver { engine: Arc::clone(&self.engine), streaming: self.streaming.take() }
    }

    /// How long the dependency may keep the reader of the rest waiting until the call is a slow one. `None` where nothing is to
    /// be told of that.
    pub fn slow_in(&self) -> Option<Duration> {
        let Streaming { from, began, .. } = self.streaming?;
        self.engine.dependency(from).health.slow_in(began?)
    }

    /// The dependency has kept the reader of the rest waiting for another while, which ends now or goes on. What the reader took
    /// for themselves is none of it.
    pub fn waited(&mut self, waited: Duration, now: Mono) {
        if let Some(Streaming { from, began, .. }) = &mut self.streaming {
            let health = &self.engine.dependency(*from).health;
            if let Some(began) = began {
                health.waited(began, waited, now);
            }
        }
    }

    /// The client has its last byte.
    pub fn complete(mut self) {
        self.settled = true;
        if let Some(streaming) = self.streaming {
            let dependency = self.engine.dependency(streaming.from);
            dependency.tally.answer();
            if let Some(began) = streaming.began {
                dependency.health.completed(began, dependency.health.latest());
            }
            if streaming.pays {
                dependency.retries.deposit();
            }
        }
        self.count(self.account.outcome, self.account.reason);
    }

    /// The dependency broke off in the middle of a streamed answer.
    pub fn break_off(mut self, failure: Failure) {
        self.settled = true;
        if let Some(Streaming { from, called, began, .. }) = self.streaming {
            let dependency = self.engine.dependency(from);
            dependency.tally.failure(failure.kind);
            dependency.was_late(failure, called);
            if let Some(began) = began {
                dependency.health.broke_off(began, dependency.health.latest());
            }
        }
        self.count(Outcome::Failed, Reason::Cause(Cause::Failed(failure)));
    }

    fn count(&self, outcome: Outcome, reason: Reason) {
        let Some(route) = self.route else { return };
        let tally = &self.engine.route(route).tally;
        tally.record(outcome, self.account.source, reason);
        if let (Some(age), Outcome::Fallback) = (self.account.age, outcome) {
            tally.record_age(age);
        }
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        if !self.settled {
            if let Some(dependency) = self.streaming.map(|streaming| self.engine.dependency(streaming.from)) {
                dependency.tally.abandon();
            }
            let (outcome, reason) = dropped();
            self.count(outcome, reason);
        }
    }
}

/// What a request came to that was dropped unfinished: its own code panicked, or the client left.
pub(super) fn dropped() -> (Outcome, Reason) {
    if std::thread::panicking() {
        (Outcome::Failed, Reason::Unclassified)
    } else {
        (Outcome::Abandoned, Reason::ClientLeft)
    }
}
