//! Whether another dependency may stand in for one that fails.
//!
//! A stand-in helps only if it can carry the load *and* is not broken by the same thing. Both have to be known
//! beforehand; where one is not, nothing is sent to it, not even one call:
//! - It uses no resource that is the cause of the trouble
//! - Every signal of a resource that it shares with the failed dependency is known and not red. No resource that it uses
//!   is red: what is about to break is not helped by more calls
//! - Its capacity was [verified](Verified), by a measurement under the policy that is in force, and the evidence counts
//!   already and has not expired. Both are dates, so a clock that cannot be believed refuses
//! - The route that asks has such evidence of its own: what another route relies on says nothing for this one
//! - Calls stay within the verified concurrency and rate, whoever makes them. One dependency has one capacity: of several
//!   measurements the lowest figures and the shortest time hold
//!
//! Which policy evidence was measured under is looked at before it comes here: evidence that names a digest counts only where
//! that is the policy's own. What comes here counts under [`any`](ANY_POLICY).
//!
//! [`may_stand_in`] is all of that but the last as one function of what is known; a [`StandIn`] counts as well.

use std::sync::Arc;

use crate::admission::{Excess, Limit, Permit, Turn};
use crate::rate::{Rate, Taken};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Now, Wall, WallTrust};

/// What the worst signal of a resource says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Well.
    Green,
    /// Neither well nor in trouble.
    Amber,
    /// In trouble.
    Red,
    /// There is none, or none of late.
    Unknown,
}

impl Signal {
    /// By whether something is beyond what is green, and beyond what is not yet red.
    pub(crate) const fn of(over_green: bool, over_red: bool) -> Self {
        match (over_green, over_red) {
            (_, true) => Signal::Red,
            (true, false) => Signal::Amber,
            (false, false) => Signal::Green,
        }
    }

    /// The worse of two. What is not known may be in trouble, so it is worse than amber.
    #[must_use]
    pub fn or_worse(self, other: Signal) -> Self {
        const fn rank(signal: Signal) -> u8 {
            match signal {
                Signal::Green => 0,
                Signal::Amber => 1,
                Signal::Unknown => 2,
                Signal::Red => 3,
            }
        }
        if rank(other) > rank(self) { other } else { self }
    }
}

/// One resource that the stand-in uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedResource {
    /// Whether the failed dependency uses it too.
    pub is_shared: bool,
    /// Whether it is why the other dependency cannot be asked: it is full, say.
    pub is_cause: bool,
    /// Its worst signal.
    pub signal: Signal,
}

/// What a measurement showed that a dependency can take besides its usual load, and for how long that may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Calls per second.
    pub rate_per_second: u64,
    /// Calls under way at once.
    pub concurrency: u32,
    /// The first moment at which it counts: when it was measured.
    pub valid_from: Wall,
    /// The last moment at which it counts.
    pub valid_until: Wall,
    /// A digest of the policy that it was measured under.
    pub policy: [u8; 32],
}

impl Verified {
    /// What holds if both are known of one dependency.
    #[must_use]
    pub fn narrowed_by(self, other: &Self) -> Self {
        Self {
            rate_per_second: self.rate_per_second.min(other.rate_per_second),
            concurrency: self.concurrency.min(other.concurrency),
            valid_from: self.valid_from.max(other.valid_from),
            valid_until: self.valid_until.min(other.valid_until),
            // Measured under two policies, it counts under neither but this one, and for its own route alone.
            policy: self.policy,
        }
    }

    /// Whether it counts now, under the policy with this digest.
    ///
    /// # Errors
    /// The first rule that forbids it, in the order of [`NoAlternative`].
    pub fn counts(&self, policy: &[u8; 32], now: &Now) -> Result<(), NoAlternative> {
        let refuse_if = |forbidden: bool, why| if forbidden { Err(why) } else { Ok(()) };
        refuse_if(self.policy != *policy, NoAlternative::Policy)?;
        refuse_if(now.wall_trust != WallTrust::Synchronised, NoAlternative::Clock)?;
        refuse_if(now.wall < self.valid_from, NoAlternative::Early)?;
        refuse_if(now.wall > self.valid_until, NoAlternative::Expired)
    }
}

/// The digest of evidence that does not say which policy it was measured under.
pub const ANY_POLICY: [u8; 32] = [0; 32];

/// Why another dependency does not stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoAlternative {
    /// It uses the resource that is the cause.
    Cause,
    /// A resource that it uses is in trouble.
    Red,
    /// Nothing is known of a resource that both use.
    Unknown,
    /// Its capacity was never verified.
    Unverified,
    /// It was verified under another policy.
    Policy,
    /// The date cannot be believed, so no expiry can be judged.
    Clock,
    /// The evidence does not count yet.
    Early,
    /// The evidence has expired.
    Expired,
    /// As many calls as were verified are under way.
    Concurrency,
    /// As many calls as were verified were made of late.
    Rate,
}

impl NoAlternative {
    /// Every reason, in declaration order.
    pub const ALL: [NoAlternative; 10] = [
        NoAlternative::Cause,
        NoAlternative::Red,
        NoAlternative::Unknown,
        NoAlternative::Unverified,
        NoAlternative::Policy,
        NoAlternative::Clock,
        NoAlternative::Early,
        NoAlternative::Expired,
        NoAlternative::Concurrency,
        NoAlternative::Rate,
    ];

    /// Every reason once, in declaration order.
    pub const TOKENS: [&'static str; 10] = [
        "cause",
        "red",
        "unknown",
        "unverified",
        "policy",
        "clock",
        "early",
        "expired",
        "concurrency",
        "rate",
    ];

