//! When something was, said so that it can still be said after a restart.

use std::time::Duration;

use crate::time::{BootId, Mono, Now, Wall};

const SECOND_NS: i64 = 1_000_000_000;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Time since boot.
    pub mono: Mono,
    /// The date.
    pub wall: Wall,
    /// The boot that `mono` counts from.
    pub boot: BootId,
}

impl From<Now> for Moment {
    fn from(now: Now) -> Self {
        Self { mono: now.mono, wall: now.wall, boot: now.boot }
    }
}

impl Moment {
    /// How long before this moment `earlier` was. Within one boot the boot-time clock says so, whatever the date does;
    /// across boots only the date is left. What seems to lie ahead was no time ago: a clock that was set back makes no
    /// negative durations.
    pub fn since(&self, earlier: &Moment) -> Duration {
        let passed = if self.boot == earlier.boot {
            self.mono.since(earlier.mono)
        } else {
            self.wall.since(earlier.wall)
        };
        passed.unwrap_or_default()
    }

    /// The date in UTC to the millisecond, rounded down, as RFC 3339 has it: `2026-01-31T23:59:59.999Z`.
    pub fn date(&self) -> String {
        let [year, month, day, hour, minute, second] = self.calendar();
        let ms = self.wall.as_unix_ns().rem_euclid(SECOND_NS) / 1_000_000;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }

    /// The date in UTC as `20260131T235959Z`: sorts by time and stands in file names.
    pub(super) fn compact_date(&self) -> String {
        let [year, month, day, hour, minute, second] = self.calendar();
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    /// Year, month, day, hour, minute and second in UTC.
    fn calendar(&self) -> [i64; 6] {
        const DAY: i64 = 86_400;
        let seconds = self.wall.as_unix_ns().div_euclid(SECOND_NS);
        let (year, month, day) = civil(seconds.div_euclid(DAY));
        let time = seconds.rem_euclid(DAY);
        [year, month, day, time / 3600, time / 60 % 60, time % 60]
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar. Years are counted from March here,
/// so that the leap day is a year's last and the months before it have a regular length: 153 days in each five.
fn civil(day: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    const FROM_MARCH_OF_YEAR_0_TO_1970: i64 = 719_468;
    let day = day + FROM_MARCH_OF_YEAR_0_TO_1970;
    let of_era = day.rem_euclid(DAYS_IN_400_YEARS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + day.div_euclid(DAYS_IN_400_YEARS) * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(seconds: i64) -> String {
        Moment { wall: Wall::from_unix_ns(seconds * 1_000_000_000), ..Moment::default() }.compact_date()
    }

    /// From `date -u -d @N`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let table = [
            (-1, "19691231T235959Z"),
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_799, "20000229T235959Z"),
            (951_868_800, "20000301T000000Z"),
            (1_735_689_599, "20241231T235959Z"),
            (1_772_323_200, "20260301T000000Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ];
        for (seconds, expected) in table {
            assert_eq!(date(seconds), expected, "{seconds}");
        }
    }

    /// From `date -u -d @N`; what is less than a millisecond falls away, towards the past.
    #[test]
    fn a_date_is_shown_to_the_millisecond() {
        let at = |ns| Moment { wall: Wall::from_unix_ns(ns), ..Moment::default() }.date();
        assert_eq!(at(1_772_323_200_000_000_000), "2026-03-01T00:00:00.000Z");
        assert_eq!(at(951_868_799_999_999_999), "2000-02-29T23:59:59.999Z");
        assert_eq!(at(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn durations_are_never_negative() {
        let (a, b) = (BootId([1; 16]), BootId([2; 16]));
        let at =
            |mono, wall, boot| Moment { mono: Mono::from_ns(mono), wall: Wall::from_unix_ns(wall), boot };
        // Same boot: the date is not asked.
        assert_eq!(at(9, -5, a).since(&at(2, 70, a)), Duration::from_nanos(7));
        assert_eq!(at(2, 70, a).since(&at(9, -5, a)), Duration::ZERO);
        // Another boot: only the date is.
        assert_eq!(at(2, 70, b).since(&at(9, -5, a)), Duration::from_nanos(75));
        assert_eq!(at(9, -5, b).since(&at(2, 70, a)), Duration::ZERO);
    }
}
