//! Why a request would get what it would get: `backstop explain`.
//!
//! The request goes the whole way through the gateway's own code: parser, router, edits, key, flow, pool, reply. Only what lies
//! outside is replaced: the network by a script ([`network`](crate::upstream::Network)), the shared cache, the ledger's file and
//! the file of copies by memory, the clock by one that stands still until everybody waits and is then moved to the first who
//! does. So an explanation takes no time, asks nobody, writes nothing, and cannot say anything else than the gateway does.
//!
//! What is supposed to be the case is brought about as it comes about: a copy of a minute ago is the answer to the same request,
//! made a minute earlier; an operation of unknown outcome is one whose answer was lost.

mod answers;
mod boundaries;
mod cache;
mod dependency;
mod facts;
mod question;
mod rehearsal;
mod world;

use std::time::Duration;

use backstop::walk::Role;
use backstop_engine::policy::{Mode, Route};
use backstop_policy::{Loaded, SourceMap};

pub use boundaries::TimeLimit;
pub(crate) use cache::Told;
pub use dependency::Call;
pub use question::{BreakerIs, CacheDoes, Earlier, Happens, NotUnderstood, Question};
pub use rehearsal::written;

use crate::gateway::BindError;
use crate::steps::Step;

/// What a request would get, and why.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The route that answers it; `None` if none does.
    pub route: Option<Matched>,
    /// What each time limit of that route includes.
    pub limits: Vec<TimeLimit>,
    /// What was brought about before, in words.
    pub before: Vec<String>,
    /// The way of the request, then those of its parts and of the read that it began.
    pub ways: Vec<Way>,
    /// What its client gets.
    pub answer: Answer,
    /// What dependencies receive, in order.
    pub calls: Vec<Call>,
}

/// The route that answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// Its name.
    pub name: Box<str>,
    /// Its class.
    pub class: &'static str,
    /// The rule that matched: a method and a path.
    pub rule: String,
    /// What its path holds in place of parameters.
    pub parameters: Vec<(Box<str>, Box<str>)>,
    /// Where it was written.
    pub line: Option<Line>,
    /// Whether it is only observed: what is explained would be, and the request is forwarded whatever that is.
    pub is_observed: bool,
}

/// The way of one flow.
#[derive(Clone, Debug)]
pub struct Way {
    /// Its route.
    pub route: Box<str>,
    /// On whose behalf it went.
    pub role: Role,
    /// Its steps, each with the line that decided it.
    pub steps: Vec<(Step, Option<Line>)>,
    /// Whether it came to a decision, or was left before.
    pub has_decided: bool,
}

/// A line of the policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file, as it was named.
    pub file: Box<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The text there.
    pub text: Box<str>,
}

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the request comes to, as it is counted.
    pub outcome: Box<str>,
    /// Where the answer comes from.
    pub source: Box<str>,
    /// Why.
    pub reason: Box<str>,
    /// Its status.
    pub status: u16,
    /// Its fields, but for its date.
    pub fields: Vec<(Box<str>, Box<str>)>,
    /// Whether it is cut off before its end, visibly.
    pub is_cut: bool,
    /// How long it takes.
    pub took: Duration,
}

impl Answer {
    /// A field's value; of several lines the first.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }
}

/// Nothing can be explained.
#[derive(Debug, thiserror::Error)]
pub enum CannotExplain {
    /// The policy cannot be run.
    #[error(transparent)]
    Policy(#[from] BindError),
    /// The question cannot be asked of this policy.
    #[error(transparent)]
    Question(#[from] NotUnderstood),
    /// The request is none that a client could send.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// The system gave no runtime.
    #[error("the request cannot be played")]
    Runtime(#[from] std::io::Error),
    /// Its client would wait for ever.
    #[error("nothing moves any more, and the request has no answer")]
    Stuck,
}

/// Plays a request and tells what became of it. On a route that is only observed, what would have.
///
/// # Errors
/// A policy that cannot be run, or a question that makes no sense with it.
pub fn explain(loaded: &Loaded, question: &Question) -> Result<Explanation, CannotExplain> {
    let mut enforced = loaded.clone();
    for route in &mut enforced.policy.routes {
        route.mode = Mode::Enforce;
        // What is tried beside some requests is nothing that this one gets.
        route.exercise.share_per_mille = 0;
    }
    let mut explanation = rehearsal::play(&enforced, question)?;
    if let Some(matched) = &mut explanation.route {
        let is_it = |route: &&Route| route.name == matched.name && route.mode == Mode::Observe;
        matched.is_observed = loaded.policy.routes.iter().any(|route| is_it(&route));
    }
    Ok(explanation)
}

/// The line that a rule was written in.
pub(crate) fn line(sources: &SourceMap, origin: backstop_engine::policy::Origin) -> Option<Line> {
    let source = sources.get(origin)?;
    let start = source.place.start;
    // Of a table's header only its name is the place, and it says little without its brackets.
    let whole = || sources.text().lines().nth(usize::try_from(start.line).ok()?.checked_sub(1)?);
    let is_key = source.text.contains('=');
    let text = if is_key { Some(&*source.text) } else { whole() }.unwrap_or(&source.text).trim().into();
    Some(Line { file: sources.file().into(), line: start.line, column: start.column, text })
}

#[cfg(test)]
mod tests;