    /// The reason as one word, as in traces and metrics.
    pub fn token(self) -> &'static str {
        NoAlternative::TOKENS.get(self as usize).copied().unwrap_or("unverified")
    }
}

/// Whether a dependency that uses `resources` and has this evidence may stand in under the policy with this digest.
///
/// # Errors
/// The first rule that forbids it, in the order of [`NoAlternative`].
pub fn may_stand_in(
    resources: impl IntoIterator<Item = UsedResource>,
    verified: Option<&Verified>,
    policy: &[u8; 32],
    now: &Now,
) -> Result<(), NoAlternative> {
    let against = resources.into_iter().filter_map(against).min_by_key(|why| *why as usize);
    against.map_or(Ok(()), Err)?;
    verified.ok_or(NoAlternative::Unverified)?.counts(policy, now)
}

/// What one resource has against its user.
const fn against(used: UsedResource) -> Option<NoAlternative> {
    match used.signal {
        _ if used.is_cause => Some(NoAlternative::Cause),
        Signal::Red => Some(NoAlternative::Red),
        Signal::Unknown if used.is_shared => Some(NoAlternative::Unknown),
        Signal::Unknown | Signal::Amber | Signal::Green => None,
    }
}

/// One call of a stand-in; its place is given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct StandInPermit {
    _place: Permit,
    taken: Taken,
}

/// A dependency in its part as a stand-in: the evidence, and what of it is used up.
#[derive(Debug)]
pub struct StandIn {
    verified: Option<Verified>,
    in_flight: Arc<Limit>,
    rate: Rate,
    refused: [AtomicU64; NoAlternative::TOKENS.len()],
}

impl StandIn {
    /// A stand-in with this evidence; without any it never stands in.
    pub fn new(verified: Option<Verified>) -> Self {
        let concurrency = verified.map_or(0, |verified| verified.concurrency);
        let rate = verified.map_or(0, |verified| verified.rate_per_second);
        Self {
            verified,
            in_flight: Arc::new(Limit::new(concurrency)),
            rate: Rate::per(rate, std::time::Duration::from_secs(1)),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// All evidence about it, as one.
    pub fn verified(&self) -> Option<&Verified> {
        self.verified.as_ref()
    }

    /// Whether evidence allows to ask it now, for a route with this evidence of its own: whether asking is worth a thought.
    /// What it uses and what is used up may still forbid it.
    ///
    /// # Errors
    /// The first rule that forbids it, in the order of [`NoAlternative`].
    pub fn counts(&self, own: Option<&Verified>, policy: &[u8; 32], now: &Now) -> Result<(), NoAlternative> {
        own.ok_or(NoAlternative::Unverified)?.counts(policy, now)?;
        self.verified.as_ref().ok_or(NoAlternative::Unverified)?.counts(policy, now)
    }

    /// Takes one call's place and its part of the rate, or neither, for a route with this evidence of its own. The permit
    /// is held until the call has ended.
    ///
    /// # Errors
    /// What [`may_stand_in`] says, or that the verified capacity is used up.
    pub fn try_acquire(
        &self,
        own: Option<&Verified>,
        resources: impl IntoIterator<Item = UsedResource>,
        policy: &[u8; 32],
        now: &Now,
    ) -> Result<StandInPermit, NoAlternative> {
        let allowed = may_stand_in(resources, own, policy, now).and_then(|()| self.counts(own, policy, now));
        let permit = allowed.and_then(|()| self.capacity(now));
        if let Err(why) = &permit
            && let Some(counter) = self.refused.get(*why as usize)
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        permit
    }

    /// As [`StandIn::try_acquire`], for a call that nobody needs: half of what was verified stays free for those who do. It is
    /// not counted as a refusal.
    ///
    /// # Errors
    /// What [`may_stand_in`] says, or that less than half would be left.
    pub fn try_acquire_spare(
        &self,
        own: Option<&Verified>,
        resources: impl IntoIterator<Item = UsedResource>,
        policy: &[u8; 32],
        now: &Now,
    ) -> Result<StandInPermit, NoAlternative> {
        may_stand_in(resources, own, policy, now).and_then(|()| self.counts(own, policy, now))?;
        if !self.rate.is_half_spare(now.mono) {
            return Err(NoAlternative::Rate);
        }
        let half = self.in_flight.limit() / 2;
        let place = self.in_flight.try_acquire_within(Turn::Newcomer, Excess::Refuse, half);
        let place = place.ok_or(NoAlternative::Concurrency)?;
        let taken = self.rate.take(now.mono).ok_or(NoAlternative::Rate)?;
        Ok(StandInPermit { _place: place, taken })
    }

    /// The call is not made after all: its part of the rate comes back too, unless somebody has taken since.
    pub fn put_back(&self, permit: StandInPermit) {
        let StandInPermit { _place, taken } = permit;
        self.rate.put_back(taken);
    }

    fn capacity(&self, now: &Now) -> Result<StandInPermit, NoAlternative> {
        // Evidence of a capacity is no evidence for what goes beyond it: there is no mode that only counts.
        // Looked at before a place is taken, so that nobody is refused because of one that is about to come back.
        if self.rate.spare(now.mono) == 0 {
            return Err(NoAlternative::Rate);
        }
        let place = self.in_flight.try_acquire(Turn::Newcomer, Excess::Refuse);
        let place = place.ok_or(NoAlternative::Concurrency)?;
        let taken = self.rate.take(now.mono).ok_or(NoAlternative::Rate)?;
        Ok(StandInPermit { _place: place, taken })
    }

    /// Calls under way.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.in_flight()
    }

    /// How often it did not stand in for this reason so far.
    pub fn refused(&self, why: NoAlternative) -> u64 {
        self.refused.get(why as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
#[path = "alternative_tests.rs"]
mod tests;
