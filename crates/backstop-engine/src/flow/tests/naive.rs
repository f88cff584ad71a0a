//! What requests take and leave, in plain counters: places by class, rates, what pays for retries, what is heard of a
//! database.

use std::collections::BTreeMap;

use crate::admission::ClassShare;
use crate::health::tests::{Admitted, Begun, Fate, Reference, Seen};

use super::support::{MS, SECOND};

/// The largest whole number below the class's percentage, but at least one place; effects may use all.
pub(super) fn share_of(class: ClassShare, places: u32) -> u32 {
    let percent = match class {
        ClassShare::Optional => 60,
        ClassShare::Read => 85,
        ClassShare::Guarded => 95,
        ClassShare::Effect => return places,
    };
    let below = (0..=places).rev().find(|n| n * 100 < percent * places);
    below.unwrap_or(0).max(1.min(places))
}

/// So many per second, each an interval apart, and so many at once.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) per_second: u64,
    pub(super) burst: u64,
    due: u64,
}

impl Pace {
    pub(super) const fn new(per_second: u64, burst: u64) -> Self {
        Self { per_second, burst, due: 0 }
    }

    pub(super) fn may(&self, now: u64) -> bool {
        let interval = SECOND / self.per_second;
        self.due.max(now) + interval - now <= self.burst * interval
    }

    /// What it was, and what it is now.
    pub(super) fn take(&mut self, now: u64) -> (u64, u64) {
        let before = self.due;
        self.due = self.due.max(now) + SECOND / self.per_second;
        (before, self.due)
    }

    /// What was taken comes back, if nobody has taken since.
    pub(super) fn put_back(&mut self, (before, after): (u64, u64)) {
        if self.due == after {
            self.due = before;
        }
    }
}

/// Something shared.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) places: Option<u32>,
    pub(super) pace: Option<Pace>,
    pub(super) in_use: u32,
    /// Every wait that was told, and when.
    pub(super) waits: Vec<(u64, u64)>,
    /// When the latest call began that told one, and the latest that was not answered in time.
    pub(super) told: u64,
    pub(super) late: u64,
}

impl Shared {
    pub(super) const fn new(places: Option<u32>, pace: Option<Pace>) -> Self {
        Self { places, pace, in_use: 0, waits: Vec::new(), told: 0, late: 0 }
    }

    pub(super) fn may(&self, class: ClassShare, now: u64) -> bool {
        self.pace.as_ref().is_none_or(|pace| pace.may(now))
            && self.places.is_none_or(|places| self.in_use < share_of(class, places))
    }

    pub(super) fn take(&mut self, now: u64) {
        self.in_use += 1;
        if let Some(pace) = &mut self.pace {
            pace.take(now);
        }
    }

    /// Thousandths of its places, without so many of one's own.
    pub(super) fn per_mille_besides(&self, own: u32) -> u64 {
        match self.places {
            None => 0,
            Some(0) => 1000,
            Some(places) => u64::from(self.in_use.saturating_sub(own)) * 1000 / u64::from(places),
        }
    }

    /// Nearly full, or what the longest wait says that was told in the last second that told any, or in the two before
    /// that. Nothing is known if nobody told one for ten seconds, a second counting from its beginning, or if a call was
    /// late and none was answered that began after it.
    pub(super) fn trouble(&self, now: u64) -> Heard {
        if self.per_mille_besides(0) > 900 {
            return Heard::Trouble;
        }
        let Some(last) = self.waits.last().map(|(at, _)| at / SECOND) else { return Heard::Nothing };
        if now / SECOND - last >= 10 || self.late > 0 && self.told <= self.late {
            return Heard::Nothing;
        }
        let within = self.waits.iter().filter(|(at, _)| at / SECOND + 2 >= last);
        let longest = within.map(|(_, wait)| *wait).max().unwrap_or(0);
        if longest > 20 * MS { Heard::Trouble } else { Heard::Fine }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    Trouble,
    Fine,
}

/// What a measurement allows.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) concurrency: u32,
    pub(super) in_flight: u32,
    pub(super) pace: Pace,
    /// The first and the last date at which it counts.
    pub(super) valid_ns: (i64, i64),
}

impl Evidence {
    /// A date that cannot be believed judges nothing.
    pub(super) fn counts(&self, (date_ns, is_synchronised): (i64, bool)) -> bool {
        is_synchronised && self.valid_ns.0 <= date_ns && date_ns <= self.valid_ns.1
    }
}

