//! Whether a body is exactly one JSON value, and what stands at given places in it: one pass, nothing kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Nesting beyond this is not read; RFC 8259 section 9 allows a limit.
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
        let mut found = vec![Found::Nothing; self.count];
        // Skipped strings are not checked by the parser.
        let mut deserializer = serde_json::Deserializer::from_str(std::str::from_utf8(body).ok()?);
        let seed = Look { node: &self.root, found: &mut found };
        seed.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(found)
    }
}

/// Whether a body is exactly one JSON value (RFC 8259), white space around it aside.
pub fn is_one_value(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

fn unescaped(token: &str) -> Option<Cow<'_, str>> {
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

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(mut self, _: bool) -> Result<(), E> {
        self.mark(&Found::Other);
        Ok(())
    }

    fn visit_i64<E: Error>(mut self, _: i64) -> Result<(), E> {
        self.mark(&Found::Other);
        Ok(())
    }

    fn visit_u64<E: Error>(mut self, _: u64) -> Result<(), E> {
        self.mark(&Found::Other);
        Ok(())
    }

    fn visit_f64<E: Error>(mut self, _: f64) -> Result<(), E> {
        self.mark(&Found::Other);
        Ok(())
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.mark(&Found::Other);
        Ok(())
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        if !self.node.ends.is_empty() {
            self.mark(&Found::Text(text.to_owned()));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        self.mark(&Found::Other);
        let mut index = 0_usize;
        loop {
            let child = match self.node.children.as_slice() {
                [] => None,
                children => {
                    let name = index.to_string();
                    children.iter().find(|(token, _)| **token == *name).map(|(_, node)| node)
                }
            };
            let more = match child {
                Some(node) => sequence.next_element_seed(Look { node, found: self.found })?.is_some(),
                None => sequence.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.mark(&Found::Other);
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            match self.node.children.iter().find(|(token, _)| **token == *name) {
                Some((_, node)) => map.next_value_seed(Look { node, found: self.found })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for broken in ["", " ", "{", "{}{}", "{} x", "[1,]", "{\"a\":1", "nul", "<html>", "\u{feff}{}", "01"]
        {
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

    /// Unknown parts are skipped without recursion: a body that only nests is refused, not overflowed.
    #[test]
    fn endless_nesting_is_refused() {
        assert!(!is_one_value("[".repeat(100_000).as_bytes()));
        assert!(look(&["/a"], &"[".repeat(100_000)).is_none());
    }
}
