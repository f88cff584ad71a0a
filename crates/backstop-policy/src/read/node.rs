//! One value of the file, and how scalars are read from it.

use std::ops::Range;

use backstop_engine::policy::Origin;
use toml::Spanned;
use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Shape, not_available};

/// A value of the file with its key path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) path: &'a str,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Node<'a> {
    pub(crate) fn bytes(&self) -> Range<usize> {
        self.value.span()
    }

    pub(crate) fn get(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    /// `string`, `integer`, `table`...
    pub(crate) fn kind(&self) -> &'static str {
        match self.get() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    /// The finding for a value of the wrong type.
    pub(crate) fn wrong_type(&self, expected: &str) -> Finding {
        Finding::new(Code::WrongType, self.bytes(), format!("`{}` must be {expected}", self.path))
            .label(format!("this is {}", self.kind()))
    }
}

/// A value together with where it was written.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    /// The value's bytes.
    pub(crate) bytes: Range<usize>,
    /// Key and value, for logs and `explain`.
    pub(crate) origin: Origin,
}

/// Something that can be read from the file.
pub(crate) trait Value: Sized {
    /// Reads it, or reports why not.
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self>;

    /// How it looks, for the schema and the reference.
    fn shape() -> Shape;
}

/// A value that is written as a string.
pub(crate) trait Scalar: Sized {
    /// What it is, with its article: `a duration such as "300ms"`.
    const EXPECTED: &'static str;
    /// What it is called in the reference: `duration`.
    const NAME: &'static str;
    /// A regular expression that every such string matches (ECMA 262, as JSON Schema asks), if there is one.
    const PATTERN: Option<&'static str> = None;
    /// The code for a bare number, and two units that it may be missing.
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = None;
    /// Whether it may also be written as a bare number.
    const NUMBER: bool = false;
    /// Keys of a table that a later version takes instead of the string, with what each would give.
    const LATER: &'static [(&'static str, &'static str)] = &[];

    /// Reads it from the string's content.
    fn parse(text: &str) -> Result<Self, Fault>;

    /// Reads it from a number without quotes, or says why not; `None` if a number is not worth a word of its own.
    fn from_number(_written: &str) -> Option<Result<Self, Fault>> {
        None
    }
}

/// Why a string is not what it should be.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The offending bytes of the string's content; all of it if `None`.
    pub(crate) part: Option<Range<usize>>,
    pub(crate) help: Option<String>,
    /// What the whole content could be instead.
    pub(crate) instead: Option<String>,
}

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), part: None, help: None, instead: None }
    }

    pub(crate) fn part(mut self, part: Range<usize>) -> Self {
        self.part = Some(part);
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn instead(mut self, text: impl Into<String>) -> Self {
        self.instead = Some(text.into());
        self
    }

    /// The finding for a string that lies at these bytes of the text.
    pub(crate) fn at(self, bytes: Range<usize>, text: &str) -> Finding {
        let written = text.get(bytes.clone()).unwrap_or_default();
        let plain = ['"', '\''].iter().any(|&quote| {
            !written.contains('\\')
                && written.len() >= 2
                && written.starts_with(quote)
                && written.ends_with(quote)
                && !written.starts_with(&String::from_iter([quote; 3]))
        });
        let place = match self.part {
            Some(part) if plain => bytes.start + 1 + part.start..bytes.start + 1 + part.end,
            _ => bytes.clone(),
        };
        let mut finding = Finding::new(self.code, place, self.message);
        if let Some(help) = self.help {
            finding = finding.help(help);
        }
        if let Some(instead) = self.instead {
            finding = finding.fix(bytes, format!("{instead:?}"));
        }
        finding
    }
}

/// Asks for a unit without guessing which: a factor of a thousand is not for a tool to decide.
pub(crate) fn with_units(number: &str, units: [&str; 2]) -> String {
    let [one, other] = units;
    format!("write the unit, such as `\"{number}{one}\"` or `\"{number}{other}\"`")
}

/// The finding for a table that a later version takes instead of the string.
fn later<T: Scalar>(node: Node<'_>) -> Option<Finding> {
    let DeValue::Table(table) = node.get() else { return None };
    let (key, what) = T::LATER.iter().find_map(|(key, what)| Some((table.get_key_value(*key)?.0, what)))?;
    Some(not_available(key.span(), what))
}

impl<T: Scalar> Value for T {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        if let Some(finding) = later::<T>(node) {
            cx.report(finding);
            return None;
        }
        let read = match node.get() {
            DeValue::String(text) => Some(T::parse(text)),
            DeValue::Integer(number) => T::from_number(&number.to_string()),
            DeValue::Float(number) => T::from_number(number.as_str()),
            _ => None,
        };
        let finding = match (read, node.get(), T::BARE_NUMBER) {
            (Some(Ok(value)), ..) => return Some(value),
            (Some(Err(fault)), ..) => fault.at(node.bytes(), cx.text()),
            (None, DeValue::Integer(number), Some((code, units))) => {
                Finding::new(code, node.bytes(), format!("`{}` is a number without a unit", node.path))
                    .help(with_units(&number.to_string(), units))
            }
            (None, ..) => node.wrong_type(T::EXPECTED),
        };
        cx.report(finding);
        None
    }

    fn shape() -> Shape {
        if T::NUMBER {
            return Shape::NumberOrText { name: T::NAME, pattern: T::PATTERN };
        }
        Shape::Text { name: T::NAME, pattern: T::PATTERN }
    }
}

impl Value for bool {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        if let DeValue::Boolean(value) = node.get() {
            return Some(*value);
        }
        cx.report(node.wrong_type("`true` or `false`"));
        None
    }

    fn shape() -> Shape {
        Shape::Boolean
    }
}
