//! One part's answer, read to its end and looked into.

use std::future::Future;

use backstop_engine::composed::{PartContent, PartFacts};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response, response};
use http_body::Body;

use crate::body::{Collected, ReplyBody, collect};
use crate::budget::{Budget, Held};
use crate::correct::{essence, is_json};
use crate::json::is_one_value;
use crate::storable::received_age;
use crate::upstream::BrokenOff;

/// A part that came.
pub(super) struct Came {
    pub(super) head: response::Parts,
    pub(super) body: Bytes,
    pub(super) held: Option<Held>,
    pub(super) facts: PartFacts,
}

/// Awaits a part's answer and reads it, up to its limit and what all held-back answers may take.
pub(super) async fn gather<B>(
    answer: impl Future<Output = Response<ReplyBody<B>>>,
    limit_bytes: u64,
    budget: &Budget,
) -> Came
where
    B: Body<Data = Bytes, Error = BrokenOff> + Unpin,
{
    let (head, body) = answer.await.into_parts();
    let account = head.extensions.get().copied();
    let age = Some(received_age(&head.headers)).filter(|age| !age.is_zero());
    let facts = |content| PartFacts { status: head.status.as_u16(), content, account, age };
    let nothing = |content| (Bytes::new(), None, facts(content));
    let (body, held, facts) = match collect(body, limit_bytes, budget).await {
        Ok(Collected::Whole { body, mut held, .. }) => {
            if held.grow(body.len() as u64) {
                let content = if head.status.is_success() && is_part(&head.headers, &body) {
                    PartContent::OneValue
                } else {
                    PartContent::Other
                };
                (body, Some(held), facts(content))
            } else {
                nothing(PartContent::NoRoom)
            }
        }
        Ok(Collected::TooLarge { prefix, .. }) if prefix.bytes() > limit_bytes => {
            nothing(PartContent::TooLarge)
        }
        Ok(Collected::TooLarge { .. }) => nothing(PartContent::NoRoom),
        Err(BrokenOff::Dependency(failure)) => nothing(PartContent::BrokenOff(failure)),
        // A part has no content of its own that could break off.
        Err(BrokenOff::Client(_)) => {
            let failure = Failure::new(FailureKind::Reset, Phase::Body, Sent::Maybe);
            nothing(PartContent::BrokenOff(failure))
        }
    };
    Came { head, body, held, facts }
}

/// Whether content is exactly one JSON value, and nothing says otherwise of it.
fn is_part(headers: &HeaderMap, body: &[u8]) -> bool {
    let coded = headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
    let declared = headers.get(CONTENT_TYPE);
    let fits = declared.is_none_or(|declared| is_json(essence(declared.as_bytes())));
    !coded && fits && is_one_value(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn is(fields: &[(&'static str, &'static str)], body: &str) -> bool {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        is_part(&fields.iter().map(pair).collect(), body.as_bytes())
    }

    #[test]
    fn a_part_is_one_json_value_and_says_nothing_else() {
        let json = ("content-type", "application/json; charset=utf-8");
        for whole in ["{}", " [1] ", "null", "\u{feff}\"a\""] {
            assert!(is(&[json], whole) && is(&[], whole), "{whole}");
            assert!(is(&[("content-type", "application/hal+json")], whole), "{whole}");
            assert!(!is(&[("content-type", "text/html")], whole), "{whole}");
            assert!(!is(&[json, ("content-encoding", "gzip")], whole), "{whole}");
        }
        for broken in ["", "{\"id\":", "{}{}", "<html></html>"] {
            assert!(!is(&[json], broken) && !is(&[], broken), "{broken}");
        }
    }
}
