//! The rules, one operation at a time.

use std::collections::{BTreeMap, BTreeSet};

use crate::payments::Effect;

use super::{Answer, Asked, Attempt, Heard, Rule, Told, Violation};

/// An operation as the ledger has it in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The client's key, or what the upstream was told in its place, without the quotes of a structured field.
    pub key: String,
    /// Its state, by its word.
    pub state: String,
    /// Why, by its word; for the text of a violation.
    pub why: String,
}

/// What is known when everything has come to rest.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What clients sent and heard.
    pub attempts: &'a [Attempt],
    /// What happened.
    pub effects: &'a [Effect],
    /// How often each key was sent to where it happens.
    pub forwards: &'a BTreeMap<String, u64>,
    /// What the ledger says.
    pub ledger: &'a [LedgerEntry],
}

/// Everything that must not be, in the order of the keys. Empty if all is well.
#[must_use]
pub fn check(evidence: Evidence<'_>) -> Vec<Violation> {
    let mut operations: BTreeMap<&str, Operation<'_>> = BTreeMap::new();
    for attempt in evidence.attempts {
        operations.entry(&attempt.key).or_default().attempts.push(attempt);
    }
    for effect in evidence.effects {
        operations.entry(&effect.operation_id).or_default().effects.push(effect);
    }
    for (key, count) in evidence.forwards {
        operations.entry(key).or_default().forwards = *count;
    }
    for entry in evidence.ledger {
        operations.entry(&entry.key).or_default().entries.push(entry);
    }
    let found = operations.into_iter().flat_map(|(key, operation)| {
        let broken = operation.broken().into_iter();
        broken.map(|(rule, what)| Violation { key: key.to_owned(), rule, what })
    });
    found.collect()
}

type Broken = Vec<(Rule, String)>;

#[derive(Default)]
struct Operation<'a> {
    attempts: Vec<&'a Attempt>,
    effects: Vec<&'a Effect>,
    forwards: u64,
    entries: Vec<&'a LedgerEntry>,
}

impl<'a> Operation<'a> {
    fn broken(&self) -> Broken {
        let mut broken = Broken::new();
        self.happened(&mut broken);
        self.was_told(&mut broken);
        self.was_told_again(&mut broken);
        self.was_written(&mut broken);
        broken
    }

    fn told(&self) -> impl Iterator<Item = (&'a Attempt, Told)> {
        self.attempts.iter().filter_map(|attempt| Some((*attempt, Told::by(attempt)?)))
    }

    fn happened(&self, broken: &mut Broken) {
        if self.effects.len() > 1 {
            let numbers: Vec<String> = self.effects.iter().map(|it| it.sequence.to_string()).collect();
            let what = format!("it happened {} times, as effects {}", numbers.len(), numbers.join(", "));
            broken.push((Rule::EffectTwice, what));
        }
        if self.forwards > 1 {
            broken.push((Rule::ForwardedTwice, format!("it was sent {} times", self.forwards)));
        }
        for effect in &self.effects {
            let asked = Asked::Execute { amount: effect.amount };
            if !self.attempts.iter().any(|attempt| attempt.asked == asked) {
                let what = format!("effect {} of {}, which nobody sent", effect.sequence, effect.amount);
                broken.push((Rule::EffectUnasked, what));
            }
        }
    }

    fn was_told(&self, broken: &mut Broken) {
        for (attempt, told) in self.told() {
            match (told, self.effects.first()) {
                (Told::Succeeded, None) => {
                    broken.push((
                        Rule::SuccessWithoutEffect,
                        format!("{}, and nothing happened", said(attempt)),
                    ));
                }
                (Told::Succeeded, Some(effect)) => {
                    if let Asked::Execute { amount } = attempt.asked
                        && amount != effect.amount
                    {
                        let what = format!("{}, and {} was paid", said(attempt), effect.amount);
                        broken.push((Rule::SuccessOfAnother, what));
                    }
                }
                (told, Some(effect)) if told.is_without_effect() => {
                    let what = format!("{}, and effect {} is there", said(attempt), effect.sequence);
                    broken.push((Rule::FailureWithEffect, what));
                }
                (Told::Unreadable, _) => broken.push((Rule::UnreadableAnswer, said(attempt))),
                _ => {}
            }
        }
    }

