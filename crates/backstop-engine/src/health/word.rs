//! The state in one word, so that every change sees every other.
//!
//! Generation (32 bits), kind (4), order (2), moving (1), probe successes (8), probe slots (16). A new generation
//! begins with every change of kind and takes nothing of the old one along: slots and successes are empty.
//!
//! *Moving* is a right, not a lock: whoever sets it alone may write the facts beside the word, and ends with the next
//! word. Nobody waits for it; who does not get it goes on with the state as it is. An *order* (forced open, forced
//! closed, release) that meets a moving word is left in it; whoever is moving carries it out.

use crate::sync::{AtomicU64, Ordering};

/// Slots for probes.
pub(super) const SLOTS: u32 = 16;

const GENERATION_AT: u32 = 32;
const KIND_AT: u32 = 28;
const ORDER_AT: u32 = 26;
const MOVING: u64 = 1 << 25;
const SUCCESS_AT: u32 = SLOTS;
const ONE_SUCCESS: u64 = 1 << SUCCESS_AT;

/// What a dependency is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Closed = 0,
    Open = 1,
    HalfOpen = 2,
    Ramp = 3,
    Watch = 4,
    ForcedOpen = 5,
    ForcedClosed = 6,
}

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Open = 1,
    Closed = 2,
    Release = 3,
}

impl Order {
    pub(super) fn kind(self) -> Kind {
        match self {
            Order::Open => Kind::ForcedOpen,
            Order::Closed => Kind::ForcedClosed,
            Order::Release => Kind::Closed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    pub(super) const fn new(generation: u32, kind: Kind) -> Self {
        Self(((generation as u64) << GENERATION_AT) | ((kind as u64) << KIND_AT))
    }

    pub(super) fn generation(self) -> u32 {
        (self.0 >> GENERATION_AT) as u32
    }

    /// What the word says, an order that is still to be carried out aside.
    pub(super) fn settled(self) -> Kind {
        match (self.0 >> KIND_AT) & 0xf {
            1 => Kind::Open,
            2 => Kind::HalfOpen,
            3 => Kind::Ramp,
            4 => Kind::Watch,
            5 => Kind::ForcedOpen,
            6 => Kind::ForcedClosed,
            _ => Kind::Closed,
        }
    }

    /// What holds: an order at once, also before it is carried out.
    pub(super) fn kind(self) -> Kind {
        self.order().map_or(self.settled(), Order::kind)
    }

    pub(super) fn order(self) -> Option<Order> {
        match (self.0 >> ORDER_AT) & 3 {
            1 => Some(Order::Open),
            2 => Some(Order::Closed),
            3 => Some(Order::Release),
            _ => None,
        }
    }

    pub(super) fn with_order(self, order: Order) -> Self {
        Self((self.0 & !(3 << ORDER_AT)) | ((order as u64) << ORDER_AT))
    }

    /// The first state of the next generation.
    pub(super) fn next(self, kind: Kind) -> Self {
        Self::new(self.generation().wrapping_add(1), kind)
    }

    pub(super) fn is_moving(self) -> bool {
        self.0 & MOVING != 0
    }

    pub(super) fn moving(self) -> Self {
        Self(self.0 | MOVING)
    }

    pub(super) fn still(self) -> Self {
        Self(self.0 & !MOVING)
    }

    pub(super) fn slots(self) -> u32 {
        self.0 as u32 & ((1 << SLOTS) - 1)
    }

    /// The first slot that is free, of this many.
    pub(super) fn free_slot(self, of: u32) -> Option<u32> {
        let slot = self.slots().trailing_ones();
        (slot < of.min(SLOTS)).then_some(slot)
    }

    pub(super) fn with_slot(self, slot: u32) -> Self {
        Self(self.0 | (1 << slot))
    }

    pub(super) fn without_slot(self, slot: u32) -> Self {
        Self(self.0 & !(1 << slot))
    }

    pub(super) fn successes(self) -> u32 {
        ((self.0 >> SUCCESS_AT) & 0xff) as u32
    }

    pub(super) fn with_success(self) -> Self {
        if self.successes() < 0xff { Self(self.0 + ONE_SUCCESS) } else { self }
    }
}

/// The word where it is kept.
pub(super) struct State(AtomicU64);

impl State {
    /// The first generation.
    pub(super) fn new(kind: Kind) -> Self {
        Self(AtomicU64::new(Word::new(0, kind).0))
    }

    pub(super) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Replaces `from` if it is still there.
    pub(super) fn replace(&self, from: Word, to: Word) -> bool {
        self.0.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Changes the word within one generation: what it was and what it is. `None` if the generation is over, or if
    /// there is nothing to change.
    pub(super) fn within(
        &self,
        generation: u32,
        change: impl Fn(Word) -> Option<Word>,
    ) -> Option<(Word, Word)> {
        loop {
            let word = self.load();
            if word.generation() != generation {
                return None;
            }
            let to = change(word)?;
            if self.replace(word, to) {
                return Some((word, to));
            }
        }
    }

    /// Takes the right to move on from this generation. Whoever gets it ends with the next word.
    pub(super) fn take(&self, generation: u32) -> bool {
        let taken = |word: Word| (!word.is_moving()).then(|| word.moving());
        self.within(generation, taken).is_some()
    }
}
