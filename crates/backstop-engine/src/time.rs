//! Time as the engine sees it: handed in, never read.
//!
//! Three readings, each for one purpose:
//! - [`Mono`] counts nanoseconds since boot, suspend included, and is moved by nobody. Deadlines, ages within one
//!   boot and every window are measured with it.
//! - [`Wall`] is the date. It may be stepped at any moment, so it decides only where nothing better exists: the age
//!   of a copy that was written before the last boot.
//! - [`BootId`] tells whether two [`Mono`] readings may be compared at all.

use std::time::Duration;

/// Nanoseconds since this machine booted, time in suspend included (`CLOCK_BOOTTIME` on Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The furthest moment that can be named: 584 years after boot.
    pub const MAX: Mono = Mono(u64::MAX);

    /// A moment `ns` nanoseconds after boot.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since boot.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The moment `duration` later; [`Mono::MAX`] where that cannot be named.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration_ns(duration)))
    }

    /// The moment `duration` earlier; the boot itself where that lies before it.
    #[must_use]
    pub const fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration_ns(duration)))
    }

    /// How long ago `earlier` was, or `None` if it still lies ahead.
    pub const fn since(self, earlier: Mono) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Some(Duration::from_nanos(ns)),
            None => None,
        }
    }

    /// Time left until `later`; zero once it is reached.
    pub const fn until(self, later: Mono) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }
}

/// Nanoseconds since 1970-01-01T00:00:00Z, negative before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(i64);

impl Wall {
    /// A date `ns` nanoseconds after the Unix epoch.
    pub const fn from_unix_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_unix_ns(self) -> i64 {
        self.0
    }

    /// The date `duration` later, clamped to what can be named (year 2262).
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(duration_ns(duration)))
    }

    /// How long before this date `earlier` lies, or `None` if it lies after it.
    pub fn since(self, earlier: Wall) -> Option<Duration> {
        let ns = i128::from(self.0) - i128::from(earlier.0);
        u64::try_from(ns).ok().map(Duration::from_nanos)
    }
}

/// Which boot of the machine a [`Mono`] reading belongs to (`/proc/sys/kernel/random/boot_id` on Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BootId(pub [u8; 16]);

/// Whether the date may decide the age of a copy written before the last boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WallTrust {
    /// The kernel says that the clock is synchronised, and it never ran back behind a date already seen.
    #[default]
    Synchronised,
    /// The kernel does not vouch for the clock (`STA_UNSYNC`).
    Unsynchronised,
    /// The clock shows an earlier date than one that was already seen (the high-water mark).
    RanBack,
}

/// One reading of every clock, taken once per step and passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time since boot.
    pub mono: Mono,
    /// The date.
    pub wall: Wall,
    /// The boot that `mono` counts from.
    pub boot: BootId,
    /// Whether `wall` may be believed across boots.
    pub wall_trust: WallTrust,
}

/// Whole nanoseconds of a duration, clamped to 584 years.
pub(crate) const fn duration_ns(duration: Duration) -> u64 {
    let ns = duration.as_nanos();
    if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mono_arithmetic_saturates_at_both_ends() {
        assert_eq!(Mono::from_ns(5).after(Duration::MAX), Mono::MAX);
        assert_eq!(Mono::from_ns(5).before(Duration::from_nanos(6)), Mono::from_ns(0));
        assert_eq!(Mono::from_ns(5).since(Mono::from_ns(6)), None);
        assert_eq!(Mono::from_ns(6).since(Mono::from_ns(5)), Some(Duration::from_nanos(1)));
        assert_eq!(Mono::from_ns(6).until(Mono::from_ns(5)), Duration::ZERO);
    }

    #[test]
    fn wall_differences_do_not_overflow() {
        assert_eq!(Wall::from_unix_ns(i64::MIN).since(Wall::from_unix_ns(i64::MAX)), None);
        assert_eq!(
            Wall::from_unix_ns(i64::MAX).since(Wall::from_unix_ns(i64::MIN)),
            Some(Duration::from_nanos(u64::MAX))
        );
        assert_eq!(Wall::from_unix_ns(i64::MAX).after(Duration::MAX), Wall::from_unix_ns(i64::MAX));
    }
}
