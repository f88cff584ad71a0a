//! Lines over time: rates, percentiles, in flight against a limit. A moment without a value is a gap, never a zero.

use plotters::prelude::LineSeries;

use crate::canvas::{Drawn, Plot, Values, plot, stroke};
use crate::frame::{Frame, Svg};
use crate::hue::{Hue, Texture};
use crate::legend::Entry;
use crate::thin::peaks;

/// A moment in seconds and what was measured then, if anything was.
pub type Point = (f64, Option<f64>);

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// Drawn with gaps: a limit, a former value.
    pub is_dashed: bool,
    /// Its points, in the order of time.
    pub points: Vec<Point>,
}

impl Line {
    /// A line without gaps in its stroke.
    pub fn new(name: &str, hue: Hue, points: impl Into<Vec<Point>>) -> Self {
        Self { name: name.to_owned(), hue, is_dashed: false, points: points.into() }
    }

    /// The same, dashed.
    #[must_use]
    pub fn dashed(self) -> Self {
        Self { is_dashed: true, ..self }
    }

    pub(crate) const fn texture(&self) -> Texture {
        if self.is_dashed { Texture::Dashed } else { Texture::Plain }
    }

    pub(crate) fn highest(&self) -> f64 {
        self.points.iter().filter_map(|point| point.1).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry { name: &self.name, hue: self.hue, texture: self.texture(), is_line: true }
    }

    /// Draws it as the steps that it was measured in, a stretch between two gaps at a time.
    pub(crate) fn draw(&self, chart: &mut Plot<'_, '_>, frame: &Frame) -> Drawn {
        let points = peaks(&self.points);
        let usable = |point: &Point| {
            point.1.is_some_and(f64::is_finite) && point.0 >= frame.span.from_s && point.0 <= frame.span.to_s
        };
        for stretch in points.split(|point| !usable(point)).filter(|stretch| !stretch.is_empty()) {
            let corners = stretch.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
            chart.draw_series(LineSeries::new(corners, stroke(self.hue, self.texture(), 2)))?;
        }
        Ok(())
    }
}

/// Lines over time. `caption` says what is measured and in which unit.
#[must_use]
pub fn lines(frame: &Frame, caption: &str, lines: &[Line]) -> Svg {
    let top = lines.iter().map(Line::highest).fold(0.0, f64::max) * 1.1;
    let entries: Vec<_> = lines.iter().map(Line::entry).collect();
    plot(frame, &Values { caption, top, suffix: "" }, &entries, |chart| {
        lines.iter().try_for_each(|line| line.draw(chart, frame))
    })
}
