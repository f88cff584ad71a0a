//! An incident in words.

use backstop_engine::incident::{DependencyRecord, Entry, Moment, Named, Phase, Record, What};

use super::super::sentence::time;
use super::super::words;
use super::super::words::lasts;

pub(super) fn phase(phase: Phase) -> String {
    match phase {
        Phase::Degraded => "Degraded",
        Phase::Recovering => "Recovering",
        Phase::Observing => "Observing",
        Phase::Ended => "Over",
    }
    .to_owned()
}

/// The whole in one sentence.
pub(super) fn sentence(record: &Record, end: &Moment) -> String {
    let lasted = lasts(end.since(&record.began).as_secs());
    let goes_on = if record.ended.is_some() { "lasted" } else { "has lasted" };
    let cause = worst(&record.dependencies)
        .map(|(name, kind)| format!(" The cause: {name} {} ({kind}).", words::failure(&kind)));
    format!(
        "It {goes_on} {lasted}, from {} UTC on. Of {} requests {} were completed, {} reduced and {} not completed.{}",
        time(&record.began.date()),
        record.counts.requests(),
        record.counts.completed(),
        record.counts.reduced(),
        record.counts.not_completed(),
        cause.unwrap_or_default()
    )
}

/// The dependency with most failures, and the kind it had most of.
fn worst(dependencies: &[Named<DependencyRecord>]) -> Option<(String, String)> {
    let failed =
        |one: &Named<DependencyRecord>| one.value.failures.iter().map(|kind| kind.value).sum::<u64>();
    let worst = dependencies.iter().filter(|one| failed(one) > 0).max_by_key(|one| failed(one))?;
    let kind = worst.value.failures.iter().max_by_key(|kind| kind.value)?;
    Some((worst.name.to_string(), kind.name.to_string()))
}

pub(super) fn served(record: &Record) -> String {
    let copies: u64 = record.ages.iter().sum();
    if record.sources.is_empty() {
        return "No alternative was served.".to_owned();
    }
    let alternatives: u64 = record.sources.iter().map(|one| one.value).sum();
    let oldest = format!("{:.1} s", record.oldest_copy.as_secs_f64());
    let copies = if copies == 0 {
        String::new()
    } else {
        format!(", {copies} of them copies; the oldest was {oldest} old")
    };
    format!("{alternatives} alternatives were served{copies}.")
}

/// Every entry: when, how long after the beginning, and what.
pub(super) fn entries(record: &Record) -> Vec<(String, String, String)> {
    let entry = |entry: &Entry| {
        let after = lasts(entry.at.since(&record.began).as_secs());
        (time(&entry.at.date()), after, what(entry))
    };
    let begins = (time(&record.began.date()), lasts(0), "The first second that belongs to it".to_owned());
    [begins].into_iter().chain(record.timeline.entries().map(entry)).collect()
}

pub(super) fn what(entry: &Entry) -> String {
    match &entry.what {
        What::Phase(phase) => format!("The incident is {}", phase.token()),
        What::Dependency { name, state } => format!("{name} is {}", state.token().replace('_', " ")),
        What::Ramp { name, from, to, steps_back } => {
            let back = if *steps_back > 0 { format!(", {steps_back} steps back") } else { String::new() };
            format!(
                "{name} is given {from} % to {to} % of its load until {}{back}",
                time(&entry.until.date())
            )
        }
        What::Worst(counts) => format!(
            "The worst second: {} reduced, {} not completed",
            counts.reduced(),
            counts.not_completed()
        ),
        What::Gap { missed } => format!("Nobody counted for {}", lasts(missed.as_secs())),
        What::Restart { missed } => {
            format!("The gateway was started again after {}", lasts(missed.as_secs()))
        }
    }
}

pub(super) fn end(record: &Record) -> String {
    let after = |moment: &Option<Moment>| {
        moment.map(|moment| {
            format!("{} UTC, after {}", time(&moment.date()), lasts(moment.since(&record.began).as_secs()))
        })
    };
    let green = after(&record.first_green)
        .map(|when| format!("Everything was in order for the first time at {when}. "));
    let full =
        after(&record.full).map(|when| format!("Traffic was whole and of full quality from {when} on. "));
    let end = match after(&record.ended) {
        Some(when) => {
            format!("It was over at {when}: five minutes without a break in which everything was in order.")
        }
        None => {
            "It is not over: it is over after five minutes without a break in which everything is in order."
                .into()
        }
    };
    format!("{}{}{end}", green.unwrap_or_default(), full.unwrap_or_default())
}
