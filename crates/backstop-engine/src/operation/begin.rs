//! The beginning of an operation, and its one forward.
//!
//! A chain of values that cannot be copied leads from the client's request to the upstream, and each is consumed by the next:
//!
//! ```text
//! Intent --begin--> PendingIntent --committed--> DurableIntent --forward--> Forwarding --> Report
//!                   (a ledger writes it)         (what a caller gets)       (the only one)
//! ```
//!
//! A second forward of one intent does not compile:
//!
//! ```compile_fail,E0382
//! use backstop_engine::operation::DurableIntent;
//! use backstop_engine::time::Mono;
//!
//! fn twice(intent: DurableIntent, now: Mono) {
//!     let first = intent.forward(now);
//!     let second = intent.forward(now);
//! }
//! ```
//!
//! Neither does a copy of one, and nothing but a ledger's commit gives one:
//!
//! ```compile_fail,E0599
//! # use backstop_engine::operation::DurableIntent;
//! fn copy(intent: &DurableIntent) -> DurableIntent {
//!     intent.clone()
//! }
//! ```
//!
//! ```compile_fail,E0451
//! # use backstop_engine::operation::{DurableIntent, Fence, OperationId};
//! # use backstop_engine::time::Mono;
//! fn invent(id: OperationId, until: Mono) -> DurableIntent {
//!     DurableIntent { id, fence: Fence::FIRST, lease_until: until }
//! }
//! ```
//!
//! ```
//! # use backstop_engine::operation::{DurableIntent, NotExecuted, Report};
//! # use backstop_engine::time::Mono;
//! fn once(intent: DurableIntent, now: Mono) -> Report {
//!     match intent.forward(now) {
//!         Ok(forwarding) => forwarding.never_sent(NotExecuted::Connect),
//!         Err(too_late) => too_late.report(),
//!     }
//! }
//! ```

use std::time::Duration;

use crate::time::{Mono, Now};

use super::digest::{ClientKey, Fingerprint, Scope};
use super::evidence::Refusal;
use super::id::{Epoch, Fence, OperationId};
use super::kept::KeptAnswer;
use super::record::{Identity, IntentError, Parts, Progress, Record};
use super::report::{Event, Report};
use super::schedule::Draw;
use super::state::{Doubt, NotExecuted, State};

/// What a lease lasts beyond the deadline of its forward. The forward is bounded by that deadline, so no lease is renewed.
pub const LEASE_GRACE: Duration = Duration::from_secs(5);

/// A forward does not begin in so much of the end of its lease.
pub const SEND_MARGIN: Duration = LEASE_GRACE;

/// What a client wants to be done once.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Its name, drawn at random.
    pub id: OperationId,
    /// Whose it is.
    pub scope: Scope,
    /// The client's key.
    pub key: ClientKey,
    /// What is asked.
    pub fingerprint: Fingerprint,
    /// The route, by its name.
    pub route: Box<str>,
    /// What the upstream will be told as operation id, where its status can be asked for by it.
    pub upstream_id: Option<Box<[u8]>>,
    /// Values for the status query to compare.
    pub captured: Vec<(Box<str>, Box<str>)>,
    /// The end of the whole forward, from now.
    pub deadline: Duration,
    /// How long an unknown outcome is verified, from now, before it becomes a matter for a person.
    pub verify_for: Duration,
}

/// What a key leads to.
#[derive(Debug)]
#[must_use = "a new operation is to be written"]
pub enum Begin {
    /// A new operation, which a ledger has to write.
    New(PendingIntent),
    /// The same operation again: what is known of it is the answer.
    Again,
    /// The key was used for another request.
    OtherRequest,
}

/// Begins an operation, or finds that it began before (T1). `existing` is what the ledger has for this scope and key, looked up
/// in the transaction that will write.
///
/// That the same key was used for another request counts before everything that its operation may be in: whoever uses a key
/// twice learns it at once.
///
/// # Errors
/// If a part of the intent is beyond its limit.
pub fn begin(
    existing: Option<&Record>,
    intent: Intent,
    epoch: Epoch,
    now: &Now,
) -> Result<Begin, IntentError> {
    if let Some(record) = existing {
        let is_same = record.identity.fingerprint == intent.fingerprint;
        return Ok(if is_same { Begin::Again } else { Begin::OtherRequest });
    }
    let Intent { id, scope, key, fingerprint, route, upstream_id, captured, deadline, verify_for } = intent;
    let identity = Identity { id, scope, key, fingerprint, route, upstream_id, captured, created: now.wall };
    identity.check()?;
    let progress = Progress(Parts {
        state: State::Dispatching,
        fence: Fence::FIRST,
        epoch,
        lease_until: Some(now.mono.after(deadline).after(LEASE_GRACE)),
        due: None,
        verify_until: now.wall.after(verify_for),
        born: now.mono,
        settle_from: now.mono,
        asked: 0,
        asked_at: now.mono,
        absences: 0,
        absent_at: now.mono,
        was_absent: false,
        changed: now.wall,
    });
    Ok(Begin::New(PendingIntent { record: Box::new(Record { identity, progress, answer: None }) }))
}

