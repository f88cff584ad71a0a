//! What the page draws: the last minute of a side, and the last answers of a row.

use std::fmt::Write;

use backstop_chart::{Clock, Frame, Hue, Layer, Marker, Scale, Span, stacked};
use tokio::time::Instant;

use super::super::button::Button;
use super::super::judge::Verdict;
use super::super::record::REMEMBERED;
use super::super::state::{Row, SideState, State};
use super::super::world::World;
use super::words::{shares, tone};

/// The width of one answer in a strip, and its height.
const STEP: usize = 6;
const HEIGHT: usize = 24;

/// What clients of a side got in the last minute, as shares.
pub(super) fn chart(world: &World, side: &SideState, state: &State) -> String {
    let now = Instant::now();
    let words = format!(
        "Of the answers of the last 10 s, {} % had HTTP status 200 and {} % were normal.",
        side.last_10_s.status_200_percent, side.last_10_s.normal_percent
    );
    let span = Span::new(-(REMEMBERED.as_secs_f64()), 0.0, Clock::Ago);
    let presses = world.presses();
    let markers = presses.iter().rev().take(8).map(|press| Marker {
        at_s: -now.saturating_duration_since(press.at).as_secs_f64(),
        label: if press.is_broken || !press.button.stays() { press.button.short() } else { "repaired" }
            .to_owned(),
    });
    // Healing repairs several things at one moment, and says so once.
    let markers =
        markers.filter(|marker| marker.label != "repaired" || state.last != Some(Button::Heal.slug()));
    let title = format!("{}: what clients got in the last minute", side.name);
    let id = side.name.to_ascii_lowercase().replace(' ', "-");
    let frame = Frame::new(&id, &title, &words, span).sized(560, 150).with_markers(markers.collect());
    let moments: Vec<f64> = side.seconds.iter().map(|second| second.at_s).collect();
    let layers: Vec<Layer> = Verdict::ALL
        .into_iter()
        .map(|verdict| {
            let counts = side.seconds.iter().map(|second| second.answers.get(verdict as usize).copied());
            let values: Vec<f64> = counts.map(|count| f64::from(count.unwrap_or_default())).collect();
            Layer::new(verdict.word(), hue(verdict), values)
        })
        .filter(|layer| layer.name == Verdict::Normal.word() || layer.values.iter().any(|value| *value > 0.0))
        .collect();
    stacked(&frame, &moments, &layers, &Scale::Shares).to_string()
}

fn hue(verdict: Verdict) -> Hue {
    match verdict {
        Verdict::Normal => Hue::Normal,
        Verdict::Copy => Hue::Fallback,
        Verdict::Prepared => Hue::First,
        Verdict::Slow => Hue::Third,
        Verdict::Refused => Hue::Rejected,
        Verdict::Error => Hue::Failed,
        Verdict::Nothing => Hue::Abandoned,
    }
}

/// The last answers, the newest at the right. The taller, the worse: colour says nothing that height does not.
pub(super) fn strip(row: &Row) -> String {
    let width = STEP * 60;
    let mut svg = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" preserveAspectRatio=\"none\"><title>The last answers: {}</title>",
        shares(row)
    );
    let begins = width.saturating_sub(row.strip.len() * STEP);
    for (at, answer) in row.strip.iter().enumerate() {
        let height = height(answer.verdict);
        let (x, y) = (begins + at * STEP, HEIGHT - height);
        // Writing to a string cannot fail.
        _ = write!(
            svg,
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\"/>",
            tone(answer.verdict),
            STEP - 1
        );
    }
    svg.push_str("</svg>");
    svg
}

fn height(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Normal => 8,
        Verdict::Copy | Verdict::Prepared => 13,
        Verdict::Slow => 17,
        Verdict::Refused => 20,
        Verdict::Error | Verdict::Nothing => HEIGHT,
    }
}
