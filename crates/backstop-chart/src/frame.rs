//! What every picture has: an identity, words, a size, a span of time, and what is marked on it.

use std::fmt;

use crate::hue::Hue;
use crate::time_axis::Span;

/// How many characters of a name are drawn. The whole name belongs into the description.
pub const NAME_CHARS: usize = 32;

/// How many bands, markers or rows one picture shows. Further ones are left out: a page lists them in words.
pub(crate) const MARKS: usize = 64;

/// What a picture is about, and what is marked on it.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Distinguishes the pictures of one page. Letters, digits and hyphens are kept.
    pub id: String,
    /// What a screen reader says first.
    pub title: String,
    /// What the picture shows, in one or two sentences.
    pub description: String,
    /// Its width in pixels of its own coordinates; CSS may scale it.
    pub width_px: u32,
    /// Its height, likewise.
    pub height_px: u32,
    /// The axis of time.
    pub span: Span,
    /// Stretches of time behind the curves.
    pub bands: Vec<Band>,
    /// Moments.
    pub markers: Vec<Marker>,
}

/// A stretch of time with words of its own.
#[derive(Debug, Clone)]
pub struct Band {
    /// When it begins.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// Its colour.
    pub hue: Hue,
    /// What it says.
    pub label: String,
}

/// A moment with words of its own.
#[derive(Debug, Clone)]
pub struct Marker {
    /// When.
    pub at_s: f64,
    /// What it says.
    pub label: String,
}

impl Frame {
    /// A frame of the usual size, with nothing marked.
    #[must_use]
    pub fn new(id: &str, title: &str, description: &str, span: Span) -> Self {
        Self {
            id: id.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect(),
            title: title.to_owned(),
            description: description.to_owned(),
            width_px: 400,
            height_px: 160,
            span,
            bands: Vec::new(),
            markers: Vec::new(),
        }
    }

    /// The same, of another size (at least 160 by 80 and at most 4000 by 4000 pixels).
    #[must_use]
    pub fn sized(self, width_px: u32, height_px: u32) -> Self {
        Self { width_px: width_px.clamp(160, 4000), height_px: height_px.clamp(80, 4000), ..self }
    }

    /// The same, with stretches of time behind the curves.
    #[must_use]
    pub fn with_bands(self, bands: Vec<Band>) -> Self {
        Self { bands, ..self }
    }

    /// The same, with moments.
    #[must_use]
    pub fn with_markers(self, markers: Vec<Marker>) -> Self {
        Self { markers, ..self }
    }

    /// The moments that lie within the span.
    pub(crate) fn shown_markers(&self) -> impl Iterator<Item = &Marker> {
        let Span { from_s, to_s, .. } = self.span;
        self.markers.iter().filter(move |marker| marker.at_s >= from_s && marker.at_s <= to_s).take(MARKS)
    }
}

/// A finished picture: one `<svg>` element, safe to be put into HTML as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Svg(pub(crate) String);

impl Svg {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A name as it is drawn.
pub(crate) fn cut(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}
