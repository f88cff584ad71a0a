//! The client's key of its operation.
//!
//! It is 1 to 255 visible ASCII characters, in a field of the request (bare, or as a string of Structured Fields, RFC 9651 section
//! 3.3.3, as the IETF's draft of `Idempotency-Key` has it) or in a string of its JSON content. Both spellings of one key are one
//! key. The upstream gets it byte for byte as it came.

use backstop_engine::policy::effect::KeySource;
use http::{HeaderMap, HeaderValue};

use super::member::Json;

/// The longest key, in bytes.
pub const KEY_BYTES: usize = 255;

/// A key, as it is compared and as it came.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    text: Box<str>,
    as_it_came: HeaderValue,
}

/// A key is not shown in logs: whoever knows it may ask for the operation's answer.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Why a request has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// None was sent.
    Missing,
    /// What was sent is none, or more than one was.
    Malformed,
}

impl Key {
    /// The key of a request.
    ///
    /// # Errors
    /// If there is none, or it is none.
    pub fn of(source: &KeySource, headers: &HeaderMap, content: Option<Json<'_>>) -> Result<Self, NoKey> {
        match source {
            KeySource::Header(name) => {
                let mut values = headers.get_all(&**name).into_iter();
                let value = values.next().ok_or(NoKey::Missing)?;
                let text = text_of(value.as_bytes()).filter(|_| values.next().is_none());
                Ok(Self { text: text.ok_or(NoKey::Malformed)?, as_it_came: value.clone() })
            }
            KeySource::Body(pointer) => {
                let member = content.and_then(|json| json.at(pointer)).ok_or(NoKey::Missing)?;
                let text = member.string().filter(|text| is_key(text.as_bytes()));
                let text = text.ok_or(NoKey::Malformed)?;
                let as_it_came = HeaderValue::from_str(&text).map_err(|_| NoKey::Malformed)?;
                Ok(Self { text: text.into(), as_it_came })
            }
        }
    }

    /// As it is compared.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As it came, for the upstream.
    pub const fn as_it_came(&self) -> &HeaderValue {
        &self.as_it_came
    }
}

/// Whether a key, as it came, is a string of Structured Fields. Whether its upstream knows it by its quotes or without them
/// nobody has seen.
pub fn is_quoted(as_it_came: &[u8]) -> bool {
    as_it_came.starts_with(b"\"")
}

/// What a quoted key says without its quotes; `None` of any other.
pub fn unquoted(as_it_came: &[u8]) -> Option<Box<str>> {
    text_of(as_it_came).filter(|_| is_quoted(as_it_came))
}

fn is_key(text: &[u8]) -> bool {
    (1..=KEY_BYTES).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

fn text_of(value: &[u8]) -> Option<Box<str>> {
    let Some(quoted) = value.strip_prefix(b"\"") else {
        return is_key(value).then(|| String::from_utf8_lossy(value).into());
    };
    let mut text = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    loop {
        match bytes.next()? {
            b'\\' => text.push(*bytes.next().filter(|byte| matches!(byte, b'"' | b'\\'))?),
            // Parameters after it would be part of no key.
            b'"' if bytes.as_slice().is_empty() => break,
            b'"' => return None,
            byte => text.push(*byte),
        }
    }
    is_key(&text).then(|| String::from_utf8_lossy(&text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_field(values: &[&str]) -> Result<Key, NoKey> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("idempotency-key", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Key::of(&KeySource::Header("idempotency-key".into()), &headers, None)
    }

    fn of_content(content: &str) -> Result<Key, NoKey> {
        let json = Json::of(content.as_bytes());
        Key::of(&KeySource::Body("/order/id".into()), &HeaderMap::new(), json)
    }

    /// RFC 9651 section 3.3.3: only `"` and `\` are escaped.
    #[test]
    fn a_key_is_bare_or_a_string_of_structured_fields() {
        for (value, text) in
            [("abc", "abc"), ("\"abc\"", "abc"), (r#""a\"b\\c""#, r#"a"b\c"#), ("a\"b", "a\"b")]
        {
            let key = of_field(&[value]).unwrap();
            assert_eq!((key.text(), key.as_it_came().as_bytes()), (text, value.as_bytes()));
        }
        for wrong in ["\"abc", "\"\"", "\"a\"b\"", "\"a\";p=1", r#""a\n""#, "a b", "\"a b\"", "", "é", "a, b"]
        {
            assert_eq!(of_field(&[wrong]), Err(NoKey::Malformed), "{wrong}");
        }
        assert_eq!(of_field(&[]), Err(NoKey::Missing));
        assert_eq!(of_field(&["a", "a"]), Err(NoKey::Malformed));
    }

    /// 1 to 255, by hand at both ends.
    #[test]
    fn a_key_has_up_to_255_characters() {
        assert!(of_field(&["a"]).is_ok() && of_field(&[&"a".repeat(255)]).is_ok());
        assert_eq!(of_field(&[&"a".repeat(256)]), Err(NoKey::Malformed));
        assert!(of_field(&[&format!("\"{}\"", "a".repeat(255))]).is_ok());
        assert_eq!(of_field(&[&format!("\"{}\"", "a".repeat(256))]), Err(NoKey::Malformed));
    }

    #[test]
    fn a_key_in_the_content_is_a_string() {
        assert_eq!(of_content(r#"{"order":{"id":"o-1"}}"#).unwrap().text(), "o-1");
        for wrong in [r#"{"order":{"id":1}}"#, r#"{"order":{"id":""}}"#, r#"{"order":{"id":"a b"}}"#] {
            assert_eq!(of_content(wrong), Err(NoKey::Malformed), "{wrong}");
        }
        for none in ["", "{}", r#"{"order":{"id":"a","id":"b"}}"#, "<id/>"] {
            assert_eq!(of_content(none), Err(NoKey::Missing), "{none}");
        }
    }
}