/// An intent that is not durable yet. Only a ledger has one.
#[derive(Debug)]
#[must_use = "an intent that is not written is no operation"]
pub struct PendingIntent {
    record: Box<Record>,
}

impl PendingIntent {
    /// What is to be written.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// For ledgers alone, after the transaction with this record survives a crash: the right to forward it, once.
    pub fn committed(self) -> DurableIntent {
        let Parts { fence, lease_until, .. } = *self.record.progress.parts();
        // An intent has a lease: `begin` gives it one. Without it nothing could be sent in time.
        let lease_until = lease_until.unwrap_or_default();
        DurableIntent { id: self.record.identity.id, fence, lease_until }
    }
}

/// The right to forward one operation, once: its intent survives a crash. Dropped, it is as if its owner had died.
#[derive(Debug)]
#[must_use = "an intent that is neither forwarded nor reported stays unknown"]
pub struct DurableIntent {
    id: OperationId,
    fence: Fence,
    lease_until: Mono,
}

impl DurableIntent {
    /// One that an explored world holds.
    #[cfg(test)]
    pub(super) const fn held(id: OperationId, fence: Fence, lease_until: Mono) -> Self {
        Self { id, fence, lease_until }
    }

    /// The operation's name.
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// The last moment in which the forward may begin, exclusive.
    pub const fn forward_before(&self) -> Mono {
        self.lease_until.before(SEND_MARGIN)
    }

    /// Begins the one forward.
    ///
    /// # Errors
    /// If too little of the lease is left, for example because the disk was slow. Then nothing may be sent.
    pub fn forward(self, now: Mono) -> Result<Forwarding, TooLate> {
        let Self { id, fence, .. } = self;
        if now < self.forward_before() {
            Ok(Forwarding { id, fence })
        } else {
            Err(TooLate(Forwarding { id, fence }))
        }
    }

    /// Gives the intent back without forwarding it: nothing was sent.
    pub const fn never_sent(self, why: NotExecuted) -> Report {
        let Self { id, fence, .. } = self;
        Forwarding { id, fence }.never_sent(why)
    }
}

/// The intent came too late to be forwarded.
#[derive(Debug)]
#[must_use = "that nothing was sent is to be recorded"]
pub struct TooLate(Forwarding);

impl TooLate {
    /// What is to be recorded.
    pub const fn report(self) -> Report {
        self.0.never_sent(NotExecuted::TooLate)
    }
}

/// The one forward of an operation. What came of it is said once.
#[derive(Debug)]
#[must_use = "what came of the forward is to be recorded"]
pub struct Forwarding {
    id: OperationId,
    fence: Fence,
}

impl Forwarding {
    /// One that an explored world holds.
    #[cfg(test)]
    pub(super) const fn held(id: OperationId, fence: Fence) -> Self {
        Self { id, fence }
    }

    /// The operation's name.
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// The upstream's own whole answer says that it was executed (T3, T11).
    pub fn succeeded(self, answer: KeptAnswer) -> Report {
        self.report(Event::Succeeded).with(answer)
    }

    /// The upstream's own whole answer says that it refuses it, without effect (T4).
    pub fn refused(self, refusal: Refusal, answer: KeptAnswer) -> Report {
        self.report(Event::Refused(refusal)).with(answer)
    }

    /// Nobody knows what came of it (T5). `first` draws the wait before the first status query.
    pub const fn unknown(self, doubt: Doubt, first: Draw) -> Report {
        self.report(Event::Lost(doubt, first))
    }

    /// Not one byte was handed to a connection, or the protocol says that none was processed (T2). A reason that does not say
    /// that is taken for one that leaves it unknown.
    pub const fn never_sent(self, why: NotExecuted) -> Report {
        match why.is_never_sent() {
            true => self.report(Event::NeverSent(why)),
            false => self.report(Event::Lost(Doubt::Unmatched, Draw::AT_ONCE)),
        }
    }

    const fn report(self, event: Event) -> Report {
        Report::new(self.id, self.fence, event)
    }
}
