//! Incidents as they were written, or what is wrong with the file.

use backstop_engine::incident::{
    Baseline, Counts, Course, DependencyRecord, DependencyState, Entry, Moment, Named, Phase, Record,
    Stretch, Timeline, What,
};
use backstop_engine::tally::AGE_BUCKETS_SECONDS;
use serde_json::Value;
use std::time::Duration;

use crate::state::json::{At, Damaged};

const AGES: usize = AGE_BUCKETS_SECONDS.len() + 1;

/// An incident and the last second that is in it.
pub(super) fn whole(value: &Value) -> Result<(Record, Moment), Damaged> {
    let file = At::whole(value)?;
    let served = file.get("served");
    let record = Record {
        id: file.get("id").text()?.into(),
        phase: phase(&file.get("phase"))?,
        began: file.get("began").moment()?,
        detected: file.get("detected").moment()?,
        first_green: moment(&file.get("first_green"))?,
        full: moment(&file.get("full"))?,
        ended: moment(&file.get("ended"))?,
        counts: counts(&file.get("requests"))?,
        functions: file.get("functions").list(|at| named(at, counts))?,
        dependencies: file.get("dependencies").list(|at| named(at, dependency))?,
        reasons: numbers(&file.get("reasons"))?,
        signals: numbers(&file.get("signals"))?,
        // A file that an earlier version wrote has neither what was served nor how it went.
        sources: served.some().map_or(Ok(Vec::new()), |served| numbers(&served.get("sources")))?,
        ages: served.some().map_or(Ok([0; AGES]), ages)?,
        oldest_copy: served.some().map_or(Ok(Duration::ZERO), |served| served.get("oldest_copy_ns").ns())?,
        course: file.get("course").some().map_or_else(|| Ok(Course::default()), course)?,
        worst: file.get("worst_second").some().map(counts).transpose()?,
        timeline: timeline(&file.get("timeline"))?,
        tracked_effects: file.get("tracked_effects").u64()?,
        restarts: file.get("restarts").u64()?,
    };
    Ok((record, file.get("counted_until").moment()?))
}

/// How many incidents there were, and what is usual.
pub(super) fn usual(value: &Value) -> Result<(u64, Baseline), Damaged> {
    let file = At::whole(value)?;
    let usual = file.get("usual");
    let baseline = Baseline {
        fallback: usual.get("fallback").f64()?,
        requests: usual.get("requests").f64()?,
        hits: usual.get("hits").f64()?,
        lookups: usual.get("lookups").f64()?,
    };
    Ok((file.get("begun").u64()?, baseline))
}

fn moment(at: &At<'_>) -> Result<Option<Moment>, Damaged> {
    at.some().map(At::moment).transpose()
}

fn phase(at: &At<'_>) -> Result<Phase, Damaged> {
    let phases = [Phase::Degraded, Phase::Recovering, Phase::Observing, Phase::Ended];
    let word = at.text()?;
    phases.into_iter().find(|phase| phase.token() == word).ok_or_else(|| at.no("phase"))
}

fn counts(at: &At<'_>) -> Result<Counts, Damaged> {
    Ok(Counts {
        normal: at.get("normal").u64()?,
        fallback: at.get("fallback").u64()?,
        rejected: at.get("rejected").u64()?,
        failed: at.get("failed").u64()?,
        abandoned: at.get("abandoned").u64()?,
    })
}

fn named<T>(at: &At<'_>, read: impl Fn(&At<'_>) -> Result<T, Damaged>) -> Result<Named<T>, Damaged> {
    Ok(Named { name: at.get("name").text()?.into(), value: read(at)? })
}

fn numbers(at: &At<'_>) -> Result<Vec<Named<u64>>, Damaged> {
    at.entries()?.map(|(name, number)| Ok(Named { name: name.into(), value: number.u64()? })).collect()
}

