//! The drill of an operator's own file.

use backstop_policy::{DrillExpect, DrillFault, DrillFaultKind, DrillLoad, DrillSettings};

use crate::proxy::{Fault, Moment, Window};

use super::{Ask, Expect, Facts, Kind, Samples, Scenario, Selector, ask::host};

/// A drill file asks what cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// No route of the policy is for this.
    #[error("no route of the policy answers `{0}`")]
    NoRoute(String),
    /// A route has effects, and the drill is no sandbox.
    #[error("`{request}` is for the route `{route}`, which has effects: it is not called")]
    Effect {
        /// What is asked.
        request: String,
        /// The route.
        route: String,
    },
}

/// The requests of one kind of load, each with its key.
fn asks(facts: &Facts, load: &DrillLoad, sandbox: bool) -> Result<Vec<Ask>, Impossible> {
    let keys = if load.target.contains("{key}") { load.keys } else { 1 };
    let mut asks = Vec::new();
    for number in 1..=keys {
        let target = load.target.replace("{key}", &number.to_string());
        let request = format!("{} {target}", load.method);
        let fields: Vec<(String, String)> =
            load.headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let route = facts.find(host(&fields), &load.method, &target);
        let route = route.ok_or_else(|| Impossible::NoRoute(request.clone()))?;
        let facts_of = facts.routes().get(route);
        if let Some(effect) = facts_of.filter(|route| route.has_effects() && !sandbox) {
            return Err(Impossible::Effect { request, route: effect.name.to_string() });
        }
        let body = load.body.to_string();
        asks.push(Ask { body, ..Ask::new(facts, route, &load.method, &target, fields) });
    }
    Ok(asks)
}

/// The requests of a drill file, for ready drills of the same routes.
///
/// # Errors
/// If one of them is for no route, or for one that may not be called.
pub fn samples(facts: &Facts, settings: &DrillSettings) -> Result<Samples, Impossible> {
    let mut samples = Samples::default();
    for load in &settings.load {
        samples.asks.extend(asks(facts, load, settings.sandbox)?);
    }
    Ok(samples)
}

/// The drill of a file.
///
/// # Errors
/// If a request is for no route, or for one that may not be called.
pub fn scenario(facts: &Facts, name: &str, settings: &DrillSettings) -> Result<Scenario, Impossible> {
    let mut scenario = Scenario::new(name, "what the drill file says");
    scenario.sandbox = settings.sandbox;
    scenario.duration = settings.duration;
    scenario.must_look = true;
    for load in &settings.load {
        let asks = scenario.ask(asks(facts, load, settings.sandbox)?);
        scenario.send(&asks, load.per_second, std::time::Duration::ZERO, settings.duration);
    }
    let routes = scenario.routes();
    scenario.windows = settings.faults.iter().filter_map(|fault| window(facts, fault, &routes)).collect();
    scenario.expects = settings.expects.iter().flat_map(|expect| expects(facts, expect)).collect();
    Ok(scenario)
}

fn upstream(facts: &Facts, name: &str) -> Option<usize> {
    facts.upstreams().iter().position(|upstream| *upstream.name == *name)
}

fn window(facts: &Facts, fault: &DrillFault, routes: &[usize]) -> Option<Window> {
    let kind = match fault.kind {
        DrillFaultKind::Refuse => Fault::Refuse,
        DrillFaultKind::Reset => Fault::Reset(Moment::BeforeHead),
        DrillFaultKind::ResetAfterHead => Fault::Reset(Moment::AfterHead),
        DrillFaultKind::Hang => Fault::Hang,
        DrillFaultKind::HangUp => Fault::HangUp,
        DrillFaultKind::Slow(delay) => Fault::Slow(delay),
        DrillFaultKind::Drip(pause) => Fault::Drip(pause),
        DrillFaultKind::Truncate => Fault::Truncate,
        DrillFaultKind::Status(status) => Fault::Status(status),
        DrillFaultKind::Unclassified => Fault::Status(facts.unclassified(routes).unwrap_or(500)),
        DrillFaultKind::Garbage => Fault::Garbage,
        DrillFaultKind::WrongBody => Fault::WrongBody,
        DrillFaultKind::Flap(half) => Fault::Flap(half),
        DrillFaultKind::Date(ahead) => Fault::Date(ahead),
        DrillFaultKind::Age(age) => Fault::Age(age),
        DrillFaultKind::Full(connections) => Fault::Full(connections),
    };
    let upstream = upstream(facts, &fault.dependency)?;
    Some(Window { upstream, fault: kind, from: fault.from, to: fault.to, per_mille: fault.per_mille })
}

/// One table may expect several things.
fn expects(facts: &Facts, expect: &DrillExpect) -> Vec<Expect> {
    let route = expect.route.as_deref();
    let route = route.and_then(|name| facts.routes().iter().position(|route| *route.name == *name));
    let routes: Vec<usize> = route.into_iter().collect();
    let of = Selector { routes, from: expect.from.unwrap_or_default(), to: expect.to, ..Selector::default() };
    let words = |words: &[Box<str>]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let kind = Kind {
        status: expect.status.clone(),
        outcome: words(&expect.outcome),
        source: words(&expect.source),
        reason: words(&expect.reason),
    };
    let mut all = Vec::new();
    if kind != Kind::default() {
        let at_least = expect.at_least.unwrap_or(if expect.at_most.is_some() { 0 } else { 1000 });
        all.push(Expect::Share {
            name: "expected".to_owned(),
            promise: promise(expect),
            of: of.clone(),
            kind,
            at_least,
            at_most: expect.at_most.unwrap_or(1000),
        });
    }
    all.extend(expect.max_age.map(|age| Expect::MaxAge { of: of.clone(), age }));
    let latency =
        expect.latency.map(|(within, per_mille)| Expect::Latency { of: of.clone(), within, per_mille });
    all.extend(latency);
    all.extend(expect.recovered_by.map(|by| {
        let of = Selector { from: by, to: expect.to, ..of.clone() };
        Expect::all(
            "recovered-by",
            &format!("line {}: every answer is normal from {by:?} on", expect.line),
            of,
            Kind::outcome("normal"),
        )
    }));
    let dependency = expect.dependency.as_deref().and_then(|name| upstream(facts, name));
    if let Some(upstream) = dependency.filter(|_| expect.calls.is_some() || expect.calls_per_second.is_some())
    {
        all.push(Expect::Calls {
            upstream,
            from: of.from,
            to: of.to,
            per_second: expect.calls_per_second.map(u64::from),
            in_all: expect.calls.map(u64::from),
            at_once: None,
        });
    }
    all
}

fn promise(expect: &DrillExpect) -> String {
    let status: Vec<String> = expect.status.iter().map(ToString::to_string).collect();
    let words = [
        ("status", status),
        ("outcome", of(&expect.outcome)),
        ("source", of(&expect.source)),
        ("reason", of(&expect.reason)),
    ];
    let words: Vec<String> = words
        .iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(name, words)| format!("{name} {}", words.join(" or ")))
        .collect();
    let percent = |per_mille: u16| format!("{} %", f64::from(per_mille) / 10.0);
    let share = match (expect.at_least, expect.at_most) {
        (None, None) => "every answer".to_owned(),
        (Some(least), None) => format!("at least {} of answers", percent(least)),
        (None, Some(most)) => format!("at most {} of answers", percent(most)),
        (Some(least), Some(most)) => format!("{} to {} of answers", percent(least), percent(most)),
    };
    format!("line {}: {share}: {}", expect.line, words.join(", "))
}

fn of(words: &[Box<str>]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
