//! Finding an operation in a list of them.
//!
//! A list says something of an operation that it holds, once. That it does not hold it says something only if it is empty: with
//! other operations in it nobody can tell whether its filter was ignored, and then the one that is looked for may be on another
//! page.

use backstop_engine::policy::effect::ListRules;

use super::echo::names;
use super::member::Json;

/// What a list has of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Listed<'a> {
    /// This, and nothing else.
    One(Json<'a>),
    /// It is whole and empty.
    Nothing,
    /// More than one.
    Several,
    /// It is no list, or one that says nothing of this operation.
    Unclear,
}

/// What a list has of the operation that its upstream was given under this id.
pub fn listed<'a>(rules: &ListRules, upstream_id: &[u8], answer: Option<Json<'a>>) -> Listed<'a> {
    let Some(answer) = answer else { return Listed::Unclear };
    let Some(items) = answer.at(&rules.items).and_then(Json::elements) else { return Listed::Unclear };
    let mut own = items.iter().filter(|item| is_own(rules, upstream_id, **item));
    match (own.next(), own.next()) {
        (Some(one), None) => Listed::One(*one),
        (Some(_), Some(_)) => Listed::Several,
        (None, _) if items.is_empty() && !has_more(rules, answer) => Listed::Nothing,
        (None, _) => Listed::Unclear,
    }
}

fn is_own(rules: &ListRules, upstream_id: &[u8], item: Json<'_>) -> bool {
    let leads_to_it = |pointer: &str| item.at(pointer).is_some_and(|member| names(member, upstream_id));
    !rules.matching.is_empty() && rules.matching.iter().all(|pointer| leads_to_it(pointer))
}

/// Whether there are further pages, or nobody knows: where the contract names what says so, only a plain no is one.
fn has_more(rules: &ListRules, answer: Json<'_>) -> bool {
    rules.more.as_ref().is_some_and(|more| {
        let said = answer.at(more).map(|member| member.text().trim());
        !matches!(said, Some("false" | "null" | "\"\"" | "0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(more: Option<&str>, answer: &str) -> &'static str {
        let rules = ListRules {
            items: "/data".into(),
            matching: vec!["/reference".into()],
            more: more.map(Into::into),
        };
        match listed(&rules, b"k1", Json::of(answer.as_bytes())) {
            Listed::One(item) if item.at("/own").is_some() => "own",
            Listed::One(_) => "another",
            Listed::Nothing => "nothing",
            Listed::Several => "several",
            Listed::Unclear => "unclear",
        }
    }

    /// By hand.
    #[test]
    fn a_list_says_what_it_holds_and_only_an_empty_one_what_it_does_not() {
        for (answer, expected) in [
            (r#"{"data":[{"reference":"k1","own":1}]}"#, "own"),
            (r#"{"data":[{"reference":"k2"},{"reference":"k1","own":1}]}"#, "own"),
            (r#"{"data":[]}"#, "nothing"),
            (r#"{"data":[{"reference":"k1"},{"reference":"k1"}]}"#, "several"),
            (r#"{"data":[{"reference":"k2"}]}"#, "unclear"),
            (r#"{"data":[{}]}"#, "unclear"),
            (r#"{"data":[{"reference":"k1","reference":"k1"}]}"#, "unclear"),
            (r#"{"data":{}}"#, "unclear"),
            (r#"{"data":null}"#, "unclear"),
            (r#"{"items":[]}"#, "unclear"),
            (r#"{"data":[],"data":[]}"#, "unclear"),
            (r#"{"data":["#, "unclear"),
            ("[]", "unclear"),
            ("", "unclear"),
        ] {
            assert_eq!(found(None, answer), expected, "{answer}");
        }
    }

    #[test]
    fn with_further_pages_nothing_is_known_to_be_missing() {
        for (answer, expected) in [
            (r#"{"data":[],"more":false}"#, "nothing"),
            (r#"{"data":[],"more":null}"#, "nothing"),
            (r#"{"data":[],"more":""}"#, "nothing"),
            (r#"{"data":[],"more":true}"#, "unclear"),
            (r#"{"data":[],"more":"cursor"}"#, "unclear"),
            (r#"{"data":[]}"#, "unclear"),
            (r#"{"data":[{"reference":"k1","own":1}],"more":true}"#, "own"),
        ] {
            assert_eq!(found(Some("/more"), answer), expected, "{answer}");
        }
    }
}
