//! What each time limit of a route includes.

use std::time::Duration;

use backstop_engine::deadline::{Deadline, reply_share};
use backstop_engine::flow::reserve;
use backstop_engine::policy::{DependencyId, Origin, Route, RouteClass};
use backstop_engine::time::Mono;
use backstop_policy::{Loaded, RouteSettings};

use super::{Line, line};

/// One time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// Its name.
    pub name: Box<str>,
    /// How long.
    pub time: Duration,
    /// What it includes.
    pub includes: &'static str,
    /// Where it was written; `None` for what follows from another one, and for a default.
    pub line: Option<Line>,
}

/// The limits of a route, from the outermost inwards.
pub(super) fn limits(loaded: &Loaded, route: &Route, settings: &RouteSettings) -> Vec<TimeLimit> {
    let mut limits = Limits { loaded, list: Vec::new() };
    let deadline = route.deadline;
    let is_stream = matches!(&route.class, RouteClass::Direct(direct) if direct.idle.is_some());
    let whole = if is_stream {
        "from the complete request head to the head of the answer"
    } else {
        "from the complete request head to the last byte at a client that reads, everything below included. What the client takes for its own content is not in it"
    };
    limits.add("deadline", deadline, whole, route.origins.deadline);
    let kept = reserve(&route.class, deadline);
    let start = Mono::default();
    let attempts = start.until(Deadline::with_reserve(start, deadline, kept).attempt_end());
    limits.add(
        "reply",
        reply_share(deadline),
        "kept at the end of the deadline for sending the answer",
        Origin::NONE,
    );
    if !kept.is_zero() {
        let name = if route.class.effect().is_some() { "record" } else { "alternative" };
        let includes = if route.class.effect().is_some() {
            "kept before that for writing down what came of the operation"
        } else {
            "kept before that for the class's own alternative"
        };
        limits.add(name, kept, includes, Origin::NONE);
    }
    if route.dependency == DependencyId::NONE {
        limits.add(
            "parts",
            attempts,
            "what is left of the deadline for the parts, each within its own route's",
            Origin::NONE,
        );
    } else {
        let includes = "what is left for calls: authorizer, cache, waiting for a place, connecting, sending, the answer to its end, and a retry. A call that another may follow has 60 % of it";
        limits.add("attempt", attempts, includes, Origin::NONE);
    }
    if let RouteClass::Direct(direct) = &route.class
        && let Some(idle) = direct.idle
    {
        limits.add(
            "idle",
            idle,
            "the longest gap between two pieces of the answer, after its head",
            route.origins.route,
        );
    }
    if let Some(rules) = &route.authorizer {
        limits.add(
            "authorizer",
            rules.timeout,
            "all of asking whether the caller may, within the attempt",
            rules.origin,
        );
    }
    if let Some(cached) = route.class.cached() {
        limits.add(
            "cache",
            cached.timeout,
            "all of asking the shared cache, within the attempt",
            route.origins.route,
        );
        let includes =
            "one read for everybody who asks for the same; it goes on when whoever began it is gone";
        limits.add("fill", cached.fill.deadline, includes, cached.fill.origin);
    }
    limits.dependency(route.dependency);
    if let Some(alternative) = &route.alternative {
        limits.dependency(alternative.dependency);
    }
    if let Some(hold) = route.abandon_hold {
        limits.add(
            "abandon_hold",
            hold,
            "how long a call that nobody waits for goes on occupying its dependency",
            route.origins.route,
        );
    }
    let of_client = settings.limits;
    limits.add(
        "body_time",
        of_client.body_time,
        "the client's sending of its content, beside the deadline",
        Origin::NONE,
    );
    limits.add(
        "reply_time",
        of_client.reply_time,
        "how long what is ready waits for a client that does not take it",
        Origin::NONE,
    );
    limits.list
}

struct Limits<'a> {
    loaded: &'a Loaded,
    list: Vec<TimeLimit>,
}

impl Limits<'_> {
    fn add(&mut self, name: &str, time: Duration, includes: &'static str, origin: Origin) {
        let line = line(&self.loaded.sources, origin);
        self.list.push(TimeLimit { name: name.into(), time, includes, line });
    }

    fn dependency(&mut self, id: DependencyId) {
        let loaded = self.loaded;
        let index = usize::from(id.0);
        let (Some(rules), Some(settings)) =
            (loaded.policy.dependencies.get(index), loaded.dependencies.get(index))
        else {
            return;
        };
        let name = &rules.name;
        if !rules.queue.is_zero() {
            self.add(
                &format!("{name}.queue"),
                rules.queue,
                "waiting for a place at it, within the attempt",
                settings.origin,
            );
        }
        self.add(
            &format!("{name}.connect"),
            settings.connect,
            "connecting to one of its addresses, within the attempt",
            settings.origin,
        );
        if let Some(breaker) = &rules.breaker {
            self.add(
                &format!("{name}.slow"),
                breaker.slow,
                "a longer call counts as a slow one for its breaker, and goes on",
                breaker.origin,
            );
        }
    }
}
