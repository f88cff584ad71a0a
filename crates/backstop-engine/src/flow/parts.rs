//! A request on a `composed` route: its parts are awaited instead of a dependency, and decided about in
//! [`composed`](crate::composed).
//!
//! A part is a request of its own on its own route. It takes no place at the process, because the request that it is a part
//! of holds one, and its deadline ends with what is left of that request's. What is left is the whole deadline without the
//! share of the reply.

use std::time::Duration;

use crate::composed::{Composed, Ending, Gathered, PartFacts};
use crate::failure::Cause;
use crate::outcome::{Outcome, Reason};
use crate::policy::{Origin, RouteClass};
use crate::time::Mono;

use super::{Answer, CopyAction, Flow, Note, Reply, RequestFacts, State};

impl RequestFacts {
    /// How long a request of these facts may take on a route with this deadline.
    pub(super) fn time_within(&self, deadline: Duration, begun: Mono) -> Duration {
        self.part_until.map_or(deadline, |until| deadline.min(begun.until(until)))
    }
}

impl Flow {
    /// A part came.
    pub(super) fn part(&mut self, number: usize, facts: PartFacts) {
        if let RouteClass::Composed(rules) = &self.engine.route(self.route).rules.class {
            let rule = rules.parts.get(number).map_or(Origin::NONE, |part| part.origin);
            let outcome = facts.account.map_or(Outcome::Normal, |account| account.outcome);
            self.trace.note(self.seen, rule, Note::Part(number, facts.status, outcome));
        }
        self.gather(|gathered, rules| gathered.arrive(rules, number, facts));
    }

    /// No part is waited for any longer.
    pub(super) fn parts_time_up(&mut self) {
        self.trace.note(self.seen, self.route().rules.origins.deadline, Note::PartsTimeUp);
        self.gather(|gathered, rules| Some(gathered.time_up(rules)));
    }

    fn gather(&mut self, step: impl FnOnce(&mut Gathered, &Composed) -> Option<Ending>) {
        let RouteClass::Composed(rules) = &self.engine.route(self.route).rules.class else { return };
        let State::AwaitParts(gathered) = &mut self.state else { return };
        if let Some(ending) = step(gathered, rules) {
            self.state = State::Answer(self.composed(ending));
        }
    }

    fn composed(&self, ending: Ending) -> Answer {
        let answer = |reply, account| Answer { reply, copy: CopyAction::Keep, account, streams: None };
        match ending {
            Ending::Whole { placed, omitted, account } => {
                answer(Reply::Composed { placed, omitted }, account)
            }
            Ending::Part { number, account } => answer(Reply::Part { number }, account),
            Ending::Refused { reason, rule } => {
                let cause = match reason {
                    Reason::Cause(cause @ Cause::Failed(_)) => Some(cause),
                    _ => None,
                };
                self.refuse(reason, cause, rule)
            }
        }
    }
}
