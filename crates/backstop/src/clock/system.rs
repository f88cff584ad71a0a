use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use backstop_engine::time::{BootId, Mono, Now, Wall, WallTrust};
use rtime_clock::adjtime::{Timex, adjtimex};
use rustix::time::{ClockId, Timespec, clock_gettime};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The clocks of this machine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The file cannot be read.
    #[error("cannot read the boot identity from {BOOT_ID}")]
    Read(#[source] io::Error),
    /// The file holds something else.
    #[error("{BOOT_ID} holds no UUID: {0:?}")]
    NotAUuid(String),
}

#[derive(Debug)]
pub(super) struct SystemClock {
    boot: BootId,
    synchronised: AtomicBool,
}

impl SystemClock {
    pub(super) fn new() -> Result<Self, ClockError> {
        let text = std::fs::read_to_string(BOOT_ID).map_err(ClockError::Read)?;
        let boot = parse_uuid(&text).ok_or(ClockError::NotAUuid(text))?;
        let clock = Self { boot, synchronised: AtomicBool::new(false) };
        clock.refresh_synchronised();
        Ok(clock)
    }

    pub(super) fn mono(&self) -> Mono {
        // Neither field of a boot-time reading is negative.
        Mono::from_ns(u64::try_from(nanoseconds(clock_gettime(ClockId::Boottime))).unwrap_or(0))
    }

    pub(super) fn now(&self) -> Now {
        let wall_trust = if self.synchronised.load(Ordering::Relaxed) {
            WallTrust::Synchronised
        } else {
            WallTrust::Unsynchronised
        };
        let wall = Wall::from_unix_ns(nanoseconds(clock_gettime(ClockId::Realtime)));
        Now { mono: self.mono(), wall, boot: self.boot, wall_trust }
    }

    /// Asks the kernel (`adjtimex(2)`, read only) whether it holds the date for synchronised.
    pub(super) fn refresh_synchronised(&self) {
        const TIME_ERROR: i32 = 5;
        let synchronised = adjtimex(&mut Timex::new()).is_ok_and(|state| state != TIME_ERROR);
        self.synchronised.store(synchronised, Ordering::Relaxed);
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

fn parse_uuid(text: &str) -> Option<BootId> {
    let digits: Vec<u8> = text.trim().bytes().filter(|byte| *byte != b'-').collect();
    let digits: &[u8; 32] = digits.as_slice().try_into().ok()?;
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(BootId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_identity_is_a_uuid() {
        let id = parse_uuid("00112233-4455-6677-8899-aabbccddeeff\n").unwrap();
        assert_eq!(id.0[..3], [0x00, 0x11, 0x22]);
        assert_eq!(id.0[15], 0xff);
        for wrong in
            ["", "00112233", "zz112233-4455-6677-8899-aabbccddeeff", "+0112233-4455-6677-8899-aabbccddeef"]
        {
            assert_eq!(parse_uuid(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn time_since_boot_never_runs_back() {
        let clock = SystemClock::new().unwrap();
        let mut last = clock.mono();
        for _ in 0..1000 {
            let next = clock.mono();
            assert!(next >= last);
            last = next;
        }
        assert!(last.as_ns() > 0);
    }
}
