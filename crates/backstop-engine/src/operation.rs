//! Operations that must happen once: what is known of them, and what may be said.
//!
//! A payment whose answer is lost may have happened. Sending it again could be a second one, saying that it failed could be a
//! lie. So an operation is written down before it is sent, sent once, and from then on only asked about:
//!
//! ```text
//!             intent durable        answered, refused, never sent
//! (nothing) ------------------> dispatching ------------------> succeeded, failed, not executed
//!                                    | no answer that decides            ^            |
//!                                    v                                   | evidence   | evidence against it
//!                                 unknown -------------------------------+            |
//!                                    | deadline, or what only a person can judge      |
//!                                    v                                   +            |
//!                                attention ------------------------------+ <----------+
//!                                             evidence, or a person
//! ```
//!
//! Nothing leads back to dispatching: RFC 9110 section 9.2.2 forbids a proxy to repeat a request that is not idempotent, and
//! here nothing is repeated at all. So the content of a request need not be kept.
//!
//! | room | what is decided there |
//! |---|---|
//! | [`begin`] | what a key leads to, and that its intent is forwarded at most once |
//! | [`apply`], [`lease_ended`], [`overdue`], [`recover`], [`resolve`] | what leads from one state to the next |
//! | [`claim`] | who may ask for a status |
//! | [`AbsenceRule`] | when "there is no such operation" proves anything |
//! | [`second_look`] | who may ask again about what that decided |
//! | [`Schedule`] | when it is asked |
//! | [`tracked`] | whether "in verification" is true |
//! | [`answer`] | what a client hears |
//! | [`retained`] | what is forgotten, and when |
//!
//! A ledger keeps [`Record`]s. It looks one up, lets one of these functions say what becomes of it, and writes that if the
//! fence is still the same, all in one transaction. It decides nothing.
//!
//! **Clocks.** Leases and waits are moments on the ledger's clock and mean something within one [`Epoch`] only: for an embedded
//! ledger the clock since boot in one life of it, for a shared one its server's. Deadlines for persons, ages and dates to show
//! are by date.
//!
//! **Leases and fences.** An owner's lease is never renewed, because what it does is bounded. When it is over, anyone may
//! declare the outcome unknown. An owner that was only paused may then still send its one forward: nobody else ever does, so
//! that is still at most one. What it reports afterwards is stale, except for one thing: a success in the upstream's own answer
//! is believed whoever owns the record.

mod absence;
mod answer;
mod begin;
mod claim;
mod digest;
mod evidence;
mod id;
mod kept;
mod record;
mod report;
mod retention;
mod schedule;
mod second_look;
mod state;
mod tracked;
mod transition;

use std::time::Duration;

pub use absence::{AbsenceRule, AbsenceRuleError, MOST_CONFIRMATIONS};
pub use answer::{NextTry, Told, answer};
pub use begin::{
    Begin, DurableIntent, Forwarding, Intent, LEASE_GRACE, PendingIntent, SEND_MARGIN, TooLate, begin,
};
pub use claim::{Asked, CLAIM_GRACE, Claim, PendingClaim, Standing, claim};
pub use digest::{ClientKey, Fingerprint, Scope};
pub use evidence::{Evidence, EvidenceKind, Refusal};
pub use id::{Epoch, Fence, NotAnOperationId, OperationId};
pub use kept::{KEPT_BODY_BYTES, KEPT_FIELDS, KeptAnswer};
pub use record::{
    CAPTURED_BYTES, CAPTURED_VALUES, Identity, Inconsistent, IntentError, Parts, Progress, ROUTE_BYTES,
    Record, UPSTREAM_ID_BYTES,
};
pub use report::{Report, Verdict};
pub use retention::{Keep, Retention, retained};
pub use schedule::{Draw, Schedule, VERIFY_FOR};
pub use second_look::{SecondLook, second_look};
pub use state::{Attention, Doubt, NotExecuted, State};
pub use tracked::{Follower, Untracked, date_of, tracked};
pub use transition::{Change, Decision, Refused, apply, lease_ended, overdue, recover, resolve, wake};

/// Clients that ask make the status of an operation be asked for no more often than this.
pub const WAKE_PAUSE: Duration = Duration::from_secs(1);

/// Over what time the status queries of all open operations are spread when a ledger is opened.
pub const RECOVERY_SPREAD: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
