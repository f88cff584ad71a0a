//! What leads from one state to the next. A ledger does what is said here and decides nothing itself.
//!
//! | | from → to | who | because |
//! |---|---|---|---|
//! | T1 | nothing → dispatching | the request ([`begin`](super::begin)) | its intent is durable |
//! | T2 | dispatching → not executed | the owner | nothing was sent |
//! | T3 | dispatching → succeeded | whoever has the answer | the upstream's own whole answer |
//! | T4 | dispatching → failed | the owner | the upstream's own refusal, without effect |
//! | T5 | dispatching → unknown | the owner; anyone after its lease ([`lease_ended`]); recovery ([`recover`]) | no answer that decides |
//! | T6 | unknown, attention → succeeded, failed | a claim | the status query says so; not once it is contradicted |
//! | T7 | unknown → unknown | a claim | it says nothing yet, or that the upstream is at work |
//! | T8 | unknown, attention → not executed | a claim | the full rule of [absence](super::absence), and nothing was ever seen |
//! | T9 | unknown → attention | a claim; anyone ([`overdue`]) | the deadline; or what only a person can judge |
//! | T10 | attention → succeeded, failed, not executed | a person ([`resolve`]) | a reason |
//! | T11 | unknown, attention → succeeded | whoever has the answer of the only forward | evidence is not ownership; not once it is contradicted |
//! | T12 | not executed, failed → attention | whoever has such an answer; a [second look](super::second_look()) at what was decided by absence | it contradicts what was decided |
//! | T13 | decided → without content → gone | [`retention`](super::retention) | time |
//!
//! Nothing leads back to dispatching. Whatever else is reported is refused and changes nothing. Every change by an owner raises
//! the fence, so what anyone else still holds is stale from then on.

use crate::time::{Mono, Now};

use super::absence::{Absence, settle_from, weigh};
use super::evidence::Evidence;
use super::id::Epoch;
use super::record::{Identity, Parts, Progress, Record};
use super::report::{Event, Report, Verdict};
use super::schedule::Draw;
use super::state::{Attention, Doubt, NotExecuted, State, words};

words! {
    /// Why something that was reported changes nothing.
    Refused {
        /// Somebody has written since: who reports has been overtaken.
        Stale = "stale",
        /// It is decided already.
        Decided = "decided",
        /// Its owner may still write.
        Leased = "leased",
        /// It is not due, or not in a state in which that can be done.
        NotNow = "not_now",
    }
}

/// What an accepted report comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a change is to be written"]
pub struct Change {
    /// What to write, in place of what was given, if that is still there.
    pub progress: Progress,
    /// What it was in before.
    pub from: State,
}

impl Change {
    /// What it is in now.
    pub const fn to(&self) -> State {
        self.progress.state()
    }

    /// Whether evidence contradicts what was decided: somebody has to be called.
    pub const fn is_contradiction(&self) -> bool {
        self.from.is_decided() && matches!(self.to(), State::Attention(Attention::Contradicted))
    }
}

/// What a report makes of a record.
///
/// # Errors
/// If it changes nothing.
pub fn apply(record: &Record, report: &Report, epoch: Epoch, now: &Now) -> Result<Change, Refused> {
    let parts = *record.progress.parts();
    let step = Step { parts, epoch, now };
    if let Event::Succeeded = report.event() {
        return step.executed();
    }
    let is_second_look = matches!(report.event(), Event::ExecutedLate(_))
        && parts.state == State::NotExecuted(NotExecuted::Absent);
    if parts.state.is_decided() && !is_second_look {
        return Err(Refused::Decided);
    }
    if report.fence() != parts.fence {
        return Err(Refused::Stale);
    }
    match (parts.state, *report.event()) {
        (State::Dispatching, Event::Refused(_)) => Ok(step.decide(State::Failed(Evidence::DIRECT))),
        (State::Dispatching, Event::NeverSent(why)) => Ok(step.decide(State::NotExecuted(why))),
        (State::Dispatching, Event::Lost(doubt, first)) => Ok(step.doubt(doubt, first)),
        (State::NotExecuted(NotExecuted::Absent), Event::ExecutedLate(next)) => Ok(step.executed_late(next)),
        (_, Event::ExecutedLate(_)) => Err(Refused::NotNow),
        (State::Unknown(_) | State::Attention(_), event) => step.asked(event, &record.identity),
        _ => Err(Refused::NotNow),
    }
}