fn dependency(at: &At<'_>) -> Result<DependencyRecord, Damaged> {
    Ok(DependencyRecord {
        state: state(at)?,
        requests: at.get("requests").u64()?,
        attempts: at.get("attempts").u64()?,
        failures: numbers(&at.get("failures"))?,
        before_per_1000_s: at.get("before_per_1000_s").some().map(At::u64).transpose()?,
    })
}

fn ages(served: &At<'_>) -> Result<[u64; AGES], Damaged> {
    let counts = served.get("copies_by_age");
    counts.list(At::u64)?.try_into().map_err(|_other_length| counts.no("list of 13 counts"))
}

fn course(at: &At<'_>) -> Result<Course, Damaged> {
    let stretch = |at: &At<'_>| {
        Ok(Stretch {
            counts: counts(&at.get("requests"))?,
            oldest_copy: at.get("oldest_copy_ns").ns()?,
            attempts: at.get("attempts").list(At::u64)?,
        })
    };
    Ok(Course { step: at.get("step_ns").ns()?, stretches: at.get("stretches").list(stretch)? })
}

fn state(at: &At<'_>) -> Result<DependencyState, Damaged> {
    let word = at.get("state");
    let ramp = DependencyState::Ramp { percent: 0 };
    let states = [
        DependencyState::Closed,
        DependencyState::Open,
        DependencyState::HalfOpen,
        DependencyState::Forced,
        ramp,
    ];
    let text = word.text()?;
    match states.into_iter().find(|state| state.token() == text).ok_or_else(|| word.no("state"))? {
        DependencyState::Ramp { .. } => {
            Ok(DependencyState::Ramp { percent: percent(&at.get("share_percent"))? })
        }
        state => Ok(state),
    }
}

fn percent(at: &At<'_>) -> Result<u8, Damaged> {
    u8::try_from(at.u64()?).map_err(|_| at.no("percentage"))
}

fn timeline(at: &At<'_>) -> Result<Timeline, Damaged> {
    Ok(Timeline {
        first: at.get("first").list(entry)?,
        dropped: at.get("left_out").u64()?,
        last: at.get("last").list(entry)?,
    })
}

