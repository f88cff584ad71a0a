//! One part's answer, read to its end and looked into.

use std::future::Future;

use backstop_engine::composed::{PartContent, PartFacts};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Account;
use backstop_engine::outcome::{Outcome, Source};
use backstop_engine::time::Mono;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, response};
use http_body::Body;

use crate::body::{Collected, ReplyBody, collect};
use crate::budget::Held;
use crate::correct::{essence, is_coded, is_json};
use crate::json::is_one_value;
use crate::protected::Shared;
use crate::storable::received_age;
use crate::upstream::BrokenOff;

use super::fields::Standing;

/// A part that came.
pub(super) struct Came {
    pub(super) head: response::Parts,
    pub(super) body: Bytes,
    pub(super) held: Option<Held>,
    pub(super) facts: PartFacts,
    /// When its head came. The age that it tells is that of this moment.
    pub(super) at: Mono,
}

impl Came {
    /// As it stands in a whole that is sent now.
    pub(super) fn standing(&self, now: Mono) -> Standing<'_> {
        Standing { headers: &self.head.headers, waited: self.at.until(now) }
    }
}

/// Awaits a part's answer and reads it, up to its limit and what all held-back answers may take.
pub(super) async fn gather<B>(
    answer: impl Future<Output = Response<ReplyBody<B>>>,
    limit_bytes: u64,
    shared: &Shared,
) -> Came
where
    B: Body<Data = Bytes, Error = BrokenOff> + Unpin,
{
    let (head, body) = answer.await.into_parts();
    let at = shared.clock.mono();
    let account = head.extensions.get().copied();
    // Of a normal answer nothing has to be told; what an authorizer answered is why there is no value.
    let tells =
        |account: &Account| account.outcome != Outcome::Normal || account.source == Source::Authorizer;
    let account = account.filter(tells);
    let age = Some(received_age(&head.headers)).filter(|age| !age.is_zero());
    let facts = |content| PartFacts { status: head.status.as_u16(), content, account, age };
    let nothing = |content| (Bytes::new(), None, facts(content));
    let (body, held, facts) = match collect(body, limit_bytes, &shared.budget).await {
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
        Err(BrokenOff::Dependency(failure, _)) => nothing(PartContent::BrokenOff(failure)),
        // A part has no content of its own that could break off.
        Err(BrokenOff::Client(_)) => {
            let failure = Failure::new(FailureKind::Reset, Phase::Body, Sent::Maybe);
            nothing(PartContent::BrokenOff(failure))
        }
    };
    Came { head, body, held, facts, at }
}

/// Whether content is exactly one JSON value, and nothing says otherwise of it.
fn is_part(headers: &HeaderMap, body: &[u8]) -> bool {
    let fits = headers.get_all(CONTENT_TYPE).iter().all(|declared| is_json(essence(declared.as_bytes())));
    !is_coded(headers) && fits && is_one_value(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn is(fields: &[(&'static str, &'static str)], body: &str) -> bool {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(pair) {
            headers.append(name, value);
        }
        is_part(&headers, body.as_bytes())
    }

    #[test]
    fn a_part_is_one_json_value_and_says_nothing_else() {
        let json = ("content-type", "application/json; charset=utf-8");
        for whole in ["{}", " [1] ", "null", "\u{feff}\"a\""] {
            assert!(is(&[json], whole) && is(&[], whole), "{whole}");
            assert!(is(&[("content-type", "application/hal+json")], whole), "{whole}");
            assert!(!is(&[("content-type", "text/html")], whole), "{whole}");
            assert!(!is(&[json, ("content-type", "text/html")], whole), "{whole}, said twice");
            for coding in ["gzip", "identity, gzip", ""] {
                assert!(!is(&[json, ("content-encoding", coding)], whole), "{whole} {coding:?}");
            }
            let two_lines = [json, ("content-encoding", "identity"), ("content-encoding", "br")];
            assert!(!is(&two_lines, whole), "{whole}");
            // RFC 9110 section 8.4.1: codings are case-insensitive.
            assert!(is(&[json, ("content-encoding", "Identity")], whole), "{whole}");
        }
        for broken in ["", "{\"id\":", "{}{}", "<html></html>"] {
            assert!(!is(&[json], broken) && !is(&[], broken), "{broken}");
        }
    }
}
