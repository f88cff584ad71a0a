//! Which texture and which stroke has which name. One or more rows above the plot.

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, PathElement, Rectangle, SVGBackend, Text};
use plotters::style::text_anchor::{HPos, VPos};

use crate::canvas::{LETTER_PX, fill, stroke, text};
use crate::frame::{NAME_CHARS, cut};
use crate::hue::{Hue, Texture};

/// One name.
pub(crate) struct Entry<'a> {
    /// The name.
    pub(crate) name: &'a str,
    /// Its colour.
    pub(crate) hue: Hue,
    /// How it is laid on.
    pub(crate) texture: Texture,
    /// A line and not an area.
    pub(crate) is_line: bool,
}

const ROW_PX: i32 = 15;

/// Draws the names from `top_px` down and tells how many pixels they took.
pub(crate) fn draw(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    entries: &[Entry<'_>],
    top_px: i32,
) -> Result<u32, plotters::drawing::DrawingAreaErrorKind<std::io::Error>> {
    let (width, _) = root.dim_in_pixel();
    let (mut left, mut top) = (4, top_px);
    for entry in entries {
        let name = cut(entry.name, NAME_CHARS);
        let wide = 26 + LETTER_PX * name.chars().count() as i32;
        if left > 4 && left + wide > width as i32 {
            (left, top) = (4, top + ROW_PX);
        }
        let middle = top + 6;
        if entry.is_line {
            let line = [(left, middle), (left + 14, middle)];
            root.draw(&PathElement::new(line, stroke(entry.hue, entry.texture, 2)))?;
        } else {
            root.draw(&Rectangle::new(
                [(left, top + 1), (left + 14, top + 11)],
                fill(entry.hue, entry.texture),
            ))?;
        }
        root.draw(&Text::new(name, (left + 18, middle), text(Hue::Ink, HPos::Left, VPos::Center)))?;
        left += wide;
    }
    let rows = if entries.is_empty() { 0 } else { (top - top_px) / ROW_PX + 1 };
    Ok((rows * ROW_PX).unsigned_abs())
}
