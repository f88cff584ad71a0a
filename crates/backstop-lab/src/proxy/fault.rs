//! What a proxy does instead of passing on, and when.

use std::time::Duration;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Connections are refused, and those that are open are reset. Always of a whole upstream.
    Refuse,
    /// RST.
    Reset(Moment),
    /// The request is taken and never answered.
    Hang,
    /// The connection is closed in order, without an answer.
    HangUp,
    /// The answer is late by this.
    Slow(Duration),
    /// The body comes byte by byte, with this between two of them.
    Drip(Duration),
    /// The body ends early: short of its `Content-Length`, or without its last chunk.
    Truncate,
    /// This status with a page for people; the upstream is not asked.
    Status(u16),
    /// Bytes that are not HTTP.
    Garbage,
    /// 200 with a page of HTML; the upstream is not asked.
    WrongBody,
    /// Works and hangs up in turns, each for this long.
    Flap(Duration),
    /// The answer's `Date` lies so many seconds ahead.
    Date(u32),
    /// The answer says that it is so many seconds old.
    Age(u32),
    /// So many connections are served at once; what is more is accepted and waits.
    Full(u32),
}

/// When a reset comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the answer's first byte; the upstream is not asked.
    BeforeHead,
    /// In the midst of the answer's body.
    AfterHead,
}

impl Fault {
    /// Its name in drill files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Reset(Moment::BeforeHead) => "reset",
            Self::Reset(Moment::AfterHead) => "reset_after_head",
            Self::Hang => "hang",
            Self::HangUp => "hang_up",
            Self::Slow(_) => "slow",
            Self::Drip(_) => "drip",
            Self::Truncate => "truncate",
            Self::Status(_) => "status",
            Self::Garbage => "garbage",
            Self::WrongBody => "wrong_body",
            Self::Flap(_) => "flap",
            Self::Date(_) => "date",
            Self::Age(_) => "age",
            Self::Full(_) => "full",
        }
    }

    /// Whether it befalls what speaks no HTTP, too.
    #[must_use]
    pub const fn is_below_http(self) -> bool {
        matches!(
            self,
            Self::Refuse
                | Self::Reset(Moment::BeforeHead)
                | Self::Hang
                | Self::HangUp
                | Self::Slow(_)
                | Self::Garbage
                | Self::Flap(_)
                | Self::Full(_)
        )
    }
}

/// What befalls an upstream, and from when until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Which of the upstreams.
    pub upstream: usize,
    /// What befalls it.
    pub fault: Fault,
    /// From then on, counted from the beginning.
    pub from: Duration,
    /// Until then, exclusive.
    pub to: Duration,
    /// How many of a thousand calls it befalls.
    pub per_mille: u16,
}

impl Window {
    /// A fault of every call to this upstream.
    #[must_use]
    pub const fn new(upstream: usize, fault: Fault, from: Duration, to: Duration) -> Self {
        Self { upstream, fault, from, to, per_mille: 1000 }
    }

    /// Whether it is open at this moment.
    #[must_use]
    pub fn is_open(&self, at: Duration) -> bool {
        self.from <= at && at < self.to
    }
}
