//! Operations: the ledger is told before the dependency, and told again before the client.
//!
//! ```text
//! Place --- refused ------------> Consult --- known -------------------> Done: what the ledger says
//!   |                                \------- not known ---------------> Done: refused; nothing was begun
//! Attempt: written down, then forwarded, once
//!   |--- the key was used before ---------------------------------------> Done: what the ledger says
//!   |--- could not be written down -------------------------------------> Done: 503; nothing was sent
//!   |
//! Head, Collect; failed; not begun after all
//!   |
//! Record: what came of it is durable before anybody hears it
//!   v
//! Done: the answer; unknown; not executed
//! ```
//!
//! - Nothing is asked twice: no retry, nobody who stands in, no alternative but what the ledger knows.
//! - Whoever comes with the same key while the dependency cannot be asked still hears what is known. That costs no place at it.
//! - The call of a key that was used before is none: the breaker learns nothing from it.
//! - What an answer proves is the contract's, not the status's. Whether the call counts as a failure of the dependency is decided
//!   as everywhere else.

use std::time::Duration;

use crate::failure::{Cause, Failure, FailureKind, NotAsked, Sent};
use crate::operation::{Attention, Doubt, EvidenceKind, NotExecuted, Told};
use crate::outcome::{OperationReason, Outcome, Reason, Source};
use crate::policy::effect::UnknownAnswer;
use crate::status::{Asks, operation};
use crate::time::Mono;

use super::answer::{account, collected, is_well, pays};
use super::{Account, Answer, AttemptId, BodyFacts, CopyAction, Flow, HeadFacts, Note, Reply, Role, State};

/// What came of the one forward, to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// A whole answer: what it proves is the contract's.
    Answered(AttemptId),
    /// No answer that could prove anything.
    Unknown(Doubt),
    /// Not one byte was sent.
    NeverSent(NotExecuted),
}

/// What the ledger says of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What its client hears.
    pub telling: Telling,
    /// Until its status is asked for next, if it is really being followed.
    pub next_query: Option<Duration>,
}

/// What the ledger has for an operation, where it alone is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consulted {
    /// This.
    Known(Known),
    /// Nothing.
    Nothing,
    /// It could not be read, or not in time. That is no word about the operation.
    Unreadable,
}

/// What a client hears of its operation, without the answer itself. As [`Told`], for as long as a flow lives, and of a request whose
/// key belongs to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It is under way.
    InProgress,
    /// It is not known what came of it.
    Unknown(Doubt),
    /// The dependency's own answer, with this status.
    Answered(u16),
    /// It was executed.
    Executed(EvidenceKind),
    /// It was declined, without effect.
    Declined(EvidenceKind),
    /// It was not executed.
    NotExecuted(NotExecuted),
    /// A person has to look at it.
    NeedsAttention(Attention),
    /// The key was used for another request.
    OtherRequest,
}

impl From<Told<'_>> for Telling {
    fn from(told: Told<'_>) -> Self {
        match told {
            Told::InProgress => Telling::InProgress,
            Told::Unknown(doubt) => Telling::Unknown(doubt),
            Told::Replay(answer) => Telling::Answered(answer.status),
            Told::StatusOnly(status) => Telling::Answered(status),
            Told::Executed(evidence) => Telling::Executed(evidence),
            Told::Declined(evidence) => Telling::Declined(evidence),
            Told::NotExecuted(why) => Telling::NotExecuted(why),
            Told::NeedsAttention(why) => Telling::NeedsAttention(why),
        }
    }
}

/// What came of writing down what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing was begun, so there is nothing to write down.
    Nothing,
    /// It is durable, and this is what it says now.
    Durable(Known),
    /// It is not durable in time. This is what it was to say.
    NotDurable(Telling),
}

/// An answer of the dependency that waits until it is written down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    attempt: AttemptId,
    head: HeadFacts,
}

impl Came {
    fn of(cause: Cause) -> Self {
        match cause {
            Cause::NotAsked(NotAsked::TooLate) => Came::NeverSent(NotExecuted::TooLate),
            Cause::NotAsked(_) => Came::NeverSent(NotExecuted::Pool),
            Cause::Failed(Failure { kind, sent: Sent::No, .. }) => Came::NeverSent(match kind {
                FailureKind::Dns => NotExecuted::Dns,
                FailureKind::Tls => NotExecuted::Tls,
                FailureKind::ConnectTimeout => NotExecuted::ConnectTimeout,
                _ => NotExecuted::Connect,
            }),
            Cause::Failed(Failure { kind, .. }) => Came::Unknown(match kind {
                FailureKind::ReadTimeout => Doubt::Timeout,
                FailureKind::Incomplete | FailureKind::Protocol => Doubt::Incomplete,
                FailureKind::Unavailable { .. } | FailureKind::Declared { .. } => Doubt::ServerError,
                // Without a connection nothing can have been sent; should it be said all the same, it is not believed.
                FailureKind::Dns
                | FailureKind::Connect
                | FailureKind::ConnectTimeout
                | FailureKind::Tls
                | FailureKind::Write
                | FailureKind::Reset => Doubt::Reset,
            }),
        }
    }
}

