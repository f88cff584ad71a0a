//! What a drill file says, as plain data with defaults filled in.

use std::time::Duration;

use crate::read::At;
use crate::shape::{DrillExpectTable, DrillFaultTable, DrillLoadTable, DrillTable};
use crate::source::Source;

/// A drill.
#[derive(Clone, Debug, PartialEq)]
pub struct DrillSettings {
    /// Whether writes may really happen.
    pub sandbox: bool,
    /// How long requests are sent.
    pub duration: Duration,
    /// What clients ask; at least one kind of request.
    pub load: Vec<DrillLoad>,
    /// What fails.
    pub faults: Vec<DrillFault>,
    /// What has to hold.
    pub expects: Vec<DrillExpect>,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct DrillLoad {
    /// The method, in capitals.
    pub method: Box<str>,
    /// The path with its query; `{key}` stands for 1 to `keys`.
    pub target: Box<str>,
    /// How many are sent per second.
    pub per_second: f64,
    /// Fields of the request.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// Its body.
    pub body: Box<str>,
    /// How many different requests `{key}` makes, from 1.
    pub keys: u32,
}

/// A fault of one dependency, authorizer or cache, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct DrillFault {
    /// Its name.
    pub dependency: Box<str>,
    /// What goes wrong.
    pub kind: DrillFaultKind,
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
    /// How many of a thousand calls it befalls.
    pub per_mille: u16,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrillFaultKind {
    /// Connections are refused.
    Refuse,
    /// RST before an answer.
    Reset,
    /// RST in the midst of an answer.
    ResetAfterHead,
    /// No answer.
    Hang,
    /// Closed without an answer.
    HangUp,
    /// An answer that is late by this.
    Slow(Duration),
    /// A body that comes byte by byte, with this pause.
    Drip(Duration),
    /// A body that ends early.
    Truncate,
    /// This status, with a page for people.
    Status(u16),
    /// A status that no rule classifies: 500 without `declared`.
    Unclassified,
    /// Bytes that are not HTTP.
    Garbage,
    /// 200 with a page of HTML.
    WrongBody,
    /// Works and hangs up in turns of this length.
    Flap(Duration),
    /// A date so many seconds ahead.
    Date(u32),
    /// An answer that says it is so many seconds old.
    Age(u32),
    /// So many connections are served.
    Full(u32),
}

/// What has to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrillExpect {
    /// The line on which it begins.
    pub line: u32,
    /// Answers of this route alone.
    pub route: Option<Box<str>>,
    /// Of requests that were sent from then on.
    pub from: Option<Duration>,
    /// Of requests that were sent before then.
    pub to: Option<Duration>,
    /// One of these statuses; empty is any.
    pub status: Vec<u16>,
    /// One of these outcomes; empty is any.
    pub outcome: Vec<Box<str>>,
    /// One of these sources; empty is any.
    pub source: Vec<Box<str>>,
    /// One of these reasons; empty is any.
    pub reason: Vec<Box<str>>,
    /// The least share that is so, in per mille.
    pub at_least: Option<u16>,
    /// The greatest share that is so, in per mille.
    pub at_most: Option<u16>,
    /// No copy is older.
    pub max_age: Option<Duration>,
    /// Answers are there within this, at the percentile in per mille.
    pub latency: Option<(Duration, u16)>,
    /// What calls are counted of.
    pub dependency: Option<Box<str>>,
    /// No more calls than this in any second.
    pub calls_per_second: Option<u32>,
    /// No more calls than this in all.
    pub calls: Option<u32>,
    /// From then on every answer is normal.
    pub recovered_by: Option<Duration>,
}

