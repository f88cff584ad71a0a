//! Dates: RFC 3339, a day or a moment. A day counts in UTC, from its first nanosecond to its last.

use backstop_engine::time::Wall;
use toml::de::DeValue;
use toml::value::{Datetime, Offset};

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Node, Shape, Value};

/// A day or a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// As it was written.
    pub(crate) text: Box<str>,
    /// When it begins.
    pub(crate) first: Wall,
    /// When it ends, inclusive.
    pub(crate) last: Wall,
}

const EXPECTED: &str = "a date such as 2026-12-31 or 2026-12-31T18:00:00Z";
const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

impl Value for Date {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let written = match node.get() {
            DeValue::Datetime(date) => Some(*date),
            DeValue::String(text) => match text.parse::<Datetime>() {
                Ok(date) => Some(date),
                Err(_) => {
                    let message = format!("`{text}` is not a date");
                    cx.report(
                        Finding::new(Code::Date, node.bytes(), message).help(format!("write {EXPECTED}")),
                    );
                    return None;
                }
            },
            _ => None,
        };
        let Some(date) = written else {
            cx.report(node.wrong_type(EXPECTED));
            return None;
        };
        let read = from_datetime(&date);
        if read.is_none() {
            let problem = |what: &str| Finding::new(Code::Date, node.bytes(), format!("`{date}` {what}"));
            cx.report(if date.date.is_some() {
                problem("is not one moment: it has no zone")
                    .help("add the zone, such as `Z` for UTC")
                    .fix(node.bytes(), format!("{date}Z"))
            } else {
                problem("is a time without a date").help(format!("write {EXPECTED}"))
            });
        }
        read
    }

    fn shape() -> Shape {
        Shape::Text { name: "RFC 3339 date or date-time", pattern: None }
    }
}

/// The day or moment; `None` for what lacks a date, or a zone beside a time.
fn from_datetime(written: &Datetime) -> Option<Date> {
    let date = written.date?;
    let midnight = days(i128::from(date.year), i128::from(date.month), i128::from(date.day)) * DAY;
    let (first, last) = match (written.time, written.offset) {
        (None, _) => (midnight, midnight + DAY - 1),
        (Some(_), None) => return None,
        (Some(time), Some(offset)) => {
            let minutes = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => i128::from(minutes),
            };
            let second = i128::from(time.second.unwrap_or(0));
            let seconds = i128::from(time.hour) * 3600 + i128::from(time.minute) * 60 + second - minutes * 60;
            let moment = midnight + seconds * SECOND + i128::from(time.nanosecond.unwrap_or(0));
            (moment, moment)
        }
    };
    Some(Date { text: written.to_string().into(), first: wall(first), last: wall(last) })
}

/// The moment so many nanoseconds after 1970, or the furthest that can be named.
fn wall(ns: i128) -> Wall {
    let furthest = if ns < 0 { i64::MIN } else { i64::MAX };
    Wall::from_unix_ns(i64::try_from(ns).unwrap_or(furthest))
}

/// Days from 1970-01-01 in the Gregorian calendar: years begin in March, so that the leap day is their last.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Option<(i64, i64)> {
        let date = from_datetime(&text.parse().ok()?)?;
        Some((date.first.as_unix_ns(), date.last.as_unix_ns()))
    }

    /// Checked with `date -u -d 2024-02-29 +%s` and so on.
    #[test]
    fn days_last_until_their_last_nanosecond() {
        let day = |seconds: i64| Some((seconds * 1_000_000_000, (seconds + 86_400) * 1_000_000_000 - 1));
        assert_eq!(date("1970-01-01"), day(0));
        assert_eq!(date("1969-12-31"), day(-86_400));
        assert_eq!(date("2000-02-29"), day(951_782_400));
        assert_eq!(date("2024-02-29"), day(1_709_164_800));
        assert_eq!(date("2026-11-30"), day(1_795_996_800));
    }

    #[test]
    fn moments_have_a_zone() {
        let moment = |seconds: i64| Some((seconds * 1_000_000_000, seconds * 1_000_000_000));
        assert_eq!(date("1970-01-02T00:00:01Z"), moment(86_401));
        assert_eq!(date("1970-01-01T02:00:00+02:00"), moment(0));
        assert_eq!(date("1970-01-01T00:00:00"), None);
        assert_eq!(date("12:00:00"), None);
        assert_eq!(date("2026-02-30"), None);
        assert_eq!(date("9999-12-31"), Some((i64::MAX, i64::MAX)), "further than can be named");
    }
}
