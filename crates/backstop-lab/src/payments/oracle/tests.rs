//! Each rule is broken once by hand, and caught; what is allowed is not.

use std::collections::{BTreeMap, BTreeSet};

use crate::payments::Effect;

use super::{Answer, Asked, Attempt, ClientLog, Evidence, Heard, LedgerEntry, Rule, Told, check};

const KEY: &str = "k-1";
const DONE: &str = r#"{"id":"pay_1","status":"succeeded","operation_id":"k-1","amount":10}"#;

/// A history of one key, made by hand.
#[derive(Default)]
struct History {
    log: ClientLog,
    effects: Vec<Effect>,
    forwards: BTreeMap<String, u64>,
    ledger: Vec<LedgerEntry>,
}

impl History {
    /// An operation of 10 that was sent once and happened once.
    fn executed() -> Self {
        Self::default().forwards(1).effect(10)
    }

    fn forwards(mut self, count: u64) -> Self {
        self.forwards.insert(KEY.to_owned(), count);
        self
    }

    fn effect(mut self, amount: u64) -> Self {
        let sequence = self.effects.len() as u64 + 1;
        self.effects.push(Effect { sequence, operation_id: KEY.to_owned(), amount, at_unix_ms: 0 });
        self
    }

    fn ends(mut self, state: &str) -> Self {
        self.ledger.push(LedgerEntry { key: KEY.to_owned(), state: state.to_owned(), why: "why".to_owned() });
        self
    }

    fn pays(self, amount: u64, heard: impl Into<Heard>) -> Self {
        let attempt = self.log.sends(KEY, Asked::Execute { amount });
        self.log.hears(attempt, heard);
        self
    }

    fn looks(self, heard: Heard) -> Self {
        let attempt = self.log.sends(KEY, Asked::Look);
        self.log.hears(attempt, heard);
        self
    }

    fn violations(&self) -> Vec<super::Violation> {
        check(Evidence {
            attempts: &self.log.attempts(),
            effects: &self.effects,
            forwards: &self.forwards,
            ledger: &self.ledger,
        })
    }

    #[track_caller]
    fn is_clean(&self) {
        assert_eq!(self.violations(), []);
    }

    #[track_caller]
    fn breaks(&self, rules: &[Rule]) {
        let violations = self.violations();
        let broken: BTreeSet<Rule> = violations.iter().map(|violation| violation.rule).collect();
        assert_eq!(broken, rules.iter().copied().collect(), "{violations:#?}");
        for violation in &violations {
            let text = violation.to_string();
            assert!(text.starts_with(&format!("k-1: {}: ", violation.rule.token())), "{text}");
        }
    }
}

fn answer(status: u16, body: &str) -> Heard {
    Heard::Answer(Answer::new(status, body.to_owned()))
}

