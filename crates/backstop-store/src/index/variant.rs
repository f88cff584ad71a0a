//! One variant of a key, and where its content is.
//!
//! A variant keeps its identity while its content changes: the disk knows it by `id` alone, so deleting one record
//! always deletes every version of it. What the disk holds may be an older version than what memory holds; should the
//! newer one be lost (pushed out of memory after its write was dropped), the variant falls back to the older one, with
//! the older date.
//!
//! Which of two reads began first is told by the boot-time clock where both began in one boot. Dates of different boots are
//! not compared: either of them may have been wrong, and a copy with a date in the future would be taken for the newest
//! for ever. What was stored later was then read later: what this life stored before what it found, and that in the order of
//! the file.

use std::sync::Arc;

use backstop_engine::snapshot::{CopyFacts, ObservedAt};

use crate::copy::StoredCopy;
use crate::vary::VaryField;

/// The [`order`](Variant::order) of what was stored in this life: after whatever the file held before.
pub(crate) const THIS_LIFE: u64 = u64::MAX;
/// The [`order`](Variant::order) of what an earlier life stored, if no more is known of it.
const EARLIER_LIFE: u64 = 0;

/// One variant of a key.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Its identity in memory and on disk.
    pub(crate) id: u64,
    /// The request fields that select it, sorted by name.
    pub(crate) vary: Box<[VaryField]>,
    /// What is known of its newest content.
    pub(crate) facts: CopyFacts,
    /// Where it stands among reads of other boots: its place in the order of the file it was found in, or [`THIS_LIFE`].
    pub(crate) order: u64,
    /// The generation of the ticket under which it was read.
    pub(crate) generation: u64,
    /// Whether the newest content is in memory.
    pub(crate) resident: bool,
    /// Content on its way to the disk.
    pub(crate) queued: Option<Queued>,
    /// What the disk holds.
    pub(crate) stored: Stored,
}

/// Content on its way to the disk.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) copy: Arc<StoredCopy>,
    /// Whether it still waits; if not, it is being written.
    pub(crate) waiting: bool,
}

/// What the disk holds of a variant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    No,
    /// The newest content.
    Same,
    /// An older version, with these facts.
    Older(Box<CopyFacts>),
}

impl Variant {
    /// Whether its read began after that of `other`.
    pub(crate) fn began_after(&self, other: &Self) -> bool {
        let (own, others) = (&self.facts.observed_at, &other.facts.observed_at);
        if own.boot != others.boot && self.order != other.order {
            return self.order > other.order;
        }
        own.began_after(others)
    }

    /// Whether its read began after one that this life has made. What another boot has read is older than that.
    pub(crate) fn began_after_read(&self, read: &ObservedAt) -> bool {
        self.facts.observed_at.boot == read.boot && self.facts.observed_at.began_after(read)
    }

    /// Whether what the disk turned out to hold is not newer than what is known: it then is an honest answer with its own
    /// date.
    pub(crate) fn covers(&self, read: &CopyFacts) -> bool {
        if self.facts.observed_at.boot == read.observed_at.boot {
            return !read.observed_at.began_after(&self.facts.observed_at);
        }
        self.order == THIS_LIFE
    }

    /// Whether the disk holds it or may come to hold it.
    pub(crate) fn touched_disk(&self) -> bool {
        self.queued.is_some() || self.stored != Stored::No
    }

    /// The facts of new content; what the disk holds becomes an older version.
    pub(crate) fn renew_facts(&mut self, facts: CopyFacts) {
        let old = std::mem::replace(&mut self.facts, facts);
        if self.stored == Stored::Same && old != facts {
            self.stored = Stored::Older(Box::new(old));
        }
    }

    /// Falls back to the newest content that still exists. `false` if there is none.
    pub(crate) fn settle(&mut self) -> bool {
        if self.resident {
            return true;
        }
        if let Some(queued) = &self.queued {
            let facts = queued.copy.facts;
            self.renew_facts(facts);
            return true;
        }
        match std::mem::replace(&mut self.stored, Stored::Same) {
            Stored::Same => true,
            Stored::Older(facts) => {
                if facts.observed_at.boot != self.facts.observed_at.boot {
                    self.order = EARLIER_LIFE;
                }
                self.facts = *facts;
                true
            }
            Stored::No => {
                self.stored = Stored::No;
                false
            }
        }
    }

    /// Takes note of what the disk holds.
    pub(crate) fn set_stored(&mut self, facts: Option<CopyFacts>) {
        self.stored = match facts {
            None => Stored::No,
            Some(facts) if facts == self.facts => Stored::Same,
            Some(facts) => Stored::Older(Box::new(facts)),
        };
    }

    /// The memory that it takes in the index, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.vary.iter().map(VaryField::bytes).sum::<usize>()
    }
}
