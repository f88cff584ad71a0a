//! What must not be and was.

use std::fmt;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// An operation happens at most once.
    EffectTwice,
    /// An operation is sent at most once.
    ForwardedTwice,
    /// Nothing happens that no client asked for.
    EffectUnasked,
    /// A success that was told has an effect.
    SuccessWithoutEffect,
    /// A success is told to those only who sent what was executed.
    SuccessOfAnother,
    /// A failure that was told has no effect, ever.
    FailureWithEffect,
    /// After a success no answer says less.
    WeakerAnswer,
    /// What decides is answered the same each time.
    ReplayDiffers,
    /// An operation comes to an end.
    NotEnded,
    /// What was sent, or spoken of, is in the ledger.
    Unwritten,
    /// An operation is in the ledger once.
    ListedTwice,
    /// The ledger says what happened.
    LedgerDisagrees,
    /// Answers use the documented words.
    UnreadableAnswer,
}

impl Rule {
    /// Every rule once, in declaration order.
    pub const ALL: [Self; 13] = [
        Self::EffectTwice,
        Self::ForwardedTwice,
        Self::EffectUnasked,
        Self::SuccessWithoutEffect,
        Self::SuccessOfAnother,
        Self::FailureWithEffect,
        Self::WeakerAnswer,
        Self::ReplayDiffers,
        Self::NotEnded,
        Self::Unwritten,
        Self::ListedTwice,
        Self::LedgerDisagrees,
        Self::UnreadableAnswer,
    ];

    /// As one word.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::EffectTwice => "effect_twice",
            Self::ForwardedTwice => "forwarded_twice",
            Self::EffectUnasked => "effect_unasked",
            Self::SuccessWithoutEffect => "success_without_effect",
            Self::SuccessOfAnother => "success_of_another",
            Self::FailureWithEffect => "failure_with_effect",
            Self::WeakerAnswer => "weaker_answer",
            Self::ReplayDiffers => "replay_differs",
            Self::NotEnded => "not_ended",
            Self::Unwritten => "unwritten",
            Self::ListedTwice => "listed_twice",
            Self::LedgerDisagrees => "ledger_disagrees",
            Self::UnreadableAnswer => "unreadable_answer",
        }
    }
}

/// A rule that was broken, by which operation, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The operation's key.
    pub key: String,
    /// What must have held.
    pub rule: Rule,
    /// What was instead, for people.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {}", self.key, self.rule.token(), self.what)
    }
}
