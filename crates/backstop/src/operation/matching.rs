//! Which kind of answer one is, by the contract with the upstream.
//!
//! An answer is of a kind if it has one of its statuses and, where the kind names members, its content came whole, is one JSON
//! value, and has one of the named values at each of them. One that is of two kinds at once is of none: a contract that
//! contradicts itself proves nothing.

use backstop_engine::operation::Refusal;
use backstop_engine::policy::effect::{AnswerRule, Literal, OutcomeRules};

use super::member::Json;

/// What the upstream's own answer to the one forward proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The effect happened.
    Succeeded,
    /// The upstream refused, and there was no effect.
    Refused(Refusal),
    /// It is under way.
    Pending,
    /// Nothing.
    Nothing,
}

/// What an answer proves. `content`: all of it, if it came whole.
pub fn proof(rules: &OutcomeRules, status: u16, content: Option<&[u8]>) -> Proof {
    // Half an answer may be the beginning of another one.
    if content.is_none() {
        return Proof::Nothing;
    }
    let answer = Answer::new(status, content);
    // The policy was checked for it: whoever names such a status says that it has no effect.
    let refusal = || Refusal::of_status(status, true);
    let kinds = [&rules.succeeded, &rules.refused, &rules.pending].map(|kind| answer.is_one_of(kind));
    match kinds {
        [true, false, false] if status < 400 => Proof::Succeeded,
        [false, true, false] => refusal().map_or(Proof::Nothing, Proof::Refused),
        [false, false, true] => Proof::Pending,
        _ => Proof::Nothing,
    }
}

/// An answer, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    status: u16,
    json: Option<Json<'a>>,
}

impl<'a> Answer<'a> {
    /// One with this status and content; `None` if that did not come whole.
    pub fn new(status: u16, content: Option<&'a [u8]>) -> Self {
        Self { status, json: content.and_then(Json::of) }
    }

    /// The same answer, if this were all of its content.
    pub const fn of_item(self, item: Json<'a>) -> Self {
        Self { status: self.status, json: Some(item) }
    }

    /// Its content, if that is one JSON value.
    pub const fn json(self) -> Option<Json<'a>> {
        self.json
    }

    /// Whether it is of one of these kinds.
    pub fn is_one_of(self, kinds: &[AnswerRule]) -> bool {
        kinds.iter().any(|kind| self.is(kind))
    }

    fn is(self, kind: &AnswerRule) -> bool {
        kind.status.contains(self.status)
            && kind.json.iter().all(|(pointer, values)| {
                let member = self.json.and_then(|json| json.at(pointer));
                member.is_some_and(|member| values.iter().any(|value| equals(member, value)))
            })
    }
}

fn equals(member: Json<'_>, value: &Literal) -> bool {
    match value {
        Literal::Text(text) => member.string().as_deref() == Some(text),
        Literal::Boolean(boolean) => member.boolean() == Some(*boolean),
        Literal::Integer(integer) => member.integer() == Some(*integer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::policy::{Origin, StatusSet};

    fn rule(status: &[u16], json: &[(&str, &[Literal])]) -> AnswerRule {
        let json = json.iter().map(|(pointer, values)| ((*pointer).into(), values.to_vec())).collect();
        AnswerRule { status: StatusSet::of(status), json, origin: Origin::NONE }
    }

    fn text(text: &str) -> Literal {
        Literal::Text(text.into())
    }

    fn rules() -> OutcomeRules {
        OutcomeRules {
            succeeded: vec![rule(&[200, 201], &[("/status", &[text("paid"), text("captured")])])],
            pending: vec![rule(&[202], &[]), rule(&[200], &[("/status", &[text("processing")])])],
            refused: vec![rule(&[402, 404, 409], &[])],
        }
    }

    /// By hand.
    #[test]
    fn an_answer_proves_what_the_contract_says_and_nothing_else() {
        let proof = |status, content: &str| proof(&rules(), status, Some(content.as_bytes()));
        assert_eq!(proof(201, r#"{"status":"paid"}"#), Proof::Succeeded);
        assert_eq!(proof(200, r#"{"status":"processing"}"#), Proof::Pending);
        assert_eq!(proof(202, "queued"), Proof::Pending);
        assert_eq!(proof(402, ""), Proof::Refused(Refusal::of_status(402, false).unwrap()));
        assert_eq!(proof(409, ""), Proof::Refused(Refusal::of_status(409, true).unwrap()));
        for (status, content) in [
            (200, ""),
            (200, "<html>welcome</html>"),
            (200, r#"{"status":"failed"}"#),
            (200, r#"{"status":["paid"]}"#),
            (200, r#"{"status":"paid","status":"failed"}"#),
            (204, r#"{"status":"paid"}"#),
            (302, ""),
            (500, r#"{"status":"paid"}"#),
            (503, ""),
        ] {
            assert_eq!(proof(status, content), Proof::Nothing, "{status} {content}");
        }
    }

    #[test]
    fn an_answer_that_did_not_come_whole_proves_nothing() {
        for status in [201, 202, 402] {
            assert_eq!(proof(&rules(), status, None), Proof::Nothing, "{status}");
        }
    }

    #[test]
    fn what_is_of_two_kinds_is_of_none() {
        let both = OutcomeRules { pending: vec![rule(&[201], &[])], ..rules() };
        assert_eq!(proof(&both, 201, Some(br#"{"status":"paid"}"#)), Proof::Nothing);
    }

    /// A failure of the upstream proves nothing, whatever a contract calls it (RFC 9110 section 15.6).
    #[test]
    fn a_server_error_is_no_success_and_a_refusal_only_where_it_is_named_one() {
        let wrong = OutcomeRules {
            succeeded: vec![rule(&[500], &[])],
            refused: vec![rule(&[503], &[])],
            ..OutcomeRules::default()
        };
        assert_eq!(proof(&wrong, 500, Some(b"")), Proof::Nothing);
        assert!(
            matches!(proof(&wrong, 503, Some(b"")), Proof::Refused(_)),
            "the policy file had to declare it"
        );
        assert_eq!(proof(&wrong, 502, Some(b"")), Proof::Nothing);
        assert_eq!(proof(&wrong, 503, None), Proof::Nothing, "half of it");
    }

    #[test]
    fn numbers_and_booleans_are_no_texts() {
        let answer = Answer::new(200, Some(br#"{"n":7,"b":true,"t":"7"}"#));
        let is = |pointer, value: Literal| answer.is_one_of(&[rule(&[200], &[(pointer, &[value])])]);
        assert!(is("/n", Literal::Integer(7)) && is("/b", Literal::Boolean(true)) && is("/t", text("7")));
        assert!(!is("/n", text("7")) && !is("/t", Literal::Integer(7)) && !is("/b", text("true")));
    }
}
