//! How it is known what came of an operation.

use std::fmt;

use super::state::words;

words! {
    /// Where evidence comes from.
    EvidenceKind {
        /// The upstream's own answer to the only forward.
        Direct = "direct",
        /// The upstream's answer to a status query under the operation's name.
        Status = "status",
        /// A person's decision, with a name and a reason.
        Person = "person",
    }
}

/// That somebody who can know has said so. It has no public constructor: the one forward gives it
/// ([`Forwarding`](super::Forwarding)), a claim to ask for the status ([`Asked`](super::Asked)), a person's
/// decision ([`resolve`](super::resolve)), or a ledger that reads back what it wrote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Evidence(EvidenceKind);

impl Evidence {
    pub(super) const DIRECT: Evidence = Evidence(EvidenceKind::Direct);
    pub(super) const STATUS: Evidence = Evidence(EvidenceKind::Status);
    pub(super) const PERSON: Evidence = Evidence(EvidenceKind::Person);

    /// Where it comes from.
    pub const fn kind(self) -> EvidenceKind {
        self.0
    }

    /// Where it comes from, as one word.
    pub const fn token(self) -> &'static str {
        self.0.token()
    }

    pub(super) fn parse(token: &str) -> Option<Self> {
        EvidenceKind::parse(token).map(Self)
    }

    #[cfg(test)]
    pub(super) fn all() -> [Evidence; 3] {
        [Self::DIRECT, Self::STATUS, Self::PERSON]
    }
}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

/// That an answer refuses the operation without any effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal(u16);

impl Refusal {
    /// The refusal that an answer with this status is, if the contract names it one.
    ///
    /// `None` for what no contract can make one: below 400 it is no refusal. A 5xx says nothing about the effect (RFC 9110
    /// section 15.6), and neither do 408, 409, 425 and 429, which may stand for an operation that is running or done, unless
    /// the contract declares that they have no effect.
    pub const fn of_status(status: u16, is_without_effect: bool) -> Option<Self> {
        match status {
            408 | 409 | 425 | 429 | 500..=599 if is_without_effect => Some(Self(status)),
            408 | 409 | 425 | 429 => None,
            400..=499 => Some(Self(status)),
            _ => None,
        }
    }

    /// The status.
    pub const fn status(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 section 15.6, and the four statuses above.
    #[test]
    fn a_failure_of_the_upstream_is_a_refusal_only_where_that_is_declared() {
        for status in (0..400).chain([408, 409, 425, 429]).chain(500..=999) {
            assert_eq!(Refusal::of_status(status, false), None, "{status}");
        }
        for status in [400, 402, 404, 422, 499] {
            assert_eq!(Refusal::of_status(status, false).map(Refusal::status), Some(status));
        }
        for status in [408, 409, 425, 429, 500, 503, 599] {
            assert!(Refusal::of_status(status, true).is_some(), "{status}");
        }
        for status in [399, 600] {
            assert_eq!(Refusal::of_status(status, true), None, "{status}");
        }
    }
}