    fn was_told_again(&self, broken: &mut Broken) {
        let successes = self.told().filter(|(_, told)| *told == Told::Succeeded);
        if let Some((first, at)) =
            successes.filter_map(|(it, _)| Some((it, it.heard_at?))).min_by_key(|it| it.1)
        {
            for (attempt, told) in self.told().filter(|(attempt, _)| attempt.sent > at) {
                let is_weaker = match told {
                    Told::Succeeded | Told::NotTaken => false,
                    Told::OtherRequest => attempt.asked == first.asked,
                    Told::Failed
                    | Told::NotExecuted
                    | Told::Open
                    | Told::Attention
                    | Told::Missing
                    | Told::Unreadable => true,
                };
                if is_weaker {
                    let what = format!("{}, after a success was heard at {at}", said(attempt));
                    broken.push((Rule::WeakerAnswer, what));
                }
            }
        }
        let mut first: Option<(&Attempt, Kept<'_>)> = None;
        for (attempt, told) in self.told() {
            let (Heard::Answer(answer), Asked::Execute { .. }) = (&attempt.heard, attempt.asked) else {
                continue;
            };
            if !matches!(told, Told::Succeeded | Told::Failed) {
                continue;
            }
            let heard = kept(answer);
            match first {
                None => first = Some((attempt, heard)),
                Some((before, known)) if known != heard => {
                    let what = format!("{}, and before: {}", said(attempt), said(before));
                    broken.push((Rule::ReplayDiffers, what));
                }
                Some(_) => {}
            }
        }
    }

    fn was_written(&self, broken: &mut Broken) {
        let states: BTreeSet<&str> = self.entries.iter().map(|entry| entry.state.as_str()).collect();
        if self.entries.len() > 1 {
            broken.push((
                Rule::ListedTwice,
                format!("the ledger has it {} times: {states:?}", self.entries.len()),
            ));
        }
        let told: Vec<(&Attempt, Told)> = self.told().collect();
        let Some(entry) = self.entries.first() else {
            let spoken =
                told.iter().find(|(_, told)| matches!(told, Told::Succeeded | Told::Open | Told::Attention));
            if self.forwards > 0 || !self.effects.is_empty() {
                broken.push((Rule::Unwritten, "it was sent, and the ledger does not know it".to_owned()));
            } else if let Some((attempt, _)) = spoken {
                broken.push((Rule::Unwritten, format!("{}, and the ledger does not know it", said(attempt))));
            }
            return;
        };
        let ledger = format!("the ledger says {} ({})", entry.state, entry.why);
        match entry.state.as_str() {
            "succeeded" if self.effects.is_empty() => {
                broken.push((Rule::LedgerDisagrees, format!("{ledger}, and nothing happened")));
            }
            "failed" | "not_executed" if !self.effects.is_empty() => {
                broken.push((Rule::LedgerDisagrees, format!("{ledger}, and it happened")));
            }
            "succeeded" | "failed" | "not_executed" | "attention" => {}
            _ => broken.push((Rule::NotEnded, ledger.clone())),
        }
        if let Some((attempt, _)) = told.iter().find(|(_, told)| *told == Told::Succeeded)
            && entry.state != "succeeded"
        {
            broken.push((Rule::LedgerDisagrees, format!("{ledger}, and {}", said(attempt))));
        }
    }
}

/// What is the same whenever an answer is given.
type Kept<'a> = (u16, &'a [u8], [Option<&'a str>; 2]);

fn kept(answer: &Answer) -> Kept<'_> {
    (answer.status, &answer.body, [answer.content_type.as_deref(), answer.location.as_deref()])
}

/// What an attempt heard, for people.
fn said(attempt: &Attempt) -> String {
    let asked = match attempt.asked {
        Asked::Execute { amount } => format!("who sent {amount} at {}", attempt.sent),
        Asked::Look => format!("who looked at {}", attempt.sent),
    };
    match &attempt.heard {
        Heard::Nothing => format!("{asked} heard nothing"),
        Heard::Cut { status } => format!("{asked} heard {status} and half an answer"),
        Heard::Answer(answer) => {
            let body: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
            let [content_type, location] =
                [&answer.content_type, &answer.location].map(|value| value.as_deref().unwrap_or("-"));
            format!("{asked} heard {} ({content_type}, {location}) {body}", answer.status)
        }
    }
}
