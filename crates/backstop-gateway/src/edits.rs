//! The operator's changes to header fields, ready for use.
//!
//! They are meant for the dependency's answers, and copies of them. An answer that is Backstop's own (a refusal, a prepared
//! one, one that leaves the part out) has a content and a lifetime of its own: what it says of these is left alone. Were the
//! operator's `CDN-Cache-Control` set on a refusal, a cache would go on refusing after the incident.

use backstop_policy::HeaderEdits;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::strict::passes_for;

/// Header edits, ready for use.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    set: Vec<(HeaderName, HeaderValue)>,
    remove: Vec<HeaderName>,
}

impl Edits {
    /// The policy file has checked names and values; what would still be invalid is left out.
    pub(crate) fn new(edits: &HeaderEdits) -> Self {
        let name = |name: &str| HeaderName::from_bytes(name.as_bytes()).ok();
        let set =
            edits.set.iter().filter_map(|(key, value)| name(key).zip(HeaderValue::from_str(value).ok()));
        Self { set: set.collect(), remove: edits.remove.iter().filter_map(|key| name(key)).collect() }
    }

    /// Removes these too, whoever sent them.
    pub(crate) fn and_remove(mut self, names: &[HeaderName]) -> Self {
        self.remove.extend_from_slice(names);
        self
    }

    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        self.apply_where(headers, |_| true);
    }

    /// To an answer that is Backstop's own.
    pub(crate) fn apply_to_own(&self, headers: &mut HeaderMap) {
        self.apply_where(headers, |name| !is_about_the_answer(name.as_str()));
    }

    /// To an interim answer: what goes no further with the answer itself does not go with its hints either.
    pub(crate) fn remove_from(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
    }

    /// Whether the operator decides about this field.
    pub(crate) fn touch(&self, name: &HeaderName) -> bool {
        self.remove.contains(name) || self.set.iter().any(|(set, _)| set == name)
    }

    /// Whether the field passes for one that the operator decides about.
    pub(crate) fn touch_what_passes_for(&self, name: &HeaderName) -> bool {
        self.remove.iter().chain(self.set.iter().map(|(set, _)| set)).any(|ruled| passes_for(name, ruled))
    }

    fn apply_where(&self, headers: &mut HeaderMap, may: impl Fn(&HeaderName) -> bool) {
        for name in self.remove.iter().filter(|name| may(name)) {
            headers.remove(name);
        }
        for (name, value) in self.set.iter().filter(|(name, _)| may(name)) {
            headers.insert(name, value.clone());
        }
    }
}

/// Fields that say what the content is and what may be done with it (RFC 9110 sections 8, 10.2.3 and 15; RFC 9111 section 5;
/// RFC 9530), or where it comes from.
const ABOUT_THE_ANSWER: [&str; 24] = [
    "accept-ranges",
    "age",
    "allow",
    "backstop",
    "cache-control",
    "cache-status",
    "content-digest",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "digest",
    "etag",
    "expires",
    "last-modified",
    "pragma",
    "proxy-status",
    "repr-digest",
    "retry-after",
    "surrogate-control",
    "vary",
];

/// `CDN-Cache-Control` and its kin are targeted cache control (RFC 9213).
pub(crate) fn is_about_the_answer(name: &str) -> bool {
    ABOUT_THE_ANSWER.contains(&name) || name.ends_with("-cache-control")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_answer_keeps_what_it_says_of_itself() {
        let fields = [
            "content-type",
            "cdn-cache-control",
            "surrogate-control",
            "vary",
            "etag",
            "pragma",
            "x-frame-options",
        ];
        let edits = Edits {
            set: fields.map(|name| (HeaderName::from_static(name), HeaderValue::from_static("set"))).to_vec(),
            remove: ["retry-after", "x-gone", "content-encoding"].map(HeaderName::from_static).to_vec(),
        };
        let before = || {
            let fields =
                [("content-type", "own"), ("retry-after", "1"), ("x-gone", "1"), ("content-encoding", "own")];
            let fields =
                fields.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            HeaderMap::from_iter(fields)
        };
        let after = |headers: HeaderMap| {
            let mut lines: Vec<_> =
                headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
            lines.sort();
            lines
        };
        let mut own = before();
        edits.apply_to_own(&mut own);
        assert_eq!(
            after(own),
            ["content-encoding: own", "content-type: own", "retry-after: 1", "x-frame-options: set"]
        );
        let mut theirs = before();
        edits.apply(&mut theirs);
        assert_eq!(after(theirs).len(), fields.len());
    }
}
