//! The axis of time as plotters wants it: linear, with ticks at round moments.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use crate::frame::Frame;
use crate::time_axis::Span;

/// A frame's span, with as many ticks as its width has room for.
pub(crate) struct Seconds {
    line: RangedCoordf64,
    span: Span,
    most: usize,
}

impl Seconds {
    pub(crate) fn of(frame: &Frame) -> Self {
        let span = frame.span;
        Self { line: (span.from_s..span.to_s).into(), span, most: (frame.width_px / 90).max(1) as usize }
    }
}

impl Ranged for Seconds {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.line.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.span.ticks_s(self.most)
    }

    fn range(&self) -> Range<f64> {
        self.line.range()
    }
}

impl ValueFormatter<f64> for Seconds {
    fn format_ext(&self, at_s: &f64) -> String {
        self.span.label(*at_s, self.most)
    }
}
