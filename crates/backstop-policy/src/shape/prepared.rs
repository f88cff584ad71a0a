//! A prepared answer: one file for everybody, or one for each language and a general one.

use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context, Fault, MapKey, Named, Node, Scalar, Shape, Value};
use crate::value::{Language, Text};

/// The files of a prepared answer.
#[derive(Clone, Debug)]
pub(crate) enum Prepared {
    /// One for everybody.
    General(Text),
    /// One for each language, and `default`.
    ByLanguage(Named<Text, Whom>),
}

/// Whom a file is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// Whoever gets none of the others.
    Default,
    /// Whoever negotiated this language.
    Language(Box<str>),
}

const DEFAULT: &str = "default";

impl Whom {
    /// As it is written.
    pub(crate) fn tag(&self) -> &str {
        match self {
            Whom::Default => DEFAULT,
            Whom::Language(tag) => tag,
        }
    }
}

impl Scalar for Whom {
    const EXPECTED: &'static str = "a language tag such as \"es\", or `default`";
    const NAME: &'static str = "language tag, or `default`";

    fn parse(text: &str) -> Result<Self, Fault> {
        if text == DEFAULT {
            Ok(Whom::Default)
        } else {
            Language::parse(text).map(|tag| Whom::Language(tag.0))
        }
    }
}

impl MapKey for Whom {
    const PLACEHOLDER: &'static str = "LANGUAGE";
}

impl Value for Prepared {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        match node.get() {
            DeValue::String(_) => Text::read(node, cx).map(Prepared::General),
            DeValue::Table(_) => {
                let files = Named::<Text, Whom>::read(node, cx)?;
                if !files.names.iter().any(|name| **name == *DEFAULT) {
                    let message = format!("`{}.{DEFAULT}` is missing", node.path);
                    cx.report(
                        Finding::new(Code::MissingKey, node.bytes(), message)
                            .help("name the file for whoever accepts none of the languages"),
                    );
                }
                Some(Prepared::ByLanguage(files))
            }
            _ => {
                cx.report(node.wrong_type("a file, or a table from languages to files"));
                None
            }
        }
    }

    fn shape() -> Shape {
        Shape::Either(Box::new(Text::shape()), Box::new(Named::<Text, Whom>::shape()), &[DEFAULT])
    }
}

impl Prepared {
    /// The languages that have a file of their own.
    pub(crate) fn languages(&self) -> impl Iterator<Item = (&At<Whom>, &str)> {
        let named = match self {
            Prepared::General(_) => None,
            Prepared::ByLanguage(files) => Some(files),
        };
        named.into_iter().flat_map(|files| &files.entries).filter_map(|(whom, _)| match &whom.value {
            Whom::Default => None,
            Whom::Language(tag) => Some((whom, &**tag)),
        })
    }
}
