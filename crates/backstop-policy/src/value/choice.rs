//! Closed sets of words.

use backstop_engine::health::Forced;
use backstop_engine::policy::effect::{KeyForm, UnknownAnswer};
use backstop_engine::policy::{AfterRestart, Incorrect, Mode, UnavailableStatus};
use backstop_engine::retry::Owner;
use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Node, Shape, Value, not_available};
use crate::settings::Ledger;
use crate::suggest;

macro_rules! choice {
    ($(#[doc = $doc:literal])* $name:ident($inner:ty) { $($text:literal => $value:expr,)* } $(later { $later:literal => $what:literal })?) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) $inner);

        impl Value for $name {
            fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
                const ALLOWED: &[&str] = &[$($text),*];
                match word(node, ALLOWED, &[$(($later, $what))?], cx)? {
                    $($text => Some(Self($value)),)*
                    _ => None,
                }
            }

            fn shape() -> Shape {
                Shape::Choice(&[$($text),*])
            }
        }
    };
}

choice! {
    /// Whether decisions are carried out.
    ModeChoice(Mode) { "enforce" => Mode::Enforce, "observe" => Mode::Observe, }
}
choice! {
    /// What becomes of copies of an earlier boot.
    AfterRestartChoice(AfterRestart) { "verify" => AfterRestart::Verify, "trust" => AfterRestart::Trust, }
}
choice! {
    /// What an answer that fails `correct` becomes.
    IncorrectChoice(Incorrect) { "propagate" => Incorrect::Propagate, "fallback" => Incorrect::Fallback, }
}
choice! {
    /// The status of a refused alternative.
    UnavailableChoice(UnavailableStatus) {
        "contract" => UnavailableStatus::Contract,
        "cause" => UnavailableStatus::Cause,
    }
}
choice! {
    /// Which layer repeats a call that failed.
    RetryOwnerChoice(Owner) {
        "backstop" => Owner::Backstop,
        "client" => Owner::Client,
        "upstream" => Owner::Upstream,
    }
}
choice! {
    /// What a breaker is held at.
    StateChoice(Forced) { "open" => Forced::Open, "closed" => Forced::Closed, }
}
choice! {
    /// Where operations are written.
    LedgerChoice(Ledger) { "sqlite" => Ledger::Sqlite, }
    later { "postgresql" => "a ledger in PostgreSQL" }
}
choice! {
    /// What the upstream gets as an operation's key.
    KeyFormChoice(KeyForm) { "client" => KeyForm::Client, "derived" => KeyForm::Derived, }
}
choice! {
    /// What the client gets while the outcome is unknown.
    UnknownAnswerChoice(UnknownAnswer) {
        "auto" => UnknownAnswer::Auto,
        "accepted" => UnknownAnswer::Accepted,
    }
}
choice! {
    /// By what an operation is found in a list.
    MatchChoice(()) { "operation_id" => (), }
}
choice! {
    /// Whether a date that nobody vouches for is believed.
    UnsynchronisedChoice(bool) { "refuse" => false, "trust" => true, }
}
choice! {
    /// Whether answers of operations are kept.
    StoreBodyChoice(bool) { "redacted" => true, "none" => false, }
}
choice! {
    /// Whether confirmed absence says that an operation was not executed.
    VerdictChoice(bool) { "attention" => false, "not_executed" => true, }
}

/// The word at this node if it is allowed, else a finding.
fn word<'a>(
    node: Node<'a>,
    allowed: &[&str],
    later: &[(&str, &str)],
    cx: &mut Context<'_>,
) -> Option<&'a str> {
    let DeValue::String(word) = node.get() else {
        cx.report(node.wrong_type(&format!("one of {}", suggest::listed(allowed.iter().copied()))));
        return None;
    };
    if allowed.contains(&word.as_ref()) {
        return Some(word);
    }
    cx.report(match later.iter().find(|(later, _)| *later == word.as_ref()) {
        Some((_, what)) => not_available(node.bytes(), what),
        None => {
            let message = format!("`{word}` is not a value of `{}`", node.path);
            let help = format!("allowed: {}", suggest::listed(allowed.iter().copied()));
            let finding = Finding::new(Code::UnknownChoice, node.bytes(), message).help(help);
            match suggest::closest(word, allowed.iter().copied()) {
                Some(close) => finding.fix(node.bytes(), format!("\"{close}\"")),
                None => finding,
            }
        }
    });
    None
}