/// The settings of a table without errors.
pub(super) fn lower(table: DrillTable, sources: &[Source]) -> Option<DrillSettings> {
    let load = table.load?.value.0.into_iter();
    let faults = table.fault.map(|faults| faults.value.0).unwrap_or_default();
    let expects = table.expect.map(|expects| expects.value.0).unwrap_or_default();
    Some(DrillSettings {
        sandbox: table.sandbox.is_some_and(|sandbox| sandbox.value),
        duration: table.duration?.value.0,
        load: load.filter_map(|load| request(load.value)).collect(),
        faults: faults.into_iter().filter_map(|table| fault(&table.value)).collect(),
        expects: expects.into_iter().map(|at| expect(at, sources)).collect(),
    })
}

fn request(table: DrillLoadTable) -> Option<DrillLoad> {
    let line = table.request?.value;
    let rate = table.rate.map_or(10.0, |rate| f64::from(rate.value.count) / rate.value.per.as_secs_f64());
    let headers = table.headers.map(|headers| headers.value.entries).unwrap_or_default();
    Some(DrillLoad {
        method: line.method,
        target: line.target,
        per_second: rate,
        headers: headers.into_iter().map(|(name, value)| (name.value.0, value.value.0)).collect(),
        body: table.body.map(|body| body.value.0).unwrap_or_default(),
        keys: table.keys.map_or(1, |keys| keys.value.0),
    })
}

fn fault(table: &DrillFaultTable) -> Option<DrillFault> {
    let delay = table.delay.as_ref().map_or(Duration::from_millis(100), |delay| delay.value.0);
    let by = table.by.as_ref().map_or(3600, |by| u32::try_from(by.value.0.as_secs()).unwrap_or(u32::MAX));
    let status = table.status.as_ref().map_or(503, |status| status.value.0);
    let kind = match table.kind.as_ref()?.value.0 {
        DrillFaultKind::Slow(_) => DrillFaultKind::Slow(delay),
        DrillFaultKind::Drip(_) => DrillFaultKind::Drip(delay),
        DrillFaultKind::Flap(_) => DrillFaultKind::Flap(delay),
        DrillFaultKind::Status(_) => DrillFaultKind::Status(status),
        DrillFaultKind::Date(_) => DrillFaultKind::Date(by),
        DrillFaultKind::Age(_) => DrillFaultKind::Age(by),
        DrillFaultKind::Full(_) => {
            DrillFaultKind::Full(table.connections.as_ref().map_or(1, |connections| connections.value.0))
        }
        other => other,
    };
    Some(DrillFault {
        dependency: table.dependency.as_ref()?.value.0.clone(),
        kind,
        from: table.from.as_ref()?.value.0,
        to: table.to.as_ref()?.value.0,
        per_mille: table.share.as_ref().map_or(1000, |share| share.value.0),
    })
}

fn expect(at: At<DrillExpectTable>, sources: &[Source]) -> DrillExpect {
    let source = usize::try_from(at.origin.0).ok().and_then(|index| sources.get(index));
    let table = at.value;
    let words = |list: Option<At<crate::read::OneOrMany<crate::value::Name>>>| -> Vec<Box<str>> {
        list.map(|list| list.value.0.into_iter().map(|word| word.value.0).collect()).unwrap_or_default()
    };
    let percentile = table.percentile.map_or(990, |percentile| percentile.value.0);
    DrillExpect {
        line: source.map_or(0, |source| source.place.start.line),
        route: table.route.map(|route| route.value.0),
        from: table.from.map(|from| from.value.0),
        to: table.to.map(|to| to.value.0),
        status: table
            .status
            .map(|list| list.value.0.iter().map(|at| at.value.0).collect())
            .unwrap_or_default(),
        outcome: words(table.outcome),
        source: words(table.source),
        reason: words(table.reason),
        at_least: table.at_least.map(|share| share.value.0),
        at_most: table.at_most.map(|share| share.value.0),
        max_age: table.max_age.map(|age| age.value.0),
        latency: table.latency.map(|latency| (latency.value.0, percentile)),
        dependency: table.dependency.map(|name| name.value.0),
        calls_per_second: table.calls_per_second.map(|count| count.value.0),
        calls: table.calls.map(|count| count.value.0),
        recovered_by: table.recovered_by.map(|by| by.value.0),
    }
}
