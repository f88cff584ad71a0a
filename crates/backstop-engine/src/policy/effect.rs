//! Rules of operations that have an effect and whose answer may be lost: payments, orders.
//!
//! An operation is told by its route, its scope and the client's key. It is forwarded at most once, whatever happens, and
//! nothing is ever sent again: what is not known is found out by asking, or by a person. These are the rules by which an
//! answer counts as one outcome or another, by which a status is asked for, and for how long what is kept. They are plain
//! data and hold no state.
//!
//! JSON Pointers are those of RFC 6901; header names are in lower case.

use std::time::Duration;

use super::{Origin, StatusSet};
use crate::health::PerMille;

/// For so long after the route's deadline the owner of an operation may still write its outcome. Then any process takes it
/// for unknown and asks for its status.
pub const LEASE_GRACE: Duration = Duration::from_secs(5);

/// The largest answer of an operation whose body is stored, in bytes, after redaction. Of a larger one the status is.
pub const STORED_BODY_BYTES: u64 = 16 << 10;

/// The rules of one route whose requests have effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRules {
    /// Where the client's key is read from: 1 to 255 visible ASCII characters.
    pub key: KeySource,
    /// How the upstream is told which operation it is.
    pub send: SendRules,
    /// Among whom keys are told apart. Nothing of one scope is ever shown to another.
    pub scope: Scope,
    /// What the direct answer to the one forward proves.
    pub outcome: OutcomeRules,
    /// How an unknown outcome is found out; without it, only by a person.
    pub verification: Option<VerificationRules>,
    /// What the client gets while the outcome is unknown.
    pub unknown_answer: UnknownAnswer,
    /// What makes two requests with the same key the same request.
    pub fingerprint: Fingerprint,
    /// What is kept of the answer's body.
    pub stored_body: StoredBody,
    /// Largest request body, in bytes, held whole before anything is decided: from 1 to 16 MiB.
    pub body_bytes: u64,
    /// How long what is kept.
    pub retention: RetentionRules,
    /// Where the route was written.
    pub origin: Origin,
}

impl EffectRules {
    /// For how long after its start an operation belongs to the process that began it, if the route has this deadline.
    pub const fn lease(deadline: Duration) -> Duration {
        deadline.saturating_add(LEASE_GRACE)
    }
}

/// Where the client's key is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A request header, bare or as a Structured Fields string.
    Header(Box<str>),
    /// A string of the request's JSON body, by JSON Pointer.
    Body(Box<str>),
}

/// How the upstream is told which operation it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRules {
    /// The request header that is set to the operation's key.
    pub header: Box<str>,
    /// What stands in it.
    pub form: KeyForm,
}

/// What the upstream gets as an operation's key. The status query asks by the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// The client's key, byte for byte.
    #[default]
    Client,
    /// A keyed hash of route, scope and client key: never the same for two scopes, always the same for one operation.
    Derived,
}

/// Among whom keys are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The caller that the route's authorizer verified.
    Principal,
    /// A request header that trusted proxies set; from anyone else it does not count, and a request without it is refused.
    Header(Box<str>),
    /// Everybody who may call the route.
    Route,
}

/// What the direct answer proves. No answer matches rules of two kinds; one that matches none leaves the outcome unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeRules {
    /// The effect happened.
    pub succeeded: Vec<AnswerRule>,
    /// It is under way: unknown until its status says more.
    pub pending: Vec<AnswerRule>,
    /// The upstream refused and there was no effect.
    pub refused: Vec<AnswerRule>,
}

/// One kind of answer: any of these statuses, and every one of these members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRule {
    /// Its status is one of these.
    pub status: StatusSet,
    /// Each JSON Pointer leads to one of its values. If any is given, only a complete body that is one JSON value matches.
    pub json: Vec<(Box<str>, Vec<Literal>)>,
    /// Where it was written.
    pub origin: Origin,
}

impl AnswerRule {
    /// Whether the answer's body has to be read.
    pub const fn reads_body(&self) -> bool {
        !self.json.is_empty()
    }
}

/// A value in a JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// A string.
    Text(Box<str>),
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number, written without fraction and exponent.
    Integer(i64),
}

/// How an unknown outcome is found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerificationRules {
    /// What is asked.
    pub query: StatusQueryRules,
    /// When it is asked.
    pub schedule: ScheduleRules,
    /// What it means that the upstream does not know the operation; without rules it only means to ask again.
    pub absence: Option<AbsenceRules>,
    /// For how long the upstream knows an operation. What it does not know after that says nothing.
    pub upstream_retention: Duration,
}

