//! What an answer comes to that is put together from the answers of other routes.
//!
//! A *part* is the answer of another route, decided under that route's whole policy. It *fits* if it is a 2xx answer whose
//! content is exactly one JSON value. The rules:
//!
//! - **A required part that does not fit ends it at once.** If that is an answer about the request (4xx) or an error
//!   (5xx), Backstop's own refusals included, it is the answer of the whole, with what it came to. If it broke off or did
//!   not come in time, that failure is the whole's. Anything else (a page, a redirect, no content) cannot be put anywhere:
//!   `failed`, `incorrect`.
//! - **An optional part that does not fit, is `failed`, or is not there in time, is left out.** One whose own route answers
//!   with what leaves it out stands where it belongs, and is omitted all the same.
//! - The whole is `normal` only if every part is. A required part that fits and yet is `failed` (it breaks its route's
//!   `correct` rules) makes the whole `failed`. Else it is `fallback`.
//! - Its reason is that of the first part that is not normal: required parts before optional ones, those that are
//!   `failed` first of all, then in the policy's order.
//! - It is as old as its oldest part.
//!
//! Nothing here waits, and which part comes first makes no difference to an answer that has all of them.

use std::time::Duration;

use crate::failure::{Cause, Failure, FailureKind, Phase, Sent};
use crate::flow::Account;
use crate::outcome::{Outcome, Reason, Scope, Source};
use crate::policy::{Origin, RouteId};

/// No composed answer has more parts.
pub const MOST_PARTS: usize = 16;

/// Rules of a `composed` route.
#[derive(Clone, Debug, Default)]
pub struct Composed {
    /// Its parts, from 1 to [`MOST_PARTS`], in the policy's order.
    pub parts: Vec<Part>,
}

/// One part of a composed answer.
#[derive(Clone, Debug)]
pub struct Part {
    /// The route that answers it; never a composed one.
    pub route: RouteId,
    /// Where it stands in the whole: a JSON Pointer (RFC 6901) of object members, no other part's place a beginning of it.
    pub at: Box<str>,
    /// Whether there is no answer without it.
    pub required: bool,
    /// Where it was written.
    pub origin: Origin,
}

/// What one part came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFacts {
    /// Its HTTP status.
    pub status: u16,
    /// Its content.
    pub content: PartContent,
    /// What its answer tells of itself; `None` if that is normal.
    pub account: Option<Account>,
    /// How old it says it is, normal or not.
    pub age: Option<Duration>,
}

/// The content of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartContent {
    /// Exactly one JSON value.
    OneValue,
    /// Complete, and something else; empty too.
    Other,
    /// It broke off, in this way.
    BrokenOff(Failure),
    /// Larger than a part may be.
    TooLarge,
    /// There is no memory for it: what all held-back answers may take is taken.
    NoRoom,
}

/// A set of parts, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSet(u16);

impl PartSet {
    /// Whether the part is in it.
    pub const fn contains(self, number: usize) -> bool {
        number < MOST_PARTS && self.0 & (1 << number) != 0
    }

    /// Whether no part is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn insert(&mut self, number: usize) {
        if number < MOST_PARTS {
            self.0 |= 1 << number;
        }
    }
}

/// What a composed answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The parts that fit, each in its place.
    Whole {
        /// Those that stand in it.
        placed: PartSet,
        /// Those that are omitted: they do not stand in it, or their own routes answered with what leaves them out.
        omitted: PartSet,
        /// What it came to.
        account: Account,
    },
    /// The answer of this required part, as it came.
    Part {
        /// Its number.
        number: usize,
        /// What it came to.
        account: Account,
    },
    /// None but Backstop's own.
    Refused {
        /// Why.
        reason: Reason,
        /// The rule that decided.
        rule: Origin,
    },
}

/// The parts that came so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gathered {
    arrived: PartSet,
    placed: PartSet,
    omitted: PartSet,
    /// The first part that is not normal, with its rank.
    worst: Option<(usize, Account)>,
    age: Option<Duration>,
}

impl Gathered {
    /// A part came. What the whole is, if that is known now. A part that came already changes nothing, nor does one that
    /// the rules do not have.
    pub fn arrive(&mut self, rules: &Composed, number: usize, facts: PartFacts) -> Option<Ending> {
        let part = rules.parts.get(number).filter(|_| !self.arrived.contains(number))?;
        self.arrived.insert(number);
        // What answers 206 is a part of the value, though it may look like a whole one (RFC 9110 section 15.3.7).
        let is_whole = (200..300).contains(&facts.status) && facts.status != 206;
        let fits = is_whole && facts.content == PartContent::OneValue;
        let failed = facts.account.is_some_and(|account| account.outcome == Outcome::Failed);
        match (part.required, fits) {
            (true, false) => return Some(unfit(number, part, facts)),
            (true, true) => self.place(number, part, facts),
            (false, true) if !failed => self.place(number, part, facts),
            (false, _) => self.omit(number, part, why(facts)),
        }
        (0..rules.parts.len()).all(|number| self.arrived.contains(number)).then(|| self.whole(rules))
    }

