//! Which request is drawn, and what may be tried beside it.

use std::sync::Arc;

use crate::admission::{ClassShare, Excess, Limit, Permit, Turn};
use crate::alternative::{ANY_POLICY, NoAlternative};
use crate::deadline::{Deadline, alternative_share};
use crate::engine::{DependencyState, Engine, RouteState};
use crate::failure::Failure;
use crate::flow::{Account, Attempt, AttemptId, BodyFacts, CopyUse, HeadFacts, Method, Places, RequestFacts};
use crate::health::Phase;
use crate::outcome::Outcome;
use crate::policy::{Mode, RouteId};
use crate::resource::acquire_all;
use crate::snapshot::{CopyFacts, CopyRefusal, CopyRules, judge};
use crate::time::Now;

use super::{Came, Exercises, Skipped, Tried, Turned, Wrong};

/// The least part of the time for attempts, in tenths, that another dependency is left in an outage.
const LEAST_TENTHS: u32 = 4;

/// An exercise beside one request.
#[derive(Debug)]
pub struct Exercise {
    engine: Arc<Engine>,
    route: RouteId,
    begun: Now,
    /// Whether the copy, or what is prepared, is tried.
    own: Option<Tried>,
    /// Why the other dependency is not called, or the call.
    call: Option<Result<Attempt, Came>>,
    /// One of those that one route may have under way.
    _place: Option<Permit>,
}

/// The request that was decided.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Its route.
    pub route: RouteId,
    /// What was known of it.
    pub facts: RequestFacts,
    /// What it came to.
    pub account: Account,
    /// The status that it is answered with.
    pub status: u16,
}

impl Exercise {
    /// An exercise beside a request that was just decided and still holds its places, if it is one that is drawn. `entropy`
    /// is 64 random bits that decided nothing else.
    pub fn draw(engine: &Arc<Engine>, request: &Drawn, now: Now, entropy: u64) -> Option<Self> {
        let route = engine.route(request.route);
        let rules = &route.rules;
        // First, because it is nearly always no: the upper half of the product of two words.
        let drawn = (u128::from(entropy) * 1_000) >> 64;
        if drawn >= u128::from(rules.exercise.share_per_mille)
            || !request.may_be_drawn()
            || engine.is_draining()
        {
            return None;
        }
        let is_tried = |tried: Tried| match tried {
            Tried::Copy => request.facts.copies != CopyUse::Never,
            Tried::Fixed => true,
            // Somebody's own question is put to nobody but whom they ask; and where nothing is carried out, nobody is.
            Tried::Call => {
                let is_own = request.facts.credential
                    || (rules.class.read().is_some() && request.facts.copies == CopyUse::Never);
                !is_own && rules.mode == Mode::Enforce && request.facts.elsewhere
            }
        };
        let mut tried = Tried::of(rules).filter(|tried| is_tried(*tried)).peekable();
        tried.peek()?;
        let place = Self::spare(engine, route, now);
        let mut exercise = Self {
            engine: Arc::clone(engine),
            route: request.route,
            begun: now,
            own: None,
            call: None,
            _place: None,
        };
        match place {
            Err(why) => {
                for tried in tried {
                    let _does_not_turn = route.exercises.record(tried, Came::Skipped(why));
                }
                None
            }
            Ok(place) => {
                exercise._place = Some(place);
                for tried in tried {
                    match tried {
                        Tried::Copy | Tried::Fixed => exercise.own = Some(tried),
                        Tried::Call => exercise.call = Some(exercise.attempt()),
                    }
                }
                Some(exercise)
            }
        }
    }

    /// A place among the exercises of the route, if all is well and there is room.
    fn spare(engine: &Engine, route: &RouteState, now: Now) -> Result<Permit, Skipped> {
        if engine.is_in_incident() {
            return Err(Skipped::Incident);
        }
        if !is_closed(engine.dependency(route.rules.dependency), now) {
            return Err(Skipped::Recovering);
        }
        // Besides the request itself, which needs its own places in any case.
        let is_half_spare = |limit: &Limit| limit.in_flight().saturating_sub(1) < limit.limit().div_ceil(2);
        if !is_half_spare(engine.process()) || !is_half_spare(&route.in_flight) {
            return Err(Skipped::Busy);
        }
        let Exercises { at_once, .. } = &route.exercises;
        at_once.try_acquire(Turn::Newcomer, Excess::Refuse).ok_or(Skipped::UnderWay)
    }

