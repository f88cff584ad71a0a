//! The `Backstop` field: how a degraded or refused answer is marked.

use serde::Serialize;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::wire::Fields;

/// What the `Backstop` field says, e.g. `outcome=fallback, source=snapshot, age=30, reason=connect_timeout`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// `normal`, `fallback`, `rejected` or `failed`.
    pub outcome: String,
    /// Where the answer came from.
    pub source: Option<String>,
    /// Age of the copy in whole seconds.
    pub age_s: Option<i64>,
    /// Why the answer is not the normal one.
    pub reason: Option<String>,
    /// What went wrong with the dependency, where that is not the reason itself.
    pub cause: Option<String>,
}

/// Why a `Backstop` field is not readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// It is no Structured Field dictionary.
    #[error("the Backstop field is no dictionary: {0}")]
    NoDictionary(String),
    /// It has no outcome.
    #[error("the Backstop field has no outcome")]
    NoOutcome,
    /// A member is of another type than agreed.
    #[error("{0:?} in the Backstop field is of the wrong type")]
    Type(&'static str),
}

impl Mark {
    /// The mark in these header lines; `None` without a `Backstop` field.
    ///
    /// # Errors
    ///
    /// When the field is no dictionary with tokens and, for `age`, an integer.
    pub fn of(fields: &Fields) -> Result<Option<Self>, MarkError> {
        if fields.count("backstop") == 0 {
            return Ok(None);
        }
        let joined = fields.all("backstop").collect::<Vec<_>>().join(", ");
        Self::parse(&joined).map(Some)
    }

    fn parse(value: &str) -> Result<Self, MarkError> {
        let members: Dictionary =
            Parser::new(value).parse().map_err(|error| MarkError::NoDictionary(error.to_string()))?;
        Ok(Self {
            outcome: token(&members, "outcome")?.ok_or(MarkError::NoOutcome)?,
            source: token(&members, "source")?,
            age_s: integer(&members, "age")?,
            reason: token(&members, "reason")?,
            cause: token(&members, "cause")?,
        })
    }
}

fn item<'a>(members: &'a Dictionary, key: &'static str) -> Result<Option<&'a BareItem>, MarkError> {
    match members.get(key) {
        None => Ok(None),
        Some(ListEntry::Item(item)) => Ok(Some(&item.bare_item)),
        Some(ListEntry::InnerList(_)) => Err(MarkError::Type(key)),
    }
}

fn token(members: &Dictionary, key: &'static str) -> Result<Option<String>, MarkError> {
    match item(members, key)? {
        None => Ok(None),
        Some(BareItem::Token(token)) => Ok(Some(token.as_str().to_owned())),
        Some(_) => Err(MarkError::Type(key)),
    }
}

fn integer(members: &Dictionary, key: &'static str) -> Result<Option<i64>, MarkError> {
    match item(members, key)? {
        None => Ok(None),
        Some(BareItem::Integer(integer)) => Ok(Some(i64::from(*integer))),
        Some(_) => Err(MarkError::Type(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, MarkError};

    #[test]
    fn a_whole_mark_is_read() {
        let mark = Mark::parse("outcome=fallback, source=snapshot, age=30, reason=connect_timeout").unwrap();
        assert_eq!(mark.outcome, "fallback");
        assert_eq!(mark.source.as_deref(), Some("snapshot"));
        assert_eq!(mark.age_s, Some(30));
        assert_eq!(mark.reason.as_deref(), Some("connect_timeout"));
    }

    #[test]
    fn wrong_types_are_refused() {
        assert_eq!(Mark::parse("source=cache"), Err(MarkError::NoOutcome));
        assert_eq!(Mark::parse(r#"outcome="fallback""#), Err(MarkError::Type("outcome")));
        assert_eq!(Mark::parse("outcome=fallback, age=old"), Err(MarkError::Type("age")));
        assert!(matches!(Mark::parse("outcome=,"), Err(MarkError::NoDictionary(_))));
    }
}
