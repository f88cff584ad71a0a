//! A route's ladder: what it may answer with, in the order in which it is tried, and which rung is in use.
//!
//! A ladder has the rungs that the route's class and policy have, and no other; what was counted from a source that is not among
//! them gets a rung all the same, because what the page says is what the counters say.

use std::time::Duration;

use backstop_engine::engine::{Engine, RouteState as Route};
use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::policy::{DependencyId, Otherwise, RouteClass, UnavailableStatus};
use backstop_engine::tally::RequestCount;

use super::view::{Rung, RungKind};

/// The share of the answers that a rung must give to be in use: one in a hundred.
const IN_USE: u64 = 100;

/// Which rung an answer came from; none where the client ended the request.
pub(super) fn rung_of(count: &RequestCount) -> Option<RungKind> {
    let is_clients = [Reason::ClientSlow, Reason::ClientTooLarge, Reason::ClientLeft]
        .iter()
        .any(|reason| reason.token() == count.reason);
    match (count.outcome, count.source) {
        _ if is_clients => None,
        (Outcome::Abandoned, _) => None,
        (Outcome::Rejected | Outcome::Failed, _) => Some(RungKind::Refusal),
        (_, Source::Cache) => Some(RungKind::Cache),
        (_, Source::Snapshot) => Some(RungKind::Copy),
        (_, Source::Prepared) => Some(RungKind::Prepared),
        (_, Source::Omitted) => Some(RungKind::Omitted),
        (_, Source::Alternative) => Some(RungKind::Alternative),
        (_, Source::Ledger) => Some(RungKind::Ledger),
        (_, Source::Authorizer) => Some(RungKind::Authorizer),
        (Outcome::Normal, Source::Primary | Source::None) => Some(RungKind::Dependency),
        // Reduced, and by no rung of its own: a whole whose parts are.
        (Outcome::Fallback, Source::Primary | Source::None) => Some(RungKind::Omitted),
    }
}

/// The last rung that gave at least one in a hundred of these answers, and the commonest reason of those that it gave. None
/// without an answer.
pub(super) fn in_use(counts: &[RequestCount]) -> Option<(RungKind, &'static str)> {
    let answers = || counts.iter().filter_map(|count| Some((rung_of(count)?, count)));
    let all: u64 = answers().map(|(_, count)| count.count).sum();
    let of = |kind: RungKind| -> u64 {
        answers().filter(|(rung, _)| *rung == kind).map(|(_, count)| count.count).sum()
    };
    let used = answers().map(|(rung, _)| rung).filter(|rung| of(*rung) * IN_USE >= all);
    let rung = used.max()?;
    let given = answers().filter(|(own, _)| *own == rung).map(|(_, count)| count);
    let mut reasons: Vec<(&'static str, u64)> = Vec::new();
    for count in given {
        match reasons.iter_mut().find(|(reason, _)| *reason == count.reason) {
            Some((_, sum)) => *sum += count.count,
            None => reasons.push((count.reason, count.count)),
        }
    }
    let reason = reasons.into_iter().max_by_key(|(_, count)| *count).map_or("none", |(reason, _)| reason);
    Some((rung, reason))
}

/// The whole ladder. `minute` has the requests of the last minute; `authorizer` is the name of who is asked first.
pub(super) fn ladder(
    engine: &Engine,
    route: &Route,
    authorizer: Option<&str>,
    minute: &[RequestCount],
    used: Option<RungKind>,
) -> Vec<Rung> {
    let mut rungs = rules(engine, route, authorizer);
    let of = |kind: RungKind| -> u64 {
        minute.iter().filter(|count| rung_of(count) == Some(kind)).map(|count| count.count).sum()
    };
    let all: u64 = minute.iter().filter(|count| rung_of(count).is_some()).map(|count| count.count).sum();
    for count in minute {
        let Some(kind) = rung_of(count) else { continue };
        let kind = own(route, kind);
        if rungs.iter().all(|(known, ..)| *known != kind) {
            let place = rungs.iter().position(|(known, ..)| *known > kind).unwrap_or(rungs.len());
            rungs.insert(place, (kind, kind.word().to_owned(), String::new()));
        }
    }
    let used = used.map(|used| own(route, used));
    let rung = |(kind, name, detail): (RungKind, String, String)| {
        // What a composed route answers normally comes from its parts.
        let answers = if kind == RungKind::Parts { of(RungKind::Dependency) } else { of(kind) };
        // To three places, as everything that is shown.
        let share = if all == 0 { 0.0 } else { (answers as f64 / all as f64 * 1000.0).round() / 1000.0 };
        Rung { kind, name, detail, answers, share, is_in_use: used == Some(kind) }
    };
    rungs.into_iter().map(rung).collect()
}

/// The route's own name for a rung.
pub(super) fn own(route: &Route, kind: RungKind) -> RungKind {
    match (&route.rules.class, kind) {
        (RouteClass::Composed(_), RungKind::Dependency) => RungKind::Parts,
        (_, kind) => kind,
    }
}

fn rules(engine: &Engine, route: &Route, authorizer: Option<&str>) -> Vec<(RungKind, String, String)> {
    let rules = &route.rules;
    let mut rungs = Vec::new();
    if let Some(name) = authorizer {
        rungs.push((RungKind::Authorizer, name.to_owned(), "an explicit yes first".to_owned()));
    }
    if let Some(cached) = rules.class.cached() {
        let name =
            engine.caches().get(usize::from(cached.cache.0)).map_or("cache", |cache| &cache.rules.name);
        rungs.push((RungKind::Cache, name.to_owned(), format!("up to {}", length(cached.ttl))));
    }
    match &rules.class {
        RouteClass::Composed(composed) => {
            rungs.push((
                RungKind::Parts,
                format!("{} parts", composed.parts.len()),
                "each on its own route".into(),
            ));
        }
        _ => rungs.push((RungKind::Dependency, name(engine, rules.dependency), asked(route))),
    }
    if let Some(retry) = rules.retry.filter(|retry| retry.attempts > 1) {
        let own = retry.owner == backstop_engine::retry::Owner::Backstop;
        if own {
            rungs.push((
                RungKind::Retry,
                "once more".into(),
                "within the deadline, if a success pays for it".into(),
            ));
        }
    }
    if rules.class.effect().is_some() {
        rungs.push((RungKind::Ledger, "ledger".into(), "what is recorded of the same operation".into()));
    }
    if let Some(alternative) = rules.alternative {
        let bound = match alternative.verified {
            Some(verified) => format!("up to {} calls/s", verified.rate_per_second),
            None => "never: nothing was verified".to_owned(),
        };
        rungs.push((RungKind::Alternative, name(engine, alternative.dependency), bound));
    }
    if let Some(read) = rules.class.read().filter(|_| rules.class.keeps_copies()) {
        rungs.push((RungKind::Copy, "copy".into(), format!("up to {} old", length(read.max_age))));
    }
    if let RouteClass::Optional(optional) = &rules.class {
        let status = optional.otherwise.answer().status;
        rungs.push(match optional.otherwise {
            Otherwise::Omit(_) => (RungKind::Omitted, "left out".into(), format!("status {status}")),
            Otherwise::Prepared(_) => {
                (RungKind::Prepared, "prepared answer".into(), format!("status {status}"))
            }
        });
    }
    rungs.push((RungKind::Refusal, refusal(route).into(), "no answer".into()));
    rungs
}

fn asked(route: &Route) -> String {
    match (&route.rules.class, route.rules.class.cached()) {
        (RouteClass::Effect(_), _) => "once, and never again".into(),
        (_, Some(cached)) => format!("at most {} reads at once", cached.fill.concurrency),
        _ => format!("within {}", length(route.rules.deadline)),
    }
}

const fn refusal(route: &Route) -> &'static str {
    match (&route.rules.class, route.rules.unavailable_status) {
        (RouteClass::PublicRead(_) | RouteClass::CachedRead(_), UnavailableStatus::Contract)
        | (RouteClass::Optional(_) | RouteClass::Composed(_), _) => "503",
        _ => "502, 503 or 504",
    }
}

