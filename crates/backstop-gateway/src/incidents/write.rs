//! Incidents as JSON: for people, for programs, and for the next start of this one.

use std::time::Duration;

use backstop_engine::incident::{
    Baseline, Counts, Course, DependencyRecord, DependencyState, Entry, Moment, Named, Record, Stretch,
    Timeline, What,
};
use backstop_engine::tally::AGE_BUCKETS_SECONDS;
use serde_json::{Map, Value, json};

use crate::state::json::{VERSION, moment, ns};

/// The whole of one incident. `counted_until` is the last second that is in it.
pub(super) fn whole(record: &Record, counted_until: &Moment) -> Value {
    json!({
        "version": VERSION,
        "id": &*record.id,
        "phase": record.phase.token(),
        "began": moment(&record.began),
        "detected": moment(&record.detected),
        "first_green": record.first_green.as_ref().map(moment),
        "full": record.full.as_ref().map(moment),
        "ended": record.ended.as_ref().map(moment),
        "counted_until": moment(counted_until),
        "seconds": seconds(record),
        "requests": counts(&record.counts),
        "functions": record.functions.iter().map(function).collect::<Vec<_>>(),
        "dependencies": record.dependencies.iter().map(dependency).collect::<Vec<_>>(),
        "reasons": numbers(&record.reasons),
        "served": served(record),
        "signals": numbers(&record.signals),
        "worst_second": record.worst.as_ref().map(counts),
        "tracked_effects": record.tracked_effects,
        "restarts": record.restarts,
        "timeline": timeline(&record.timeline),
        "course": course(&record.course),
    })
}

/// One incident in a list.
pub(super) fn line(record: &Record) -> Value {
    json!({
        "id": &*record.id,
        "phase": record.phase.token(),
        "began": record.began.date(),
        "ended": record.ended.as_ref().map(Moment::date),
        "seconds": seconds(record),
        "requests": counts(&record.counts),
    })
}

/// What is usual, and how many incidents there were.
pub(super) fn usual(begun: u64, baseline: &Baseline) -> Value {
    json!({
        "version": VERSION,
        "begun": begun,
        "usual": {
            "fallback": baseline.fallback,
            "requests": baseline.requests,
            "hits": baseline.hits,
            "lookups": baseline.lookups,
        },
    })
}

/// From the first second of the incident on.
fn seconds(record: &Record) -> Value {
    let seconds = |duration: Duration| duration.as_secs_f64();
    json!({
        "to_detect": seconds(record.time_to_detect()),
        "to_first_green": record.time_to_first_green().map(seconds),
        "to_full": record.time_to_full().map(seconds),
        "to_end": record.time_to_end().map(seconds),
    })
}

fn counts(counts: &Counts) -> Value {
    json!({
        "normal": counts.normal,
        "fallback": counts.fallback,
        "rejected": counts.rejected,
        "failed": counts.failed,
        "abandoned": counts.abandoned,
        "completed": counts.completed(),
        "reduced": counts.reduced(),
        "not_completed": counts.not_completed(),
    })
}

fn function(named: &Named<Counts>) -> Value {
    with("name", &named.name, counts(&named.value))
}

fn dependency(named: &Named<DependencyRecord>) -> Value {
    let record = &named.value;
    let value = json!({
        "state": record.state.token(),
        "share_percent": share(record.state),
        "requests": record.requests,
        "attempts": record.attempts,
        "failures": numbers(&record.failures),
        "before_per_1000_s": record.before_per_1000_s,
    });
    with("name", &named.name, value)
}

/// What was served instead. Copies of an age are counted under the age that they were not above; the last count has no such age.
fn served(record: &Record) -> Value {
    json!({
        "sources": numbers(&record.sources),
        "copies_by_age": record.ages,
        "copies_by_age_seconds": AGE_BUCKETS_SECONDS,
        "oldest_copy_ns": ns(record.oldest_copy),
    })
}

fn course(course: &Course) -> Value {
    let stretch = |stretch: &Stretch| {
        json!({
            "requests": counts(&stretch.counts),
            "oldest_copy_ns": ns(stretch.oldest_copy),
            "attempts": stretch.attempts,
        })
    };
    json!({
        "step_ns": ns(course.step),
        "stretches": course.stretches.iter().map(stretch).collect::<Vec<_>>(),
    })
}

fn share(state: DependencyState) -> Option<u8> {
    match state {
        DependencyState::Ramp { percent } => Some(percent),
        DependencyState::Closed
        | DependencyState::Open
        | DependencyState::HalfOpen
        | DependencyState::Forced => None,
    }
}

fn numbers(named: &[Named<u64>]) -> Value {
    Value::Object(named.iter().map(|named| (named.name.to_string(), named.value.into())).collect())
}

fn timeline(timeline: &Timeline) -> Value {
    let entries = |entries: &[Entry]| entries.iter().map(entry).collect::<Vec<_>>();
    json!({
        "first": entries(&timeline.first),
        "left_out": timeline.dropped,
        "last": entries(&timeline.last),
    })
}

fn entry(entry: &Entry) -> Value {
    let what = match &entry.what {
        What::Phase(phase) => json!({ "what": "phase", "phase": phase.token() }),
        What::Dependency { name, state } => {
            json!({ "what": "dependency", "name": &**name, "state": state.token() })
        }
        What::Ramp { name, from, to, steps_back } => json!({
            "what": "ramp",
            "name": &**name,
            "from_percent": from,
            "to_percent": to,
            "steps_back": steps_back,
        }),
        What::Worst(worst) => with("what", "worst_second", json!({ "requests": counts(worst) })),
        What::Gap { missed } => json!({ "what": "gap", "missed_ns": ns(*missed) }),
        What::Restart { missed } => json!({ "what": "restart", "missed_ns": ns(*missed) }),
    };
    let mut entries = json!({
        "at": moment(&entry.at),
        "until": moment(&entry.until),
        "times": entry.times,
    });
    if let (Value::Object(entries), Value::Object(what)) = (&mut entries, what) {
        entries.extend(what);
    }
    entries
}

fn with(key: &str, text: &str, value: Value) -> Value {
    let mut fields = Map::new();
    fields.insert(key.into(), text.into());
    if let Value::Object(others) = value {
        fields.extend(others);
    }
    Value::Object(fields)
}
