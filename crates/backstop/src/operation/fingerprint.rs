//! What makes two requests with one key the same request.
//!
//! Method, host, path, query, media type, coding and content. JSON content is compared by what it says: names in any order, white space
//! of any kind; but numbers by their text, because `9007199254740993` and `9007199254740992` are one number to many
//! parsers, and `1` and `1.0` are one to some. A text in which a name stands twice says two things and is refused. Other
//! content is compared byte by byte.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use backstop_engine::policy::effect;
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName};
use http::request::Parts;
use serde::Deserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::member::Json;
use crate::canonical;
use crate::json::unescaped;

/// Deeper values are compared by their text as a whole: looking into each level costs another pass over it.
const DEPTH: usize = 16;

/// A name stands twice in one object of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidTwice;

/// What a request asks, as parts of a digest.
///
/// # Errors
/// If its JSON content has a name twice in one object.
pub fn parts<'a>(
    rules: &effect::Fingerprint,
    head: &'a Parts,
    content: &'a [u8],
) -> Result<[Cow<'a, [u8]>; 8], SaidTwice> {
    let lines = |name: HeaderName| {
        let values: Vec<&[u8]> = head.headers.get_all(name).into_iter().map(HeaderValue::as_bytes).collect();
        values.join(&b'\n')
    };
    // What is compared by what it says is never the same as what is compared byte by byte.
    let (kind, content): (&[u8], Cow<'a, [u8]>) = match Json::of(content) {
        Some(json) => (b"json", Cow::Owned(said(rules, json)?)),
        None => (b"bytes", Cow::Borrowed(content)),
    };
    let named = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = head.uri.authority().map(|authority| authority.as_str()).or(named).unwrap_or_default();
    let path = canonical::escapes(head.uri.path()).into_owned().into_bytes();
    Ok([
        head.method.as_str().as_bytes().into(),
        path.into(),
        query(&canonical::escapes(head.uri.query().unwrap_or_default())).into_bytes().into(),
        canonical::without_port(&canonical::host(host)).0.to_owned().into_bytes().into(),
        essence(&lines(CONTENT_TYPE)).into(),
        lines(CONTENT_ENCODING).into(),
        kind.into(),
        content,
    ])
}

/// A query, its members sorted: their order across names is no part of what is asked. Members of one name keep theirs.
fn query(query: &str) -> String {
    let mut members: Vec<&str> = query.split('&').collect();
    members.sort_by_key(|member| member.split('=').next());
    members.join("&")
}

/// A media type in lower case, its parameters as they came: the boundary of parts is told apart by case.
fn essence(media_type: &[u8]) -> Vec<u8> {
    let end = media_type.iter().position(|byte| *byte == b';').unwrap_or(media_type.len());
    let (essence, parameters) = media_type.split_at(end);
    [&essence.trim_ascii().to_ascii_lowercase(), parameters].concat()
}

/// What a JSON text says, in one form.
fn said(rules: &effect::Fingerprint, json: Json<'_>) -> Result<Vec<u8>, SaidTwice> {
    let mut out = Vec::with_capacity(json.text().len());
    let pointers = |list: &[Box<str>]| -> Vec<Vec<String>> {
        let tokens = |pointer: &str| -> Vec<String> {
            let tokens = pointer.strip_prefix('/').into_iter().flat_map(|rest| rest.split('/'));
            tokens.filter_map(unescaped).map(Cow::into_owned).collect()
        };
        list.iter().map(|pointer| tokens(pointer)).collect()
    };
    match rules {
        effect::Fingerprint::Whole => write(json.text(), &[], 0, &mut out)?,
        effect::Fingerprint::Without(ignored) => {
            let ignored = pointers(ignored);
            let ignored: Vec<&[String]> = ignored.iter().map(Vec::as_slice).collect();
            write(json.text(), &ignored, 0, &mut out)?;
        }
        effect::Fingerprint::Only(only) => {
            // The text as a whole must be one that says everything once, also beside what is compared.
            write(json.text(), &[], 0, &mut Vec::new())?;
            for pointer in only {
                out.extend_from_slice(pointer.as_bytes());
                out.push(b'\n');
                if let Some(member) = json.at(pointer) {
                    write(member.text(), &[], 0, &mut out)?;
                }
                out.push(b'\n');
            }
        }
    }
    Ok(out)
}

/// Writes one value in the one form, without what these paths lead to.
fn write(text: &str, ignored: &[&[String]], depth: usize, out: &mut Vec<u8>) -> Result<(), SaidTwice> {
    let text = text.trim();
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth < DEPTH => {
            let mut twice = false;
            let inside = Inside { ignored, depth, out, twice: &mut twice };
            let read = serde_json::Deserializer::from_str(text).deserialize_any(inside);
            // The text is one value already, so what else cannot be read is a name that is no text (half of a surrogate pair). Two
            // readers make two names of it, or one of two.
            if twice || read.is_err() { Err(SaidTwice) } else { Ok(()) }
        }
        // However it was escaped, it is one string.
        Some(b'"') => {
            match serde_json::from_str::<String>(text) {
                Ok(string) => string_to(&string, out),
                // What has no form (half of a surrogate pair) is itself, and no string's form.
                Err(_) => {
                    out.push(b'\'');
                    out.extend_from_slice(text.as_bytes());
                }
            }
            Ok(())
        }
        _ => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
}

/// With its length before it: no content of a string can be taken for a part of the form.
fn string_to(string: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\"{}:", string.len()).as_bytes());
    out.extend_from_slice(string.as_bytes());
}

struct Inside<'i, 'o> {
    ignored: &'i [&'i [String]],
    depth: usize,
    out: &'o mut Vec<u8>,
    twice: &'o mut bool,
}

impl Inside<'_, '_> {
    fn child<E: Error>(&mut self, name: &str, text: &str) -> Result<(), E> {
        let below: Vec<&[String]> = self
            .ignored
            .iter()
            .filter_map(|path| path.split_first().filter(|(first, _)| *first == name).map(|(_, rest)| rest))
            .collect();
        write(text, &below, self.depth + 1, self.out).map_err(|SaidTwice| {
            *self.twice = true;
            E::custom("a name stands twice")
        })
    }

    fn is_ignored(&self, name: &str) -> bool {
        self.ignored.iter().any(|path| matches!(path, [only] if only == name))
    }
}

impl<'a> Visitor<'a> for Inside<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let mut index = 0_usize;
        while let Some(element) = sequence.next_element::<&'a RawValue>()? {
            let name = index.to_string();
            if !self.is_ignored(&name) {
                self.child(&name, element.get())?;
            }
            self.out.push(b',');
            index += 1;
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut members: BTreeMap<String, &'a RawValue> = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, &'a RawValue>()? {
            if members.insert(name, value).is_some() {
                *self.twice = true;
                return Err(A::Error::custom("a name stands twice"));
            }
        }
        self.out.push(b'{');
        for (name, value) in members {
            if self.is_ignored(&name) {
                continue;
            }
            string_to(&name, self.out);
            self.out.push(b':');
            self.child(&name, value.get())?;
            self.out.push(b',');
        }
        self.out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