/// One dependency's numbers.
pub(super) struct Calls {
    pub(super) places: u32,
    pub(super) queue_ns: u64,
    pub(super) uses: Vec<usize>,
    pub(super) in_flight: u32,
    /// By class.
    pub(super) waiting: [u32; 4],
    pub(super) wake_ups: u32,
    pub(super) attempts: u64,
    pub(super) answers: u64,
    pub(super) abandoned: u64,
    /// Calls that were allowed and then not begun.
    pub(super) not_begun: u64,
    pub(super) late: u64,
    pub(super) failures: BTreeMap<&'static str, u64>,
    /// Only where there is a breaker.
    pub(super) health: Option<Reference>,
    /// Tenths of a retry.
    pub(super) saved: u64,
    pub(super) retries: u32,
    pub(super) retries_made: u64,
    pub(super) evidence: Option<Evidence>,
}

impl Calls {
    pub(super) fn new(places: u32, queue_ns: u64) -> Self {
        Self {
            places,
            queue_ns,
            uses: Vec::new(),
            in_flight: 0,
            waiting: [0; 4],
            wake_ups: 0,
            attempts: 0,
            answers: 0,
            abandoned: 0,
            not_begun: 0,
            late: 0,
            failures: BTreeMap::new(),
            health: None,
            saved: 30,
            retries: 0,
            retries_made: 0,
            evidence: None,
        }
    }

    pub(super) fn wake(&mut self) {
        self.wake_ups += u32::from(self.waiting.iter().any(|&waiting| waiting > 0));
    }

    /// Nobody of this class or of a higher one waits, and of the class's share one is free.
    pub(super) fn is_free_for(&self, class: ClassShare) -> bool {
        self.waiting[class as usize..].iter().all(|&waiting| waiting == 0) && self.has_place(class)
    }

    pub(super) fn has_place(&self, class: ClassShare) -> bool {
        self.in_flight < share_of(class, self.places)
    }

    pub(super) fn leave_queue(&mut self, class: ClassShare) {
        self.waiting[class as usize] -= 1;
        self.wake();
    }

    pub(super) fn give_back(&mut self) {
        self.in_flight -= 1;
        self.wake();
    }

    pub(super) fn fail(&mut self, word: &'static str) {
        *self.failures.entry(word).or_default() += 1;
    }

    /// A call went well: a tenth of a retry, up to ten.
    pub(super) fn pay_in(&mut self) {
        self.saved = (self.saved + 1).min(100);
    }

    /// A retry that was paid for is not made after all.
    pub(super) fn pay_back(&mut self) {
        self.saved = (self.saved + 10).min(100);
        self.retries_made -= 1;
    }

    /// Whether another retry has a place, a fifth of the calls and at least one, and can be paid.
    pub(super) fn may_retry(&self) -> bool {
        self.retries < (self.in_flight / 5).max(1) && self.saved >= 10
    }

    pub(super) fn would_pass(&mut self, now: u64, safe: bool) -> bool {
        self.health.as_mut().is_none_or(|health| health.would_pass(now / MS, safe))
    }

    /// Why it is not asked.
    pub(super) fn held_off(&self) -> &'static str {
        match self.health.as_ref().map(|health| health.state) {
            Some(Seen::Ramp { .. }) => "ramping",
            _ => "breaker_open",
        }
    }

    /// Whether it is closed, or has been watched for ten seconds.
    pub(super) fn is_well(&mut self, now: u64) -> bool {
        match self.health.as_mut().map(|health| health.look(now / MS)) {
            None | Some(Seen::Closed | Seen::ForcedClosed) => true,
            Some(Seen::Watch { until }) => until * MS <= now + 50 * SECOND,
            Some(_) => false,
        }
    }

    pub(super) fn end(&mut self, ticket: Option<Admitted>, fate: Fate, now: u64) {
        if let (Some(health), Some(ticket)) = (&mut self.health, ticket) {
            health.end(ticket, fate, now / MS);
        }
    }

    /// The answer goes to the client as it comes.
    pub(super) fn began(
        &mut self,
        ticket: Option<Admitted>,
        well: bool,
        has_body: bool,
        now: u64,
    ) -> Option<Begun> {
        let (health, ticket) = (self.health.as_mut()?, ticket?);
        if ticket.is_probe || !has_body {
            return Some(health.counts_now(ticket, well, now / MS)).filter(|_| has_body);
        }
        Some(health.began(ticket, well, now / MS))
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}
