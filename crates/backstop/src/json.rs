//! Whether a body is exactly one JSON value, and what stands at given places in it: one pass, nothing kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A pointer with more tokens is refused: it names a place deeper than any that a policy has to look at.
const MAX_POINTER_TOKENS: usize = 32;

/// A set of JSON Pointers (RFC 6901), as a tree.
#[derive(Clone, Debug, Default)]
pub struct Places {
    root: Node,
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// The number of the pointer that ends here.
    ends: Vec<usize>,
    children: Vec<(Box<str>, Node)>,
}

/// What stands at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A string.
    Text(String),
    /// Something that is not a string.
    Other,
}

/// A pointer that RFC 6901 does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no JSON Pointer: it must be empty or begin with `/`, `~` only as `~0` or `~1`, at most 32 tokens"
)]
pub struct NotAPointer(pub Box<str>);

impl Places {
    /// Adds a place; its number is that of the places before it.
    ///
    /// # Errors
    /// If the text is no JSON Pointer.
    pub fn add(&mut self, pointer: &str) -> Result<usize, NotAPointer> {
        let wrong = || NotAPointer(pointer.into());
        let mut node = &mut self.root;
        if !pointer.is_empty() {
            let tokens = pointer.strip_prefix('/').ok_or_else(wrong)?;
            if tokens.split('/').count() > MAX_POINTER_TOKENS {
                return Err(wrong());
            }
            for token in tokens.split('/') {
                let token = unescaped(token).ok_or_else(wrong)?;
                let known = node.children.iter().position(|(name, _)| **name == *token);
                let index = known.unwrap_or(node.children.len());
                if known.is_none() {
                    node.children.push((token.into(), Node::default()));
                }
                node = &mut node.children.get_mut(index).ok_or_else(wrong)?.1;
            }
        }
        node.ends.push(self.count);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// What stands at each place, in the order in which they were added; `None` unless the body is one JSON value.
    pub fn look(&self, body: &[u8]) -> Option<Vec<Found>> {
        let text = one_value(body)?;
        let mut found = vec![Found::Nothing; self.count];
        Look { node: &self.root, found: &mut found }.at(text);
        Some(found)
    }
}

/// Whether a body is exactly one JSON value (RFC 8259), white space around it aside. A byte order mark before it is ignored, as
/// section 8.1 allows; text that is no UTF-8 is no JSON.
pub fn is_one_value(body: &[u8]) -> bool {
    one_value(body).is_some()
}

/// Whether a body is exactly one JSON value and shows by itself where that ends. A number does not: a part of it is one as well.
pub fn shows_its_end(body: &[u8]) -> bool {
    is_one_value(body) && body.trim_ascii_end().last().is_some_and(|byte| !byte.is_ascii_digit())
}

/// A JSON text without a byte order mark and white space around it.
pub(crate) fn bare(body: &[u8]) -> &[u8] {
    let without_mark = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    without_mark.trim_ascii()
}

fn one_value(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok().map(|_| text)
}

/// What a step of a JSON Pointer means (RFC 6901 section 4); `None` if it is none.
pub(crate) fn unescaped(token: &str) -> Option<Cow<'_, str>> {
    if !token.contains('~') {
        return Some(Cow::Borrowed(token));
    }
    let mut text = String::with_capacity(token.len());
    let mut characters = token.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(Cow::Owned(text))
}

struct Look<'a> {
    node: &'a Node,
    found: &'a mut Vec<Found>,
}

impl Look<'_> {
    fn mark(&mut self, what: &Found) {
        for &number in &self.node.ends {
            if let Some(place) = self.found.get_mut(number) {
                *place = what.clone();
            }
        }
    }
}

impl Look<'_> {
    /// Looks into the text of one value, which is whole. What the parser cannot represent (a number beyond every range, half
    /// of a surrogate pair) is there all the same, but no string.
    fn at(mut self, text: &str) {
        let Self { node, .. } = self;
        match text.trim_start().as_bytes().first() {
            Some(b'"') if !node.ends.is_empty() => {
                let what = serde_json::from_str(text).map_or(Found::Other, Found::Text);
                self.mark(&what);
            }
            Some(b'"') => {}
            _ => self.mark(&Found::Other),
        }
        if !node.children.is_empty() {
            let _what_could_be_read =
                serde_json::Deserializer::from_str(text).deserialize_any(Inside { look: self });
        }
    }
}

/// The members or elements of a value, those looked for as they were written.
struct Inside<'a> {
    look: Look<'a>,
}

impl Inside<'_> {
    fn child(&mut self, name: &str) -> Option<Look<'_>> {
        let (_, node) = self.look.node.children.iter().find(|(token, _)| **token == *name)?;
        Some(Look { node, found: self.look.found })
    }
}

