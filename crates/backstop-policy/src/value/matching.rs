//! What a route answers: a method and a path template, such as `GET /products/{product}`.
//!
//! - The method is one, in capitals, or `*` for any. A rule for `GET` answers `HEAD` too.
//! - A template begins with `/`. Each segment is literal, or one parameter `{name}` which takes exactly one non-empty
//!   segment, or, as the last, a rest `{name*}` which takes whatever remains, nothing included.
//! - A trailing slash is significant: it is an empty last literal.
//! - `*` alone stands for `* /{rest*}`: everything.
//! - Literals are in the spelling by which requests are matched (RFC 3986 section 6.2.2): see [`spelling`].

mod part;
mod spelling;

use std::fmt;

use crate::code::Code;
use crate::read::{Fault, Scalar};

pub(crate) use part::PartPath;

/// A method and a path template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRule {
    /// The method.
    pub method: Method,
    /// The path.
    pub template: Template,
}

/// The method of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Any method.
    Any,
    /// This method, in capitals. `GET` covers `HEAD`.
    Named(Box<str>),
}

impl Method {
    /// Whether every request of this rule only reads: `GET` or `HEAD`.
    pub fn only_reads(&self) -> bool {
        matches!(self, Method::Named(name) if matches!(&**name, "GET" | "HEAD"))
    }

    /// Whether a request of this rule may write: anything but `GET`, `HEAD`, `OPTIONS` and `TRACE`.
    pub fn may_write(&self) -> bool {
        !matches!(self, Method::Named(name) if matches!(&**name, "GET" | "HEAD" | "OPTIONS" | "TRACE"))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Any => f.write_str("*"),
            Method::Named(name) => f.write_str(name),
        }
    }
}

/// A path template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its segments; none is the path `/`.
    pub segments: Vec<Segment>,
}

/// One segment of a path template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Exactly these bytes, compared with the path in its one spelling: unreserved characters decoded, other
    /// percent-encodings in upper case. Empty is a trailing slash.
    Literal(Box<str>),
    /// One non-empty segment.
    Parameter(Box<str>),
    /// Everything that remains, slashes included; may be empty. Always the last.
    Rest(Box<str>),
}

impl Template {
    /// Names of its parameters, the rest included.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Parameter(name) | Segment::Rest(name) => Some(&**name),
            Segment::Literal(_) => None,
        })
    }

    /// Whether the two match the same paths: equal but for the names of parameters.
    pub fn same_shape(&self, other: &Template) -> bool {
        self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(|pair| match pair {
                (Segment::Literal(a), Segment::Literal(b)) => a == b,
                (Segment::Parameter(_), Segment::Parameter(_)) | (Segment::Rest(_), Segment::Rest(_)) => true,
                _ => false,
            })
    }

    /// Whether every path of this template begins with these literal segments.
    pub(crate) fn begins_with(&self, prefix: &PathPrefix) -> bool {
        let literal = |segment: &Segment| match segment {
            Segment::Literal(text) => Some(text.clone()),
            Segment::Parameter(_) | Segment::Rest(_) => None,
        };
        let mut segments = self.segments.iter();
        prefix.segments().all(|part| segments.next().and_then(literal).is_some_and(|text| &*text == part))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Literal(text) => write!(f, "/{text}"),
            Segment::Parameter(name) => write!(f, "/{{{name}}}"),
            Segment::Rest(name) => write!(f, "/{{{name}*}}"),
        })
    }
}

impl fmt::Display for MatchRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.template)
    }
}

impl Scalar for MatchRule {
    const EXPECTED: &'static str = "a method and a path such as \"GET /products/{product}\"";
    const NAME: &'static str = "method and path template";
    const PATTERN: Option<&'static str> = Some("^(\\*|(\\*|[A-Z][A-Z-]*) /.*)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        if text == "*" {
            let rest = Segment::Rest("rest".into());
            return Ok(MatchRule { method: Method::Any, template: Template { segments: vec![rest] } });
        }
        let Some((method, path)) = text.split_once(' ') else {
            let fault = Fault::new(Code::Match, format!("`{text}` has no method"));
            return Err(if text.starts_with('/') {
                fault.help("`* /...` is any method").instead(format!("GET {text}"))
            } else {
                fault.help("write a method, a blank and a path: `GET /products/{product}`")
            });
        };
        let start = method.len() + 1;
        let method = parse_method(method)?;
        let template = parse_template(path).map_err(|mut fault| {
            fault.part =
                Some(fault.part.map_or(start..text.len(), |part| part.start + start..part.end + start));
            fault.instead = fault.instead.map(|path| format!("{method} {path}"));
            fault
        })?;
        Ok(MatchRule { method, template })
    }
}

