//! Secrets: values that stand in the environment or in files, and never in the policy or in what is said about it.

use std::ops::Range;
use std::path::Path;

use crate::check::View;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Scalar};
use crate::source::FileSource;
use crate::value::{HeaderText, SecretText};

/// A header line longer than this is refused by most servers.
const MOST_BYTES: usize = 8 << 10;

/// What was read, by where it is found.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<(SecretText, Box<str>)>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

impl Secrets {
    /// The value that a text stands for; empty if it could not be read, and then the policy is refused.
    pub(crate) fn value(&self, text: &SecretText) -> Box<str> {
        match text {
            SecretText::Plain(HeaderText(value)) => value.clone(),
            SecretText::Environment(_) | SecretText::File(_) => {
                let found = self.0.iter().find(|(known, _)| known == text);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            }
        }
    }
}

pub(crate) fn read(view: &View<'_>, files: &dyn FileSource, cx: &mut Context<'_>) -> Secrets {
    let mut secrets = Secrets::default();
    for route in view.routes() {
        let common = route.common();
        let edits = common.request_headers.iter().chain(&common.response_headers);
        let set = edits.filter_map(|edits| edits.value.set.as_ref()).flat_map(|set| &set.value.entries);
        for (_, text) in set {
            if matches!(text.value, SecretText::Plain(_))
                || secrets.0.iter().any(|(known, _)| *known == text.value)
            {
                continue;
            }
            if let Some(value) = one(&text.value, &text.bytes, files, cx) {
                secrets.0.push((text.value.clone(), value));
            }
        }
    }
    secrets
}

fn one(
    text: &SecretText,
    bytes: &Range<usize>,
    files: &dyn FileSource,
    cx: &mut Context<'_>,
) -> Option<Box<str>> {
    match found(text, files, cx.file()) {
        Ok(value) => Some(value),
        Err((message, help)) => {
            cx.report(Finding::new(Code::Secret, bytes.clone(), message).help(help));
            None
        }
    }
}

/// The value, or what is wrong and what to do. Nothing of a value is ever told.
fn found(
    text: &SecretText,
    files: &dyn FileSource,
    policy: &str,
) -> Result<Box<str>, (String, &'static str)> {
    let (what, found) = match text {
        SecretText::Plain(HeaderText(value)) => return Ok(value.clone()),
        SecretText::Environment(name) => {
            let value = files.variable(name).ok_or_else(|| {
                let help = "set it for the process that runs this policy, and for `check`";
                (format!("the environment has no variable `{name}`"), help)
            })?;
            (format!("the variable `{name}`"), value)
        }
        SecretText::File(name) => {
            let path = Path::new(policy).parent().unwrap_or(Path::new("")).join(&**name);
            let content = files.read(&path).map_err(|error| {
                (format!("cannot read `{}`: {error}", path.display()), "check the path and the permissions")
            })?;
            let content = String::from_utf8(content)
                .map_err(|_| (format!("`{name}` is not UTF-8"), "save the value as plain text"))?;
            (format!("the file `{name}`"), content)
        }
    };
    let value = found.strip_suffix('\n').map_or(&*found, |line| line.strip_suffix('\r').unwrap_or(line));
    if value.is_empty() || value.len() > MOST_BYTES {
        let message = format!("{what} holds {} bytes, which is no header value", value.len());
        return Err((message, "one line, from 1 to 8192 bytes"));
    }
    HeaderText::parse(value).map(|HeaderText(value)| value).map_err(|_| {
        let help = "use one line of visible ASCII characters, without blanks at either end";
        (format!("{what} holds what may not stand in a header"), help)
    })
}
