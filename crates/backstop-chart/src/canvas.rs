//! The plot that all curves share: axes, grid, caption, legend, bands behind and markers in front.

use std::cmp::Ordering;

use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoFont, PathElement, Rectangle, SVGBackend,
    ShapeStyle, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::finish::finish;
use crate::frame::{Frame, MARKS, NAME_CHARS, Svg, cut};
use crate::hue::{Hue, Texture};
use crate::legend::{self, Entry};
use crate::seconds::Seconds;

/// A plot in seconds and the unit of its curves.
pub(crate) type Plot<'p, 'b> = ChartContext<'p, SVGBackend<'b>, Cartesian2d<Seconds, RangedCoordf64>>;

/// What plotters may complain about.
pub(crate) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Height of a line of words in pixels.
const WORDS_PX: u32 = 13;
/// Width of a letter, about.
pub(crate) const LETTER_PX: i32 = 6;
/// Height of letters in pixels.
pub(crate) const TEXT_PX: f64 = 11.0;

/// The axis of values.
pub(crate) struct Values<'a> {
    /// What is measured and in which unit.
    pub(crate) caption: &'a str,
    /// The upper end; the lower one is zero.
    pub(crate) top: f64,
    /// What follows a number on the axis.
    pub(crate) suffix: &'a str,
}

/// Text of a hue, anchored. plotters sizes a font by its line, 1.24 times its letters.
pub(crate) fn text(hue: Hue, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    ("sans-serif", TEXT_PX * 1.24)
        .into_font()
        .color(&hue.reserved(Texture::Plain))
        .pos(Pos::new(horizontal, vertical))
}

/// A line of a hue.
pub(crate) fn stroke(hue: Hue, texture: Texture, width_px: u32) -> ShapeStyle {
    hue.reserved(texture).stroke_width(width_px)
}

/// A filled shape of a hue.
pub(crate) fn fill(hue: Hue, texture: Texture) -> ShapeStyle {
    hue.reserved(texture).filled()
}

/// Draws a whole picture; `curves` draws what lies between the bands and the markers.
pub(crate) fn plot(
    frame: &Frame,
    values: &Values<'_>,
    entries: &[Entry<'_>],
    curves: impl FnOnce(&mut Plot<'_, '_>) -> Drawn,
) -> Svg {
    let mut drawn = String::new();
    let done = draw(&mut drawn, frame, values, entries, curves);
    finish(frame, if done.is_ok() { &drawn } else { "" })
}

fn draw(
    drawn: &mut String,
    frame: &Frame,
    values: &Values<'_>,
    entries: &[Entry<'_>],
    curves: impl FnOnce(&mut Plot<'_, '_>) -> Drawn,
) -> Drawn {
    let root = SVGBackend::with_string(drawn, (frame.width_px, frame.height_px)).into_drawing_area();
    let width = frame.width_px as i32;
    let title = format!("{} ({})", frame.title, values.caption);
    let title = cut(&title, usize::try_from(width / LETTER_PX).unwrap_or(NAME_CHARS));
    root.draw(&Text::new(title, (4, 2), text(Hue::Ink, HPos::Left, VPos::Top)))?;
    let foot = format!("{} \u{2192}", frame.span.caption());
    let at = (width - 4, frame.height_px as i32 - 2);
    root.draw(&Text::new(foot, at, text(Hue::Ink, HPos::Right, VPos::Bottom)))?;
    let legend_px = legend::draw(&root, entries, 18)?;
    let words_px = WORDS_PX * (u32::from(!frame.bands.is_empty()) + u32::from(!frame.markers.is_empty()));
    let top = if values.top.is_finite() && values.top > 0.0 { values.top } else { 1.0 };
    let mut plot = ChartBuilder::on(&root)
        .margin_top(20 + legend_px + words_px)
        .margin_right(12)
        .margin_bottom(14)
        .x_label_area_size(19)
        .y_label_area_size(46)
        .build_cartesian_2d(Seconds::of(frame), 0.0..top)?;
    plot.configure_mesh()
        .disable_x_mesh()
        .light_line_style(Hue::Grid.reserved(Texture::Plain).mix(0.0))
        .bold_line_style(stroke(Hue::Grid, Texture::Plain, 1))
        .axis_style(stroke(Hue::Abandoned, Texture::Plain, 1))
        .label_style(text(Hue::Ink, HPos::Left, VPos::Top))
        .y_labels(3)
        .y_label_formatter(&|value| format!("{}{}", number(*value), values.suffix))
        .draw()?;
    bands(&mut plot, frame, top)?;
    curves(&mut plot)?;
    markers(&mut plot, frame, top)?;
    words(&root, frame, |at_s| plot.backend_coord(&(at_s, top)))?;
    drop(plot);
    root.present()
}

/// A number on an axis: no more places than it needs.
pub(crate) fn number(value: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if value >= 10_000.0 { format!("{}k", short(value / 1000.0)) } else { short(value) }
}

fn bands(plot: &mut Plot<'_, '_>, frame: &Frame, top: f64) -> Drawn {
    let span = frame.span;
    for band in frame.bands.iter().take(MARKS) {
        let (from, to) = (band.from_s.max(span.from_s), band.to_s.min(span.to_s));
        if from.partial_cmp(&to) != Some(Ordering::Less) {
            continue;
        }
        let wash = band.hue.reserved(Texture::Plain).mix(0.14).filled();
        plot.draw_series([Rectangle::new([(from, 0.0), (to, top)], wash)])?;
        let edge = stroke(band.hue, Texture::Dashed, 1);
        plot.draw_series([PathElement::new([(from, 0.0), (from, top)], edge)])?;
    }
    Ok(())
}

fn markers(plot: &mut Plot<'_, '_>, frame: &Frame, top: f64) -> Drawn {
    for marker in frame.shown_markers() {
        let line = stroke(Hue::Ink, Texture::Dashed, 1);
        plot.draw_series([PathElement::new([(marker.at_s, 0.0), (marker.at_s, top)], line)])?;
    }
    Ok(())
}

/// What bands and markers say, above the plot, where no curve covers it: bands first, then markers.
fn words(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    frame: &Frame,
    place: impl Fn(f64) -> (i32, i32),
) -> Drawn {
    let span = frame.span;
    let height = WORDS_PX as i32;
    let markers_px = if frame.markers.is_empty() { 0 } else { height };
    for band in frame.bands.iter().take(MARKS) {
        let (left, top) = place(band.from_s.clamp(span.from_s, span.to_s));
        let (right, _) = place(band.to_s.clamp(span.from_s, span.to_s));
        let letters = usize::try_from((right - left) / LETTER_PX).unwrap_or(0).min(NAME_CHARS);
        if letters >= 6 {
            let at = (left + 2, top - markers_px - height);
            root.draw(&Text::new(cut(&band.label, letters), at, text(Hue::Ink, HPos::Left, VPos::Top)))?;
        }
    }
    let mut free_from = i32::MIN;
    for marker in frame.shown_markers() {
        let (at, top) = place(marker.at_s);
        let words = cut(&marker.label, NAME_CHARS);
        let wide = LETTER_PX * words.chars().count() as i32;
        // Right of the middle it is written to the left. What would lie on its neighbour is left out: the line stays.
        let (anchor, left) = if marker.at_s > f64::midpoint(span.from_s, span.to_s) {
            (HPos::Right, at - wide)
        } else {
            (HPos::Left, at)
        };
        if left >= free_from {
            root.draw(&Text::new(words, (at, top - height), text(Hue::Ink, anchor, VPos::Top)))?;
            free_from = left + wide + LETTER_PX;
        }
    }
    Ok(())
}