fn entry(at: &At<'_>) -> Result<Entry, Damaged> {
    let word = at.get("what");
    let name = || at.get("name").text().map(Box::from);
    let what = match word.text()? {
        "phase" => What::Phase(phase(&at.get("phase"))?),
        "dependency" => What::Dependency { name: name()?, state: state(at)? },
        "ramp" => What::Ramp {
            name: name()?,
            from: percent(&at.get("from_percent"))?,
            to: percent(&at.get("to_percent"))?,
            steps_back: at.get("steps_back").u32()?,
        },
        "worst_second" => What::Worst(counts(&at.get("requests"))?),
        "gap" => What::Gap { missed: at.get("missed_ns").ns()? },
        "restart" => What::Restart { missed: at.get("missed_ns").ns()? },
        _ => return Err(word.no("entry of a timeline")),
    };
    Ok(Entry {
        at: at.get("at").moment()?,
        until: at.get("until").moment()?,
        times: at.get("times").u64()?,
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::super::write;
    use super::*;
    use backstop_engine::time::{BootId, Mono, Wall};

    fn at(second: u64) -> Moment {
        Moment {
            mono: Mono::from_ns(second * 1_000_000_000 + 1),
            wall: Wall::from_unix_ns(1_772_323_200_123_456_789 + second as i64),
            boot: BootId([7; 16]),
        }
    }

    fn counts_of(first: u64) -> Counts {
        Counts {
            normal: first,
            fallback: first + 1,
            rejected: first + 2,
            failed: first + 3,
            abandoned: first + 4,
        }
    }

    /// Every kind of value and every kind of entry, all of them different.
    fn record() -> Record {
        let named = |name: &str, value| Named { name: name.into(), value };
        let states = [
            DependencyState::Closed,
            DependencyState::Open,
            DependencyState::HalfOpen,
            DependencyState::Forced,
            DependencyState::Ramp { percent: 33 },
        ];
        let dependency = |(index, state)| Named {
            name: format!("d{index}").into(),
            value: DependencyRecord {
                state,
                requests: 10,
                attempts: 11,
                failures: vec![named("connect", 1), named("dns", u64::MAX)],
                before_per_1000_s: Some(12_500),
            },
        };
        let what = [
            What::Phase(Phase::Degraded),
            What::Dependency { name: "catalog".into(), state: DependencyState::Open },
            What::Ramp { name: "catalog".into(), from: 10, to: 33, steps_back: 2 },
            What::Worst(counts_of(50)),
            What::Gap { missed: Duration::from_nanos(6) },
            What::Restart { missed: Duration::from_secs(7) },
        ];
        let entries = |from: u64| {
            let entry = |(what, second)| Entry { at: at(second), until: at(second + 1), times: second, what };
            what.iter().cloned().zip(from..).map(entry).collect()
        };
        Record {
            id: "20260301T000000Z-7".into(),
            phase: Phase::Observing,
            began: at(1),
            detected: at(2),
            first_green: Some(at(3)),
            full: None,
            ended: Some(at(4)),
            counts: counts_of(10),
            functions: vec![
                Named { name: "browse".into(), value: counts_of(20) },
                Named { name: "buy".into(), value: counts_of(30) },
            ],
            dependencies: states.into_iter().enumerate().map(dependency).collect(),
            reasons: vec![named("age", 3), named("breaker_open", 4)],
            signals: vec![named("quality", 5)],
            sources: vec![named("omitted", 6), named("snapshot", 7)],
            ages: std::array::from_fn(|index| index as u64),
            oldest_copy: Duration::from_millis(31_250),
            course: Course {
                step: Duration::from_secs(2),
                stretches: vec![Stretch {
                    counts: counts_of(60),
                    oldest_copy: Duration::from_secs(31),
                    attempts: vec![8, 9],
                }],
            },
            worst: Some(counts_of(40)),
            timeline: Timeline { first: entries(100), dropped: 9, last: entries(200) },
            tracked_effects: 8,
            restarts: 6,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = crate::state::json::text(&write::whole(&record(), &at(9)));
        let (read, counted_until) = whole(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!((read, counted_until), (record(), at(9)));
        let baseline = Baseline { fallback: 0.5, requests: 200.25, hits: 0.0, lookups: 3.0 };
        let text = write::usual(u64::MAX, &baseline).to_string();
        assert_eq!(usual(&serde_json::from_str(&text).unwrap()).unwrap(), (u64::MAX, baseline));
    }

    /// Every value in turn becomes something that is never right: the file is refused and says where. The exceptions are
    /// for people only, or may be absent.
    #[test]
    fn whatever_is_damaged_is_named() {
        fn below(value: &Value, path: &str) -> Vec<String> {
            match value {
                Value::Object(fields) => fields.keys().map(|key| format!("{path}/{key}")).collect(),
                Value::Array(list) => (0..list.len()).map(|index| format!("{path}/{index}")).collect(),
                _ => Vec::new(),
            }
        }
        let good = write::whole(&record(), &at(9));
        let mut paths = vec![String::new()];
        let mut tried = 0;
        while let Some(path) = paths.pop() {
            let mut changed = good.clone();
            let place = changed.pointer_mut(&path).unwrap();
            paths.extend(below(place, &path));
            *place = Value::Bool(true);
            let last = path.rsplit('/').next().unwrap_or_default();
            let is_for_people = path.starts_with("/seconds")
                || path.starts_with("/served/copies_by_age_seconds")
                || matches!(last, "date" | "completed" | "reduced" | "not_completed")
                || (last == "share_percent" && !path.starts_with("/dependencies/4/"));
            assert_eq!(whole(&changed).is_ok(), is_for_people, "{path}");
            tried += 1;
        }
        assert!(tried > 200, "{tried}");
    }
}
