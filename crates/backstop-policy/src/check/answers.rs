//! Answers known beforehand: prepared files and what stands for a part that is left out.

use std::ops::Range;
use std::path::Path;

use backstop_engine::policy::{FixedAnswer, Otherwise};

use crate::check::View;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::{OmitTable, OtherwiseTable, Prepared, Whom};
use crate::source::FileSource;
use crate::value::{Text, is_json, one_json_value, size_text};

/// The stand-in of every route, in the file's order; `None` where a route has none (or it is wrong).
pub(crate) type Answers = Vec<Option<StandIn>>;

/// What stands in, in general and in certain languages.
#[derive(Clone, Debug)]
pub(crate) struct StandIn {
    pub(crate) otherwise: Otherwise,
    pub(crate) by_language: Vec<(Box<str>, FixedAnswer)>,
}

impl From<Otherwise> for StandIn {
    fn from(otherwise: Otherwise) -> Self {
        Self { otherwise, by_language: Vec::new() }
    }
}

/// A prepared answer is kept in memory, and is a page at most.
const MOST_BYTES: usize = 1 << 20;

pub(crate) fn read(view: &View<'_>, files: &dyn FileSource, cx: &mut Context<'_>) -> Answers {
    view.routes()
        .map(|route| {
            let otherwise = route.optional()?.otherwise.as_ref()?;
            read_one(otherwise, files, cx)
        })
        .collect()
}

fn read_one(otherwise: &At<OtherwiseTable>, files: &dyn FileSource, cx: &mut Context<'_>) -> Option<StandIn> {
    let table = &otherwise.value;
    match (&table.prepared, &table.omit) {
        (Some(prepared), None) => stand_in(table, prepared, files, cx),
        (None, Some(omit)) => {
            if let Some(media_type) = &table.media_type {
                let message = "`type` beside `omit` belongs inside it";
                let finding = Finding::new(Code::ExactlyOne, media_type.bytes.clone(), message);
                cx.report(finding.help("write `omit = { status = 200, type = \"...\", body = \"...\" }`"));
            }
            omitted(omit, cx).map(Otherwise::Omit).map(StandIn::from)
        }
        (None, None) => {
            let message = "nothing says what stands in";
            cx.report(
                Finding::new(Code::ExactlyOne, otherwise.bytes.clone(), message)
                    .help("write `{ prepared = \"FILE\" }` or `{ omit = { status = 204 } }`"),
            );
            None
        }
        (Some(file), Some(omit)) => {
            let message = "two stand-ins for one part";
            cx.report(
                Finding::new(Code::ExactlyOne, omit.bytes.clone(), message)
                    .related(file.bytes.clone(), "the other one")
                    .help("keep either `prepared` or `omit`"),
            );
            None
        }
    }
}

fn stand_in(
    table: &OtherwiseTable,
    prepared: &At<Prepared>,
    files: &dyn FileSource,
    cx: &mut Context<'_>,
) -> Option<StandIn> {
    let by_language = match &prepared.value {
        Prepared::General(file) => {
            let answer = self::prepared(table, file, &prepared.bytes, files, cx)?;
            return Some(Otherwise::Prepared(answer).into());
        }
        Prepared::ByLanguage(by_language) => by_language,
    };
    // Every file is read, so that one pass tells of all that are wrong.
    let read: Vec<_> = by_language
        .entries
        .iter()
        .map(|(whom, file)| (&whom.value, self::prepared(table, &file.value, &file.bytes, files, cx)))
        .collect();
    let mut general = None;
    let mut languages = Vec::new();
    for (whom, answer) in read {
        match whom {
            Whom::Default => general = Some(answer?),
            Whom::Language(tag) => languages.push((tag.clone(), answer?)),
        }
    }
    Some(StandIn { otherwise: Otherwise::Prepared(general?), by_language: languages })
}

fn prepared(
    table: &OtherwiseTable,
    file: &Text,
    bytes: &Range<usize>,
    files: &dyn FileSource,
    cx: &mut Context<'_>,
) -> Option<FixedAnswer> {
    let problem = |message: String| Finding::new(Code::PreparedFile, bytes.clone(), message);
    let named = Path::new(&*file.0);
    let path = Path::new(cx.file()).parent().map_or(named.to_owned(), |folder| folder.join(named));
    let media_type = table.media_type.as_ref().map(|given| &*given.value.0).or_else(|| by_extension(named));
    if media_type.is_none() {
        let finding = problem(format!("the media type of `{}` is not known", file.0));
        cx.report(finding.help("add `type = \"...\"` beside `prepared`"));
    }
    let body = match files.read(&path) {
        Ok(body) => body,
        Err(error) => {
            let finding = problem(format!("cannot read `{}`: {error}", path.display()));
            cx.report(finding.help("the path is relative to the policy file"));
            return None;
        }
    };
    let media_type = media_type?;
    if body.len() > MOST_BYTES {
        let finding = problem(format!("`{}` is larger than {}", file.0, size_text(MOST_BYTES as u64)));
        cx.report(finding.help("a general answer is kept in memory; make it smaller"));
        return None;
    }
    if is_json(media_type)
        && let Err(error) = one_json_value(&body)
    {
        let finding = problem(format!("`{}` is not exactly one JSON value: {error}", file.0));
        cx.report(finding.help("repair the file, or give it another `type`"));
        return None;
    }
    Some(FixedAnswer { status: 200, media_type: media_type.into(), body: body.into() })
}

fn by_extension(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "json" => "application/json",
        "html" => "text/html",
        "txt" => "text/plain",
        "xml" => "application/xml",
        "csv" => "text/csv",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

fn omitted(omit: &At<OmitTable>, cx: &mut Context<'_>) -> Option<FixedAnswer> {
    let table = &omit.value;
    let body = table.body.as_ref().map_or("", |body| &*body.value.0);
    let media_type = table.media_type.as_ref().map_or("", |media_type| &*media_type.value.0);
    let status =
        table.status.as_ref().map_or(if body.is_empty() { 204 } else { 200 }, |status| status.value.0);
    let place = table.status.as_ref().map_or(omit.bytes.clone(), |status| status.bytes.clone());
    let empty = matches!(status, 204 | 205);
    let problem = if !(200..300).contains(&status) || status == 206 {
        Some((
            place,
            format!("{status} does not leave a part out"),
            "use a whole 2xx answer: an error or a redirect would change what the client does",
        ))
    } else if empty && !body.is_empty() {
        Some((place, format!("{status} has no body"), "use 200, or leave the body out"))
    } else if !body.is_empty() && media_type.is_empty() {
        Some((
            omit.bytes.clone(),
            "the body has no media type".to_owned(),
            "add `type = \"application/json\"` or what it is",
        ))
    } else if is_json(media_type) && !empty && one_json_value(body.as_bytes()).is_err() {
        let place = table.body.as_ref().map_or(omit.bytes.clone(), |body| body.bytes.clone());
        Some((
            place,
            "the body is not exactly one JSON value".to_owned(),
            "write JSON such as `[]`, or another `type`",
        ))
    } else {
        None
    };
    if let Some((place, message, help)) = problem {
        cx.report(Finding::new(Code::OmitStatus, place, message).help(help));
        return None;
    }
    Some(FixedAnswer { status, media_type: media_type.into(), body: body.as_bytes().into() })
}