/// Methods that are answered with 405 before any route is looked for, and why.
const NEVER: [(&str, &str); 2] = [
    ("CONNECT", "tunnels are not forwarded"),
    ("TRACE", "what comes back would show fields that were meant for the dependency alone"),
];

fn parse_method(text: &str) -> Result<Method, Fault> {
    if text == "*" {
        return Ok(Method::Any);
    }
    let never = NEVER.iter().find(|(method, _)| *method == text).map(|(_, why)| *why);
    let is_token = !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    if is_token && never.is_none() {
        return Ok(Method::Named(text.into()));
    }
    let what = if never.is_some() { "never forwarded" } else { "not a method" };
    let fault = Fault::new(Code::Match, format!("`{text}` is {what}")).part(0..text.len());
    Err(if let Some(why) = never {
        fault.help(why)
    } else if text.contains([',', '|']) {
        fault.help("write one match per method: `match = [\"GET /a\", \"PUT /a\"]`")
    } else {
        fault.help("write it in capitals, such as `GET`, or `*` for any method")
    })
}

fn parse_template(path: &str) -> Result<Template, Fault> {
    let invalid = |message: String| Fault::new(Code::Match, message);
    let Some(rest) = path.strip_prefix('/') else {
        return Err(invalid(format!("the path `{path}` does not begin with `/`")));
    };
    let mut segments: Vec<Segment> = Vec::new();
    if rest.is_empty() {
        return Ok(Template { segments });
    }
    let mut at = 1;
    let mut misspelt = None;
    let mut parts = rest.split('/').peekable();
    while let Some(part) = parts.next() {
        let place = at..at + part.len();
        at = place.end + 1;
        let last = parts.peek().is_none();
        let segment = parse_segment(part, last).map_err(|fault| fault.part(place.clone()))?;
        if let Segment::Parameter(name) | Segment::Rest(name) = &segment {
            let same = |earlier: &Segment| matches!(earlier, Segment::Parameter(other) if other == name);
            if segments.iter().any(same) {
                return Err(invalid(format!("the parameter `{name}` stands twice")).part(place));
            }
        }
        if matches!(&segment, Segment::Literal(literal) if **literal != *part) {
            misspelt.get_or_insert((part, place));
        }
        segments.push(segment);
    }
    let template = Template { segments };
    match misspelt {
        None => Ok(template),
        Some((part, place)) => Err(spelling::fault(part, &template.to_string()).part(place)),
    }
}

fn parse_segment(part: &str, last: bool) -> Result<Segment, Fault> {
    let invalid = |message: &str| Err(Fault::new(Code::Match, message));
    if let Some(inner) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        let (name, is_rest) = match inner.strip_suffix('*') {
            Some(name) => (name, true),
            None => (inner, false),
        };
        let word = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        return match (word(name), is_rest, last) {
            (false, ..) => invalid("a parameter's name is a letter, then letters, digits or `_`"),
            (true, true, false) => invalid("a rest `{name*}` can only be the last segment"),
            (true, true, true) => Ok(Segment::Rest(name.into())),
            (true, false, _) => Ok(Segment::Parameter(name.into())),
        };
    }
    if part.contains(['{', '}', '*']) {
        return invalid("a parameter takes a whole segment: `/{name}/`");
    }
    literal(part, last)
}

/// A literal segment in its one spelling; the caller compares it with what is written.
fn literal(part: &str, last: bool) -> Result<Segment, Fault> {
    let invalid = |message: &str| Err(Fault::new(Code::Match, message));
    if part.is_empty() && !last {
        return invalid("an empty segment in the middle of a path");
    }
    if part.contains(['?', '#']) {
        return invalid("a query or fragment is not matched; only the path is");
    }
    let Some(spelt) = spelling::canonical(part) else {
        return invalid("`%` is followed by two hexadecimal digits");
    };
    match spelt.as_str() {
        "." | ".." => invalid("a dot segment is never sent by clients"),
        _ => Ok(Segment::Literal(spelt.into())),
    }
}

/// A path of literal segments that is removed before forwarding, such as `/api`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathPrefix(pub(crate) Box<str>);

impl PathPrefix {
    fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }
}

impl Scalar for PathPrefix {
    const EXPECTED: &'static str = "a path such as \"/api\"";
    const NAME: &'static str = "path";
    const PATTERN: Option<&'static str> = Some("^(/[^/{}*?#]+)+$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::Match, message);
        match text.strip_suffix('/') {
            Some(shorter) if !shorter.is_empty() => {
                return Err(invalid("a prefix ends without a slash".to_owned()).instead(shorter));
            }
            _ => {}
        }
        let template = parse_template(text)?;
        if template.segments.is_empty() || template.parameters().next().is_some() {
            return Err(invalid(format!("`{text}` is not a path of literal segments")));
        }
        Ok(PathPrefix(text.into()))
    }
}
