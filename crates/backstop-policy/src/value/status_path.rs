//! What a status query asks for: a path, maybe with a query, that names the operation by `{operation_id}`.
//!
//! Nothing else can stand for a part of it. What an answer would have told is missing exactly when the status is needed.

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::suggest;
use crate::value::probe_path::may_stand;

const KEY: &str = "{operation_id}";
const NAME: &str = "operation_id";
/// A longer path is no query of one operation.
const LONGEST_BYTES: usize = 1024;
/// How placeholders begin that stand for a part of an answer.
const OF_ANSWER: [&str; 6] = ["answer", "captured", "reply", "response", "result", "upstream"];

/// A path around the operation's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusPath {
    pub(crate) before: Box<str>,
    pub(crate) after: Box<str>,
}

impl Scalar for StatusPath {
    const EXPECTED: &'static str = "a path such as \"/v1/operations/{operation_id}\"";
    const NAME: &'static str = "path with `{operation_id}`, maybe with a query";
    const PATTERN: Option<&'static str> = Some("^/[^{}#]*\\{operation_id\\}[^{}#]*$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::StatusPath, message);
        if !text.starts_with('/') {
            return Err(invalid(format!("`{}` does not begin with `/`", text.escape_debug()))
                .help("the dependency's `url` says where; write the path alone, such as `/operations/{operation_id}`"));
        }
        if text.len() > LONGEST_BYTES {
            return Err(invalid(format!("the path of a status query has at most {LONGEST_BYTES} bytes")));
        }
        if let Some(fault) = placeholders(text) {
            return Err(fault);
        }
        let Some((before, after)) = text.split_once(KEY) else {
            return Err(Fault::new(Code::NoOperation, "this path is the same for every operation")
                .help("name the operation by `{operation_id}`, the key that the upstream was given"));
        };
        if after.contains(KEY) {
            return Err(invalid(format!("`{KEY}` stands twice in one path"))
                .part(before.len() + KEY.len()..text.len()));
        }
        let wrong = |part: &str, from: usize| {
            let is_wrong = |&(at, c): &(usize, char)| !may_stand(part, at, c);
            part.char_indices().find(is_wrong).map(|(at, c)| (from + at, c))
        };
        match wrong(before, 0).or_else(|| wrong(after, before.len() + KEY.len())) {
            Some((at, c)) => Err(invalid(format!("`{}` may not stand in a path", c.escape_default()))
                .part(at..at + c.len_utf8())
                .help("percent-encode it, such as `%20` for a blank")),
            None => Ok(StatusPath { before: before.into(), after: after.into() }),
        }
    }
}

/// The first placeholder that is not the operation's key.
fn placeholders(text: &str) -> Option<Fault> {
    let mut from = 0;
    while let Some(start) = text.get(from..)?.find('{').map(|at| from + at) {
        let Some(end) = text.get(start..)?.find('}').map(|at| start + at + 1) else {
            return Some(Fault::new(Code::StatusPath, "`{` is never closed").part(start..start + 1));
        };
        let name = text.get(start + 1..end - 1)?;
        if name != NAME {
            return Some(unknown(text, name).part(start..end));
        }
        from = end;
    }
    None
}

fn unknown(text: &str, name: &str) -> Fault {
    let shown = name.escape_debug();
    if let Some(close) = suggest::closest(name, [NAME]) {
        return Fault::new(Code::StatusPath, format!("`{{{shown}}}` is not known here"))
            .instead(text.replace(&format!("{{{name}}}"), &format!("{{{close}}}")));
    }
    let first = name.split(['.', ':', '/', '_']).next().unwrap_or_default();
    let is_of_answer = OF_ANSWER.contains(&first) || name.to_ascii_lowercase().ends_with("id");
    if is_of_answer {
        return Fault::new(
            Code::IdOfAnswer,
            format!("`{{{shown}}}` is told by the answer, and a status is asked for because that was lost"),
        )
        .help("ask by `{operation_id}`, which is known before the operation is sent");
    }
    Fault::new(Code::StatusPath, format!("`{{{shown}}}` is not known here"))
        .help("the one placeholder is `{operation_id}`: the key that the upstream was given")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<Code> {
        StatusPath::parse(text).err().map(|fault| fault.code)
    }

    #[test]
    fn a_status_is_asked_for_by_the_operations_own_key() {
        let path = |text: &str| {
            StatusPath::parse(text).map(|path| (path.before, path.after)).map_err(|fault| fault.message)
        };
        assert_eq!(path("/v1/operations/{operation_id}"), Ok(("/v1/operations/".into(), "".into())));
        assert_eq!(
            path("/payments?ref={operation_id}&limit=2"),
            Ok(("/payments?ref=".into(), "&limit=2".into()))
        );
        assert_eq!(code("/payments"), Some(Code::NoOperation));
        for bad in ["/p/{id}", "/p/{payment_id}", "/p/{response./id}", "/p/{captured.ref}", "/p/{paymentId}"]
        {
            assert_eq!(code(bad), Some(Code::IdOfAnswer), "{bad}");
        }
        for bad in [
            "",
            "p/{operation_id}",
            "http://x/{operation_id}",
            "/{operation_id}/{operation_id}",
            "/p/{",
            "/{operation_id} x",
            "/{operation_id}#x",
            "/%zz/{operation_id}",
            "/p/{tenant}",
            "/}/{operation_id}",
        ] {
            assert_eq!(code(bad), Some(Code::StatusPath), "{bad}");
        }
        let fault = StatusPath::parse("/p/{operation-id}").err();
        assert_eq!(fault.and_then(|fault| fault.instead).as_deref(), Some("/p/{operation_id}"));
    }
}
