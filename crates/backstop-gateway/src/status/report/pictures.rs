//! The pictures of a report, on the time of day.

use backstop_chart::{
    Band, Clock, Frame, Hue, Layer, Line, Marker, Point, Ramp, Row, Scale, Span, Svg, lines, ramp, stacked,
};
use backstop_engine::incident::{DependencyState, Entry, Moment, Phase, Record, What};

use super::super::curves::phase_hue;
use super::super::sentence::time;

/// Dependencies that have a picture of their own.
const DEPENDENCIES: usize = 6;
/// Rows of the timeline.
const ROWS: usize = 16;

fn span(record: &Record, end: &Moment) -> Span {
    let zero_unix_s = record.began.wall.as_unix_ns() as f64 / 1e9;
    Span::new(0.0, end.since(&record.began).as_secs_f64(), Clock::Utc { zero_unix_s })
}

fn at(record: &Record, moment: &Moment) -> f64 {
    moment.since(&record.began).as_secs_f64()
}

/// When it came into each of its phases; the first one from the first second on.
fn phases(record: &Record, end: &Moment) -> Vec<Band> {
    let of = |entry: &Entry| match entry.what {
        What::Phase(phase) => Some((phase, at(record, &entry.at))),
        _ => None,
    };
    let begins: Vec<(Phase, f64)> = record.timeline.entries().filter_map(of).collect();
    let ends = begins.iter().skip(1).map(|(_, at)| *at).chain([at(record, end)]);
    let band = |(index, ((phase, from_s), to_s)): (usize, (&(Phase, f64), f64))| Band {
        from_s: if index == 0 { 0.0 } else { *from_s },
        to_s,
        hue: phase_hue(phase.token()),
        label: phase.token().to_owned(),
    };
    begins.iter().zip(ends).enumerate().map(band).collect()
}

/// What one dependency was in.
fn states(record: &Record, end: &Moment, name: &str) -> Vec<Band> {
    let of = |entry: &Entry| match &entry.what {
        What::Dependency { name: own, state } if **own == *name => Some((at(record, &entry.at), *state)),
        What::Ramp { name: own, to, .. } if **own == *name => {
            Some((at(record, &entry.at), DependencyState::Ramp { percent: *to }))
        }
        _ => None,
    };
    let begins: Vec<_> = record.timeline.entries().filter_map(of).collect();
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([at(record, end)]);
    let band = |((from_s, state), to_s): (&(f64, DependencyState), f64)| {
        let (hue, label) = match state {
            DependencyState::Closed => return None,
            DependencyState::Open => (Hue::Failed, "open"),
            DependencyState::HalfOpen => (Hue::Rejected, "tried"),
            DependencyState::Ramp { .. } => (Hue::Fallback, "load comes back"),
            DependencyState::Forced => (Hue::Third, "held by hand"),
        };
        Some(Band { from_s: *from_s, to_s, hue, label: label.to_owned() })
    };
    begins.iter().zip(ends).filter_map(band).collect()
}

pub(super) fn timeline(record: &Record, end: &Moment) -> Svg {
    let mut rows = vec![Row { name: "incident".into(), bands: phases(record, end) }];
    for dependency in record.dependencies.iter().take(ROWS) {
        let bands = states(record, end, &dependency.name);
        if !bands.is_empty() {
            rows.push(Row { name: dependency.name.to_string(), bands });
        }
    }
    let moments =
        [("detected", Some(record.detected)), ("in order", record.first_green), ("whole", record.full)];
    let markers = moments
        .into_iter()
        .filter_map(|(label, moment)| Some(Marker { at_s: at(record, &moment?), label: label.to_owned() }));
    let height = 120 + 28 * u32::try_from(rows.len()).unwrap_or(16);
    let description = format!(
        "From {} to {} UTC: phases of the incident, and what dependencies were in. The table below has every entry.",
        time(&record.began.date()),
        time(&end.date())
    );
    let frame = Frame::new("timeline", "Timeline of the incident", &description, span(record, end))
        .sized(1000, height)
        .with_markers(markers.collect());
    backstop_chart::timeline(&frame, &rows)
}

fn moments(record: &Record) -> Vec<f64> {
    let step = record.course.step.as_secs_f64();
    (0..record.course.stretches.len()).map(|index| index as f64 * step).collect()
}

pub(super) fn shares(record: &Record, end: &Moment) -> Svg {
    let of = |count: &dyn Fn(&backstop_engine::incident::Counts) -> u64| -> Vec<f64> {
        record.course.stretches.iter().map(|stretch| count(&stretch.counts) as f64).collect()
    };
    let description = format!(
        "{} completed, {} reduced, {} not completed.",
        record.counts.completed(),
        record.counts.reduced(),
        record.counts.not_completed()
    );
    let layers = [
        Layer::new("completed", Hue::Normal, of(&|counts| counts.normal)),
        Layer::new("reduced", Hue::Fallback, of(&|counts| counts.fallback)),
        Layer::new("refused", Hue::Rejected, of(&|counts| counts.rejected)),
        Layer::new("failed", Hue::Failed, of(&|counts| counts.failed)),
    ];
    let frame =
        Frame::new("shares", "What requests came to", &description, span(record, end)).sized(460, 190);
    stacked(&frame, &moments(record), &layers, &Scale::Shares)
}

pub(super) fn ages(record: &Record, end: &Moment) -> Svg {
    let points: Vec<Point> = moments(record)
        .into_iter()
        .zip(&record.course.stretches)
        .map(|(at, stretch)| {
            (at, (!stretch.oldest_copy.is_zero()).then_some(stretch.oldest_copy.as_secs_f64()))
        })
        .collect();
    let description =
        format!("The oldest copy that was served was {:.1} seconds old.", record.oldest_copy.as_secs_f64());
    let frame =
        Frame::new("ages", "Age of the oldest copy served", &description, span(record, end)).sized(460, 190);
    lines(&frame, "seconds", &[Line::new("oldest copy", Hue::Fallback, points)])
}

pub(super) fn received(record: &Record, end: &Moment) -> Vec<Svg> {
    let step = record.course.step.as_secs_f64().max(1.0);
    let one = |(index, dependency): (usize, &backstop_engine::incident::Named<_>)| {
        let dependency: &backstop_engine::incident::Named<backstop_engine::incident::DependencyRecord> =
            dependency;
        let calls = |stretch: &backstop_engine::incident::Stretch| {
            stretch.attempts.get(index).copied().unwrap_or_default() as f64 / step
        };
        let received: Vec<Point> = moments(record)
            .into_iter()
            .zip(&record.course.stretches)
            .map(|(at, stretch)| (at, Some(calls(stretch))))
            .collect();
        let before = dependency.value.before_per_1000_s.map(|calls| calls as f64 / 1000.0);
        let description = format!(
            "{} calls in all; before the incident {} per second.",
            dependency.value.attempts,
            before.map_or("it is not known how many".to_owned(), |before| format!("{before:.1}"))
        );
        let title = format!("{}: calls it received", dependency.name);
        let frame = Frame::new(&format!("calls-{index}"), &title, &description, span(record, end))
            .sized(460, 190)
            .with_bands(states(record, end, &dependency.name));
        ramp(&frame, &Ramp { allowed: Vec::new(), received, before_per_s: before })
    };
    record.dependencies.iter().enumerate().take(DEPENDENCIES).map(one).collect()
}
