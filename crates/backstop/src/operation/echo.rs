//! What a status answer has to repeat, so that it is known to be about this operation and no other.
//!
//! An upstream whose list ignores its filter, or that gives one key to two orders, answers about something else. So the contract
//! names members that have to equal what was sent. Of the request only a keyed digest of each is kept.
//!
//! - A string is compared by its content, everything else by its text as it was written: `1` is not `1.0`
//! - The operation's id may come back with the quotes that it was sent with, or without them: both spellings are one key
//! - What is missing on one side only is not equal. An answer that does not repeat what the contract promises may be about
//!   anything; asking again would not tell, so a person has to look
//! - What is missing on both sides is equal

use std::borrow::Cow;

use backstop_engine::policy::effect::{EchoSource, StatusQueryRules};

use super::key::unquoted;
use super::member::Json;
use super::secret::{Secret, hexadecimal};

const LABEL: &str = "echo";

/// What is kept of a request for its status answers to be compared with: the pointer into the answer, and the digest of the
/// value that it has to have, in hexadecimal. `content`: the request's, if that is one JSON value.
pub fn captured(
    secret: &Secret,
    rules: &StatusQueryRules,
    content: Option<Json<'_>>,
) -> Vec<(Box<str>, Box<str>)> {
    let value = |(pointer, source): &(Box<str>, EchoSource)| match source {
        EchoSource::OperationId => None,
        EchoSource::Body(in_request) => {
            let member = content?.at(in_request)?;
            Some((pointer.clone(), digest(secret, member).into()))
        }
    };
    rules.echo.iter().filter_map(value).collect()
}

/// Whether an answer repeats what it has to. `captured`: what is kept of the request; `None` where nothing of it is known, and then
/// only the operation's id is compared.
pub fn matches(
    secret: &Secret,
    rules: &StatusQueryRules,
    upstream_id: &[u8],
    captured: Option<&[(Box<str>, Box<str>)]>,
    answer: Option<Json<'_>>,
) -> bool {
    rules.echo.iter().all(|(pointer, source)| {
        let member = answer.and_then(|answer| answer.at(pointer));
        match source {
            EchoSource::OperationId => member.is_some_and(|member| names(member, upstream_id)),
            EchoSource::Body(_) => captured.is_none_or(|captured| {
                let kept = captured.iter().find(|(name, _)| name == pointer).map(|(_, value)| &**value);
                member.map(|member| digest(secret, member)).as_deref() == kept
            }),
        }
    })
}

/// Whether an answer shows this operation by its id, whatever else it says. Where nothing in it has to be the id, nobody can tell.
pub fn shows(rules: &StatusQueryRules, upstream_id: &[u8], answer: Option<Json<'_>>) -> bool {
    let mut ids = rules.echo.iter().filter(|(_, source)| *source == EchoSource::OperationId).peekable();
    let is_id = |pointer: &str| {
        answer.and_then(|answer| answer.at(pointer)).is_some_and(|member| names(member, upstream_id))
    };
    ids.peek().is_some() && ids.all(|(pointer, _)| is_id(pointer))
}

/// Whether this is the operation's id, in either of a quoted key's spellings.
pub(super) fn names(member: Json<'_>, upstream_id: &[u8]) -> bool {
    let said = said(member);
    *said == *upstream_id || unquoted(upstream_id).is_some_and(|id| *said == *id.as_bytes())
}

fn digest(secret: &Secret, member: Json<'_>) -> String {
    hexadecimal(&secret.digest(LABEL, [&*said(member)]))
}

/// The bytes that a value is compared by.
fn said(member: Json<'_>) -> Cow<'_, [u8]> {
    let text = || Cow::Borrowed(member.text().as_bytes());
    member.string().map_or_else(text, |content| Cow::Owned(content.into_bytes()))
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod tests;
