//! What can be wrong, each as one word, and sets of it.

/// One thing that is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A breaker is open.
    BreakerOpen,
    /// A dependency's traffic is not whole yet: it is probed or ramped.
    Returning,
    /// A dependency is held open by hand.
    Forced,
    /// Fewer than 99 % of requests have full quality.
    Quality,
    /// More alternatives than usual.
    Fallback,
    /// More than 0.1 % of requests are refused.
    Refusals,
    /// More than 1 % of requests have no acceptable answer.
    Errors,
    /// A dependency's 95th percentile is not green.
    Latency,
    /// More than 1.02 calls for one request at some dependency.
    Attempts,
    /// Fewer cache hits than 95 % of what is usual.
    HitRatio,
    /// Copies are older than their renewal should leave them.
    CopyAges,
    /// Effects whose end is unknown and which nobody follows up.
    UntrackedEffects,
}

impl Signal {
    /// Every signal, in declaration order.
    pub const ALL: [Signal; 12] = [
        Signal::BreakerOpen,
        Signal::Returning,
        Signal::Forced,
        Signal::Quality,
        Signal::Fallback,
        Signal::Refusals,
        Signal::Errors,
        Signal::Latency,
        Signal::Attempts,
        Signal::HitRatio,
        Signal::CopyAges,
        Signal::UntrackedEffects,
    ];

    /// The signal as one word.
    pub const fn token(self) -> &'static str {
        match self {
            Signal::BreakerOpen => "breaker_open",
            Signal::Returning => "returning",
            Signal::Forced => "forced",
            Signal::Quality => "quality",
            Signal::Fallback => "fallback",
            Signal::Refusals => "refusals",
            Signal::Errors => "errors",
            Signal::Latency => "latency",
            Signal::Attempts => "attempts",
            Signal::HitRatio => "hit_ratio",
            Signal::CopyAges => "copy_ages",
            Signal::UntrackedEffects => "untracked_effects",
        }
    }
}

/// A set of signals. Empty is green.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals(u16);

impl Signals {
    /// Nothing wrong.
    pub const GREEN: Signals = Signals(0);
    /// A breaker is not closed, in any way.
    pub(super) const BREAKERS: Signals =
        Signals::GREEN.with(Signal::BreakerOpen).with(Signal::Returning).with(Signal::Forced);
    /// A dependency is not called at all.
    pub(super) const CUT_OFF: Signals = Signals::GREEN.with(Signal::BreakerOpen).with(Signal::Forced);
    /// What requests came to.
    pub(super) const RATIOS: Signals = Signals::GREEN
        .with(Signal::Quality)
        .with(Signal::Fallback)
        .with(Signal::Refusals)
        .with(Signal::Errors);

    /// The set with one more.
    #[must_use]
    pub const fn with(self, signal: Signal) -> Self {
        Self(self.0 | 1 << signal as u16)
    }

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Signals) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether nothing is wrong.
    pub const fn is_green(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is among them.
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & (1 << signal as u16) != 0
    }

    /// Whether any of those is among them.
    pub(super) const fn any_of(self, others: Signals) -> bool {
        self.0 & others.0 != 0
    }

    /// Each of them, in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        Signal::ALL.into_iter().filter(move |&signal| self.contains(signal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_distinct_and_sets_hold_what_was_put_in() {
        let mut words = Signal::ALL.map(Signal::token).to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Signal::ALL.len());
        for one in Signal::ALL {
            let set = Signals::GREEN.with(one);
            assert!(!set.is_green());
            assert_eq!(set.iter().collect::<Vec<_>>(), [one]);
        }
    }
}
