//! One incident in a few words.

use std::collections::BTreeMap;

use backstop_engine::incident::{DependencyRecord, Moment, Named, Record, What};

use super::build::until;
use super::counted::outcomes;
use super::view::IncidentView;

pub(super) fn view(record: &Record, looked: &Moment) -> IncidentView {
    let functions = record.functions.iter();
    let functions: BTreeMap<_, _> =
        functions.map(|named| (named.name.to_string(), outcomes(&named.value))).collect();
    let phases = record.timeline.entries().filter_map(|entry| match &entry.what {
        What::Phase(phase) => Some((phase.token().to_owned(), entry.at.since(&record.began).as_secs())),
        _ => None,
    });
    IncidentView {
        id: record.id.to_string(),
        phase: record.phase.token().to_owned(),
        began: record.began.date(),
        ended: record.ended.as_ref().map(Moment::date),
        seconds: until(record, looked).since(&record.began).as_secs(),
        requests: outcomes(&record.counts),
        functions,
        cause: cause(&record.dependencies),
        phases: phases.collect(),
    }
}

/// The dependency with most failures, and the kind that it had most of.
fn cause(dependencies: &[Named<DependencyRecord>]) -> Option<String> {
    let failed =
        |one: &Named<DependencyRecord>| one.value.failures.iter().map(|kind| kind.value).sum::<u64>();
    let worst = dependencies.iter().filter(|one| failed(one) > 0).max_by_key(|one| failed(one))?;
    let kind = worst.value.failures.iter().max_by_key(|kind| kind.value)?;
    Some(format!("{}: {}", worst.name, kind.name))
}
