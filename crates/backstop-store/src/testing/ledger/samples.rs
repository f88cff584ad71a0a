//! Operations to test with.
#![expect(clippy::panic, reason = "what a test needs and does not get stops it")]

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::operation::{
    ClientKey, Doubt, Draw, DurableIntent, Fingerprint, Forwarding, Intent, KeptAnswer, OperationId, Report,
    Retention, Schedule, Scope,
};
use backstop_engine::time::Now;

use crate::ledger::{Begun, Ledger, MemoryRows, Recorded, ThreadLedger, Upkeep};

/// The route of every intent here.
pub const ROUTE: &str = "pay";

/// That route, looked after as usual.
pub fn upkeep() -> Arc<[Upkeep]> {
    let (retention, schedule) = (Retention::default(), Schedule::default());
    Arc::new([Upkeep { route: ROUTE.into(), retention, schedule }])
}

/// An intent that is told from others by its number. Its forward has 30 s, its verification an hour.
pub fn intent(number: u8) -> Intent {
    Intent {
        id: OperationId::from_bytes([number; 16]),
        scope: Scope::from_bytes([1; 32]),
        key: ClientKey::from_bytes([number; 32]),
        fingerprint: Fingerprint::from_bytes([number; 32]),
        route: ROUTE.into(),
        upstream_id: Some([b"upstream-", &[b'a' + number % 26][..]].concat().into()),
        captured: vec![("amount".into(), number.to_string().into())],
        deadline: Duration::from_secs(30),
        verify_for: Duration::from_secs(3600),
    }
}

/// Begins a new operation.
///
/// # Panics
/// If it is not new.
pub fn begin(ledger: &dyn Ledger, number: u8, now: Now) -> DurableIntent {
    match ledger.begin(intent(number), now).wait() {
        Ok(Ok(Begun::New(intent))) => intent,
        other => panic!("{number}: {other:?}"),
    }
}

/// Begins the one forward.
///
/// # Panics
/// If it is too late.
pub fn forward(intent: DurableIntent, now: Now) -> Forwarding {
    match intent.forward(now.mono) {
        Ok(forwarding) => forwarding,
        Err(late) => panic!("{late:?}"),
    }
}

/// Begins an operation and loses its answer.
///
/// # Panics
/// If the ledger does not take that.
pub fn unknown(ledger: &dyn Ledger, number: u8, now: Now, first: Draw) {
    let report = forward(begin(ledger, number, now), now).unknown(Doubt::Timeout, first);
    assert!(matches!(ledger.record(report, now).wait(), Ok(Recorded::Changed { .. })));
}

/// An answer with two fields.
pub fn kept(status: u16, body: Option<&[u8]>) -> KeptAnswer {
    let field = |name: &str, value: &[u8]| (name.into(), value.into());
    KeptAnswer {
        status,
        fields: vec![field("content-type", b"text/plain"), field("location", b"/payments/1")],
        body: body.map(Into::into),
    }
}

/// A report about an operation of another ledger.
pub(super) fn elsewhere() -> Report {
    let now = super::now(1);
    match ThreadLedger::open(Box::new(MemoryRows::default()), Default::default(), 1, now) {
        Ok(ledger) => forward(begin(&ledger, 77, now), now).succeeded(kept(200, None)),
        Err(error) => panic!("{error}"),
    }
}
