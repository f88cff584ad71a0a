//! The drills that every operator needs, made from the policy itself.
//!
//! Each concerns some of the policy's routes and says of the others why it does not; one that concerns none is no drill
//! ([`NoDrill`]). Times come from the policy: a copy that may be an hour old takes an hour to be seen refused.

mod access;
mod broken;
mod cast;
mod copies;
mod dates;
mod full;
mod recovery;
mod writes;

use std::time::Duration;

use super::{Facts, NoDrill, Samples, Scenario};

use cast::Cast;

/// A ready drill.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its name.
    pub name: &'static str,
    /// What it rehearses.
    pub about: &'static str,
    make: fn(&mut Cast<'_>) -> Option<Scenario>,
}

/// Every ready drill.
pub const ALL: [Ready; 15] = [
    Ready { name: "no-copy", about: "a read fails and was never answered before", make: copies::no_copy },
    Ready {
        name: "age-limit",
        about: "copies are served up to their age, and not a moment longer",
        make: copies::age_limit,
    },
    Ready {
        name: "other-key",
        about: "copies of other languages, tenants and paths are never mixed up",
        make: copies::other_key,
    },
    Ready {
        name: "future-date",
        about: "no date, no age and no clock that ran back makes a copy younger",
        make: dates::future_date,
    },
    Ready { name: "saturation", about: "more requests at once than a route lets in", make: full::saturation },
    Ready {
        name: "pool-exhausted",
        about: "every connection of a dependency is taken by calls that hang",
        make: full::pool_exhausted,
    },
    Ready {
        name: "slow-dependency",
        about: "a dependency hangs, is late, or drips",
        make: broken::slow_dependency,
    },
    Ready {
        name: "broken-answers",
        about: "answers that are cut, are not HTTP, or are a page for people",
        make: broken::broken_answers,
    },
    Ready {
        name: "unclassified-errors",
        about: "errors that are no outage pass through, whatever copies there are",
        make: broken::unclassified_errors,
    },
    Ready {
        name: "cache-down",
        about: "a shared cache is away: reads of what is behind it stay within their budget",
        make: full::cache_down,
    },
    Ready {
        name: "both-down",
        about: "a dependency and what stands in for it fail together",
        make: copies::both_down,
    },
    Ready {
        name: "recovery",
        about: "a dependency comes back, and is not flooded",
        make: recovery::recovery,
    },
    Ready {
        name: "retries-at-once-on-recovery",
        about: "every client asks again at the moment when it comes back",
        make: recovery::retries_at_once,
    },
    Ready {
        name: "authorizer-down",
        about: "who may cannot be found out: nobody comes in, and nobody is told that he may not",
        make: access::authorizer_down,
    },
    Ready {
        name: "write-once",
        about: "the answer to a write is lost: it is not sent again",
        make: writes::write_once,
    },
];

impl Ready {
    /// The ready drill of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        ALL.into_iter().find(|ready| ready.name == name)
    }

    /// The drill for this policy.
    ///
    /// # Errors
    /// Where it concerns none of its routes.
    pub fn scenario(&self, facts: &Facts, samples: &Samples, sandbox: bool) -> Result<Scenario, NoDrill> {
        let mut cast = Cast::new(facts, samples, sandbox);
        let made = (self.make)(&mut cast);
        let mut skipped = cast.skipped;
        skipped.sort_unstable();
        skipped.dedup();
        let Some(mut scenario) = made.filter(|scenario| !scenario.sendings.is_empty()) else {
            return Err(NoDrill { skipped });
        };
        self.name.clone_into(&mut scenario.name);
        self.about.clone_into(&mut scenario.about);
        scenario.skipped = skipped;
        scenario.sandbox = sandbox;
        let sent = scenario.sendings.iter().map(|sending| sending.at).max().unwrap_or_default();
        scenario.duration = scenario.duration.max(sent).max(scenario.healed().unwrap_or_default());
        Ok(scenario)
    }
}

/// Requests before anything fails, so that copies are there and it is known that answers are right.
const WARM: Duration = Duration::from_millis(500);
/// What a moment's edge may blur.
const EDGE: Duration = Duration::from_millis(60);

/// The end of what a fault is held responsible for: who is sent at its last moment may be answered after it.
const fn while_broken(end: Duration) -> Duration {
    end.saturating_sub(EDGE)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
