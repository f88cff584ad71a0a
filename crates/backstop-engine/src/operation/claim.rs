//! The right to ask for the status of one open operation.
//!
//! As with the forward, one value leads to the next and each is consumed: [`PendingClaim`] (a ledger writes it),
//! [`Claim`], [`Asked`], [`Report`]. What is asked is a read, so a claim that was overtaken costs a question and no more: its
//! report is stale.

use std::time::Duration;

use crate::time::{Mono, Now};

use super::absence::AbsenceRule;
use super::id::Epoch;
use super::record::{Parts, Progress, Record};
use super::report::{Event, Report, Verdict};
use super::schedule::Draw;
use super::state::Attention;
use super::transition::Refused;

/// What the lease of a claim lasts beyond the time limit of its query.
pub const CLAIM_GRACE: Duration = Duration::from_secs(5);

/// Takes the right to ask for an operation's status: it is open, due, and nobody else has it.
///
/// # Errors
/// If that is not so.
pub fn claim(
    record: Record,
    query_timeout: Duration,
    epoch: Epoch,
    now: &Now,
) -> Result<PendingClaim, Refused> {
    let parts = *record.progress.parts();
    if !parts.state.is_open() {
        return Err(Refused::NotNow);
    }
    if record.progress.is_leased(epoch, now.mono) {
        return Err(Refused::Leased);
    }
    if parts.due.is_none_or(|due| parts.epoch == epoch && now.mono < due) {
        return Err(Refused::NotNow);
    }
    let lease_until = Some(now.mono.after(query_timeout).after(CLAIM_GRACE));
    // Nobody has anything to do about it before that lease is over.
    let due = lease_until;
    let progress = Progress(Parts { fence: parts.fence.next(), epoch, lease_until, due, ..parts });
    Ok(PendingClaim { record: Record { progress, ..record } })
}

/// A claim that no ledger has written yet.
#[derive(Debug)]
#[must_use = "a claim is to be written"]
pub struct PendingClaim {
    record: Record,
}

impl PendingClaim {
    /// What is to be written.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// For ledgers alone, after it was written.
    pub fn committed(self) -> Claim {
        Claim { record: self.record }
    }
}

/// The right to ask for the status of one operation.
#[derive(Debug)]
#[must_use = "what was claimed is to be asked for, or put back"]
pub struct Claim {
    record: Record,
}

impl Claim {
    /// One that an explored world holds.
    #[cfg(test)]
    pub(super) const fn held(record: Record) -> Self {
        Self { record }
    }

    /// The operation.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The status is asked for now: what the answer shows may be as old as this.
    pub const fn ask(self, now: Mono) -> Asked {
        Asked { claim: self, at: now }
    }

    /// It cannot be asked for now: the upstream's budget for queries is used up, or its breaker is open.
    pub fn put_back(self, next: Draw) -> Report {
        self.report(Event::PutBack(next))
    }

    /// The contract has no status query for it.
    pub fn no_status_query(self, next: Draw) -> Report {
        self.report(Event::Strange(Attention::NoStatusQuery, next))
    }

    fn report(self, event: Event) -> Report {
        Report::new(self.record.identity.id, self.record.progress.fence(), event)
    }
}

/// What is known of the upstream when it says that it does not know an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// It was lately found to know another operation, asked with the same credentials.
    pub has_good_credentials: bool,
    /// It shows its own recent successes in time (calibration). While it does not, absences are not counted.
    pub shows_recent: bool,
}

/// A status query that was asked.
#[derive(Debug)]
#[must_use = "what the query said is to be recorded"]
pub struct Asked {
    claim: Claim,
    at: Mono,
}

impl Asked {
    /// The operation, for the answer to be compared with.
    pub const fn record(&self) -> &Record {
        &self.claim.record
    }

    /// The answer says that it was executed, and is about this operation.
    pub fn succeeded(self, next: Draw) -> Report {
        self.claim.report(Event::Found(Verdict::Succeeded, next))
    }

    /// The answer says that it was declined, without effect, and is about this operation.
    pub fn failed(self, next: Draw) -> Report {
        self.claim.report(Event::Found(Verdict::Failed, next))
    }

    /// The answer says that it is still at work, and is about this operation. From then on no absence decides it.
    pub fn pending(self, next: Draw) -> Report {
        self.claim.report(Event::Pending(next))
    }

    /// There was no answer, or none that can be understood, which is never a verdict.
    pub fn inconclusive(self, next: Draw) -> Report {
        self.claim.report(Event::Inconclusive(next))
    }

    /// The answer is the one that the contract declares for an operation that it does not know. Without a `rule` that proves
    /// nothing.
    pub fn absent(self, rule: Option<AbsenceRule>, standing: Standing, next: Draw) -> Report {
        let may_count = standing.has_good_credentials && standing.shows_recent;
        let asked = self.at;
        self.claim.report(Event::Absent { asked, may_count, rule, next })
    }

    /// More than one operation of the upstream matches.
    pub fn several_matches(self, next: Draw) -> Report {
        self.claim.report(Event::Strange(Attention::SeveralMatches, next))
    }

    /// What it has under this operation's name is not what was sent.
    pub fn mismatch(self, next: Draw) -> Report {
        self.claim.report(Event::Strange(Attention::Mismatch, next))
    }
}
