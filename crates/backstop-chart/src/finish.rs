//! From plotters' text to the picture that is handed out.
//!
//! plotters escapes every quote in text and attributes, so `"#01...."` and ` opacity="1"` can stand only where it wrote
//! an attribute itself: replacing them touches no words of anybody's.

use std::fmt::Write as _;

use crate::frame::{Frame, Svg};
use crate::hue::{Hue, Texture};

/// The finished picture. `drawn` is nothing if plotters gave up, which it has no reason to: it writes into a string.
/// Then the words remain.
pub(crate) fn finish(frame: &Frame, drawn: &str) -> Svg {
    let body = drawn.find('>').and_then(|end| drawn.get(end + 1..)).unwrap_or("</svg>");
    let mut svg = format!(
        "<svg class=\"chart\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" \
         font-family=\"system-ui, sans-serif\"><title>{}</title><desc>{}</desc>",
        frame.width_px,
        frame.height_px,
        escaped(&frame.title),
        escaped(&frame.description)
    );
    let body =
        body.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "").replace("\n", "");
    define_textures(&mut svg, &frame.id, &body);
    recolour(&mut svg, &frame.id, &body);
    Svg(svg)
}

/// The patterns that this picture uses.
fn define_textures(svg: &mut String, id: &str, body: &str) {
    for texture in [Texture::Hatched, Texture::Dotted] {
        for hue in Hue::ALL.into_iter().filter(|hue| body.contains(&reserved(*hue, texture))) {
            let (name, colour, ground) = (hue.name(), hue.css(), Hue::Ground.css());
            let mark = match texture {
                Texture::Dotted => format!("<circle cx=\"3\" cy=\"3\" r=\"1\" fill=\"{ground}\"/>"),
                _ => format!(
                    "<path d=\"M-1 7L7 -1M-1 1L1 -1M5 7L7 5\" stroke=\"{ground}\" stroke-width=\"1\"/>"
                ),
            };
            // Writing to a string cannot fail.
            _ = write!(
                svg,
                "<pattern id=\"{id}-{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <rect width=\"6\" height=\"6\" fill=\"{colour}\"/>{mark}</pattern>"
            );
        }
    }
}

fn reserved(hue: Hue, texture: Texture) -> String {
    format!("\"#01{:02X}{:02X}\"", texture as u8, hue as u8)
}

/// `body` with every reserved value replaced.
fn recolour(svg: &mut String, id: &str, body: &str) {
    const LENGTH: usize = "\"#010000\"".len();
    let mut rest = body;
    while let Some(at) = rest.find("\"#01") {
        let (before, from) = rest.split_at(at);
        svg.push_str(before);
        let known = from.get(..LENGTH).and_then(parsed);
        match known {
            Some((hue, Texture::Plain)) => _ = write!(svg, "\"{}\"", hue.css()),
            Some((hue, Texture::Dashed)) => _ = write!(svg, "\"{}\" stroke-dasharray=\"5 4\"", hue.css()),
            Some((hue, Texture::Hatched | Texture::Dotted)) => {
                _ = write!(svg, "\"url(#{id}-{})\"", hue.name())
            }
            None => svg.push_str(from.get(..LENGTH).unwrap_or_default()),
        }
        rest = from.get(LENGTH..).unwrap_or_default();
    }
    svg.push_str(rest);
}

fn parsed(quoted: &str) -> Option<(Hue, Texture)> {
    let number = |at: usize| u8::from_str_radix(quoted.get(at..at + 2)?, 16).ok();
    let (texture, hue) = (number(4)?, number(6)?);
    let texture = Texture::ALL.into_iter().find(|known| *known as u8 == texture)?;
    Some((Hue::ALL.into_iter().find(|known| *known as u8 == hue)?, texture))
}

/// Text as it may stand in XML 1.0: control characters, which cannot be written at all, become the replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
