//! Colours by what they mean.
//!
//! plotters knows only RGB, and the page wants custom properties. So each hue is drawn in a reserved RGB value (`#01`, the
//! texture, the hue), which [`finish`](crate::finish) replaces in the finished picture. No other colour is ever drawn.
//!
//! Contrast, by WCAG 2.2: 4.5 to 1 for what is read ([`Hue::Ink`]) and 3 to 1 for what is seen, against the ground of its
//! scheme (sections 1.4.3 and 1.4.11).

use plotters::style::RGBColor;

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hue {
    /// As it should be.
    Normal,
    /// An accepted alternative, or a state between.
    Fallback,
    /// Refused by Backstop.
    Rejected,
    /// No acceptable answer.
    Failed,
    /// The client left; unknown.
    Abandoned,
    /// A first line without a meaning of its own.
    First,
    /// A second one.
    Second,
    /// A third one.
    Third,
    /// A limit, a former rate: what is compared with.
    Limit,
    /// Text.
    Ink,
    /// Lines of the grid.
    Grid,
    /// What is drawn on.
    Ground,
}

impl Hue {
    pub(crate) const ALL: [Self; 12] = [
        Self::Normal,
        Self::Fallback,
        Self::Rejected,
        Self::Failed,
        Self::Abandoned,
        Self::First,
        Self::Second,
        Self::Third,
        Self::Limit,
        Self::Ink,
        Self::Grid,
        Self::Ground,
    ];

    /// The custom property and its values: light (also the fallback) and dark.
    const fn colour(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Normal => ("normal", "#1f7a4d", "#4cc38a"),
            Self::Fallback => ("fallback", "#b45309", "#f5a524"),
            Self::Rejected => ("rejected", "#7c3aed", "#b794f6"),
            Self::Failed => ("failed", "#c81e1e", "#ff7b72"),
            Self::Abandoned => ("abandoned", "#6b7280", "#9aa4b2"),
            Self::First => ("first", "#1d63c7", "#6cb0ff"),
            Self::Second => ("second", "#0f766e", "#2dd4bf"),
            Self::Third => ("third", "#9d174d", "#f472b6"),
            Self::Limit => ("limit", "#374151", "#cbd5e1"),
            Self::Ink => ("ink", "#1f2937", "#e6e9ee"),
            Self::Grid => ("grid", "#d8dce2", "#333a44"),
            Self::Ground => ("ground", "#ffffff", "#15191f"),
        }
    }

    /// The name of its custom property, without `--chart-`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.colour().0
    }

    /// How it is written in a picture.
    #[must_use]
    pub fn css(self) -> String {
        let (name, light, _) = self.colour();
        format!("var(--chart-{name}, {light})")
    }

    /// The reserved value it is drawn in.
    pub(crate) const fn reserved(self, texture: Texture) -> RGBColor {
        RGBColor(1, texture as u8, self as u8)
    }
}

/// How a colour is laid on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texture {
    /// As it is.
    Plain = 0,
    /// An area with strokes from bottom left to top right.
    Hatched = 1,
    /// A line with gaps.
    Dashed = 2,
    /// An area with dots.
    Dotted = 3,
}

impl Texture {
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Hatched, Self::Dashed, Self::Dotted];

    /// What an area of this hue is laid on with, so that outcomes differ without colour too.
    pub(crate) const fn of_area(hue: Hue) -> Self {
        match hue {
            Hue::Fallback => Self::Hatched,
            Hue::Rejected => Self::Dotted,
            _ => Self::Plain,
        }
    }
}

/// The custom properties of both schemes: put it into the page's own style.
pub const COLOURS: &str = "\
:root{--chart-normal:#1f7a4d;--chart-fallback:#b45309;--chart-rejected:#7c3aed;--chart-failed:#c81e1e;\
--chart-abandoned:#6b7280;--chart-first:#1d63c7;--chart-second:#0f766e;--chart-third:#9d174d;--chart-limit:#374151;\
--chart-ink:#1f2937;--chart-grid:#d8dce2;--chart-ground:#ffffff}\
@media (prefers-color-scheme:dark){:root{--chart-normal:#4cc38a;--chart-fallback:#f5a524;--chart-rejected:#b794f6;\
--chart-failed:#ff7b72;--chart-abandoned:#9aa4b2;--chart-first:#6cb0ff;--chart-second:#2dd4bf;--chart-third:#f472b6;\
--chart-limit:#cbd5e1;--chart-ink:#e6e9ee;--chart-grid:#333a44;--chart-ground:#15191f}}";

#[cfg(test)]
mod tests {
    use super::{COLOURS, Hue};

    /// Relative luminance, WCAG 2.2's definition.
    fn luminance(hex: &str) -> f64 {
        let part = |from: usize| {
            let value = f64::from(u8::from_str_radix(&hex[from..from + 2], 16).expect("hexadecimal")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn contrast_is_computed_as_wcag_states_it() {
        // Black on white is 21 to 1; #767676 on white is the well-known 4.54 to 1.
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 0.001);
        assert!((contrast("#767676", "#ffffff") - 4.54).abs() < 0.01);
    }

    #[test]
    fn every_colour_stands_out_from_its_ground_in_both_schemes() {
        let (_, light_ground, dark_ground) = Hue::Ground.colour();
        for hue in Hue::ALL.into_iter().filter(|hue| !matches!(hue, Hue::Ground | Hue::Grid)) {
            let (name, light, dark) = hue.colour();
            let least = if hue == Hue::Ink { 4.5 } else { 3.0 };
            assert!(contrast(light, light_ground) >= least, "{name} on light");
            assert!(contrast(dark, dark_ground) >= least, "{name} on dark");
        }
    }

    #[test]
    fn the_style_has_every_colour_in_both_schemes() {
        let (light, dark) = COLOURS.split_once("@media").expect("two schemes");
        for hue in Hue::ALL {
            let (name, in_light, in_dark) = hue.colour();
            assert!(light.contains(&format!("--chart-{name}:{in_light}")), "{name} in light");
            assert!(dark.contains(&format!("--chart-{name}:{in_dark}")), "{name} in dark");
        }
    }
}