impl<'de> Visitor<'de> for Inside<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        while let Some(element) = sequence.next_element::<&RawValue>()? {
            if let Some(child) = self.child(&index.to_string()) {
                child.at(element.get());
            }
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<&RawValue>()? {
            let name: Option<Cow<'_, str>> = serde_json::from_str::<String>(name.get()).ok().map(Cow::Owned);
            let value = map.next_value::<&RawValue>()?;
            if let Some(child) = name.and_then(|name| self.child(&name)) {
                child.at(value.get());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8259: of these only the beginning of a number is a value itself.
    #[test]
    fn half_a_number_is_no_whole_answer() {
        for whole in ["{\"a\":1}", "[1]", "\"a\"", "true", "null ", "\n{}\n"] {
            assert!(shows_its_end(whole.as_bytes()), "{whole}");
        }
        for uncertain in ["12", "1.5", "-1", "1e9", "12 \n", "{\"a\":1", "[1", "\"a", "tru", ""] {
            assert!(!shows_its_end(uncertain.as_bytes()), "{uncertain}");
        }
    }

    fn look(pointers: &[&str], body: &str) -> Option<Vec<Found>> {
        let mut places = Places::default();
        for pointer in pointers {
            places.add(pointer).unwrap();
        }
        places.look(body.as_bytes())
    }

    #[test]
    fn exactly_one_value() {
        for whole in ["{}", " [1, 2] \n", "null", "\"a\"", "0", "{\"a\":{\"b\":[]}}"] {
            assert!(is_one_value(whole.as_bytes()), "{whole}");
            assert!(look(&["/a"], whole).is_some(), "{whole}");
        }
        for broken in ["", " ", "{", "{}{}", "{} x", "[1,]", "{\"a\":1", "nul", "<html>", "01"] {
            assert!(!is_one_value(broken.as_bytes()), "{broken}");
            assert!(look(&["/a"], broken).is_none(), "{broken}");
        }
        assert!(!is_one_value(b"\"\xff\""));
    }

    /// The examples of RFC 6901 section 5, as far as they name strings or differ in escaping.
    #[test]
    fn places_are_found() {
        let body = r#"{"foo":["bar","baz"],"":0,"a/b":"1","m~n":"8","deep":{"er":{"est":"x"}}}"#;
        let text = |text: &str| Found::Text(text.to_owned());
        let pointers =
            ["", "/foo", "/foo/0", "/foo/2", "/", "/a~1b", "/m~0n", "/deep/er/est", "/deep/er", "/no"];
        let expected = [
            Found::Other,
            Found::Other,
            text("bar"),
            Found::Nothing,
            Found::Other,
            text("1"),
            text("8"),
            text("x"),
            Found::Other,
            Found::Nothing,
        ];
        assert_eq!(look(&pointers, body).unwrap(), expected);
    }

    #[test]
    fn a_place_may_be_asked_for_twice() {
        assert_eq!(look(&["/a", "/a"], r#"{"a":"x"}"#).unwrap(), vec![Found::Text("x".into()); 2]);
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for wrong in ["a", "/~", "/~2", "#/a", &"/a".repeat(33)] {
            assert!(Places::default().add(wrong).is_err(), "{wrong}");
        }
    }

    /// RFC 8259: a mark before the text may be ignored (section 8.1), numbers have no range (6), strings no form (8.2).
    #[test]
    fn what_the_parser_cannot_represent_is_whole_all_the_same() {
        let (number, text) = (r#"{"a":1e999,"b":"x"}"#, r#"{"a":"\ud800","b":"x","\ud800":0}"#);
        for body in [number, text, "\u{feff}{\"a\":0,\"b\":\"x\"}"] {
            assert!(is_one_value(body.as_bytes()), "{body}");
            assert_eq!(
                look(&["/a", "/b"], body),
                Some(vec![Found::Other, Found::Text("x".into())]),
                "{body}"
            );
        }
        assert_eq!(look(&["/a/b"], r#"{"a":[{"b":"x"}]}"#), Some(vec![Found::Nothing]));
        assert_eq!(look(&["/a/1/b"], r#"{"a":[0, {"b" : "x"}]}"#), Some(vec![Found::Text("x".into())]));
    }

    /// Unknown parts are skipped without recursion: a body that only nests is refused, not overflowed.
    #[test]
    fn endless_nesting_is_refused() {
        assert!(!is_one_value("[".repeat(100_000).as_bytes()));
        assert!(look(&["/a"], &"[".repeat(100_000)).is_none());
    }
}
