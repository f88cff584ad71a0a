//! Bytes of the text to lines and columns.

use std::ops::Range;

use crate::diagnostic::Place;

/// A line and a column, both counted from 1; columns count characters (Unicode scalar values), not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(crate) struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Number, from 0, of the line that holds this byte.
    pub(crate) fn line_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|&start| start <= byte).saturating_sub(1)
    }

    /// The place of these bytes, moved inside the text and onto character boundaries.
    pub(crate) fn place(&self, bytes: Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(bytes.start);
        let end = self.text.ceil_char_boundary(bytes.end.max(start));
        Place { bytes: start..end, start: self.position(start), end: self.position(end) }
    }

    fn position(&self, byte: usize) -> Position {
        let line = self.line_of(byte);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let column = self.text.get(start..byte).map_or(0, |before| before.chars().count());
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
        Position { line: count(line), column: count(column) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_places_stay_inside() {
        let lines = LineIndex::new("a\né = 1\n");
        let place = lines.place(5..6);
        assert_eq!((place.start.line, place.start.column), (2, 3));
        assert_eq!(lines.place(3..4).bytes, 2..4, "the middle of a character moves to its borders");
        assert_eq!(lines.place(90..95).bytes, 9..9);
        assert_eq!(LineIndex::new("").place(0..0).start, Position { line: 1, column: 1 });
    }
}
