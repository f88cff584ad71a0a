//! A dependency that is being given its load back: what it is allowed, what it receives, and what it had before.

use plotters::prelude::Polygon;

use crate::canvas::{Values, fill, plot};
use crate::frame::{Frame, Svg};
use crate::hue::{Hue, Texture};
use crate::legend::Entry;
use crate::lines::{Line, Point};
use crate::thin::peaks;

/// What is known of the way back.
#[derive(Debug, Clone)]
pub struct Ramp {
    /// What may be called, in calls per second, over time. A gap where nothing is limited.
    pub allowed: Vec<Point>,
    /// What was called.
    pub received: Vec<Point>,
    /// What was called before, which the ramp leads to.
    pub before_per_s: Option<f64>,
}

/// The ramp over time. Phases belong into the frame's bands.
#[must_use]
pub fn ramp(frame: &Frame, ramp: &Ramp) -> Svg {
    let span = frame.span;
    let mut curves = Vec::new();
    if ramp.allowed.iter().any(|point| point.1.is_some()) {
        curves.push(Line::new("given", Hue::Fallback, ramp.allowed.clone()).dashed());
    }
    if let Some(before) = ramp.before_per_s {
        let level = [(span.from_s, Some(before)), (span.to_s, Some(before))];
        curves.push(Line::new("usual", Hue::Limit, level).dashed());
    }
    let top = curves.iter().map(Line::highest).fold(highest(&ramp.received), f64::max) * 1.1;
    let received = Entry { name: "received", hue: Hue::First, texture: Texture::Plain, is_line: false };
    let entries: Vec<_> = [received].into_iter().chain(curves.iter().map(Line::entry)).collect();
    plot(frame, &Values { caption: "calls per second", top, suffix: "" }, &entries, |chart| {
        let points = peaks(&ramp.received);
        let usable = |point: &Point| point.1.is_some() && point.0 >= span.from_s && point.0 <= span.to_s;
        for stretch in points.split(|point| !usable(point)).filter(|stretch| stretch.len() > 1) {
            let above = stretch.iter().map(|(at, value)| (*at, value.unwrap_or(0.0)));
            let ends = stretch.last().into_iter().chain(stretch.first()).map(|(at, _)| (*at, 0.0));
            let outline: Vec<_> = above.chain(ends).collect();
            chart.draw_series([Polygon::new(outline, fill(Hue::First, Texture::Plain))])?;
        }
        curves.iter().try_for_each(|line| line.draw(chart, frame))
    })
}

fn highest(points: &[Point]) -> f64 {
    points.iter().filter_map(|point| point.1).filter(|value| value.is_finite()).fold(0.0, f64::max)
}
