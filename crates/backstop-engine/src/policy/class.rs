//! The classes that a route can belong to.

use crate::composed::Composed;

use super::effect::EffectRules;
use super::{CachedRead, Direct, Optional, PublicRead};

/// What a route may become when its dependency fails.
#[derive(Clone, Debug)]
pub enum RouteClass {
    /// No alternative at all.
    Direct(Direct),
    /// The last correct answer, within its age.
    PublicRead(PublicRead),
    /// A shared cache first; what it does not have is read within a budget.
    CachedRead(CachedRead),
    /// Left out, or a general answer prepared beforehand.
    Optional(Optional),
    /// Put together from the answers of other routes.
    Composed(Composed),
    /// A protected operation: no alternative at all, and nobody who was not allowed comes to it.
    Guarded,
    /// An operation with an effect: written down, forwarded at most once, and from then on only asked about.
    Effect(Box<EffectRules>),
}

impl RouteClass {
    /// The class's name in the policy file.
    pub const fn name(&self) -> &'static str {
        match self {
            RouteClass::Direct(_) => "direct",
            RouteClass::PublicRead(_) => "public_read",
            RouteClass::CachedRead(_) => "cached_read",
            RouteClass::Optional(_) => "optional",
            RouteClass::Composed(_) => "composed",
            RouteClass::Guarded => "guarded",
            RouteClass::Effect(_) => "effect",
        }
    }

    /// The largest answer that is held back until it is complete, in bytes. What is larger streams, and is no part of a
    /// composed answer.
    pub const fn buffer_bytes(&self) -> u64 {
        const OTHERS: u64 = 1 << 20;
        match self {
            RouteClass::PublicRead(read) => read.buffer_bytes,
            RouteClass::CachedRead(cached) => cached.read.buffer_bytes,
            RouteClass::Direct(_)
            | RouteClass::Optional(_)
            | RouteClass::Composed(_)
            | RouteClass::Guarded
            | RouteClass::Effect(_) => OTHERS,
        }
    }

    /// The rules of its reads, of a class that keeps them.
    pub const fn read(&self) -> Option<&PublicRead> {
        match self {
            RouteClass::PublicRead(read) => Some(read),
            RouteClass::CachedRead(cached) => Some(&cached.read),
            RouteClass::Direct(_)
            | RouteClass::Optional(_)
            | RouteClass::Composed(_)
            | RouteClass::Guarded
            | RouteClass::Effect(_) => None,
        }
    }

    /// The rules of a shared cache, of a class that has one.
    pub const fn cached(&self) -> Option<&CachedRead> {
        match self {
            RouteClass::CachedRead(cached) => Some(cached),
            RouteClass::Direct(_)
            | RouteClass::PublicRead(_)
            | RouteClass::Optional(_)
            | RouteClass::Composed(_)
            | RouteClass::Guarded
            | RouteClass::Effect(_) => None,
        }
    }

    /// The rules of operations, of a class that has them.
    pub const fn effect(&self) -> Option<&EffectRules> {
        match self {
            RouteClass::Effect(rules) => Some(rules),
            RouteClass::Direct(_)
            | RouteClass::PublicRead(_)
            | RouteClass::CachedRead(_)
            | RouteClass::Optional(_)
            | RouteClass::Composed(_)
            | RouteClass::Guarded => None,
        }
    }

    /// Whether the last correct answer may stand in.
    pub const fn keeps_copies(&self) -> bool {
        match self {
            RouteClass::PublicRead(_) => true,
            RouteClass::CachedRead(cached) => cached.local_copy,
            RouteClass::Direct(_)
            | RouteClass::Optional(_)
            | RouteClass::Composed(_)
            | RouteClass::Guarded
            | RouteClass::Effect(_) => false,
        }
    }
}
