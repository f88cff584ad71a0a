use std::time::Duration;

use backstop_engine::admission::NoPlace;
use backstop_engine::engine::Engine;
use backstop_engine::failure::{Cause, Failure, NotAsked};
use backstop_engine::flow::{
    Authorization, BodyFacts, Brought, Came, Consulted, CopyAction, Note, Recorded, Telling, TraceEntry,
};
use backstop_engine::outcome::{OperationReason, Reason, Scope};
use backstop_engine::policy::{DependencyId, Origin};
use backstop_engine::snapshot::CopyRefusal;
use backstop_engine::time::Mono;

/// One step of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, since the request began.
    pub at: Duration,
    /// What, as one word.
    pub name: &'static str,
    /// The particulars, each under a name.
    pub told: Vec<(&'static str, Told)>,
    /// The rule that decided it.
    pub rule: Origin,
    /// Who is asked from here on.
    pub(super) dependency: Option<DependencyId>,
    /// Whether it is about the call under way.
    pub(super) is_of_a_call: bool,
}

/// A particular of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// One word: a token (RFC 9651 section 3.3.4).
    Word(Box<str>),
    /// A number.
    Number(u64),
    /// How old something is.
    Age(Duration),
    /// A moment, since the request began.
    At(Duration),
}

impl Step {
    /// The step that a trace's entry is, of a request that began at this moment.
    pub(super) fn of(entry: &TraceEntry, engine: &Engine, begun: Mono) -> Self {
        let dependency = match entry.note {
            Note::Called { dependency, .. } | Note::Alternative(dependency) => Some(dependency),
            _ => None,
        };
        let is_of_a_call = matches!(
            entry.note,
            Note::Called { .. } | Note::Answered(_) | Note::Failed(_) | Note::NotAsked(_)
        );
        let (name, told) = words(&entry.note, engine, begun);
        Self { at: begun.until(entry.at), name, told, rule: entry.rule, dependency, is_of_a_call }
    }

    /// A particular, by its name.
    pub fn get(&self, name: &str) -> Option<&Told> {
        self.told.iter().find(|(known, _)| *known == name).map(|(_, told)| told)
    }
}

type Particulars = Vec<(&'static str, Told)>;

fn word(text: &str) -> Told {
    Told::Word(text.into())
}

fn number(number: impl Into<u64>) -> Told {
    Told::Number(number.into())
}

fn words(note: &Note, engine: &Engine, begun: Mono) -> (&'static str, Particulars) {
    let at = |moment: Mono| Told::At(begun.until(moment));
    let dependency = |id: DependencyId| ("dependency", word(&engine.dependency(id).rules.name));
    match *note {
        Note::Admitted => ("admitted", vec![]),
        Note::Refused(scope) => ("refused", vec![("limit", word(limit(scope)))]),
        Note::Authorization(came) => ("authorizer", authorization(came)),
        Note::FallbackLane => ("fallback_lane", vec![]),
        Note::Peeked(copy) => ("copy_known", verdict(copy)),
        Note::Copy(copy) => ("copy", verdict(copy)),
        Note::NoPlace(why) => ("no_place", vec![("because", word(no_place(why)))]),
        Note::Cached(copy) => ("cache", verdict(copy)),
        Note::CacheSilent => ("cache_silent", vec![]),
        Note::CacheNotAsked(why) => ("cache_not_asked", vec![("because", word(not_asked(why)))]),
        Note::Joined => ("joined", vec![]),
        Note::Brought(brought) => ("brought", vec![("is", word(what_it_brought(brought)))]),
        Note::Waiting(until) => ("waiting", vec![("until", at(until))]),
        Note::Called { attempt, dependency: id, until } => {
            ("called", vec![dependency(id), ("attempt", number(attempt.0)), ("until", at(until))])
        }
        Note::Retry(due) => ("retry", vec![("due", at(due))]),
        Note::NoRetry(why) => ("no_retry", vec![("because", word(why.token()))]),
        Note::Alternative(id) => ("alternative", vec![dependency(id)]),
        Note::NoAlternative(why) => ("no_alternative", vec![("because", word(why.token()))]),
        Note::Answered(status) => ("answered", vec![("status", number(status))]),
        Note::Body(body) => ("body", vec![("is", word(what_it_is(body)))]),
        Note::Failed(failure) => ("failed", failed(failure)),
        Note::NotAsked(why) => ("not_asked", vec![("because", word(not_asked(why)))]),
        Note::Consulted(consulted) => ("ledger", vec![("has", word(has(consulted)))]),
        Note::Again(telling) => ("key_known", vec![("is", word(told(telling)))]),
        Note::Recorded(came, recorded) => ("recorded", written(came, recorded)),
        Note::Parts(until) => ("parts", vec![("until", at(until))]),
        Note::Part(index, status, outcome) => {
            let index = u64::try_from(index).unwrap_or(u64::MAX);
            let outcome = ("outcome", word(outcome.token()));
            ("part", vec![("number", Told::Number(index)), ("status", number(status)), outcome])
        }
        Note::PartsTimeUp => ("parts_time_up", vec![]),
        Note::Kept(action) => ("copy_kept", vec![("is", word(becomes(action)))]),
        Note::Decided(outcome, source, reason) => {
            let outcome = ("outcome", word(outcome.token()));
            ("decided", vec![outcome, ("source", word(source.token())), ("reason", word(reason.token()))])
        }
    }
}

const fn limit(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "process",
        Scope::ProcessShare => "process_share",
        Scope::Route => "route",
        Scope::FallbackLane => "fallback_lane",
    }
}

