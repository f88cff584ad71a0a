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
    /// Characters before each block of [`BLOCK`] bytes, so that a column in a line of any length is found at once.
    characters: Vec<usize>,
}

const BLOCK: usize = 128;

impl<'a> LineIndex<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let blocks = text.as_bytes().chunks(BLOCK).scan(0, |total, block| {
            *total += characters(block);
            Some(*total)
        });
        let characters = std::iter::once(0).chain(blocks).collect();
        Self { text, starts, characters }
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
        let column = self.characters_before(byte).saturating_sub(self.characters_before(start));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
        Position { line: count(line), column: count(column) }
    }

    fn characters_before(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        let within = self.text.as_bytes().get(block * BLOCK..byte).unwrap_or_default();
        self.characters.get(block).copied().unwrap_or(0) + characters(within)
    }
}

/// Characters that begin in these bytes: all but continuation bytes (RFC 3629 section 3).
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| !matches!(byte, 0x80..=0xBF)).count()
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
        for length in [0, 1, 126, 127, 128, 129, 1000] {
            let text = format!("x\n{}b", "\u{e9}".repeat(length));
            let place = LineIndex::new(&text).place(text.len() - 1..text.len());
            let (start, end) = ((place.start.line, place.start.column), place.end.column);
            let columns = u32::try_from(length).unwrap();
            assert_eq!((start, end), ((2, columns + 1), columns + 2), "{length}");
        }
        assert_eq!(LineIndex::new("").place(0..0).start, Position { line: 1, column: 1 });
    }
}
