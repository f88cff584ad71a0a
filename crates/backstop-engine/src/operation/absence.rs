//! When "there is no such operation" may count as "it was not executed".
//!
//! An upstream that does not know an operation yet is not one that will never execute it: the request may still be on its way,
//! in a queue, or executed and not visible yet. Without a declared rule an absence therefore proves nothing. With one, it takes
//! all of this:
//! - the upstream's answer is the one that the contract declares, status and content, and the credentials of the query are
//!   known to be good
//! - the query was *asked* after `settle`, counted from the latest of the end of the forward, the end of its lease and the
//!   start of this process
//! - so many in a row, each asked at least `spacing` after the one before; any other answer begins anew
//! - still within the time in which the upstream remembers operations at all
//! - the upstream shows its own recent successes in time: while it does not, absences are not counted
//!
//! The declared `settle` carries the safety of all of it: declared too short, a late arrival makes the verdict wrong.

use std::fmt;
use std::time::Duration;

use crate::time::{Mono, Now};

use super::id::Epoch;
use super::record::{Identity, Parts};

/// The most confirmations that can be asked for.
pub const MOST_CONFIRMATIONS: u32 = 1000;

/// The full rule of absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbsenceRule {
    pub(super) settle: Duration,
    pub(super) confirmations: u32,
    pub(super) spacing: Duration,
    pub(super) remembered: Duration,
}

/// Why a rule of absence is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbsenceRuleError {
    /// `settle` is nothing.
    Settle,
    /// Fewer than two confirmations, or more than [`MOST_CONFIRMATIONS`].
    Confirmations,
    /// `spacing` is nothing.
    Spacing,
    /// The upstream forgets operations before the rule can hold.
    Remembered,
}

impl fmt::Display for AbsenceRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AbsenceRuleError::Settle => "`settle` must be more than nothing",
            AbsenceRuleError::Confirmations => "`confirmations` must be between 2 and 1000",
            AbsenceRuleError::Spacing => "`spacing` must be more than nothing",
            AbsenceRuleError::Remembered => {
                "the upstream forgets operations before `settle` and all `confirmations` are over"
            }
        })
    }
}

impl std::error::Error for AbsenceRuleError {}

impl AbsenceRule {
    /// A rule. `remembered` is how long the upstream can be asked about an operation.
    ///
    /// # Errors
    /// If it could never hold, or would hold too easily.
    pub fn new(
        settle: Duration,
        confirmations: u32,
        spacing: Duration,
        remembered: Duration,
    ) -> Result<Self, AbsenceRuleError> {
        if settle.is_zero() {
            return Err(AbsenceRuleError::Settle);
        }
        if !(2..=MOST_CONFIRMATIONS).contains(&confirmations) {
            return Err(AbsenceRuleError::Confirmations);
        }
        if spacing.is_zero() {
            return Err(AbsenceRuleError::Spacing);
        }
        if settle.saturating_add(spacing.saturating_mul(confirmations)) >= remembered {
            return Err(AbsenceRuleError::Remembered);
        }
        Ok(Self { settle, confirmations, spacing, remembered })
    }
}

/// What one absence comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// It proves nothing, and what was counted is void.
    Nothing,
    /// It came too soon after the last one that counts, which stays.
    TooClose,
    /// So many count now.
    Counted(u32),
    /// The rule holds.
    Proven,
}

/// Weighs one absence that was asked for at `asked`.
pub(super) fn weigh(
    rule: &AbsenceRule,
    parts: &Parts,
    identity: &Identity,
    asked: Mono,
    now: &Now,
) -> Absence {
    if asked < parts.settle_from.after(rule.settle) || !is_remembered(rule, parts, identity, now) {
        return Absence::Nothing;
    }
    if parts.absences > 0 && asked < parts.absent_at.after(rule.spacing) {
        return Absence::TooClose;
    }
    let absences = parts.absences.saturating_add(1);
    if absences >= rule.confirmations { Absence::Proven } else { Absence::Counted(absences) }
}

/// Whether the upstream certainly remembers the operation still. Its age is the larger one by date and by the clock since
/// boot; if neither is known (the date ran back behind its beginning), it is not certain.
fn is_remembered(rule: &AbsenceRule, parts: &Parts, identity: &Identity, now: &Now) -> bool {
    let (by_date, by_clock) = (now.wall.since(identity.created), now.mono.since(parts.born));
    by_date.is_some_and(|age| age < rule.remembered) && by_clock.is_some_and(|age| age < rule.remembered)
}

/// The moment from which an absence has to settle, for a forward that is over at `now` and whose lease ends at
/// `lease_until`. A lease of another epoch ended with it.
pub(super) fn settle_from(parts: &Parts, epoch: Epoch, now: Mono) -> Mono {
    match parts.lease_until {
        Some(until) if parts.epoch == epoch => now.max(until),
        _ => now,
    }
}
