//! Why a cache gave no answer.

use std::fmt;

/// Why a command had no result. None is ever tried again here: one command, one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CacheError {
    /// No connection could be opened. Nothing was sent.
    #[error("no connection to the cache")]
    Connect,
    /// The last try to open a connection failed only just now, and nothing was tried.
    #[error("the cache could not be reached just now")]
    Paused,
    /// As many commands are under way on this thread as there may be. Nothing was sent.
    #[error("too many commands under way")]
    Full,
    /// The time was over before anything was done. Nothing was sent.
    #[error("the time was over before the cache was asked")]
    TooLate,
    /// The value is larger than allowed. It was not sent, or not taken.
    #[error("the value is too large")]
    TooLarge,
    /// No answer in time. Whether the command was carried out, or will still be, is not known.
    #[error("no answer from the cache in time")]
    Timeout,
    /// The connection was lost before the answer. Whether the command was carried out is not known.
    #[error("the connection to the cache was lost")]
    Reset,
    /// What came is no answer to what was sent.
    #[error("the cache answered something else")]
    Protocol,
    /// The server refused the command.
    #[error("the cache refused: {0}")]
    Server(Refusal),
}

/// Why the server refused a command, by the first word of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// `LOADING`: it reads its data and will answer later.
    Loading,
    /// `READONLY`: it is a replica.
    ReadOnly,
    /// `OOM`: its memory is full, and it may evict nothing.
    OutOfMemory,
    /// `NOAUTH`, `WRONGPASS`: who asks is not who may.
    NoAuth,
    /// `NOPERM`: the user may not do that.
    NoPermission,
    /// `WRONGTYPE`: under the key lies something that is no string.
    WrongType,
    /// `MISCONF`, `NOREPLICAS`: it accepts no writes in its present state.
    NoWrites,
    /// `BUSY`: a script runs.
    Busy,
    /// `MASTERDOWN`: it is a replica without its primary, and its data may be old.
    PrimaryDown,
    /// `MOVED`, `ASK`, `CLUSTERDOWN`, `CROSSSLOT`, `TRYAGAIN`: it is part of a cluster, which this client does not follow.
    Cluster,
    /// Anything else.
    Other,
}

impl Refusal {
    const ALL: [Self; 11] = [
        Self::Loading,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::NoAuth,
        Self::NoPermission,
        Self::WrongType,
        Self::NoWrites,
        Self::Busy,
        Self::PrimaryDown,
        Self::Cluster,
        Self::Other,
    ];

    pub(super) fn of(code: &str) -> Self {
        match code {
            "LOADING" => Self::Loading,
            "READONLY" => Self::ReadOnly,
            "OOM" => Self::OutOfMemory,
            "NOAUTH" | "WRONGPASS" => Self::NoAuth,
            "NOPERM" => Self::NoPermission,
            "WRONGTYPE" => Self::WrongType,
            "MISCONF" | "NOREPLICAS" => Self::NoWrites,
            "BUSY" => Self::Busy,
            "MASTERDOWN" => Self::PrimaryDown,
            "MOVED" | "ASK" | "CLUSTERDOWN" | "CROSSSLOT" | "TRYAGAIN" => Self::Cluster,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CacheError::Server(*self).token())
    }
}

impl CacheError {
    /// Number of errors, each refusal counted as one.
    pub const KINDS: usize = 19;

    /// Every error once, in the order in which they are counted.
    pub fn all() -> impl Iterator<Item = Self> {
        let own = [
            Self::Connect,
            Self::Paused,
            Self::Full,
            Self::TooLate,
            Self::TooLarge,
            Self::Timeout,
            Self::Reset,
            Self::Protocol,
        ];
        own.into_iter().chain(Refusal::ALL.into_iter().map(Self::Server))
    }

    /// It as one word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Paused => "paused",
            Self::Full => "full",
            Self::TooLate => "too_late",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
            Self::Server(Refusal::Loading) => "loading",
            Self::Server(Refusal::ReadOnly) => "read_only",
            Self::Server(Refusal::OutOfMemory) => "out_of_memory",
            Self::Server(Refusal::NoAuth) => "no_auth",
            Self::Server(Refusal::NoPermission) => "no_permission",
            Self::Server(Refusal::WrongType) => "wrong_type",
            Self::Server(Refusal::NoWrites) => "no_writes",
            Self::Server(Refusal::Busy) => "busy",
            Self::Server(Refusal::PrimaryDown) => "primary_down",
            Self::Server(Refusal::Cluster) => "cluster",
            Self::Server(Refusal::Other) => "refused",
        }
    }

    /// Whether it says something about the cache. If not, the cache was not asked, or the fault is one value's.
    pub const fn is_failure(self) -> bool {
        match self {
            Self::Connect | Self::Timeout | Self::Reset | Self::Protocol => true,
            Self::Paused | Self::Full | Self::TooLate | Self::TooLarge => false,
            Self::Server(refusal) => !matches!(refusal, Refusal::WrongType),
        }
    }

    /// Whether the command may have reached the server.
    pub const fn may_have_been_sent(self) -> bool {
        matches!(self, Self::Timeout | Self::Reset | Self::Protocol)
    }

    /// Its place among [`CacheError::all`].
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Connect => 0,
            Self::Paused => 1,
            Self::Full => 2,
            Self::TooLate => 3,
            Self::TooLarge => 4,
            Self::Timeout => 5,
            Self::Reset => 6,
            Self::Protocol => 7,
            Self::Server(refusal) => 8 + refusal as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_error_is_counted_in_its_place_and_has_a_word_of_its_own() {
        let all: Vec<CacheError> = CacheError::all().collect();
        assert_eq!(all.len(), CacheError::KINDS);
        for (place, error) in all.iter().enumerate() {
            assert_eq!(error.index(), place, "{error:?}");
        }
        let tokens: BTreeSet<&str> = all.iter().map(|error| error.token()).collect();
        assert_eq!(tokens.len(), all.len());
    }

    #[test]
    fn a_refusal_is_known_by_its_first_word() {
        assert_eq!(Refusal::of("LOADING"), Refusal::Loading);
        assert_eq!(Refusal::of("OOM"), Refusal::OutOfMemory);
        assert_eq!(Refusal::of("WRONGPASS"), Refusal::NoAuth);
        assert_eq!(Refusal::of("ERR"), Refusal::Other);
        assert_eq!(Refusal::of("loading"), Refusal::Other);
    }
}