/// The lease of an operation's owner is over, and it did not say what came of it.
///
/// # Errors
/// If it is not under way, or its owner may still write.
pub fn lease_ended(record: &Record, first: Draw, epoch: Epoch, now: &Now) -> Result<Change, Refused> {
    let parts = *record.progress.parts();
    if parts.state != State::Dispatching {
        return Err(Refused::NotNow);
    }
    if record.progress.is_leased(epoch, now.mono) {
        return Err(Refused::Leased);
    }
    let doubt = if parts.epoch == epoch { Doubt::LeaseEnded } else { Doubt::Restarted };
    Ok(Step { parts, epoch, now }.doubt(doubt, first))
}

/// The time for verification is over, whether or not anybody asked.
///
/// # Errors
/// If it is not unknown, or its time is not over, or somebody is asking just now.
pub fn overdue(record: &Record, next: Draw, epoch: Epoch, now: &Now) -> Result<Change, Refused> {
    let parts = *record.progress.parts();
    if !matches!(parts.state, State::Unknown(_)) || now.wall < parts.verify_until {
        return Err(Refused::NotNow);
    }
    if record.progress.is_leased(epoch, now.mono) {
        return Err(Refused::Leased);
    }
    let step = Step { parts, epoch, now };
    Ok(step.open(State::Attention(step.late()), next.attention()))
}

/// A client asked about it, so its status is asked for sooner: at once, or a second after it was asked for last. `None` if
/// that is no sooner.
pub fn wake(record: &Record, epoch: Epoch, now: &Now) -> Option<Progress> {
    let parts = *record.progress.parts();
    let soon = now.mono.max(parts.asked_at.after(super::WAKE_PAUSE));
    let helps = matches!(parts.state, State::Unknown(_)) && parts.due.is_some_and(|due| soon < due);
    (helps && !record.progress.is_leased(epoch, now.mono))
        .then_some(Progress(Parts { due: Some(soon), ..parts }))
}

/// A person decides what no machine can (T10).
///
/// # Errors
/// If it does not need a person.
pub fn resolve(record: &Record, decision: Decision, epoch: Epoch, now: &Now) -> Result<Change, Refused> {
    let parts = *record.progress.parts();
    match parts.state {
        State::Attention(_) => {}
        state if state.is_decided() => return Err(Refused::Decided),
        _ => return Err(Refused::NotNow),
    }
    let to = match decision {
        Decision::Succeeded => State::Succeeded(Evidence::PERSON),
        Decision::Failed => State::Failed(Evidence::PERSON),
        Decision::NotExecuted => State::NotExecuted(NotExecuted::Person),
    };
    Ok(Step { parts, epoch, now }.decide(to))
}

words! {
    /// What a person may decide.
    Decision {
        /// It was executed.
        Succeeded = "succeeded",
        /// It was refused or declined, without effect.
        Failed = "failed",
        /// It was not executed.
        NotExecuted = "not_executed",
    }
}

/// What an embedded ledger makes of a record of an earlier life of it when it is opened; `None` if it stays as it is. An
/// operation that was under way is unknown now: whether it was sent cannot be told. Status queries are spread over
/// [`RECOVERY_SPREAD`](super::RECOVERY_SPREAD), and whatever time an absence had to outlast begins anew.
pub fn recover(record: &Record, entropy: u64, epoch: Epoch, now: &Now) -> Option<Change> {
    let parts = *record.progress.parts();
    if parts.state.is_decided() || parts.epoch == epoch {
        return None;
    }
    let state = match parts.state {
        State::Dispatching => State::Unknown(Doubt::Restarted),
        state => state,
    };
    let step = Step { parts, epoch, now };
    let parts =
        Parts { asked: 0, asked_at: now.mono, absences: 0, settle_from: now.mono, born: now.mono, ..parts };
    let wait = crate::entropy::spread(super::RECOVERY_SPREAD, entropy);
    Some(Step { parts, ..step }.open(state, wait))
}

