//! What happened when: rows of stretches, and moments across all rows.

use std::cmp::Ordering;

use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{ChartBuilder, Color, IntoDrawingArea, PathElement, Rectangle, SVGBackend, Text};
use plotters::style::text_anchor::{HPos, VPos};

use crate::canvas::{Drawn, fill, stroke, text};
use crate::finish::finish;
use crate::frame::{Band, Frame, MARKS, NAME_CHARS, Svg, cut};
use crate::hue::{Hue, Texture};
use crate::seconds::Seconds;

/// One row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name, at the left.
    pub name: String,
    /// Its stretches, which may touch and do not overlap.
    pub bands: Vec<Band>,
}

/// Width of the names at the left, in pixels: sixteen letters.
const NAMES_PX: u32 = 104;
/// Letters that have room there.
const NAMES_CHARS: usize = 16;
/// Height of one line of markers' words.
const WORDS_PX: i32 = 13;
/// Lines of markers' words.
const WORD_LINES: usize = 4;

/// Rows of stretches over time, the first row at the top, with the frame's markers across all of them.
#[must_use]
pub fn timeline(frame: &Frame, rows: &[Row]) -> Svg {
    let mut drawn = String::new();
    let done = draw(&mut drawn, frame, rows);
    finish(frame, if done.is_ok() { &drawn } else { "" })
}

fn draw(drawn: &mut String, frame: &Frame, rows: &[Row]) -> Drawn {
    let span = frame.span;
    let shown = rows.len().clamp(1, MARKS);
    let lines = frame.markers.len().min(WORD_LINES) as i32;
    let root = SVGBackend::with_string(drawn, (frame.width_px, frame.height_px)).into_drawing_area();
    let (width, height) = (frame.width_px as i32, frame.height_px as i32);
    let foot = format!("{} \u{2192}", span.caption());
    root.draw(&Text::new(foot, (width - 4, height - 2), text(Hue::Ink, HPos::Right, VPos::Bottom)))?;
    let mut plot = ChartBuilder::on(&root)
        .margin_top(4 + lines * WORDS_PX)
        .margin_right(12)
        .margin_bottom(14)
        .margin_left(NAMES_PX)
        .x_label_area_size(19)
        .build_cartesian_2d(Seconds::of(frame), 0.0..shown as f64)?;
    plot.configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(Hue::Grid.reserved(Texture::Plain).mix(0.0))
        .bold_line_style(stroke(Hue::Grid, Texture::Plain, 1))
        .axis_style(stroke(Hue::Abandoned, Texture::Plain, 1))
        .label_style(text(Hue::Ink, HPos::Left, VPos::Top))
        .draw()?;
    for (number, row) in rows.iter().take(shown).enumerate() {
        let floor = (shown - 1 - number) as f64;
        let (low, high, middle) = (floor + 0.12, floor + 0.88, floor + 0.5);
        let (_, at) = plot.backend_coord(&(span.from_s, middle));
        let name = cut(&row.name, NAMES_CHARS);
        root.draw(&Text::new(name, (NAMES_PX as i32 - 6, at), text(Hue::Ink, HPos::Right, VPos::Center)))?;
        for band in row.bands.iter().take(MARKS) {
            let (from, to) = (band.from_s.max(span.from_s), band.to_s.min(span.to_s));
            if from.partial_cmp(&to) != Some(Ordering::Less) {
                continue;
            }
            let (left, right) = (plot.backend_coord(&(from, low)).0, plot.backend_coord(&(to, low)).0);
            // What is shorter than two pixels is drawn two pixels wide: something short is still something.
            let right = right.max(left + 2);
            let (top, bottom) = (plot.backend_coord(&(from, high)).1, plot.backend_coord(&(from, low)).1);
            let area = [(left, top), (right, bottom)];
            root.draw(&Rectangle::new(area, band.hue.reserved(Texture::Plain).mix(0.22).filled()))?;
            root.draw(&Rectangle::new([(left, top), (left + 2, bottom)], fill(band.hue, Texture::Plain)))?;
            root.draw(&Rectangle::new(area, stroke(band.hue, Texture::Plain, 1)))?;
            let letters = usize::try_from((right - left - 8) / 6).unwrap_or(0).min(NAME_CHARS);
            if letters >= 3 {
                let words = cut(&band.label, letters);
                root.draw(&Text::new(words, (left + 6, at), text(Hue::Ink, HPos::Left, VPos::Center)))?;
            }
        }
    }
    moments(&root, &plot.backend_coord(&(span.from_s, 0.0)), frame, |at_s| {
        plot.backend_coord(&(at_s, 0.0)).0
    })?;
    drop(plot);
    root.present()
}

/// Draws the markers: a line each, and its words above the rows, on lines in turn.
fn moments(
    root: &plotters::prelude::DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    &(_, bottom): &(i32, i32),
    frame: &Frame,
    place: impl Fn(f64) -> i32,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let span = frame.span;
    for (number, marker) in frame.shown_markers().enumerate() {
        let at = place(marker.at_s);
        let top = 2 + (number % WORD_LINES) as i32 * WORDS_PX;
        let line = stroke(Hue::Ink, Texture::Dashed, 1);
        root.draw(&PathElement::new([(at, top), (at, bottom)], line))?;
        let is_right = marker.at_s > (span.from_s + span.to_s) / 2.0;
        let (anchor, at) = if is_right { (HPos::Right, at - 3) } else { (HPos::Left, at + 3) };
        let words = cut(&marker.label, NAME_CHARS);
        root.draw(&Text::new(words, (at, top), text(Hue::Ink, anchor, VPos::Top)))?;
    }
    Ok(())
}
