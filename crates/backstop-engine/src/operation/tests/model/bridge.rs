//! Between the rows of the search and the real records. Of all moments only their order matters, so each state has one set of
//! them, and a step takes place at the boundary that it needs: a lease is over exactly at its end, an absence is settled exactly
//! at its settle, and one nanosecond before it is not.

use std::time::Duration;

use super::super::super::begin::Forwarding;
use super::super::super::claim::Claim;
use super::super::super::{DurableIntent, Parts, Progress};
use super::super::support::{EPOCH, at, begun, draw, seconds};
use super::world::Row;
use crate::operation::{
    AbsenceRule, Asked, Fence, KeptAnswer, NotExecuted, OperationId, Record, Report, Standing, State, Told,
    answer, second_look,
};
use crate::time::{Mono, Now};

/// When the lease of a forward is over: 30 s and 5 s of grace.
const LEASE_S: u64 = 35;
/// When the lease of a claim is over.
const CLAIM_LEASE_S: u64 = 1_500;
const SETTLE: Duration = Duration::from_secs(600);
const SPACING: Duration = Duration::from_secs(60);
const DEADLINE_S: u64 = 3_600;

pub(super) fn rule() -> AbsenceRule {
    AbsenceRule::new(SETTLE, 2, SPACING, seconds(86_400)).unwrap()
}

/// A rule that nobody can declare.
pub(super) fn wrong_rule() -> AbsenceRule {
    AbsenceRule { settle: Duration::ZERO, confirmations: 1, ..rule() }
}

fn settled() -> Mono {
    at(LEASE_S).mono.after(SETTLE)
}

/// While the owner works.
pub(super) fn meanwhile() -> Now {
    at(1)
}

/// After the end of any lease, and when anything is due.
pub(super) fn lease_end(row: Row) -> Now {
    at(if row.state == State::Dispatching { LEASE_S } else { CLAIM_LEASE_S })
}

pub(super) fn deadline() -> Now {
    at(DEADLINE_S)
}

/// When a query is reported.
pub(super) fn report_time() -> Now {
    at(CLAIM_LEASE_S - 1)
}

/// When the status is asked for.
pub(super) fn asked_at(is_settled: bool) -> Mono {
    if is_settled { settled() } else { settled().before(Duration::from_nanos(1)) }
}

/// The real record of a row.
pub(super) fn record(row: Row) -> Record {
    let mut record = begun();
    let is_dispatching = row.state == State::Dispatching;
    let lease_s = if is_dispatching { LEASE_S } else { CLAIM_LEASE_S };
    let parts = Parts {
        state: row.state,
        fence: Fence::new(u64::from(row.fence)),
        lease_until: row.is_leased.then(|| at(lease_s).mono),
        due: row.state.is_open().then(|| at(LEASE_S).mono),
        settle_from: at(LEASE_S).mono,
        absences: u32::from(row.absences),
        absent_at: settled().before(SPACING),
        ..*record.progress.parts()
    };
    record.progress = Progress::restore(parts).unwrap();
    let status = match row.state {
        State::Succeeded(_) => Some(201),
        State::Failed(_) => Some(402),
        _ => None,
    };
    record.answer =
        status.map(|status| KeptAnswer { body: Some(Box::default()), ..KeptAnswer::of_status(status) });
    record
}

/// The row of a real record.
pub(super) fn row(progress: &Progress) -> Row {
    let parts = progress.parts();
    Row {
        state: parts.state,
        fence: u8::try_from(parts.fence.number()).unwrap(),
        is_leased: parts.lease_until.is_some(),
        absences: u8::try_from(parts.absences).unwrap(),
    }
}

/// A row that no transition leads to: for protocols that are wrong.
pub(super) fn forced(fence: u8, state: State) -> Row {
    Row { state, fence: fence + 1, is_leased: state == State::Dispatching, absences: 0 }
}

fn id() -> OperationId {
    begun().identity.id
}

pub(super) fn intent(fence: u8) -> DurableIntent {
    DurableIntent::held(id(), Fence::new(u64::from(fence)), at(LEASE_S).mono)
}

pub(super) fn forwarding(fence: u8) -> Forwarding {
    Forwarding::held(id(), Fence::new(u64::from(fence)))
}

/// A query under a claim with this fence.
pub(super) fn asked(fence: u8, is_settled: bool) -> Asked {
    let state = State::Unknown(crate::operation::Doubt::Timeout);
    let row = Row { state, fence, is_leased: true, absences: 0 };
    Claim::held(record(row)).ask(asked_at(is_settled))
}

/// What a second look under this fence reports.
pub(super) fn executed_late(fence: u8) -> Report {
    let state = State::NotExecuted(NotExecuted::Absent);
    let row = Row { state, fence, is_leased: false, absences: 0 };
    second_look(record(row)).unwrap().executed(draw())
}

pub(super) fn absent(asked: Asked, rule: Option<AbsenceRule>) -> Report {
    asked.absent(rule, Standing { has_good_credentials: true, shows_recent: true }, draw())
}

/// What the client makes of what it hears.
pub(super) fn heard(row: Row) -> u8 {
    use super::world::{TOLD_FAILED, TOLD_NOT_EXECUTED, TOLD_OK};
    match answer(&record(row)) {
        Told::Replay(kept) if kept.status < 300 => TOLD_OK,
        Told::StatusOnly(status) if status < 300 => TOLD_OK,
        Told::Executed(_) => TOLD_OK,
        Told::Replay(_) | Told::StatusOnly(_) | Told::Declined(_) => TOLD_FAILED,
        Told::NotExecuted(_) => TOLD_NOT_EXECUTED,
        Told::InProgress | Told::Unknown(_) | Told::NeedsAttention(_) => 0,
    }
}

pub(super) const EPOCH_AFTER: crate::operation::Epoch = EPOCH.next();
