//! Several resources, all or none.

use std::sync::Arc;

use crate::admission::Excess;
use crate::time::Mono;

use super::{ClassShare, Resource, ResourcePermit, ResourceRefusal};

/// So many permits are kept without an allocation.
pub const INLINE: usize = 4;

/// Permits of several resources, all given back when dropped.
#[derive(Debug, Default)]
#[must_use = "permits that are dropped are given back at once"]
pub struct ResourcePermits {
    first: [Option<ResourcePermit>; INLINE],
    more: Vec<ResourcePermit>,
}

impl ResourcePermits {
    /// Each permit, in the order of the resources.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &ResourcePermit> {
        self.first.iter().flatten().chain(&self.more)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    fn push(&mut self, permit: ResourcePermit) {
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(permit),
            None => self.more.push(permit),
        }
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut ResourcePermit> {
        self.first.iter_mut().flatten().chain(&mut self.more)
    }
}

/// Takes one use of each resource, or of none. All places are taken before any rate is asked; what the rates admitted
/// before one of them refused is put back. Only if somebody else took from the same rate in that very moment, its
/// admission stays spent: too little is admitted then, never too much.
///
/// # Errors
/// The position of the first resource that refused, and why.
pub fn acquire_all(
    resources: &[Arc<Resource>],
    now: Mono,
    class: ClassShare,
    excess: Excess,
) -> Result<ResourcePermits, (usize, ResourceRefusal)> {
    let mut permits = ResourcePermits::default();
    for (position, resource) in resources.iter().enumerate() {
        permits.push(resource.place(now, class, excess).map_err(|refusal| (position, refusal))?);
    }
    let mut uses = resources.iter().zip(permits.iter_mut()).enumerate();
    let refused = uses.find_map(|(position, (resource, permit))| {
        resource.pace(permit, now, excess).err().map(|refusal| (position, refusal))
    });
    drop(uses);
    if let Some(refused) = refused {
        put_back(resources, &permits);
        return Err(refused);
    }
    for resource in resources {
        resource.admitted.record(now);
    }
    Ok(permits)
}

/// In the opposite order, so that of one resource that stands there twice both admissions find the word as they left it.
fn put_back(resources: &[Arc<Resource>], permits: &ResourcePermits) {
    for (resource, permit) in resources.iter().rev().zip(permits.iter().rev()) {
        if let Some(taken) = permit.taken {
            resource.rate.put_back(taken);
        }
    }
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
