//! What is said of an operation, as JSON: to whoever asked for it, and to whoever looks.
//!
//! Its name, what it is in and since when, and what its client may do next. Nothing of the request, and of the answer its status
//! alone. A problem (RFC 9457) has the same members beside its own.

use std::fmt::Write as _;
use std::time::Duration;

use backstop_engine::flow::Telling;
use backstop_engine::incident::Moment;
use backstop_engine::operation::{NextTry, OperationId, Record, State, answer};
use backstop_engine::status::Refusal;
use backstop_engine::time::{Now, Wall};
use bytes::Bytes;
use http::HeaderValue;

use crate::problem::TYPE_PREFIX;

/// What the address of every operation begins with.
pub const ADDRESS: &str = "/.backstop/operations/";

/// The address of an operation, relative to the host that was asked for it.
pub fn address(id: OperationId) -> HeaderValue {
    HeaderValue::try_from(format!("{ADDRESS}{id}")).unwrap_or_else(|_| HeaderValue::from_static(ADDRESS))
}

/// What is said of an operation. `next_query`: until its status is asked for next, if it is really being followed.
pub fn document(record: &Record, next_query: Option<Duration>, now: &Now) -> Bytes {
    let mut text = String::from("{");
    members(record, next_query, now, &mut text);
    text.push_str("}\n");
    Bytes::from(text)
}

/// Of what a problem tells.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// An operation, as the ledger has it; and until its status is asked for next, if it is followed.
    Known(&'a Record, Option<Duration>, Now),
    /// One that was begun, and the ledger has not said yet what came of it.
    Begun(OperationId, Telling),
    /// None: the key is another request's.
    Other,
}

/// The same as a problem.
pub fn problem(refusal: &Refusal, subject: Subject<'_>) -> Bytes {
    // Every text is one of this program's own constants without a character that JSON would escape.
    let mut text = format!(
        r#"{{"type":"{TYPE_PREFIX}{}","title":"{}","status":{}"#,
        refusal.problem.token(),
        refusal.problem.title(),
        refusal.status,
    );
    text.push(',');
    match subject {
        Subject::Known(record, next_query, now) => members(record, next_query, &now, &mut text),
        Subject::Begun(id, meant) => {
            let (state, retry) = match meant {
                Telling::NotExecuted(why) if why.is_never_sent() => ("not_executed", "new_key"),
                _ => ("unknown", "same_key"),
            };
            let _a_string_takes_everything =
                write!(text, r#""op_id":"{id}","state":"{state}","retry":"{retry}","tracked":false"#);
        }
        // It was certainly not sent. But a client that changed its request a little and comes with a new key may pay twice.
        Subject::Other => text.push_str(r#""retry":"never""#),
    }
    text.push_str("}\n");
    Bytes::from(text)
}

/// What it is in, as clients are told: "in verification" only while that is true.
pub fn state(record: &Record, is_followed: bool) -> &'static str {
    match record.progress.state() {
        State::Unknown(_) if is_followed => "in_verification",
        State::Attention(_) => "needs_attention",
        state => state.token(),
    }
}

fn members(record: &Record, next_query: Option<Duration>, now: &Now, text: &mut String) {
    let progress = record.progress.parts();
    let told = answer(record);
    let retry = match told.next_try() {
        NextTry::SameKey => "same_key",
        NextTry::NewKey => "new_key",
        NextTry::Never => "never",
    };
    let state = state(record, next_query.is_some());
    let _a_string_takes_everything = write!(
        text,
        r#""op_id":"{}","state":"{state}","why":"{}","retry":"{retry}","created":"{}","changed":"{}""#,
        record.identity.id,
        progress.state.why(),
        date(record.identity.created),
        date(progress.changed),
    );
    if progress.state.is_open() {
        let tracked = next_query.is_some();
        let _a_string_takes_everything = write!(text, r#","tracked":{tracked},"asked":{}"#, progress.asked);
    }
    if let Some(wait) = next_query {
        let _a_string_takes_everything = write!(text, r#","next_check_at":"{}""#, date(now.wall.after(wait)));
    }
    if let Some(answer) = &record.answer {
        let _a_string_takes_everything = write!(text, r#","answer_status":{}"#, answer.status);
    }
}

/// A date as RFC 3339 has it.
pub(crate) fn date(wall: Wall) -> String {
    Moment { wall, ..Moment::default() }.date()
}
