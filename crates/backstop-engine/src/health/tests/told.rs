//! What the naive reference is told, and what it shows.

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Closed,
    Open { until: u64 },
    HalfOpen,
    Ramp { share: u64 },
    Watch { until: u64 },
    ForcedOpen,
    ForcedClosed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    Failed,
    Neutral,
    /// Dropped: it ends at the latest moment that anybody came with.
    Abandoned,
    /// The same, with a moment of its own.
    GivenUp,
    /// The client's request was at fault.
    Silent,
    Unused,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(super) id: u64,
    pub(super) generation: u64,
    pub(crate) is_probe: bool,
    pub(super) at: u64,
    /// What the client kept it waiting for the request's own content, in nanoseconds: none of the time that it took.
    pub(crate) waited_ns: u64,
}

/// A call whose answer has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(super) call: Admitted,
    /// How long it has taken.
    pub(super) lasted_ns: u64,
    pub(super) well: bool,
    /// When it was counted, and whether as a slow one.
    pub(super) counted: Option<(u64, bool)>,
}

#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub(super) id: u64,
    pub(super) generation: u64,
    pub(super) at: u64,
    pub(super) failed: bool,
    pub(super) slow: bool,
    pub(super) probe: bool,
    pub(super) lasted_ns: u64,
    pub(super) given_up: bool,
    pub(super) in_window: bool,
    pub(super) in_tick: bool,
    /// Its answer broke off later: a failure of the window's, and of the tick's.
    pub(super) broke: bool,
    pub(super) broke_in_tick: bool,
}

impl Ended {
    /// Of a call that was given up only the least is known: it is later than anything.
    pub(super) fn is_later_than(&self, bound: u64) -> bool {
        !self.failed && (self.given_up || self.lasted_ns > bound)
    }

    /// A failure of nobody that is still known.
    pub(super) const fn further(generation: u64, at: u64) -> Self {
        Self {
            id: 0,
            generation,
            at,
            failed: true,
            slow: false,
            probe: false,
            lasted_ns: 0,
            given_up: false,
            in_window: false,
            in_tick: false,
            broke: false,
            broke_in_tick: false,
        }
    }
}