impl Flow {
    /// Whether the request is one that the ledger has to know of.
    pub(super) fn is_operation(&self) -> bool {
        self.role == Role::Request && !self.facts.is_open && self.route().rules.class.effect().is_some()
    }

    /// There is no answer of the dependency.
    pub(super) fn operation_without_answer(&mut self, cause: Cause) -> State {
        if self.tries == 0 {
            return State::Consult { cause: Some(cause) };
        }
        if cause == Cause::NotAsked(NotAsked::Ledger) {
            let rule = self.route().rules.origins.route;
            return State::Answer(self.refuse(Reason::Cause(cause), Some(cause), rule));
        }
        State::AwaitRecorded { came: Came::of(cause), answer: None, cause: Some(cause) }
    }

    /// The head of the dependency's answer.
    pub(super) fn operation_head(&mut self, attempt: AttemptId, head: HeadFacts, now: Mono) -> State {
        if let Some(failure) = Failure::of_status(head.status, &self.route().rules) {
            self.count_failure(failure, Some(head), now);
            if head.status >= 500 && !self.may_be_refused(head.status) {
                let cause = Some(Cause::Failed(failure));
                return State::AwaitRecorded { came: Came::Unknown(Doubt::ServerError), answer: None, cause };
            }
        }
        if head.has_body {
            return State::Collect { attempt, head };
        }
        self.operation_answered(attempt, head, now)
    }

    /// The content of the dependency's answer.
    pub(super) fn operation_body(
        &mut self,
        attempt: AttemptId,
        head: HeadFacts,
        body: BodyFacts,
        now: Mono,
    ) -> State {
        match body {
            BodyFacts::Broken => {
                let failure = Failure::of_broken_body();
                if Failure::of_status(head.status, &self.route().rules).is_none() {
                    self.count_failure(failure, None, now);
                }
                let came = Came::Unknown(doubt_of(head.status, Doubt::Incomplete));
                State::AwaitRecorded { came, answer: None, cause: Some(Cause::Failed(failure)) }
            }
            // What is not here whole proves nothing; and it may break off yet.
            BodyFacts::TooLarge => {
                let failure = Failure::of_status(head.status, &self.route().rules);
                if failure.is_none() {
                    self.dependency().tally.answer();
                    self.ended(false, false, now);
                }
                let came = Came::Unknown(doubt_of(head.status, Doubt::Unmatched));
                let cause = failure.filter(|_| head.status >= 500).map(Cause::Failed);
                State::AwaitRecorded { came, answer: None, cause }
            }
            BodyFacts::Whole { .. } => self.operation_answered(attempt, head, now),
        }
    }

    fn operation_answered(&mut self, attempt: AttemptId, head: HeadFacts, now: Mono) -> State {
        let failure = Failure::of_status(head.status, &self.route().rules);
        if failure.is_none() {
            self.dependency().tally.answer();
            self.ended(is_well(head.status), pays(head.status), now);
        }
        if head.degraded.is_some() {
            // Another gateway's alternative is not the service's own answer.
            return State::AwaitRecorded { came: Came::Unknown(Doubt::Unmatched), answer: None, cause: None };
        }
        let answer = Some(Waiting { attempt, head });
        let cause = failure.filter(|_| head.status >= 500).map(Cause::Failed);
        State::AwaitRecorded { came: Came::Answered(attempt), answer, cause }
    }

    /// Whether the contract may say of an answer with this status that it is a refusal.
    fn may_be_refused(&self, status: u16) -> bool {
        let rules = self.route().rules.class.effect();
        rules.is_some_and(|rules| rules.outcome.refused.iter().any(|rule| rule.status.contains(status)))
    }

    /// The key was used before: the call is none.
    pub(super) fn again(&mut self, known: Known) -> State {
        if let Some(ticket) = self.ticket.take() {
            ticket.unused();
        }
        self.trace.note(self.seen, self.route().rules.origins.route, Note::Again(known.telling));
        State::Answer(self.told(known, true, None, None))
    }

    /// What the ledger has, where the dependency was not asked.
    pub(super) fn consulted(&mut self, consulted: Consulted) {
        let State::Consult { cause } = self.state else { return };
        let rule = self.route().rules.origins.route;
        self.trace.note(self.seen, rule, Note::Consulted(consulted));
        self.state = State::Answer(match (consulted, cause) {
            (Consulted::Known(known), _) => self.told(known, true, cause, None),
            (Consulted::Nothing | Consulted::Unreadable, Some(cause)) => {
                self.refuse(Reason::Cause(cause), Some(cause), rule)
            }
            (Consulted::Nothing, None) => {
                self.refuse(Reason::Operation(OperationReason::NoSuchOperation), None, rule)
            }
            // Who hears that there is none begins anew.
            (Consulted::Unreadable, None) => {
                self.refuse(Reason::Operation(OperationReason::LedgerUnreadable), None, rule)
            }
        });
    }