fn authorization(came: Authorization) -> Particulars {
    let is = |text: &str| ("is", word(text));
    match came {
        Authorization::Allowed => vec![is("allowed")],
        Authorization::Denied => vec![is("denied")],
        Authorization::Unclear => vec![is("unclear")],
        Authorization::Failed(failure) => {
            vec![is("failed"), ("cause", word(Cause::Failed(failure).token()))]
        }
        Authorization::NotAsked(why) => vec![is("not_asked"), ("cause", word(not_asked(why)))],
    }
}

fn verdict(copy: Result<Duration, CopyRefusal>) -> Particulars {
    match copy {
        Ok(age) => vec![("age", Told::Age(age))],
        Err(why) => vec![("unusable", word(unusable(why)))],
    }
}

const fn unusable(why: CopyRefusal) -> &'static str {
    match why {
        CopyRefusal::Missing => "missing",
        CopyRefusal::TooOld => "age",
        CopyRefusal::FromFuture => "future",
        CopyRefusal::ForbiddenByOrigin => "forbidden",
        CopyRefusal::ClockUntrusted => "clock",
        CopyRefusal::Unreadable => "unreadable",
    }
}

const fn no_place(why: NoPlace) -> &'static str {
    why.token()
}

fn not_asked(why: NotAsked) -> &'static str {
    Cause::NotAsked(why).token()
}

fn what_it_brought(brought: Brought) -> &'static str {
    match brought {
        Brought::Answer => "answer",
        Brought::Nothing(cause) => cause.token(),
        Brought::Apart => "apart",
        Brought::Full => "full",
    }
}

const fn what_it_is(body: BodyFacts) -> &'static str {
    match body {
        BodyFacts::Whole { correct: false, .. } => "incorrect",
        BodyFacts::Whole { correct: true, .. } => "whole",
        BodyFacts::Broken => "broken",
        BodyFacts::TooLarge => "too_large",
    }
}

fn failed(failure: Failure) -> Particulars {
    let mut told = vec![("cause", word(Cause::Failed(failure).token()))];
    if let Some(status) = failure.kind.status() {
        told.push(("status", number(status)));
    }
    told
}

fn has(consulted: Consulted) -> &'static str {
    match consulted {
        Consulted::Known(known) => self::told(known.telling),
        Consulted::Nothing => "nothing",
        Consulted::Unreadable => "unreadable",
    }
}

fn told(telling: Telling) -> &'static str {
    let reason = |reason| Reason::Operation(reason).token();
    match telling {
        Telling::InProgress => reason(OperationReason::InProgress),
        Telling::Unknown(_) => reason(OperationReason::Unknown),
        Telling::Answered(_) => "answered",
        Telling::Executed(_) => "executed",
        Telling::Declined(_) => "declined",
        Telling::NotExecuted(_) => reason(OperationReason::NotExecuted),
        Telling::NeedsAttention(_) => reason(OperationReason::NeedsAttention),
        Telling::OtherRequest => reason(OperationReason::KeyReused),
    }
}

fn written(came: Came, recorded: Recorded) -> Particulars {
    let came = match came {
        Came::Answered(_) => "answered",
        Came::Unknown(_) => "unknown",
        Came::NeverSent(_) => "never_sent",
    };
    let (is, durable) = match recorded {
        Recorded::Nothing => ("nothing", 0_u8),
        Recorded::Durable(known) => (told(known.telling), 1),
        Recorded::NotDurable(telling) => (told(telling), 0),
    };
    vec![("came", word(came)), ("is", word(is)), ("durable", number(durable))]
}

const fn becomes(action: CopyAction) -> &'static str {
    match action {
        CopyAction::Keep => "unchanged",
        CopyAction::Store => "stored",
        CopyAction::Renew => "renewed",
        CopyAction::Withdraw => "withdrawn",
        CopyAction::WithdrawUnsettled => "withdrawn_for_a_while",
    }
}