    /// The call of the other dependency, with everything that it needs, or why there is none.
    fn attempt(&self) -> Result<Attempt, Came> {
        let (engine, now) = (&self.engine, self.begun);
        let rules = &engine.route(self.route).rules;
        let busy = Came::Skipped(Skipped::Busy);
        let alternative = rules.alternative.ok_or(busy)?;
        let other = engine.dependency(alternative.dependency);
        if !is_closed(other, now) {
            return Err(Came::Skipped(Skipped::Breaker));
        }
        let half = other.in_flight.limit() / 2;
        let has_room = other.in_flight.waiting() == 0
            && other.in_flight.in_flight() < half
            && other.resources.iter().all(|resource| resource.is_half_spare(now.mono));
        if !has_room {
            return Err(busy);
        }
        let used = other.as_stand_in_for(engine.dependency(rules.dependency), None, now.mono);
        let verified = alternative.verified.as_ref();
        let stand_in = other.stand_in.try_acquire_spare(verified, used, &ANY_POLICY, &now);
        let stand_in = stand_in.map_err(|why| match why {
            NoAlternative::Concurrency | NoAlternative::Rate => busy,
            why => Came::NotAsked(why),
        })?;
        // What is taken on the way comes back on every way on which the call is not made.
        let place = other.in_flight.try_acquire_within(Turn::Newcomer, Excess::Refuse, half);
        let resources = acquire_all(&other.resources, now.mono, ClassShare::Optional, Excess::Refuse);
        let (Some(place), Ok(resources)) = (place, resources) else {
            other.stand_in.put_back(stand_in);
            return Err(busy);
        };
        let deadline = Deadline::with_reserve(now.mono, rules.deadline, alternative_share(rules.deadline));
        let time = now.mono.until(deadline.attempt_end()) / 10 * LEAST_TENTHS;
        let until = now.mono.after(time);
        Ok(Attempt {
            id: AttemptId(1),
            dependency: alternative.dependency,
            number: 1,
            places: Places::new(place, resources, Some(stand_in), None, None),
            until,
            end: until,
            abandon_hold: rules.abandon_hold,
            is_once: false,
        })
    }

    /// What one has oneself, to be tried: the copy or what is prepared.
    pub fn own(&self) -> Option<Tried> {
        self.own
    }

    /// The call to be made, once. Why there is none is counted here.
    pub fn call(&mut self) -> (Option<Attempt>, Option<Turned>) {
        match self.call.take() {
            None => (None, None),
            Some(Ok(attempt)) => (Some(attempt), None),
            Some(Err(came)) => (None, self.record(Tried::Call, came)),
        }
    }

    /// The copy that would have answered the request, as it would have been judged when it was decided.
    pub fn judge_copy(&self, copy: Option<&CopyFacts>) -> Came {
        let rules = &self.engine.route(self.route).rules;
        let Some(read) = rules.class.read() else { return Came::Copy(CopyRefusal::Missing) };
        let rules = CopyRules {
            max_age: read.max_age,
            after_restart: read.after_restart,
            override_origin: read.override_origin,
        };
        judge(copy, &rules, &self.begun).map_or_else(Came::Copy, |_age| Came::Good)
    }

    /// The head of the other dependency's answer: with how many bytes at most it is to be collected, or what it comes to. It is
    /// judged as that of one who stands in is; and since the route's own dependency has an answer, one without is none.
    pub fn head(&self, head: HeadFacts) -> Result<u64, Came> {
        let rules = &self.engine.route(self.route).rules;
        if let Some(failure) = Failure::of_status(head.status, rules) {
            return Err(Came::Failed(failure));
        }
        let max_age = rules.class.read().map(|read| read.max_age);
        if max_age.zip(head.degraded).is_some_and(|(most, age)| head.status < 400 && age > most) {
            return Err(Came::Failed(Failure::of_old_answer(head.status)));
        }
        match head.status {
            200..=299 if head.has_body => Ok(rules.class.buffer_bytes()),
            200..=299 => Err(Came::Good),
            500.. => Err(Came::Wrong(Wrong::ServerError)),
            _ => Err(Came::Wrong(Wrong::OtherStatus)),
        }
    }

    /// The answer as a whole.
    pub const fn body(&self, body: BodyFacts) -> Came {
        match body {
            // It would have streamed.
            BodyFacts::TooLarge | BodyFacts::Whole { correct: true, .. } => Came::Good,
            BodyFacts::Whole { correct: false, .. } => Came::Wrong(Wrong::Incorrect),
            BodyFacts::Broken => Came::Failed(Failure::of_broken_body()),
        }
    }

    /// Counts what came.
    pub fn record(&self, tried: Tried, came: Came) -> Option<Turned> {
        self.engine.route(self.route).exercises.record(tried, came)
    }
}

impl Drawn {
    /// Whether it is a read that went well.
    fn may_be_drawn(&self) -> bool {
        self.account.outcome == Outcome::Normal
            && self.facts.method == Method::Get
            && !self.facts.has_content
            && !self.facts.is_open
            && matches!(self.status, 200..=299 | 304)
    }
}

/// Whether a dependency is asked as usual.
fn is_closed(dependency: &DependencyState, now: Now) -> bool {
    matches!(dependency.health.phase(now.mono), Phase::Closed | Phase::ForcedClosed)
}
