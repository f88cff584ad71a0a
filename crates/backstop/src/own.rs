//! What is said and answered in Backstop's own name, whatever the route's class.

use backstop_engine::failure::Cause;
use backstop_engine::flow::{Account, Settlement};
use backstop_engine::outcome::Reason;
use backstop_engine::status::{Problem, Refusal, refusal};
use bytes::Bytes;
use http::{HeaderMap, Response};

use crate::body::ReplyBody;
use crate::fields::{Speaker, describe_failure};
use crate::problem;

/// The answer of a refusal.
pub(crate) fn refused<B>(
    refused: &Refusal,
    account: &Account,
    speaker: &Speaker,
    is_head: bool,
    settlement: Settlement,
) -> Response<ReplyBody<B>> {
    let (mut head, content) = problem::response(refused, account).into_parts();
    if refused.problem != Problem::NoSuchOperation {
        describe_failure(&mut head.headers, refused, speaker);
    }
    Response::from_parts(head, ReplyBody::whole(unless_head(content, is_head), settlement))
}

/// Says what an alternative stands in for.
pub(crate) fn describe_cause(headers: &mut HeaderMap, cause: Cause, speaker: &Speaker) {
    let refusal = refusal(Reason::Cause(cause), Some(cause), Default::default());
    describe_failure(headers, &refusal, speaker);
}

/// Content, which an answer to HEAD has none of (RFC 9110 section 9.3.2).
pub(crate) fn unless_head(content: Bytes, is_head: bool) -> Bytes {
    if is_head { Bytes::new() } else { content }
}