fn name(engine: &Engine, dependency: DependencyId) -> String {
    engine.dependencies().get(usize::from(dependency.0)).map_or("none", |one| &one.rules.name).to_owned()
}

/// A length of time as people write it: `300 ms`, `2.5 s`, `60 s`, `5 min`, `2 h`.
pub(super) fn length(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 if !duration.is_zero() => format!("{} \u{b5}s", duration.as_micros()),
        0..=999 => format!("{ms} ms"),
        _ if !ms.is_multiple_of(1000) => format!("{} s", duration.as_secs_f64()),
        _ => match duration.as_secs() {
            seconds @ 0..=119 => format!("{seconds} s"),
            seconds if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
            seconds if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
            seconds => format!("{} min {} s", seconds / 60, seconds % 60),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(outcome: Outcome, source: Source, reason: &'static str, count: u64) -> RequestCount {
        RequestCount { outcome, source, reason, count }
    }

    /// By hand: of 200 answers, 2 are one in a hundred and 1 is not.
    #[test]
    fn a_rung_is_in_use_from_one_in_a_hundred_on() {
        let of = |copies| {
            in_use(&[
                count(Outcome::Normal, Source::Primary, "none", 200 - copies),
                count(Outcome::Fallback, Source::Snapshot, "connect", copies),
            ])
        };
        assert_eq!(of(1), Some((RungKind::Dependency, "none")));
        assert_eq!(of(2), Some((RungKind::Copy, "connect")));
    }

    #[test]
    fn the_last_rung_counts_with_its_commonest_reason() {
        let counts = [
            count(Outcome::Fallback, Source::Snapshot, "connect", 50),
            count(Outcome::Rejected, Source::None, "missing", 3),
            count(Outcome::Rejected, Source::None, "age", 4),
            count(Outcome::Failed, Source::None, "age", 4),
            count(Outcome::Rejected, Source::None, "capacity", 5),
        ];
        assert_eq!(in_use(&counts), Some((RungKind::Refusal, "age")));
    }

    #[test]
    fn what_the_client_ended_says_nothing_of_the_route() {
        let counts = [
            count(Outcome::Abandoned, Source::None, "client_left", 9),
            count(Outcome::Rejected, Source::None, "client_slow", 9),
        ];
        assert_eq!(in_use(&counts), None);
    }

    #[test]
    fn lengths_are_written_as_people_write_them() {
        let ms = |ms| length(Duration::from_millis(ms));
        assert_eq!(
            [ms(300), ms(2500), ms(60_000), ms(300_000), ms(7_200_000), ms(150_000)],
            ["300 ms", "2.5 s", "60 s", "5 min", "2 h", "2 min 30 s"]
        );
    }
}
