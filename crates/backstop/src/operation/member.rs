//! One member of a JSON text, as it was written.
//!
//! Operations are compared by what a text says, not by what a parser makes of it: a number beyond what a machine word holds is
//! not the number beside it. A member whose name stands twice in its object says two things, so it says nothing.

use std::fmt;

use serde::Deserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::unescaped;

/// A text that is exactly one JSON value (RFC 8259).
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The value that some content is, if it is exactly one; a byte order mark before it does not count.
    pub fn of(content: &'a [u8]) -> Option<Self> {
        if !crate::json::is_one_value(content) {
            return None;
        }
        std::str::from_utf8(crate::json::bare(content)).ok().map(Self)
    }

    /// What a JSON Pointer (RFC 6901) leads to, as it was written. `None` if it leads nowhere, is no pointer, or passes a
    /// name that stands twice.
    pub fn at(self, pointer: &str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut text = self.0;
        for token in pointer.strip_prefix('/')?.split('/') {
            text = child(text, &unescaped(token)?)?;
        }
        Some(Self(text))
    }

    /// The elements of the array that it is.
    pub fn elements(self) -> Option<Vec<Self>> {
        let elements: Vec<&'a RawValue> = serde_json::from_str(self.0).ok()?;
        Some(elements.into_iter().map(|element| Self(element.get())).collect())
    }

    /// Its text.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The string that it is.
    pub fn string(self) -> Option<String> {
        serde_json::from_str(self.0).ok()
    }

    /// The whole number that it is, written without fraction and exponent.
    pub fn integer(self) -> Option<i64> {
        // The parser would take `1.0` for no integer and `-0` for one; both are as they should be.
        serde_json::from_str(self.0).ok()
    }

    /// Whether it is `true`, if it is one of the two.
    pub fn boolean(self) -> Option<bool> {
        serde_json::from_str(self.0).ok()
    }
}

fn child<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut found = Found::Nothing;
    let is_read =
        serde_json::Deserializer::from_str(text).deserialize_any(Inside { name, found: &mut found });
    match (is_read, found) {
        (Ok(()), Found::Once(text)) => Some(text.trim()),
        _ => None,
    }
}

enum Found<'a> {
    Nothing,
    Once(&'a str),
    Twice,
}

struct Inside<'a, 'f> {
    name: &'f str,
    found: &'f mut Found<'a>,
}

impl<'a> Visitor<'a> for Inside<'a, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut sequence: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        while let Some(element) = sequence.next_element::<&'a RawValue>()? {
            if index.to_string() == self.name {
                *self.found = Found::Once(element.get());
            }
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value::<&'a RawValue>()?;
            if name == self.name {
                *self.found = match self.found {
                    Found::Nothing => Found::Once(value.get()),
                    Found::Once(_) | Found::Twice => Found::Twice,
                };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
        Json::of(text.as_bytes())?.at(pointer).map(Json::text)
    }

    /// RFC 6901 section 5, and what was written byte for byte.
    #[test]
    fn a_member_is_found_as_it_was_written() {
        let text = r#" {"foo": ["bar", 9007199254740993], "": 0, "a/b": 1.0, "m~n": {"x" : true}} "#;
        assert_eq!(at(text, ""), Some(text.trim()));
        assert_eq!(at(text, "/foo/0"), Some("\"bar\""));
        assert_eq!(at(text, "/foo/1"), Some("9007199254740993"));
        assert_eq!(at(text, "/"), Some("0"));
        assert_eq!(at(text, "/a~1b"), Some("1.0"));
        assert_eq!(at(text, "/m~0n/x"), Some("true"));
        for nowhere in ["/foo/2", "/foo/-", "/foo/00", "/no", "/foo/0/x", "foo", "/~2"] {
            assert_eq!(at(text, nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn what_is_said_twice_is_not_said() {
        assert_eq!(at(r#"{"a":1,"a":1}"#, "/a"), None);
        assert_eq!(at(r#"{"a":1,"\u0061":2}"#, "/a"), None);
        assert_eq!(at(r#"{"a":{"b":1},"c":{"b":2}}"#, "/c/b"), Some("2"));
    }

    #[test]
    fn values_are_read_as_what_they_are() {
        let json = |text: &'static str| Json::of(text.as_bytes()).unwrap();
        assert_eq!(json("\"a\\u0062\"").string().as_deref(), Some("ab"));
        assert_eq!(json("7").string(), None);
        assert_eq!(json("-7").integer(), Some(-7));
        for no in ["7.0", "7e0", "9223372036854775808", "\"7\"", "null"] {
            assert_eq!(json(no).integer(), None, "{no}");
        }
        assert_eq!((json("true").boolean(), json("1").boolean()), (Some(true), None));
        assert!(Json::of(b"{} x").is_none());
    }
}
