//! What one status query came to.
//!
//! A verdict needs a whole answer that the contract names, and that is about this operation. Everything else says nothing: a
//! technical fault of a query never moves an operation. Some statuses are no evidence whatever a contract calls them.

use backstop::operation::echo;
use backstop::operation::listed::{Listed, listed};
use backstop::operation::matching::Answer;
use backstop::operation::secret::Secret;
use backstop_engine::failure::FailureKind;
use backstop_engine::policy::effect::StatusQueryRules;
use backstop_engine::words::joined;

/// What a status query came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It was executed.
    Succeeded,
    /// It was declined, without effect, and never will be executed.
    Failed,
    /// It is under way.
    Pending,
    /// The upstream does not know it.
    Absent,
    /// What it has under this name is something else.
    Mismatch,
    /// It has more than one under this name.
    Several,
    /// It is there, in a state that the contract does not name.
    Unnamed,
    /// Nothing.
    Nothing(Why),
}

/// Why a query says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// There was no whole answer.
    Failed(FailureKind),
    /// The answer is longer than any that is read.
    TooLarge,
    /// It leads elsewhere (3xx). That is never followed: credentials would go with it.
    Redirect,
    /// The upstream does not take the credentials (401, 403, 407). It would say the same of any operation.
    Credentials,
    /// The upstream says that it failed (5xx), or that it was asked too much (408, 425, 429).
    Unavailable,
    /// That it is not there is said by an answer to an earlier question, which something between has kept.
    Old,
    /// The contract names no such answer, or two kinds of answer that it would be.
    Unmatched,
    /// It was not asked.
    NotAsked,
}

impl Said {
    const OWN: [&'static str; 14] = [
        "succeeded",
        "failed",
        "pending",
        "absent",
        "mismatch",
        "several_matches",
        "unnamed",
        "too_large",
        "redirect",
        "credentials",
        "unavailable",
        "unmatched",
        "not_asked",
        "old",
    ];

    /// Every word once, in the order of [`Said::index`]. The last two kinds of failure are statuses, which are said otherwise.
    pub(crate) const TOKENS: [&'static str; 25] = joined(&[
        &Said::OWN,
        FailureKind::TOKENS.as_slice().split_at(9).0,
        &["answered_unavailable", "answered_declared"],
    ]);

    /// Position in [`Said::TOKENS`].
    pub(super) const fn index(self) -> usize {
        match self {
            Said::Succeeded => 0,
            Said::Failed => 1,
            Said::Pending => 2,
            Said::Absent => 3,
            Said::Mismatch => 4,
            Said::Several => 5,
            Said::Unnamed => 6,
            Said::Nothing(Why::TooLarge) => 7,
            Said::Nothing(Why::Redirect) => 8,
            Said::Nothing(Why::Credentials) => 9,
            Said::Nothing(Why::Unavailable) => 10,
            Said::Nothing(Why::Unmatched) => 11,
            Said::Nothing(Why::NotAsked) => 12,
            Said::Nothing(Why::Old) => 13,
            Said::Nothing(Why::Failed(kind)) => Said::OWN.len() + kind.index(),
        }
    }

    /// As one word.
    pub(super) fn token(self) -> &'static str {
        Said::TOKENS.get(self.index()).copied().unwrap_or("unmatched")
    }

    /// Whether it shows that the credentials are good: the upstream has told of an operation.
    pub(super) const fn is_found(self) -> bool {
        matches!(self, Said::Succeeded | Said::Failed | Said::Pending | Said::Unnamed)
    }

    /// Whether there was no answer that shows the status endpoint at work.
    pub(super) const fn is_failure(self) -> bool {
        matches!(
            self,
            Said::Nothing(
                Why::Failed(_)
                    | Why::TooLarge
                    | Why::Redirect
                    | Why::Credentials
                    | Why::Unavailable
                    | Why::NotAsked
            )
        )
    }
}

/// The operation that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub(super) secret: &'a Secret,
    pub(super) upstream_id: &'a [u8],
    /// What is kept of its request; `None` where nothing of it is known.
    pub(super) captured: Option<&'a [(Box<str>, Box<str>)]>,
}

/// What a whole answer says. `is_earlier`: it says of itself that it was made before it was asked for. That an operation was
/// executed then it was; that it was not there then says nothing of now.
pub(super) fn said(
    rules: &StatusQueryRules,
    status: u16,
    content: &[u8],
    is_earlier: bool,
    about: About<'_>,
) -> Said {
    match by_content(rules, status, content, about) {
        Said::Absent if is_earlier => Said::Nothing(Why::Old),
        said => said,
    }
}

fn by_content(rules: &StatusQueryRules, status: u16, content: &[u8], about: About<'_>) -> Said {
    if let Some(why) = no_evidence(status) {
        return Said::Nothing(why);
    }
    let mut answer = Answer::new(status, Some(content));
    let About { secret, upstream_id, captured } = about;
    // A list's own item is found by the operation's id.
    let mut is_shown = status < 300 && echo::shows(rules, upstream_id, answer.json());
    if let Some(list) = &rules.list {
        let listed = if status == 200 { listed(list, upstream_id, answer.json()) } else { Listed::Unclear };
        answer = match listed {
            Listed::One(item) => answer.of_item(item),
            Listed::Nothing => return Said::Absent,
            Listed::Several => return Said::Several,
            // What is no list says no more than that the operation is not there.
            Listed::Unclear if status != 200 && answer.is_one_of(&rules.absent) => return Said::Absent,
            Listed::Unclear => return Said::Nothing(Why::Unmatched),
        };
        is_shown = true;
    }
    let kinds =
        [&rules.succeeded, &rules.failed, &rules.pending, &rules.absent].map(|kind| answer.is_one_of(kind));
    let said = match kinds {
        [true, false, false, false] if status < 300 => Said::Succeeded,
        [false, true, false, false] => Said::Failed,
        [false, false, true, false] if status < 300 => Said::Pending,
        [false, false, false, true] => Said::Absent,
        // The contract has forgotten a state, but it is there.
        _ if is_shown => Said::Unnamed,
        _ => Said::Nothing(Why::Unmatched),
    };
    if said.is_found() && !echo::matches(secret, rules, upstream_id, captured, answer.json()) {
        return Said::Mismatch;
    }
    said
}

/// Why an answer with this status is none about an operation.
const fn no_evidence(status: u16) -> Option<Why> {
    match status {
        300..=399 => Some(Why::Redirect),
        401 | 403 | 407 => Some(Why::Credentials),
        408 | 425 | 429 | 500.. => Some(Why::Unavailable),
        // Content that is a part of something says nothing of the rest (RFC 9110 section 15.3.7), and nobody asked for one.
        ..200 | 206 => Some(Why::Unmatched),
        _ => None,
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
