//! One operation in virtual time.

use std::time::Duration;

use crate::operation::{
    AbsenceRule, Begin, ClientKey, Draw, Epoch, Fingerprint, Intent, OperationId, Record, Schedule, Scope,
    begin,
};
use crate::time::{Mono, Now, Wall};

pub(super) const EPOCH: Epoch = Epoch::new(1);
/// The date at the clock's zero, in seconds since 1970.
const DATE_S: u64 = 1_700_000_000;

pub(super) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// So many seconds after the zero of both clocks.
pub(super) fn at(after: u64) -> Now {
    at_ns(after * 1_000_000_000)
}

pub(super) fn at_ns(after: u64) -> Now {
    let date = Wall::from_unix_ns(0).after(seconds(DATE_S));
    Now { mono: Mono::from_ns(after), wall: date.after(Duration::from_nanos(after)), ..Now::default() }
}

/// No wait at all.
pub(super) fn draw() -> Draw {
    Schedule::default().draw(0)
}

/// Deadline of the forward 30 s, so its lease is 35 s; verified for an hour.
pub(super) fn intent() -> Intent {
    Intent {
        id: OperationId::from_bytes([7; 16]),
        scope: Scope::from_bytes([1; 32]),
        key: ClientKey::from_bytes([2; 32]),
        fingerprint: Fingerprint::from_bytes([3; 32]),
        route: Box::default(),
        upstream_id: None,
        captured: Vec::new(),
        deadline: seconds(30),
        verify_for: seconds(3600),
    }
}

/// An operation that began at the zero.
pub(super) fn begun() -> Record {
    match begin(None, intent(), EPOCH, &at(0)) {
        Ok(Begin::New(pending)) => pending.record().clone(),
        other => panic!("{other:?}"),
    }
}

/// Settle 10 min, three confirmations a minute apart, remembered for a day.
pub(super) fn rule() -> AbsenceRule {
    AbsenceRule::new(seconds(600), 3, seconds(60), seconds(86_400)).unwrap()
}