fn own(status: u16, kind: &str, more: &str) -> Heard {
    answer(status, &format!(r#"{{"type":"urn:backstop:problem:{kind}","status":{status}{more}}}"#))
}

fn state(status: u16, state: &str, retry: &str) -> Heard {
    own(status, "operation", &format!(r#","op_id":"0","state":"{state}","retry":"{retry}""#))
}

fn unknown() -> Heard {
    state(504, "in_verification", "same_key")
}

#[test]
fn what_is_right_is_no_violation() {
    History::executed().pays(10, answer(201, DONE)).pays(10, answer(201, DONE)).ends("succeeded").is_clean();
    // Unknown first, known later; the answer that was built from the status stays the same.
    let late = History::executed().pays(10, Heard::Nothing).pays(10, unknown());
    let document = r#"{"state":"succeeded"}"#;
    late.looks(answer(200, r#"{"state":"in_verification"}"#))
        .pays(10, answer(200, document))
        .pays(10, answer(200, document))
        .looks(answer(200, document))
        .ends("succeeded")
        .is_clean();
    // Refused, and the refusal again; then with another amount.
    let declined = r#"{"status":"declined"}"#;
    History::default()
        .forwards(1)
        .pays(402, answer(402, declined))
        .pays(402, answer(402, declined))
        .pays(10, own(422, "other-request", ""))
        .ends("failed")
        .is_clean();
    // Never sent, or refused before it was written.
    History::default().pays(10, state(503, "not_executed", "new_key")).ends("not_executed").is_clean();
    History::default().pays(10, own(503, "capacity", "")).is_clean();
    // Nobody knows, and a person has it; whether it happened or not.
    History::executed().pays(10, unknown()).ends("attention").is_clean();
    History::default().forwards(1).pays(10, unknown()).ends("attention").is_clean();
    // The client that heard of it asks while there is no room: that says nothing of the operation.
    History::executed()
        .pays(10, answer(201, DONE))
        .pays(10, own(503, "capacity", ""))
        .ends("succeeded")
        .is_clean();
}

#[test]
fn twice() {
    let sent = History::executed().effect(10).forwards(2).pays(10, answer(201, DONE)).ends("succeeded");
    sent.breaks(&[Rule::EffectTwice, Rule::ForwardedTwice]);
    // The second one was cut: it did not happen, and was sent all the same.
    History::executed()
        .forwards(2)
        .pays(10, answer(201, DONE))
        .ends("succeeded")
        .breaks(&[Rule::ForwardedTwice]);
    History::executed().effect(10).pays(10, answer(201, DONE)).ends("succeeded").breaks(&[Rule::EffectTwice]);
    let listed = History::executed().pays(10, answer(201, DONE)).ends("succeeded").ends("succeeded");
    listed.breaks(&[Rule::ListedTwice]);
}

#[test]
fn what_nobody_asked_for() {
    History::default()
        .forwards(1)
        .effect(11)
        .pays(10, unknown())
        .ends("attention")
        .breaks(&[Rule::EffectUnasked]);
    History::executed().ends("succeeded").breaks(&[Rule::EffectUnasked]);
}

#[test]
fn a_success_that_is_none() {
    let invented = || History::default().forwards(1);
    invented()
        .pays(10, answer(201, DONE))
        .ends("succeeded")
        .breaks(&[Rule::SuccessWithoutEffect, Rule::LedgerDisagrees]);
    // A cut answer, a page, an operation that is still under way: 200 is a success to whoever looks no further.
    for heard in [
        Heard::Cut { status: 201 },
        answer(200, "<html>"),
        answer(200, r#"{"state":"in_verification"}"#),
        answer(204, ""),
    ] {
        invented()
            .pays(10, heard)
            .ends("attention")
            .breaks(&[Rule::SuccessWithoutEffect, Rule::LedgerDisagrees]);
    }
    invented().pays(10, state(202, "in_verification", "same_key")).ends("attention").is_clean();
    invented()
        .looks(answer(200, r#"{"state":"succeeded"}"#))
        .ends("attention")
        .breaks(&[Rule::SuccessWithoutEffect, Rule::LedgerDisagrees]);
    // The same key with another amount gets the answer of the first.
    let other = History::executed().pays(10, answer(201, DONE)).pays(11, answer(201, DONE)).ends("succeeded");
    other.breaks(&[Rule::SuccessOfAnother]);
}

#[test]
fn a_failure_that_is_none() {
    for heard in [
        answer(402, r#"{"status":"declined"}"#),
        state(409, "not_executed", "same_key"),
        state(409, "failed", "never"),
        // An address that offers a new key says that the first one did nothing.
        own(503, "unavailable", r#","retry":"new_key""#),
    ] {
        History::executed().pays(10, heard).ends("attention").breaks(&[Rule::FailureWithEffect]);
    }
    let looked = History::executed().pays(10, unknown()).looks(answer(200, r#"{"state":"failed"}"#));
    looked.ends("failed").breaks(&[Rule::FailureWithEffect, Rule::LedgerDisagrees]);
}

#[test]
fn less_than_before() {
    for (heard, more) in [
        (unknown(), None),
        (state(409, "dispatching", "same_key"), None),
        (state(409, "needs_attention", "same_key"), None),
        (own(409, "operation-in-progress", ""), None),
        (answer(500, "{}"), None),
        (own(422, "other-request", ""), None),
        (state(409, "not_executed", "same_key"), Some(Rule::FailureWithEffect)),
    ] {
        let history = History::executed().pays(10, answer(201, DONE)).pays(10, heard).ends("succeeded");
        let rules: Vec<Rule> = [Rule::WeakerAnswer].into_iter().chain(more).collect();
        history.breaks(&rules);
    }
    let lost = History::executed().pays(10, answer(201, DONE)).looks(own(404, "not-found", ""));
    lost.ends("succeeded").breaks(&[Rule::WeakerAnswer]);
    // A client that asked before the success was heard may hear that it is under way, even later.
    let history = History::executed();
    let first = history.log.sends(KEY, Asked::Execute { amount: 10 });
    let second = history.log.sends(KEY, Asked::Execute { amount: 10 });
    history.log.hears(first, answer(201, DONE));
    history.log.hears(second, state(409, "dispatching", "same_key"));
    history.ends("succeeded").is_clean();
}

#[test]
fn another_answer_to_the_same_question() {
    let first = || History::executed().pays(10, answer(201, DONE));
    first().pays(10, answer(200, DONE)).ends("succeeded").breaks(&[Rule::ReplayDiffers]);
    let spaced = DONE.replace(',', ", ");
    first().pays(10, answer(201, &spaced)).ends("succeeded").breaks(&[Rule::ReplayDiffers]);
    let with = |content_type, location| Answer::new(201, DONE).with(content_type, location);
    let json = Some("application/json");
    let first = || History::executed().pays(10, Heard::Answer(with(json, Some("/payments/1"))));
    first().pays(10, Heard::Answer(with(json, Some("/payments/1")))).ends("succeeded").is_clean();
    for (content_type, location) in [
        (Some("text/plain"), Some("/payments/1")),
        (None, Some("/payments/1")),
        (json, Some("/payments/2")),
        (json, None),
    ] {
        let other = first().pays(10, Heard::Answer(with(content_type, location)));
        other.ends("succeeded").breaks(&[Rule::ReplayDiffers]);
    }
}

#[test]
fn no_end_and_no_entry() {
    for open in ["dispatching", "unknown", "lost"] {
        History::executed().pays(10, unknown()).ends(open).breaks(&[Rule::NotEnded]);
    }
    History::executed().pays(10, unknown()).breaks(&[Rule::Unwritten]);
    History::default().forwards(1).pays(10, Heard::Nothing).breaks(&[Rule::Unwritten]);
    History::default().pays(10, unknown()).breaks(&[Rule::Unwritten]);
}

#[test]
fn the_ledger_says_something_else() {
    History::default().forwards(1).pays(10, unknown()).ends("succeeded").breaks(&[Rule::LedgerDisagrees]);
    History::executed().pays(10, unknown()).ends("not_executed").breaks(&[Rule::LedgerDisagrees]);
    History::executed().pays(10, unknown()).ends("failed").breaks(&[Rule::LedgerDisagrees]);
    History::executed().pays(10, answer(201, DONE)).ends("attention").breaks(&[Rule::LedgerDisagrees]);
}

#[test]
fn words_that_nobody_documented() {
    let history = || History::executed();
    history().pays(10, state(504, "lost", "same_key")).ends("attention").breaks(&[Rule::UnreadableAnswer]);
    history().pays(10, state(504, "unknown", "later")).ends("attention").breaks(&[Rule::UnreadableAnswer]);
    history()
        .looks(answer(200, "{}"))
        .pays(10, unknown())
        .ends("attention")
        .breaks(&[Rule::UnreadableAnswer]);
}

#[test]
fn several_keys_are_told_apart() {
    let mut history = History::executed().pays(10, answer(201, DONE)).ends("succeeded");
    let other = history.log.sends("k-2", Asked::Execute { amount: 7 });
    history.log.hears(other, answer(201, "{}"));
    history.ledger.push(LedgerEntry { key: "k-2".into(), state: "unknown".into(), why: "timeout".into() });
    let violations = history.violations();
    assert!(violations.iter().all(|violation| violation.key == "k-2"), "{violations:#?}");
    let rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::SuccessWithoutEffect, Rule::NotEnded, Rule::LedgerDisagrees]);
}

#[test]
fn every_rule_has_its_word() {
    let tokens: BTreeSet<&str> = Rule::ALL.into_iter().map(Rule::token).collect();
    assert_eq!(tokens.len(), Rule::ALL.len());
    assert!(Rule::ALL.windows(2).all(|pair| pair[0] < pair[1]), "in declaration order");
}

/// An answer whose head came and whose body broke off says what its status says, and only where that is a success.
#[test]
fn half_an_answer() {
    let cut = |status, asked| {
        let heard = Heard::Cut { status };
        Told::by(&Attempt { key: KEY.into(), asked, sent: 1, heard_at: Some(2), heard })
    };
    assert_eq!(cut(201, Asked::Execute { amount: 1 }), Some(Told::Succeeded));
    assert_eq!(cut(402, Asked::Execute { amount: 1 }), None);
    assert_eq!(cut(200, Asked::Look), None);
}
