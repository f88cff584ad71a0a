//! When an answer becomes a copy, and when a copy may still be served.
//!
//! A copy's date is the moment at which the read that produced it *began*, less the age that the answer already had
//! when it came (RFC 9111 section 4.2.3): `age = now - request start + received Age`. Nothing else sets it; serving
//! never does.
//!
//! - Within one boot the age is measured with the boot-time clock, which no step of the date moves.
//! - Across boots only the date is left. A copy is then refused if it lies in the future, if the clock shows an earlier
//!   date than one already seen, or while the clock is not synchronised (which the operator may accept in writing).
//! - The limit is inclusive: exactly `max_age` is served, one nanosecond more is refused.
//! - What the origin forbids (RFC 9111 section 4.2.4) counts before what the operator allows, unless overridden in
//!   writing. The origin may shorten the operator's age, never lengthen it.

use std::time::Duration;

use crate::policy::AfterRestart;
use crate::time::{BootId, Mono, Now, Wall, WallTrust};

/// The date of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedAt {
    /// When the read began, on the boot-time clock.
    pub mono: Mono,
    /// When the read began, by date.
    pub wall: Wall,
    /// The boot that `mono` counts from.
    pub boot: BootId,
    /// The age that the answer already had when it came.
    pub received_age: Duration,
}

impl ObservedAt {
    /// A read that begins now and whose answer will turn out to be `received_age` old.
    pub const fn new(now: Now, received_age: Duration) -> Self {
        Self { mono: now.mono, wall: now.wall, boot: now.boot, received_age }
    }

    /// Whether this read began after `other`. Within one boot the boot-time clock says so, else the date.
    pub fn began_after(&self, other: &ObservedAt) -> bool {
        if self.boot == other.boot { self.mono > other.mono } else { self.wall > other.wall }
    }
}

/// How long the origin lets an answer be used when it cannot be asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginLimit {
    /// It says nothing about it.
    #[default]
    Unlimited,
    /// Never without asking (`no-cache`, `no-store`).
    Never,
    /// Only while fresh: age strictly below this (`must-revalidate`, `proxy-revalidate`, `s-maxage`).
    WhileFresh(Duration),
    /// Up to this age, inclusive (`stale-if-error`, RFC 5861, counted from the end of freshness).
    UpTo(Duration),
}

/// What is known of a copy without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFacts {
    /// Its date.
    pub observed_at: ObservedAt,
    /// What the origin said about old copies.
    pub origin_limit: OriginLimit,
}

/// The operator's rules by which a copy is judged.
#[derive(Clone, Copy, Debug)]
pub struct CopyRules {
    /// The oldest copy that may be served, inclusive.
    pub max_age: Duration,
    /// What counts across boots.
    pub after_restart: AfterRestart,
    /// Whether the operator overrides what the origin forbids.
    pub override_origin: bool,
}

/// Why a copy cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyRefusal {
    /// There is none for this key.
    Missing,
    /// Older than the operator's limit.
    TooOld,
    /// Its date lies ahead of the clock.
    FromFuture,
    /// The origin forbids an old copy.
    ForbiddenByOrigin,
    /// It was written before the last boot and the clock cannot be believed.
    ClockUntrusted,
    /// It exists but could not be read back in time or whole.
    Unreadable,
}

/// The age of a copy now.
///
/// # Errors
/// [`CopyRefusal::FromFuture`] or [`CopyRefusal::ClockUntrusted`] where no honest age exists.
pub fn age(
    observed_at: &ObservedAt,
    now: &Now,
    after_restart: AfterRestart,
) -> Result<Duration, CopyRefusal> {
    let resident = if observed_at.boot == now.boot {
        now.mono.since(observed_at.mono).ok_or(CopyRefusal::FromFuture)?
    } else {
        match (now.wall_trust, after_restart) {
            (WallTrust::RanBack, _) | (WallTrust::Unsynchronised, AfterRestart::Verify) => {
                return Err(CopyRefusal::ClockUntrusted);
            }
            (WallTrust::Synchronised, _) | (WallTrust::Unsynchronised, AfterRestart::Trust) => {}
        }
        now.wall.since(observed_at.wall).ok_or(CopyRefusal::FromFuture)?
    };
    Ok(resident.saturating_add(observed_at.received_age))
}

/// Whether a copy may be served now, and how old it then is.
///
/// # Errors
/// The first rule that refuses it; what concerns the clock comes first, then the operator's age, then the origin.
pub fn judge(copy: Option<&CopyFacts>, rules: &CopyRules, now: &Now) -> Result<Duration, CopyRefusal> {
    let copy = copy.ok_or(CopyRefusal::Missing)?;
    let age = age(&copy.observed_at, now, rules.after_restart)?;
    if age > rules.max_age {
        return Err(CopyRefusal::TooOld);
    }
    let allowed = rules.override_origin
        || match copy.origin_limit {
            OriginLimit::Unlimited => true,
            OriginLimit::Never => false,
            OriginLimit::WhileFresh(lifetime) => age < lifetime,
            OriginLimit::UpTo(limit) => age <= limit,
        };
    if allowed { Ok(age) } else { Err(CopyRefusal::ForbiddenByOrigin) }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
