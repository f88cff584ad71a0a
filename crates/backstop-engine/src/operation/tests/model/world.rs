//! One state of everything, small enough to keep a million of them.

use crate::operation::State;

/// Where a protocol is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Whoever finds a lease over executes the operation again.
    LeaseExecutesAgain,
    /// The upstream has at most one effect under one id. No fault, but it saves no wrong protocol.
    UpstreamRecognises,
    /// A key is free again after a timeout or a 5xx.
    KeyReleased,
    /// The first absence decides.
    AbsentAtOnce,
    /// The upstream may still execute or hide what is said to be settled.
    SettleTooShort,
    /// A killed process may lose an intent that it forwarded.
    IntentNotDurable,
    /// Records are written whatever is there.
    NoComparison,
    /// A 5xx counts as a refusal.
    ServerErrorFails,
    /// The client hears of a success before it is recorded.
    ReplyFirst,
    /// What was decided by absence is never asked about again.
    LooksNoMore,
}

#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) wrong: Vec<Wrong>,
    pub(super) has_rule: bool,
    /// One process with a ledger of its own, instead of two that share one.
    pub(super) is_embedded: bool,
    /// What a wrong `settle` makes of an absence is no fault of the protocol, if it comes to be known.
    pub(super) forgives_late: bool,
}

impl Default for Variant {
    fn default() -> Self {
        Self { wrong: Vec::new(), has_rule: true, is_embedded: false, forgives_late: false }
    }
}

impl Variant {
    pub(super) fn is(&self, wrong: Wrong) -> bool {
        self.wrong.contains(&wrong)
    }

    pub(super) fn replicas(&self) -> usize {
        if self.is_embedded { 1 } else { 2 }
    }
}

pub(super) const SUBMISSIONS: u8 = 4;
pub(super) const KILLS: u8 = 3;
pub(super) const CLAIMS: u8 = 6;
/// Only protocols that are wrong forward again.
pub(super) const FORWARDS: u8 = 4;

/// What the ledger has, without moments: those follow from the state (see `bridge`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) state: State,
    pub(super) fence: u8,
    pub(super) is_leased: bool,
    pub(super) absences: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    Ok,
    Refused,
    ServerError,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    Found,
    Absent,
    Error,
}

/// What a replica is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Replica {
    Idle,
    /// Its intent is durable.
    Before(u8),
    Sent(u8),
    Answered(u8, Reply),
    Claimed(u8),
    /// It asked, when that was settled or not.
    Asked(u8, Seen, bool),
    /// It took a second look, and the status shows the effect.
    SawLate(u8),
}

pub(super) const TOLD_OK: u8 = 1;
pub(super) const TOLD_FAILED: u8 = 2;
pub(super) const TOLD_NOT_EXECUTED: u8 = 4;
pub(super) const WEAKER: u8 = 8;
pub(super) const CONTRADICTED: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) row: Option<Row>,
    pub(super) replicas: [Replica; 2],
    /// Requests on their way to the upstream, by fence: one bit each. One fence is sent once.
    pub(super) on_the_way: u16,
    pub(super) effects: u8,
    /// The status shows the effect.
    pub(super) is_visible: bool,
    pub(super) is_settled: bool,
    pub(super) submissions: u8,
    pub(super) kills: u8,
    pub(super) claims: u8,
    pub(super) forwards: u8,
    pub(super) told: u8,
}

impl World {
    pub(super) const START: World = World {
        row: None,
        replicas: [Replica::Idle; 2],
        on_the_way: 0,
        effects: 0,
        is_visible: false,
        is_settled: false,
        submissions: 0,
        kills: 0,
        claims: 0,
        forwards: 0,
        told: 0,
    };

    pub(super) fn with(self, at: usize, replica: Replica) -> Self {
        let mut next = self;
        next.replicas[at] = replica;
        next
    }

    /// The client hears something.
    pub(super) fn tell(self, what: u8) -> Self {
        let weaker = if self.told & TOLD_OK != 0 && what != TOLD_OK { WEAKER } else { 0 };
        Self { told: self.told | what | weaker, ..self }
    }

    /// What is wrong with it.
    pub(super) fn wrong(&self, variant: &Variant) -> Option<&'static str> {
        let is_strict = !variant.forgives_late;
        let told = |what| self.told & what != 0;
        let state = self.row.map(|row| row.state);
        let rules = [
            (self.effects > 1, "more than one effect"),
            (told(TOLD_OK) && self.effects == 0, "success told without effect"),
            (is_strict && told(TOLD_NOT_EXECUTED) && self.effects > 0, "not executed told, effect exists"),
            (told(TOLD_FAILED) && self.effects > 0, "failure told, effect exists"),
            (is_strict && told(CONTRADICTED), "verdict contradicted by evidence"),
            (told(WEAKER), "answer weaker than an earlier success"),
            (
                matches!(state, Some(State::Succeeded(_))) && self.effects == 0,
                "succeeded in the ledger, no effect",
            ),
            (
                is_strict && matches!(state, Some(State::NotExecuted(_))) && self.effects > 0,
                "not executed in the ledger, effect exists",
            ),
        ];
        rules.into_iter().find_map(|(is_wrong, why)| is_wrong.then_some(why))
    }

    /// Whether the operation is decided as it is, or a person is called, or there is none.
    pub(super) fn is_at_rest(&self) -> bool {
        self.row.is_none_or(|row| match row.state {
            State::NotExecuted(_) => self.effects == 0,
            state => state.is_decided() || matches!(state, State::Attention(_)),
        })
    }
}
