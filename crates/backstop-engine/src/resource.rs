//! What several dependencies share (a database, say): how much of it may be in use, and how often.
//!
//! A [`Resource`] has places, a rate, or both. Whoever uses it takes a place, held until the work ends, and one of the
//! rate's admissions, at once or not at all; where one of them refuses, the other is not used up.
//!
//! Places are shared by [class](ClassShare): an optional part may take one only while, with it, less than 60 % are
//! taken, a read below 85 %, a protected operation below 95 %, an effect up to the last. It makes no difference by whom
//! they are taken, and nobody borrows: what one class leaves free above its threshold is kept for those that may go
//! further. The rate has no shares.
//!
//! Some work needs several resources. [`acquire_all`] takes all of them or none.
//!
//! A permit carries the generation of the limit that it was taken from, and gives its place back when dropped, on every
//! path; a rate's admission is used up by being used.

mod admitted;
mod set;

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{Excess, Limit, NoPlace, Permit, Turn};
use crate::policy::Origin;
use crate::rate::{Rate, Taken};
use crate::retry_after::Slots;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

use admitted::Admitted;

pub use crate::admission::ClassShare;
pub use set::{INLINE, ResourcePermits, acquire_all};

/// The rules of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRules {
    /// Its name, as in metrics and messages.
    pub name: Box<str>,
    /// Its places; without a number they are only counted.
    pub concurrency: Option<u32>,
    /// What was verified that it can take per second, beyond what others use; without a number there is no limit. The
    /// burst is what 50 ms of it are, at least 1.
    pub rate: Option<u64>,
    /// Where they were written.
    pub origin: Origin,
}

/// Something that several dependencies share.
#[derive(Debug)]
pub struct Resource {
    name: Box<str>,
    origin: Origin,
    places: Arc<Limit>,
    rate: Rate,
    admitted: Admitted,
    refused: [AtomicU64; ResourceRefusal::TOKENS.len()],
    /// When those who were refused may come back, whoever of its users refused them.
    pub(crate) come_back: Slots,
}

/// Why a resource refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceRefusal {
    /// All places are taken.
    Concurrency,
    /// The rate is used up.
    Rate,
    /// The places that are left are kept for other classes.
    Share,
}

impl ResourceRefusal {
    /// Every reason once, in declaration order.
    pub const TOKENS: [&'static str; 3] = ["concurrency", "rate", "share"];

    /// The reason as one word, as in traces and metrics.
    pub fn token(self) -> &'static str {
        ResourceRefusal::TOKENS.get(self as usize).copied().unwrap_or("concurrency")
    }
}

/// One use of a [`Resource`]; its place is given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct ResourcePermit {
    place: Permit,
    taken: Option<Taken>,
}

impl ResourcePermit {
    /// The generation of the resource's places when this one was taken.
    pub fn generation(&self) -> u64 {
        self.place.generation()
    }

    /// Whether the resource was changed since.
    pub fn is_outdated(&self) -> bool {
        self.place.is_outdated()
    }
}

impl Resource {
    /// A resource by these rules, not in use.
    pub fn new(rules: ResourceRules) -> Self {
        let rate = rules.rate.map_or_else(Rate::unlimited, |rate| Rate::per(rate, Duration::from_secs(1)));
        Self {
            name: rules.name,
            origin: rules.origin,
            places: Arc::new(Limit::new(rules.concurrency.unwrap_or(u32::MAX))),
            rate,
            admitted: Admitted::new(),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
            come_back: Slots::new(),
        }
    }

    /// Takes a place and one of the rate's admissions now, or neither. With [`Excess::Count`] both are given in any
    /// case, and what would have refused is counted.
    ///
    /// # Errors
    /// What refused; the rate is looked at first.
    pub fn try_acquire(
        &self,
        now: Mono,
        class: ClassShare,
        excess: Excess,
    ) -> Result<ResourcePermit, ResourceRefusal> {
        let mut permit = self.place(now, class, excess)?;
        self.pace(&mut permit, now, excess)?;
        self.admitted.record(now);
        Ok(permit)
    }

