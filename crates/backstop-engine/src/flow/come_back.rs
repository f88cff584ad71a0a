//! When who was refused may come back.
//!
//! It is told only where the moment is known *and* what there is to spare then (RFC 9110 section 10.2.3 leaves the field
//! out otherwise):
//! - An open breaker is tried again at a known moment. Half open, open beyond its time and waiting for a safe call, or
//!   forced open, it is not known when it lets calls through
//! - A ramp and a full resource refuse now and may not a second later; the first slot is then
//! - What a resource has to spare is its verified rate, less what it admitted of late, less what those of its users had
//!   before that are held back now: they come back as well. Where several processes with this policy stand side by side,
//!   each knows only its own, and gives away only its part of the rate
//!
//! Each resource has slots of its own, whoever of its users refuses; who uses several gets the latest of their slots. What a
//! route may read behind a cache is one of them: where it has a rate, nobody is called back sooner than that can bear, and
//! where it has none, nobody is told who may have been refused by it.

use std::sync::Arc;

use crate::engine::DependencyState;
use crate::failure::{Cause, NotAsked};
use crate::policy::ResourceId;
use crate::resource::Resource;
use crate::time::Mono;

use super::{Flow, Role};

impl Flow {
    /// `Retry-After` of a refusal because of this cause, in seconds. The cause is the route's own dependency's, also where
    /// another one was asked after it.
    pub(super) fn time_to_come_back(&self, cause: Option<Cause>) -> Option<u32> {
        let Some(Cause::NotAsked(reason)) = cause else { return None };
        if self.role == Role::Fill {
            // Whoever waits for it is told, each for itself.
            return None;
        }
        let own = self.own_dependency();
        let known_up = own.health.known_up(self.seen).filter(|up| *up > self.seen);
        let known_up = match reason {
            NotAsked::BreakerOpen => known_up?,
            NotAsked::Ramping | NotAsked::ResourceFull => known_up.unwrap_or(self.seen),
            NotAsked::DependencyFull | NotAsked::PoolTimeout | NotAsked::TooLate | NotAsked::Ledger => {
                return None;
            }
        };
        let budget = self.route().fills.as_ref().filter(|_| self.reads()).map(|fills| &fills.budget);
        // Every process with this policy has a budget of its own.
        let budget = budget.map(|budget| (budget.spare_per_second(self.seen, 1), budget));
        let budget = match budget {
            Some((None, _)) if reason == NotAsked::ResourceFull => return None,
            Some((spare, budget)) => spare.map(|spare| (spare, budget)),
            None => None,
        };
        self.slot(own, budget, known_up)
    }

    fn slot(
        &self,
        own: &DependencyState,
        budget: Option<(f64, &Arc<Resource>)>,
        known_up: Mono,
    ) -> Option<u32> {
        let uses = || own.rules.uses.iter().zip(&own.resources);
        let limited = || uses().filter_map(|(id, used)| Some((self.spare(*id, used)?, used))).chain(budget);
        // The tightest first: if it has no slot to give, none of the others gives one away for nothing.
        let (spare, tightest) = limited().min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        let mut seconds = tightest.come_back.assign(self.seen, known_up, spare)?;
        for (spare, used) in limited().filter(|(_, used)| !Arc::ptr_eq(used, tightest)) {
            seconds = seconds.max(used.come_back.assign(self.seen, known_up, spare)?);
        }
        Some(seconds)
    }

    /// Calls per second that a resource could take beyond those that it gets or will get again; `None` without a rate.
    fn spare(&self, id: ResourceId, resource: &Resource) -> Option<f64> {
        let users = self.engine.dependencies().iter().filter(|user| user.rules.uses.contains(&id));
        let held_back: f64 = users.filter_map(|user| user.health.usual_rate()).sum();
        resource.spare_per_second(self.seen, self.engine.instances()).map(|spare| spare - held_back)
    }
}