    /// Nothing is waited for any more: what the whole is without the parts that did not come.
    pub fn time_up(&mut self, rules: &Composed) -> Ending {
        let late = Failure::new(FailureKind::ReadTimeout, Phase::Body, Sent::Maybe);
        let reason = Reason::Cause(Cause::Failed(late));
        for (number, part) in rules.parts.iter().enumerate() {
            if self.arrived.contains(number) {
                continue;
            }
            if part.required {
                return Ending::Refused { reason, rule: part.origin };
            }
            self.omit(number, part, Why { reason, cause: cause_of(reason), rule: part.origin });
        }
        self.whole(rules)
    }

    fn place(&mut self, number: usize, part: &Part, facts: PartFacts) {
        self.placed.insert(number);
        self.age = self.age.max(facts.age);
        let Some(account) = facts.account else { return };
        if account.source == Source::Omitted {
            self.omitted.insert(number);
        }
        self.age = self.age.max(account.age);
        self.note(number, part, account);
    }

    fn omit(&mut self, number: usize, part: &Part, why: Why) {
        self.omitted.insert(number);
        let rule = if why.rule == Origin::NONE { part.origin } else { why.rule };
        let account = Account {
            outcome: Outcome::Fallback,
            source: Source::Omitted,
            reason: why.reason,
            cause: why.cause,
            age: None,
            rule,
        };
        self.note(number, part, account);
    }

    fn note(&mut self, number: usize, part: &Part, account: Account) {
        let class = match (part.required, account.outcome) {
            (true, Outcome::Failed) => 0,
            (true, _) => 1,
            (false, _) => 2,
        };
        let rank = class * MOST_PARTS + number;
        if self.worst.is_none_or(|(worst, _)| rank < worst) {
            self.worst = Some((rank, account));
        }
    }

    fn whole(&self, rules: &Composed) -> Ending {
        let first = rules.parts.first().map_or(Origin::NONE, |part| part.origin);
        let account = match self.worst {
            None => normal(first),
            Some((rank, account)) => {
                let outcome = if rank < MOST_PARTS { Outcome::Failed } else { Outcome::Fallback };
                Account { outcome, age: self.age, ..account }
            }
        };
        Ending::Whole { placed: self.placed, omitted: self.omitted, account }
    }
}

const fn normal(rule: Origin) -> Account {
    Account {
        outcome: Outcome::Normal,
        source: Source::Primary,
        reason: Reason::None,
        cause: None,
        age: None,
        rule,
    }
}

/// Why a part is left out.
#[derive(Clone, Copy, Debug)]
struct Why {
    reason: Reason,
    cause: Option<Cause>,
    rule: Origin,
}

const fn cause_of(reason: Reason) -> Option<Cause> {
    match reason {
        Reason::Cause(cause) => Some(cause),
        _ => None,
    }
}

/// What is wrong with content that does not fit; `None` where it only is no part.
const fn fault(content: PartContent) -> Option<Reason> {
    match content {
        PartContent::BrokenOff(failure) => Some(Reason::Cause(Cause::Failed(failure))),
        PartContent::NoRoom => Some(Reason::Capacity(Scope::Process)),
        PartContent::OneValue | PartContent::Other | PartContent::TooLarge => None,
    }
}

fn why(facts: PartFacts) -> Why {
    match (fault(facts.content), facts.account) {
        (Some(reason), _) => Why { reason, cause: cause_of(reason), rule: Origin::NONE },
        (None, Some(account)) => Why { reason: account.reason, cause: account.cause, rule: account.rule },
        (None, None) => Why { reason: Reason::Incorrect, cause: None, rule: Origin::NONE },
    }
}

/// A required part that does not fit.
fn unfit(number: usize, part: &Part, facts: PartFacts) -> Ending {
    if let Some(reason) = fault(facts.content) {
        return Ending::Refused { reason, rule: part.origin };
    }
    if facts.status >= 400 && facts.content != PartContent::TooLarge {
        return Ending::Part { number, account: facts.account.unwrap_or(normal(part.origin)) };
    }
    Ending::Refused { reason: Reason::Incorrect, rule: part.origin }
}

#[cfg(test)]
#[path = "composed_tests.rs"]
mod tests;