    /// Gives back a use that was taken at this very moment and is not made after all, its part of the rate included.
    pub(crate) fn put_back(&self, permit: ResourcePermit, now: Mono) {
        let ResourcePermit { place: _place, taken } = permit;
        if let Some(taken) = taken {
            self.rate.put_back(taken);
        }
        self.admitted.take_back(now);
    }

    /// The place alone. A rate that is used up is noticed before, so that nobody is refused because of a place that is
    /// about to come back.
    fn place(&self, now: Mono, class: ClassShare, excess: Excess) -> Result<ResourcePermit, ResourceRefusal> {
        if excess == Excess::Refuse && self.rate.spare(now) == 0 {
            return Err(self.refuse(ResourceRefusal::Rate));
        }
        let (place, refused) = self.places.take_as(class, Turn::Newcomer, excess);
        let mut refusal = ResourceRefusal::Concurrency;
        if let Some(refused) = refused {
            let by_share = refused == NoPlace::Kept;
            refusal = self.refuse(if by_share { ResourceRefusal::Share } else { refusal });
        }
        place.map(|place| ResourcePermit { place, taken: None }).ok_or(refusal)
    }

    fn pace(&self, permit: &mut ResourcePermit, now: Mono, excess: Excess) -> Result<(), ResourceRefusal> {
        permit.taken = self.rate.take(now);
        if permit.taken.is_none() {
            let refusal = self.refuse(ResourceRefusal::Rate);
            if excess == Excess::Refuse {
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn refuse(&self, refusal: ResourceRefusal) -> ResourceRefusal {
        if let Some(counter) = self.refused.get(refusal as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        refusal
    }

    /// Changes places and rate from `now` on and begins a new generation; see [`Limit::reconfigure`] and [`Rate::set`].
    pub fn reconfigure(&self, now: Mono, concurrency: Option<u32>, rate: Option<u64>) {
        self.places.reconfigure(concurrency.unwrap_or(u32::MAX));
        match rate {
            Some(rate) => self.rate.set(now, rate),
            None => self.rate.set_unlimited(now),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its rules were written.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Places taken now.
    pub fn in_use(&self) -> u32 {
        self.places.in_flight()
    }

    /// Its places, if they have a number.
    pub fn concurrency(&self) -> Option<u32> {
        Some(self.places.limit()).filter(|&limit| limit != u32::MAX)
    }

    /// The present generation.
    pub fn generation(&self) -> u64 {
        self.places.generation()
    }

    /// Use of its places in thousandths, rounded down. Without a number of places it is 0; without any place, 1000.
    pub fn in_use_per_mille(&self) -> u32 {
        self.in_use_per_mille_besides(0)
    }

    /// The same, without so many places of one's own: who asks how busy it is must not find itself.
    pub fn in_use_per_mille_besides(&self, own: u32) -> u32 {
        let Some(limit) = self.concurrency() else { return 0 };
        let in_use = u64::from(self.in_use().saturating_sub(own)) * 1_000;
        in_use.checked_div(u64::from(limit)).map_or(1_000, |share| u32::try_from(share).unwrap_or(u32::MAX))
    }

    /// Whether one use more would leave half of it to others.
    pub fn is_half_spare(&self, now: Mono) -> bool {
        self.concurrency().is_none_or(|limit| self.in_use().saturating_add(1) <= limit / 2)
            && self.rate.is_half_spare(now)
    }

    /// How often it refused for this reason so far, or would have.
    pub fn refused(&self, refusal: ResourceRefusal) -> u64 {
        self.refused.get(refusal as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// What the rate could have admitted beyond what it did, per second, over the last five whole seconds; `None`
    /// without a rate, for then nobody has verified one. Where several `instances` use it alike, this is one's part. While
    /// nothing comes through this is all of the rate: in an outage, the demand of before it says more.
    pub fn spare_per_second(&self, now: Mono, instances: u32) -> Option<f64> {
        let is_limited = !self.rate.is_unlimited();
        let part = self.rate.per_second() / f64::from(instances.max(1));
        is_limited.then(|| (part - self.admitted.per_second(now)).max(0.0))
    }
}

#[cfg(test)]
#[path = "resource_tests.rs"]
mod tests;
