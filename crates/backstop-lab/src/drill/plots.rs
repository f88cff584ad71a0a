//! The pictures of a drill: shares of outcomes, latency, calls, ages, each with the faults marked.

use backstop_chart::{Band, Clock, Frame, Hue, Layer, Line, Scale, Span, Svg, lines, stacked};

use super::{Bin, DrillReport};

/// The pictures of one drill. `id` tells those of one page apart.
pub(crate) fn plots(drill: &DrillReport, id: &str) -> Vec<Svg> {
    let mut plots = vec![shares(drill, id), latency(drill, id), calls(drill, id)];
    if drill.bins.iter().any(|bin| bin.oldest_s.is_some()) {
        plots.push(ages(drill, id));
    }
    plots
}

const SHARES: &str = "What clients got";
const LATENCY: &str = "How long they waited";
const CALLS: &str = "What dependencies received";
const AGES: &str = "How old copies were";

fn frame(drill: &DrillReport, id: &str, title: &str, description: &str) -> Frame {
    let width = drill.bins.get(1).map_or(0.1, |bin| bin.from_s);
    let end = drill.bins.last().map_or(1.0, |bin| bin.from_s + width);
    let bands = drill.faults.iter().filter(|fault| fault.from_s < end).map(|fault| Band {
        from_s: fault.from_s,
        to_s: fault.to_s.min(end),
        hue: Hue::Limit,
        label: fault.kind.clone(),
    });
    let mut bands: Vec<Band> = bands.collect();
    // Several dependencies with one fault at one time are one stretch.
    bands.dedup_by(|one, other| {
        one.from_s == other.from_s && one.to_s == other.to_s && one.label == other.label
    });
    Frame::new(id, title, description, Span::new(0.0, end, Clock::Elapsed)).with_bands(bands)
}

fn shares(drill: &DrillReport, id: &str) -> Svg {
    let of = |value: fn(&Bin) -> u64| drill.bins.iter().map(|bin| value(bin) as f64).collect::<Vec<f64>>();
    let layers = [
        Layer::new("normal", Hue::Normal, of(|bin| bin.normal)),
        Layer::new("fallback", Hue::Fallback, of(|bin| bin.fallback)),
        Layer::new("rejected", Hue::Rejected, of(|bin| bin.rejected)),
        Layer::new("failed", Hue::Failed, of(|bin| bin.failed)),
        Layer::new("no answer", Hue::Abandoned, of(|bin| bin.none)),
    ];
    let total = |value: fn(&Bin) -> u64| drill.bins.iter().map(value).sum::<u64>();
    let description = format!(
        "{} normal, {} alternatives, {} refused, {} failed, {} without an answer",
        total(|bin| bin.normal),
        total(|bin| bin.fallback),
        total(|bin| bin.rejected),
        total(|bin| bin.failed),
        total(|bin| bin.none)
    );
    let moments: Vec<f64> = drill.bins.iter().map(|bin| bin.from_s).collect();
    let frame = frame(drill, &format!("{id}-shares"), SHARES, &description);
    stacked(&frame, &moments, &layers, &Scale::Shares)
}

fn points(drill: &DrillReport, value: impl Fn(&Bin) -> Option<f64>) -> Vec<(f64, Option<f64>)> {
    drill.bins.iter().map(|bin| (bin.from_s, value(bin))).collect()
}

fn latency(drill: &DrillReport, id: &str) -> Svg {
    let most = drill.bins.iter().filter_map(|bin| bin.p95_ms).fold(0.0, f64::max);
    let description = format!("the greatest 95th percentile is {most:.1} ms");
    let frame = frame(drill, &format!("{id}-latency"), LATENCY, &description);
    let both = [
        Line::new("95 %", Hue::Second, points(drill, |bin| bin.p95_ms)),
        Line::new("median", Hue::First, points(drill, |bin| bin.p50_ms)),
    ];
    lines(&frame, "milliseconds", &both)
}

fn calls(drill: &DrillReport, id: &str) -> Svg {
    const HUES: [Hue; 6] = [Hue::First, Hue::Second, Hue::Third, Hue::Normal, Hue::Fallback, Hue::Rejected];
    let width = drill.bins.get(1).map_or(0.1, |bin| bin.from_s).max(0.001);
    let called = |index: usize| drill.bins.iter().filter_map(|bin| bin.calls.get(index)).sum::<u64>();
    let own = drill.upstreams.iter().enumerate().filter(|(index, _)| called(*index) > 0);
    let own: Vec<Line> = own
        .zip(HUES)
        .map(|((index, name), hue)| {
            let per_second = |bin: &Bin| bin.calls.get(index).map(|calls| *calls as f64 / width);
            Line::new(name, hue, points(drill, per_second))
        })
        .collect();
    let words: Vec<String> =
        drill.upstreams.iter().enumerate().map(|(index, name)| format!("{name} {}", called(index))).collect();
    let description = format!("calls in all: {}", words.join(", "));
    let frame = frame(drill, &format!("{id}-calls"), CALLS, &description);
    lines(&frame, "calls per second", &own)
}

fn ages(drill: &DrillReport, id: &str) -> Svg {
    let oldest = drill.bins.iter().filter_map(|bin| bin.oldest_s).max().unwrap_or(0);
    let description = format!("the oldest copy told {oldest} s");
    let frame = frame(drill, &format!("{id}-ages"), AGES, &description);
    let line = Line::new("oldest", Hue::Fallback, points(drill, |bin| bin.oldest_s.map(|age| age as f64)));
    lines(&frame, "seconds", &[line])
}