/// A GET by which the upstream is asked for an operation. No answer matches rules of two kinds; one that matches none,
/// every failure and every timeout say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusQueryRules {
    /// Path and query before the operation's key.
    pub before_key: Box<str>,
    /// Path and query after it.
    pub after_key: Box<str>,
    /// How long one query may take.
    pub timeout: Duration,
    /// The least time between the beginnings of two queries of the route.
    pub interval: Duration,
    /// Queries of the route under way at once, from 1.
    pub concurrency: u32,
    /// Where the answer is a list: how the operation is found in it. Then all that is said of an answer but `absent` is said of
    /// its item.
    pub list: Option<ListRules>,
    /// JSON Pointers whose value must equal what the operation has there; another value is a contradiction.
    pub echo: Vec<(Box<str>, EchoSource)>,
    /// The effect happened, whatever became of it later.
    pub succeeded: Vec<AnswerRule>,
    /// It did not and never will.
    pub failed: Vec<AnswerRule>,
    /// It is under way.
    pub pending: Vec<AnswerRule>,
    /// The upstream does not know the operation.
    pub absent: Vec<AnswerRule>,
}

/// How an operation is found in a list. One that is empty does not know it; of two items nobody knows which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRules {
    /// JSON Pointer to the array.
    pub items: Box<str>,
    /// JSON Pointers into each item, from one: all of them lead to the operation's key in its item.
    pub matching: Vec<Box<str>>,
    /// JSON Pointer to what says that there are further pages.
    pub more: Option<Box<str>>,
}

/// What a status answer must repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EchoSource {
    /// The operation's key as the upstream was given it.
    OperationId,
    /// A value of the request's JSON body, by JSON Pointer; a keyed hash of it is kept with the operation.
    Body(Box<str>),
}

/// When a status is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleRules {
    /// The longest wait before the first query. Every wait is drawn from nothing up to its longest.
    pub first: Duration,
    /// By what the longest wait grows after each query; at least 1.
    pub factor: PerMille,
    /// What it never exceeds.
    pub cap: Duration,
    /// For so long an operation is followed; then a person decides.
    pub deadline: Duration,
    /// How often the status is asked for while a person has it; and of what was decided by absence, in case it happens late.
    pub attention_poll: Duration,
}

/// What it means that the upstream does not know an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsenceRules {
    /// An absence counts only so long after the forward ended, its lease ended and this process began, whichever was last.
    pub settle: Duration,
    /// So many absences that count are needed, from 1.
    pub confirmations: u32,
    /// The least time between two that count.
    pub spacing: Duration,
    /// A request header by which the upstream is told when it must no longer execute the operation.
    pub not_after: Option<Box<str>>,
    /// What they lead to.
    pub verdict: AbsenceVerdict,
}

/// What confirmed absence leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsenceVerdict {
    /// A person decides. The calibration, if any, is only shown.
    Attention(Option<CalibrationRules>),
    /// The operation was not executed, for as long as the calibration does not fail.
    NotExecuted(CalibrationRules),
}

impl AbsenceVerdict {
    /// How it is found out whether the status query sees what has just happened, if it is.
    pub const fn calibration(&self) -> Option<&CalibrationRules> {
        match self {
            AbsenceVerdict::Attention(calibration) => calibration.as_ref(),
            AbsenceVerdict::NotExecuted(calibration) => Some(calibration),
        }
    }
}

/// How it is found out whether the status query sees what has just happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationRules {
    /// The share of known successes whose status is asked for.
    pub sample: PerMille,
    /// How soon it must show them. If it does not, no absence counts.
    pub must_see_within: Duration,
}

/// What the client gets while the outcome is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownAnswer {
    /// 202 if it sent `Prefer: respond-async` and the operation is followed, else 504 after a timeout of the upstream and
    /// 502 otherwise.
    #[default]
    Auto,
    /// 202 while the operation is followed.
    Accepted,
}

/// What of a JSON body makes two requests the same, beside method, path, query and media type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fingerprint {
    /// All of it.
    #[default]
    Whole,
    /// All but what these JSON Pointers lead to.
    Without(Vec<Box<str>>),
    /// Only what these JSON Pointers lead to.
    Only(Vec<Box<str>>),
}

/// What is kept of an answer's body, up to [`STORED_BODY_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBody {
    /// Nothing: who repeats the operation gets its status.
    Nothing,
    /// All but what these JSON Pointers lead to.
    Redacted(Vec<Box<str>>),
}

/// How long what is kept, counted from the outcome. What is unknown or waits for a person is kept until it is neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionRules {
    /// The answer.
    pub body: Duration,
    /// That the operation was there, and its outcome. After that the same key is a new operation.
    pub tombstone: Duration,
}
