//! Charts of what a gateway did: shares over time, lines, a ramp, a timeline. Each is one SVG.
//!
//! [plotters] places axes, areas and lines. This crate adds what a page of an operator needs:
//!
//! - **Colour comes from CSS.** Each colour is a custom property with a fallback ([`Hue`]), so one picture is right in
//!   light and dark and in a file of its own. [`COLOURS`] has the values of both schemes
//! - **Colour carries no meaning alone.** Layers have names and textures, bands and markers have words
//! - **It can be heard.** Each picture has `role="img"`, a `<title>` and a `<desc>` that says what it shows
//! - **The same input gives the same text.** No random identities and no clock: a picture can be compared in a test
//! - **It is bounded.** A series is thinned to what the width can show ([`POINTS`]); names are cut to [`NAME_CHARS`]
//!
//! ```
//! use backstop_chart::{Clock, Frame, Hue, Layer, Scale, Span, stacked};
//!
//! let frame = Frame::new("shares", "Outcomes", "Half of the answers are copies", Span::new(-60.0, 0.0, Clock::Ago));
//! let layers = [Layer::new("normal", Hue::Normal, [1.0, 1.0]), Layer::new("copies", Hue::Fallback, [1.0, 1.0])];
//! let svg = stacked(&frame, &[-60.0, -30.0], &layers, &Scale::Shares);
//! assert!(svg.as_str().contains("<title>Outcomes</title>"));
//! ```

mod canvas;
mod finish;
mod frame;
mod hue;
mod legend;
mod lines;
mod ramp;
mod seconds;
mod stacked;
mod thin;
mod time_axis;
mod timeline;

pub use frame::{Band, Frame, Marker, NAME_CHARS, Svg};
pub use hue::{COLOURS, Hue};
pub use lines::{Line, Point, lines};
pub use ramp::{Ramp, ramp};
pub use stacked::{Layer, Scale, stacked};
pub use thin::POINTS;
pub use time_axis::{Clock, Span};
pub use timeline::{Row, timeline};
