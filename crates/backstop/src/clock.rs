//! The clocks that the engine's time is taken from.
//!
//! - [`Clock::system`] reads `CLOCK_BOOTTIME` (it goes on in suspend and no step moves it), `CLOCK_REALTIME`, the boot
//!   identity and the kernel's word on synchronisation.
//! - [`Clock::manual`] stands still until it is told to move, in any direction, and wakes whoever sleeps on it. Tests
//!   and simulations use it; so does the binary when it is built with `test-hooks`.
//!
//! Whether the date ran back is decided here, against the *high-water mark*: the latest date ever seen, which a store
//! keeps across restarts.

mod manual;
mod sleep;
mod system;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backstop_engine::time::{Mono, Now, Wall, WallTrust};

pub use manual::ManualClock;
pub use sleep::Sleep;
pub use system::ClockError;

/// A clock, cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock {
    face: Face,
    high_water_ns: Arc<AtomicI64>,
}

#[derive(Clone, Debug)]
enum Face {
    System(Arc<system::SystemClock>),
    Manual(ManualClock),
}

impl Clock {
    /// The machine's own clocks.
    ///
    /// # Errors
    /// If the boot identity cannot be read: without it no copy could be dated across restarts.
    pub fn system() -> Result<Self, ClockError> {
        Ok(Self::of(Face::System(Arc::new(system::SystemClock::new()?))))
    }

    /// A clock that moves only when it is told to.
    pub fn manual(start: Now) -> (Self, ManualClock) {
        let manual = ManualClock::new(start);
        (Self::of(Face::Manual(manual.clone())), manual)
    }

    /// The clock that a [`ManualClock`] drives.
    pub fn driven_by(manual: &ManualClock) -> Self {
        Self::of(Face::Manual(manual.clone()))
    }

    fn of(face: Face) -> Self {
        Self { face, high_water_ns: Arc::new(AtomicI64::new(i64::MIN)) }
    }

    /// Every clock at once.
    pub fn now(&self) -> Now {
        let mut now = match &self.face {
            Face::System(system) => system.now(),
            Face::Manual(manual) => manual.now(),
        };
        if now.wall.as_unix_ns() < self.high_water_ns.load(Ordering::Relaxed) {
            now.wall_trust = WallTrust::RanBack;
        }
        now
    }

    /// Time since boot alone.
    pub fn mono(&self) -> Mono {
        match &self.face {
            Face::System(system) => system.mono(),
            Face::Manual(manual) => manual.now().mono,
        }
    }

    /// Waits until the given moment has come, and not a nanosecond less.
    pub fn sleep_until(&self, at: Mono) -> Sleep {
        match &self.face {
            Face::System(system) => Sleep::system(Arc::clone(system), at),
            Face::Manual(manual) => Sleep::manual(manual.clone(), at),
        }
    }

    /// Raises the high-water mark to a date that was seen earlier, such as the one that a store kept.
    pub fn raise_high_water(&self, seen: Wall) {
        self.high_water_ns.fetch_max(seen.as_unix_ns(), Ordering::Relaxed);
    }

    /// Asks the kernel anew whether the date is synchronised, and raises the high-water mark to the present date unless
    /// the clock ran back. To be called about once a second; nothing on a request's path does.
    pub fn refresh(&self) -> Now {
        if let Face::System(system) = &self.face {
            system.refresh_synchronised();
        }
        let now = self.now();
        // A date that the kernel does not vouch for must not become the mark by which true dates are refused.
        if now.wall_trust == WallTrust::Synchronised {
            self.raise_high_water(now.wall);
        }
        now
    }
}
