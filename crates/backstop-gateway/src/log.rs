//! One line for every fallback and refusal, with its reason and the policy's line, as long as there are few.
//!
//! In an outage the same line would come thousands of times a second. Each route writes at most ten lines a second for
//! each reason; the next line then says how many were left out.

use std::sync::atomic::{AtomicU64, Ordering};

use backstop_engine::engine::RouteState;
use backstop_engine::failure::Cause;
use backstop_engine::flow::Account;
use backstop_engine::outcome::Reason;
use backstop_engine::policy::{Mode, RouteId};
use backstop_engine::time::Mono;
use backstop_policy::SourceMap;

use crate::strict::Fault;

const LINES_PER_SECOND: u8 = 10;

/// Writes decisions to the log.
#[derive(Debug)]
pub(crate) struct Decisions {
    sources: SourceMap,
    /// One word for each route and reason.
    seen: Box<[AtomicU64]>,
    /// One word for each fault of requests that came to no route.
    faults: [AtomicU64; Fault::ALL.len()],
}

/// What was written in the present second: the second in the upper half, lines written and left out below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    second: u32,
    written: u8,
    left_out: u32,
}

const LEFT_OUT_MAX: u32 = (1 << 24) - 1;

impl Seen {
    const fn unpack(word: u64) -> Self {
        Self {
            second: (word >> 32) as u32,
            written: (word >> 24) as u8,
            left_out: word as u32 & LEFT_OUT_MAX,
        }
    }

    const fn pack(self) -> u64 {
        (self.second as u64) << 32 | (self.written as u64) << 24 | self.left_out as u64
    }
}

impl Decisions {
    pub(crate) fn new(sources: SourceMap, routes: usize) -> Self {
        Self {
            sources,
            seen: (0..routes * Reason::TOKENS.len()).map(|_| AtomicU64::new(0)).collect(),
            faults: Default::default(),
        }
    }

    pub(crate) fn note(&self, route: &RouteState, id: RouteId, account: &Account, now: Mono) {
        let Some(left_out) = self.admit(id, account.reason, now) else { return };
        let reason = account.reason.token();
        let cause = account.cause.map_or(reason, Cause::token);
        let policy = self.sources.locate(account.rule).unwrap_or_default();
        let age_seconds = account.age.map(|age| age.as_secs());
        let message = match route.rules.mode {
            Mode::Enforce => "answered other than normally",
            Mode::Observe => "would have been answered other than normally (observed only)",
        };
        tracing::info!(
            target: "backstop::decision",
            route = %route.rules.name,
            outcome = account.outcome.token(),
            source = account.source.token(),
            reason,
            cause,
            age_seconds,
            policy,
            left_out,
            "{message}"
        );
    }

    /// A request was refused before it came to a route.
    pub(crate) fn note_refused(&self, fault: Fault, now: Mono) {
        let Some(left_out) = self.faults.get(fault as usize).and_then(|word| admit(word, now)) else {
            return;
        };
        tracing::info!(
            target: "backstop::decision",
            outcome = "rejected",
            source = "none",
            reason = fault.token(),
            status = fault.status().as_u16(),
            left_out,
            "refused before any route"
        );
    }

    /// How many lines were left out since the last one, if another may be written.
    fn admit(&self, route: RouteId, reason: Reason, now: Mono) -> Option<u32> {
        admit(self.seen.get(usize::from(route.0) * Reason::TOKENS.len() + reason.index())?, now)
    }
}

/// How many lines were left out since the last one, if another may be written.
fn admit(word: &AtomicU64, now: Mono) -> Option<u32> {
    // Only compared with itself: that it wraps after 136 years does not matter.
    let second = (now.as_ns() / 1_000_000_000) as u32;
    let mut admitted = None;
    let _always_updates = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
        let mut seen = Seen::unpack(word);
        if seen.second != second {
            seen = Seen { second, written: 0, left_out: seen.left_out };
        }
        if seen.written < LINES_PER_SECOND {
            admitted = Some(seen.left_out);
            seen.written += 1;
            seen.left_out = 0;
        } else {
            admitted = None;
            seen.left_out = (seen.left_out + 1).min(LEFT_OUT_MAX);
        }
        Some(seen.pack())
    });
    admitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::snapshot::CopyRefusal;

    #[test]
    fn what_is_left_out_is_told_by_the_next_line() {
        let decisions = Decisions::new(SourceMap::default(), 2);
        let at = |ms: u64| Mono::from_ns(ms * 1_000_000);
        let admit = |ms| decisions.admit(RouteId(1), Reason::Incorrect, at(ms));
        for _ in 0..LINES_PER_SECOND {
            assert_eq!(admit(1500), Some(0));
        }
        assert_eq!(admit(1999), None);
        assert_eq!(admit(1999), None);
        let another_reason = Reason::Copy(CopyRefusal::TooOld);
        assert_eq!(decisions.admit(RouteId(1), another_reason, at(1999)), Some(0));
        assert_eq!(decisions.admit(RouteId(0), Reason::Incorrect, at(1999)), Some(0));
        assert_eq!(admit(2000), Some(2));
        assert_eq!(admit(2001), Some(0));
    }
}
