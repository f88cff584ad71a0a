//! What an operation is in, and why.

use super::evidence::Evidence;

/// What an operation is in: exactly one at any time, and durable.
///
/// `Succeeded` and `Failed` hold [`Evidence`], which nobody can make but those who hold the one forward, the right to ask
/// for the status, or a person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The intent is durable, and its one forward may be on its way.
    Dispatching,
    /// The forward is over, or its owner is gone, and nobody knows what came of it.
    Unknown(Doubt),
    /// It was executed.
    Succeeded(Evidence),
    /// It was refused or declined, without effect.
    Failed(Evidence),
    /// It was not executed.
    NotExecuted(NotExecuted),
    /// No machine can decide it, or what is known contradicts itself.
    Attention(Attention),
}

impl State {
    /// Every state once, in declaration order.
    pub const TOKENS: [&'static str; 6] =
        ["dispatching", "unknown", "succeeded", "failed", "not_executed", "attention"];

    /// Position in [`State::TOKENS`].
    pub const fn index(self) -> usize {
        match self {
            State::Dispatching => 0,
            State::Unknown(_) => 1,
            State::Succeeded(_) => 2,
            State::Failed(_) => 3,
            State::NotExecuted(_) => 4,
            State::Attention(_) => 5,
        }
    }

    /// The state as one word, as in documents, metrics and ledgers.
    pub fn token(self) -> &'static str {
        State::TOKENS.get(self.index()).copied().unwrap_or("attention")
    }

    /// Why, as one word; empty while dispatching.
    pub fn why(self) -> &'static str {
        match self {
            State::Dispatching => "",
            State::Unknown(doubt) => doubt.token(),
            State::Succeeded(evidence) | State::Failed(evidence) => evidence.token(),
            State::NotExecuted(why) => why.token(),
            State::Attention(why) => why.token(),
        }
    }

    /// Whether it is decided: nothing but a contradiction changes it any more.
    pub const fn is_decided(self) -> bool {
        matches!(self, State::Succeeded(_) | State::Failed(_) | State::NotExecuted(_))
    }

    /// Whether its status is to be asked for.
    pub const fn is_open(self) -> bool {
        matches!(self, State::Unknown(_) | State::Attention(_))
    }

    /// The state of two words, as [`token`](Self::token) and [`why`](Self::why) give them.
    pub fn parse(token: &str, why: &str) -> Option<Self> {
        let state = match token {
            "dispatching" if why.is_empty() => State::Dispatching,
            "unknown" => State::Unknown(Doubt::parse(why)?),
            "succeeded" => State::Succeeded(Evidence::parse(why)?),
            "failed" => State::Failed(Evidence::parse(why)?),
            "not_executed" => State::NotExecuted(NotExecuted::parse(why)?),
            "attention" => State::Attention(Attention::parse(why)?),
            _ => return None,
        };
        Some(state)
    }
}

macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $token:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every one once, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// As one word, as in documents, metrics and ledgers.
            pub const fn token(self) -> &'static str {
                match self { $($name::$variant => $token,)+ }
            }

            /// The one of this word.
            pub fn parse(token: &str) -> Option<Self> {
                match token { $($token => Some($name::$variant),)+ _ => None }
            }
        }
    };
}
pub(super) use words;

words! {
    /// Why it is not known what came of a forward.
    Doubt {
        /// No whole answer came in time.
        Timeout = "timeout",
        /// The connection was lost, before or within the answer, or could not be written to.
        Reset = "reset",
        /// The answer was no HTTP, ended early, or its content was not what it says.
        Incomplete = "incomplete",
        /// The upstream says that it failed (5xx). It may have executed the operation before that, or do so yet.
        ServerError = "server_error",
        /// The answer is none that the contract names.
        Unmatched = "unmatched",
        /// The upstream says that it is still at work.
        Pending = "pending",
        /// Whoever forwarded it did not say in time what came of it.
        LeaseEnded = "lease_ended",
        /// The process that forwarded it is gone.
        Restarted = "restarted",
    }
}

words! {
    /// Why an operation counts as not executed.
    NotExecuted {
        /// Its name could not be resolved, so nothing was sent.
        Dns = "dns",
        /// No connection was made, so nothing was sent.
        Connect = "connect",
        /// No connection was made in time, so nothing was sent.
        ConnectTimeout = "connect_timeout",
        /// The TLS handshake failed, so nothing was sent.
        Tls = "tls",
        /// No connection of the pool was free in time, so nothing was sent.
        Pool = "pool",
        /// The intent became durable too late to forward it.
        TooLate = "too_late",
        /// The upstream says that it processed nothing (RFC 9113 section 8.7: `REFUSED_STREAM`, or a stream above the last
        /// one of `GOAWAY`).
        RefusedStream = "refused_stream",
        /// The status query said so often enough, late enough, under the full rule of absence.
        Absent = "absent",
        /// A person decided it.
        Person = "person",
    }
}

impl NotExecuted {
    /// Whether not one byte of it was ever sent, or the upstream's protocol says that none was processed. Only then a new
    /// key may be offered.
    pub const fn is_never_sent(self) -> bool {
        !matches!(self, NotExecuted::Absent | NotExecuted::Person)
    }
}

words! {
    /// Why a person has to look.
    Attention {
        /// Nothing is known at the end of the time for verification.
        Deadline = "deadline",
        /// The upstream said that it is at work on it, and at the end of that time not what came of it.
        Pending = "pending",
        /// The upstream said at the end of that time that it does not know the operation, which proves nothing by itself.
        Absent = "absent",
        /// There is no status query for it.
        NoStatusQuery = "no_status_query",
        /// More than one operation of the upstream matches.
        SeveralMatches = "several_matches",
        /// What the upstream has under its name is not what was sent.
        Mismatch = "mismatch",
        /// It was decided that it has no effect, and then the upstream said that it has one.
        Contradicted = "contradicted",
    }
}

impl Attention {
    /// Whether the upstream showed something under the operation's name. Then that it knows no such operation proves nothing.
    pub(super) const fn was_seen(self) -> bool {
        match self {
            Attention::Deadline | Attention::Absent | Attention::NoStatusQuery => false,
            Attention::Pending
            | Attention::SeveralMatches
            | Attention::Mismatch
            | Attention::Contradicted => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_read_back_from_its_two_words() {
        let mut states = vec![State::Dispatching];
        states.extend(Doubt::ALL.iter().copied().map(State::Unknown));
        states.extend(
            Evidence::all().into_iter().flat_map(|known| [State::Succeeded(known), State::Failed(known)]),
        );
        states.extend(NotExecuted::ALL.iter().copied().map(State::NotExecuted));
        states.extend(Attention::ALL.iter().copied().map(State::Attention));
        assert_eq!(states.len(), 1 + 8 + 2 * 3 + 9 + 7);
        for state in states {
            assert_eq!(State::parse(state.token(), state.why()), Some(state));
            assert_eq!(State::TOKENS[state.index()], state.token());
        }
        for (token, why) in
            [("", ""), ("dispatching", "timeout"), ("succeeded", ""), ("failed", "guess"), ("done", "direct")]
        {
            assert_eq!(State::parse(token, why), None, "{token} {why}");
        }
    }

    #[test]
    fn only_what_was_never_sent_offers_a_new_key() {
        let never: Vec<_> = NotExecuted::ALL.iter().filter(|why| why.is_never_sent()).collect();
        assert_eq!(never.len(), 7);
        assert!(!NotExecuted::Absent.is_never_sent() && !NotExecuted::Person.is_never_sent());
    }
}