    /// What came of it was written down, or was not in time.
    pub(super) fn recorded(&mut self, recorded: Recorded) {
        let State::AwaitRecorded { came, answer, cause } = self.state else { return };
        self.trace.note(self.seen, self.route().rules.origins.route, Note::Recorded(came, recorded));
        let known = match recorded {
            Recorded::Durable(known) => Some(known),
            Recorded::NotDurable(telling) => Some(Known { telling, next_query: None }),
            Recorded::Nothing => None,
        };
        // The ledger did not take the intent in time: whatever else was waited for, the dependency was not.
        let cause = match (recorded, cause) {
            (Recorded::Nothing, Some(Cause::NotAsked(_))) => Some(Cause::NotAsked(NotAsked::Ledger)),
            (_, cause) => cause,
        };
        self.state = State::Answer(match (known, answer) {
            (Some(Known { telling: Telling::Answered(_), .. }), Some(waiting)) => self.passed_on(waiting),
            (known, waiting) => {
                let received = waiting.map(|waiting| waiting.head.status);
                match known {
                    Some(known) => self.told(known, false, cause, received),
                    None => {
                        let reason = cause.map_or(Reason::Unclassified, Reason::Cause);
                        self.refuse(reason, cause, self.route().rules.origins.route)
                    }
                }
            }
        });
    }

    fn passed_on(&self, waiting: Waiting) -> Answer {
        let Waiting { attempt, head } = waiting;
        if !head.has_body {
            // Its head is all of it, and nothing was collected.
            return self.as_it_is(attempt, head, None);
        }
        collected(attempt, self.account_of(head), self.copy_after(head))
    }

    /// What the ledger says, as an answer. `again`: to somebody who comes with the key of an earlier request. `received`: the
    /// status of an answer that proved nothing.
    fn told(&self, known: Known, again: bool, cause: Option<Cause>, received: Option<u16>) -> Answer {
        let Known { telling, next_query } = known;
        let accepts = self.facts.accepts_later
            || self
                .route()
                .rules
                .class
                .effect()
                .is_some_and(|rules| rules.unknown_answer == UnknownAnswer::Accepted);
        let is_accepted = !again && accepts && next_query.is_some();
        let looks = self.facts.looks;
        let asks = Asks { again, looks, is_accepted };
        let reply = operation(telling, asks, cause, received, next_query);
        let (outcome, source, reason) = match telling {
            Telling::Answered(_) | Telling::Executed(_) | Telling::Declined(_) => {
                (Outcome::Normal, Source::Ledger, Reason::None)
            }
            // Whoever looks wants to know no more than that.
            _ if looks => (Outcome::Normal, Source::Ledger, Reason::None),
            _ => {
                let reason = match cause {
                    Some(cause) if !again => Reason::Cause(cause),
                    _ => Reason::Operation(OperationReason::of(telling)),
                };
                match telling {
                    Telling::Unknown(_) if is_accepted => (Outcome::Fallback, Source::Ledger, reason),
                    Telling::Unknown(_) if !again => (Outcome::Failed, Source::None, reason),
                    _ if again => (Outcome::Rejected, Source::Ledger, reason),
                    _ => (Outcome::Rejected, Source::None, reason),
                }
            }
        };
        let has_changed_nothing = again || matches!(telling, Telling::NotExecuted(_));
        let copy = if has_changed_nothing { CopyAction::Keep } else { self.copy_if_unknown() };
        let rule = self.route().rules.origins.route;
        let account = Account { cause: cause.filter(|_| !again), ..account(outcome, source, reason, rule) };
        Answer { reply: Reply::Operation(reply), copy, account, streams: None }
    }
}

/// Why nothing is known after an answer with this status that is not whole.
const fn doubt_of(status: u16, otherwise: Doubt) -> Doubt {
    if status >= 500 { Doubt::ServerError } else { otherwise }
}

impl OperationReason {
    const fn of(telling: Telling) -> Self {
        match telling {
            Telling::InProgress => OperationReason::InProgress,
            Telling::NotExecuted(_) => OperationReason::NotExecuted,
            Telling::NeedsAttention(_) => OperationReason::NeedsAttention,
            Telling::OtherRequest => OperationReason::KeyReused,
            Telling::Unknown(_) | Telling::Answered(_) | Telling::Executed(_) | Telling::Declined(_) => {
                OperationReason::Unknown
            }
        }
    }
}
