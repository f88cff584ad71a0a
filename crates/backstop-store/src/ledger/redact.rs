//! What of an upstream's answer may lie on a disk.
//!
//! The status always; of the fields those that are [listed](backstop_engine::operation::KEPT_FIELDS); the content if it is whole
//! and no longer than [`KEPT_BODY_BYTES`], with the values at the declared places replaced. Content in which such a place cannot
//! be looked for, because it is no JSON, is not kept at all. Of a route with card data nothing but the status is kept: sensitive
//! authentication data must not be stored after authorization, even encrypted (PCI DSS v4.0 requirement 3.3.1,
//! <https://www.pcisecuritystandards.org/document_library/>).

mod scan;

use std::fmt;

use backstop_engine::operation::{KEPT_BODY_BYTES, KEPT_FIELDS, KeptAnswer};
use http::HeaderMap;

use scan::places;

/// The longest value of a field that is kept, in bytes.
pub const KEPT_FIELD_BYTES: usize = 2048;

/// What stands in place of a value.
const REDACTED: &[u8] = br#""[redacted]""#;

/// What is kept of the answers of one route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    kind: Kind,
    redact: Vec<Vec<Box<str>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Content,
    Fields,
    Status,
}

/// A text is no JSON pointer (RFC 6901).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPointer;

impl fmt::Display for NotAPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON pointer begins with `/`, and `~` in it is written `~0`, `/` is written `~1`")
    }
}

impl std::error::Error for NotAPointer {}

impl Keep {
    /// Nothing but the status: of routes with card data.
    pub const fn status() -> Self {
        Self { kind: Kind::Status, redact: Vec::new() }
    }

    /// Fields, and no content.
    pub const fn fields() -> Self {
        Self { kind: Kind::Fields, redact: Vec::new() }
    }

    /// Fields and content, but for the values at these JSON pointers (RFC 6901).
    ///
    /// # Errors
    /// If one is no pointer. That of the whole content is none here.
    pub fn without<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Result<Self, NotAPointer> {
        let redact = pointers.into_iter().map(pointer).collect::<Result<_, _>>()?;
        Ok(Self { kind: Kind::Content, redact })
    }

    /// What is kept of an answer. `body`: its content, if all of it came.
    pub fn of(&self, status: u16, headers: &HeaderMap, body: Option<&[u8]>) -> KeptAnswer {
        let fields = match self.kind {
            Kind::Status => Vec::new(),
            Kind::Fields | Kind::Content => fields(headers),
        };
        let body = match self.kind {
            Kind::Content => {
                body.filter(|body| body.len() <= KEPT_BODY_BYTES).and_then(|body| self.redacted(body))
            }
            Kind::Fields | Kind::Status => None,
        };
        KeptAnswer { status, fields, body }
    }

    fn redacted(&self, body: &[u8]) -> Option<Box<[u8]>> {
        if self.redact.is_empty() {
            return Some(body.into());
        }
        let mut kept = Vec::with_capacity(body.len());
        let mut from = 0;
        for place in places(body, &self.redact)? {
            kept.extend_from_slice(body.get(from..place.start)?);
            kept.extend_from_slice(REDACTED);
            from = place.end;
        }
        kept.extend_from_slice(body.get(from..)?);
        (kept.len() <= KEPT_BODY_BYTES).then(|| kept.into())
    }
}

fn fields(headers: &HeaderMap) -> Vec<(Box<str>, Box<[u8]>)> {
    let all = KEPT_FIELDS.iter().flat_map(|name| {
        let values = headers.get_all(*name).into_iter().map(http::HeaderValue::as_bytes);
        values.map(|value| (Box::from(*name), Box::from(value)))
    });
    all.filter(|(_, value): &(_, Box<[u8]>)| value.len() <= KEPT_FIELD_BYTES).collect()
}

fn pointer(text: &str) -> Result<Vec<Box<str>>, NotAPointer> {
    let steps = text.strip_prefix('/').ok_or(NotAPointer)?;
    let steps = steps.split('/').map(|step| {
        let is_escaped = |rest: &str| rest.starts_with(['0', '1']);
        if step.split('~').skip(1).all(is_escaped) {
            Ok(step.replace("~1", "/").replace("~0", "~").into())
        } else {
            Err(NotAPointer)
        }
    });
    steps.collect()
}

#[cfg(test)]
#[path = "redact/tests.rs"]
mod tests;
