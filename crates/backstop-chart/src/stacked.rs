//! Layers on each other over time: which share of the answers was what.
//!
//! A sample stands for the time until the next one, and is drawn so: as a block, not as a slope to a value that was never
//! measured. Where nothing was counted there is no share, and the picture has a gap.

use plotters::prelude::Polygon;

use crate::canvas::{Drawn, Plot, Values, fill, plot};
use crate::frame::{Frame, Svg};
use crate::hue::{Hue, Texture};
use crate::legend::Entry;
use crate::thin::{firsts, sums};

/// One layer: how much of it each sample had.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// A value for each moment.
    pub values: Vec<f64>,
}

impl Layer {
    /// A layer.
    pub fn new(name: &str, hue: Hue, values: impl Into<Vec<f64>>) -> Self {
        Self { name: name.to_owned(), hue, values: values.into() }
    }
}

/// What the height means.
#[derive(Debug, Clone)]
pub enum Scale {
    /// Percent of the sample's sum.
    Shares,
    /// The values themselves; the words say what they are and in which unit.
    Absolute {
        /// What is measured and in which unit.
        caption: String,
    },
}

/// Layers over time, the first one at the bottom. `moments_s` has the beginning of each sample.
#[must_use]
pub fn stacked(frame: &Frame, moments_s: &[f64], layers: &[Layer], scale: &Scale) -> Svg {
    let edges = edges(frame, moments_s);
    let columns: Vec<Vec<f64>> = layers.iter().map(|layer| sums(&layer.values, moments_s.len())).collect();
    let total = |at: usize| columns.iter().filter_map(|column| column.get(at)).sum::<f64>();
    let factor = |at: usize| match scale {
        Scale::Shares if total(at) > 0.0 => 100.0 / total(at),
        Scale::Shares => 0.0,
        Scale::Absolute { .. } => 1.0,
    };
    let top = match scale {
        Scale::Shares => 100.0,
        Scale::Absolute { .. } => (0..edges.len()).map(total).fold(0.0, f64::max) * 1.05,
    };
    let (caption, suffix) = match scale {
        Scale::Shares => ("share of the requests in %", " %"),
        Scale::Absolute { caption } => (caption.as_str(), ""),
    };
    let entries: Vec<_> = layers
        .iter()
        .map(|layer| Entry {
            name: &layer.name,
            hue: layer.hue,
            texture: Texture::of_area(layer.hue),
            is_line: false,
        })
        .collect();
    plot(frame, &Values { caption, top, suffix }, &entries, |chart| {
        let mut floor = vec![0.0; edges.len()];
        for (layer, column) in layers.iter().zip(&columns) {
            let ceiling: Vec<f64> = floor
                .iter()
                .enumerate()
                .map(|(at, below)| below + column.get(at).copied().unwrap_or(0.0) * factor(at))
                .collect();
            blocks(chart, layer.hue, &edges, &floor, &ceiling)?;
            floor = ceiling;
        }
        Ok(())
    })
}

/// Beginning and end of each sample that is drawn.
fn edges(frame: &Frame, moments_s: &[f64]) -> Vec<(f64, f64)> {
    let begins = firsts(moments_s, moments_s.len());
    let span = frame.span;
    let last = match begins.as_slice() {
        [.., before, last] => last + (last - before),
        _ => span.to_s,
    };
    let ends = begins.iter().skip(1).copied().chain([last]);
    let inside = |at: f64| if at.is_finite() { at.clamp(span.from_s, span.to_s) } else { span.from_s };
    begins.iter().zip(ends).map(|(begin, end)| (inside(*begin), inside(end))).collect()
}

/// Draws a layer: one shape for each stretch in which it has a height.
fn blocks(chart: &mut Plot<'_, '_>, hue: Hue, edges: &[(f64, f64)], floor: &[f64], ceiling: &[f64]) -> Drawn {
    let samples: Vec<_> =
        edges.iter().zip(floor).zip(ceiling).map(|((edge, low), high)| (*edge, *low, *high)).collect();
    let is_flat = |sample: &((f64, f64), f64, f64)| sample.2 <= sample.1 || sample.0.1 <= sample.0.0;
    for stretch in samples.split(is_flat).filter(|stretch| !stretch.is_empty()) {
        let above = stretch.iter().flat_map(|((begin, end), _, high)| [(*begin, *high), (*end, *high)]);
        let below = stretch.iter().rev().flat_map(|((begin, end), low, _)| [(*end, *low), (*begin, *low)]);
        let outline: Vec<_> = above.chain(below).collect();
        chart.draw_series([Polygon::new(outline, fill(hue, Texture::of_area(hue)))])?;
    }
    Ok(())
}