/// One change of one record.
#[derive(Clone, Copy)]
struct Step<'a> {
    parts: Parts,
    epoch: Epoch,
    now: &'a Now,
}

impl Step<'_> {
    fn change(&self, parts: Parts) -> Change {
        let from = self.parts.state;
        let changed = if from == parts.state { self.parts.changed } else { self.now.wall };
        let progress =
            Progress(Parts { fence: self.parts.fence.next(), epoch: self.epoch, changed, ..parts });
        Change { progress, from }
    }

    fn decide(&self, state: State) -> Change {
        self.change(Parts { state, lease_until: None, due: None, ..self.parts })
    }

    fn open(&self, state: State, wait: std::time::Duration) -> Change {
        let due = Some(self.now.mono.after(wait));
        self.change(Parts { state, lease_until: None, due, ..self.parts })
    }

    fn doubt(&self, doubt: Doubt, first: Draw) -> Change {
        let settle_from = settle_from(&self.parts, self.epoch, self.now.mono);
        // The clock of another life says nothing about this one.
        let born = if self.parts.epoch == self.epoch { self.parts.born } else { self.now.mono };
        let parts = Parts { settle_from, born, asked: 0, asked_at: self.now.mono, absences: 0, ..self.parts };
        Step { parts, ..*self }.open(State::Unknown(doubt), first.unknown(0))
    }

    /// The upstream's own answer to the only forward: it was executed, whoever owns the record by now.
    fn executed(&self) -> Result<Change, Refused> {
        match self.parts.state {
            // A person has been called because of such evidence, and is to see this too.
            State::Attention(Attention::Contradicted) => Ok(self.again(self.parts, Draw::A_LONG_WAIT)),
            State::Dispatching | State::Unknown(_) | State::Attention(_) => {
                Ok(self.decide(State::Succeeded(Evidence::DIRECT)))
            }
            State::Failed(_) | State::NotExecuted(_) => {
                Ok(self.open(State::Attention(Attention::Contradicted), std::time::Duration::ZERO))
            }
            State::Succeeded(_) => Err(Refused::Decided),
        }
    }

    /// The upstream knows an operation that was decided by its absence. It has just been asked, so the next query has time.
    fn executed_late(&self, next: Draw) -> Change {
        let step = Step { parts: self.heard(0, false), ..*self };
        step.open(State::Attention(Attention::Contradicted), next.attention())
    }

    /// What whoever claimed it has to say.
    fn asked(&self, event: Event, identity: &Identity) -> Result<Change, Refused> {
        if self.parts.lease_until.is_none() {
            return Err(Refused::NotNow);
        }
        if self.parts.state == State::Attention(Attention::Contradicted) {
            return self.contradicted(event);
        }
        match event {
            Event::Found(Verdict::Succeeded, _) => Ok(self.decide(State::Succeeded(Evidence::STATUS))),
            Event::Found(Verdict::Failed, _) => Ok(self.decide(State::Failed(Evidence::STATUS))),
            Event::Pending(next) => Ok(self.pending(next)),
            Event::Inconclusive(next) => Ok(self.again(self.heard(0, false), next)),
            Event::Absent { asked, may_count, rule, next } => {
                let weighed = rule
                    .filter(|_| may_count)
                    .map_or(Absence::Nothing, |rule| weigh(&rule, &self.parts, identity, asked, self.now));
                Ok(self.absent(weighed, asked, next))
            }
            Event::Strange(why, next) => Ok(self.strange(why, next)),
            Event::PutBack(next) => Ok(self.again(self.parts, next)),
            Event::Succeeded
            | Event::Refused(_)
            | Event::Lost(..)
            | Event::NeverSent(_)
            | Event::ExecutedLate(_) => Err(Refused::Stale),
        }
    }

    /// A client may have heard that it has no effect, and the upstream said that it has one. Whatever else it says now, that is a
    /// person's to settle.
    fn contradicted(&self, event: Event) -> Result<Change, Refused> {
        match event {
            Event::Found(_, next)
            | Event::Pending(next)
            | Event::Inconclusive(next)
            | Event::Absent { next, .. }
            | Event::Strange(_, next) => Ok(self.again(self.heard(0, false), next)),
            Event::PutBack(next) => Ok(self.again(self.parts, next)),
            Event::Succeeded
            | Event::Refused(_)
            | Event::Lost(..)
            | Event::NeverSent(_)
            | Event::ExecutedLate(_) => Err(Refused::Stale),
        }
    }

    /// The upstream has it under its name: that is remembered, because an absence proves nothing any more.
    fn pending(&self, next: Draw) -> Change {
        let heard = Step { parts: self.heard(0, false), ..*self };
        match self.parts.state {
            State::Unknown(_) if self.now.wall < self.parts.verify_until => {
                heard.open(State::Unknown(Doubt::Pending), next.unknown(heard.parts.asked))
            }
            State::Attention(why) if why.was_seen() => heard.open(self.parts.state, next.attention()),
            _ => heard.open(State::Attention(Attention::Pending), next.attention()),
        }
    }

    /// What only a person can judge. What was seen under its name is not forgotten for a reason that saw nothing.
    fn strange(&self, why: Attention, next: Draw) -> Change {
        let state = match self.parts.state {
            State::Attention(before) if before.was_seen() && !why.was_seen() => State::Attention(before),
            State::Unknown(Doubt::Pending) if !why.was_seen() => State::Attention(Attention::Pending),
            _ => State::Attention(why),
        };
        self.open(state, next.attention())
    }

    fn absent(&self, weighed: Absence, asked: Mono, next: Draw) -> Change {
        match weighed {
            Absence::Proven if self.may_be_absent() => self.decide(State::NotExecuted(NotExecuted::Absent)),
            Absence::Counted(absences) => {
                self.again(Parts { absent_at: asked, ..self.heard(absences, true) }, next)
            }
            Absence::TooClose => self.again(self.heard(self.parts.absences, true), next),
            Absence::Nothing | Absence::Proven => self.again(self.heard(0, true), next),
        }
    }

    /// Whether an absence may decide it: not after anything was seen under its name.
    fn may_be_absent(&self) -> bool {
        match self.parts.state {
            State::Unknown(doubt) => doubt != Doubt::Pending,
            State::Attention(why) => !why.was_seen(),
            _ => false,
        }
    }

    /// The parts after an answer to a status query.
    fn heard(&self, absences: u32, was_absent: bool) -> Parts {
        let asked = self.parts.asked.saturating_add(1);
        Parts { asked, asked_at: self.now.mono, absences, was_absent, ..self.parts }
    }

    /// It stays open, and is asked for again; or its time is over.
    fn again(&self, parts: Parts, next: Draw) -> Change {
        let step = Step { parts, ..*self };
        match parts.state {
            State::Unknown(_) if self.now.wall >= parts.verify_until => {
                step.open(State::Attention(step.late()), next.attention())
            }
            State::Unknown(_) => step.open(parts.state, next.unknown(parts.asked)),
            _ => step.open(parts.state, next.attention()),
        }
    }

    /// Why it needs a person once its time is over.
    fn late(&self) -> Attention {
        match self.parts.state {
            State::Unknown(Doubt::Pending) => Attention::Pending,
            _ if self.parts.was_absent => Attention::Absent,
            _ => Attention::Deadline,
        }
    }
}
