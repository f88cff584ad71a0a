//! Durations: a whole number and one of `ns us ms s m h`, such as `"300ms"`; a bare `"0"` needs no unit.

use std::time::Duration;

use crate::code::Code;
use crate::read::{Fault, Scalar, with_units};

/// A duration of zero, or at least [`SHORTEST`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Time(pub(crate) Duration);

/// A duration of at least [`SHORTEST`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PositiveTime(pub(crate) Duration);

const EXPECTED: &str = "a duration such as \"300ms\" (units ns, us, ms, s, m, h)";
const BARE_NUMBER: Option<(Code, [&str; 2])> = Some((Code::Duration, LIKELY_UNITS));
const LIKELY_UNITS: [&str; 2] = ["ms", "s"];
const PATTERN: Option<&str> = Some("^([0-9]+ ?(ns|us|µs|ms|s|m|h)|0)$");
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Timers count milliseconds: what is shorter could not be told from nothing.
const SHORTEST: Duration = Duration::from_millis(1);
/// A year: whatever is longer is a slip.
const LONGEST_NS: u64 = 365 * 24 * 3_600_000_000_000;

impl Scalar for Time {
    const EXPECTED: &'static str = EXPECTED;
    const NAME: &'static str = "duration";
    const PATTERN: Option<&'static str> = PATTERN;
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = BARE_NUMBER;

    fn parse(text: &str) -> Result<Self, Fault> {
        match parse(text)? {
            duration if duration.is_zero() => Ok(Time(duration)),
            duration => long_enough(text, duration).map(Time),
        }
    }
}

impl Scalar for PositiveTime {
    const EXPECTED: &'static str = EXPECTED;
    const NAME: &'static str = "duration from 1 ms";
    const PATTERN: Option<&'static str> = PATTERN;
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = BARE_NUMBER;

    fn parse(text: &str) -> Result<Self, Fault> {
        match parse(text)? {
            Duration::ZERO => Err(Fault::new(Code::Zero, "the duration must be greater than zero")),
            duration => long_enough(text, duration).map(PositiveTime),
        }
    }
}

fn long_enough(text: &str, duration: Duration) -> Result<Duration, Fault> {
    if duration < SHORTEST {
        return Err(Fault::new(Code::OutOfRange, format!("`{text}` is too short: at least 1ms")));
    }
    Ok(duration)
}

fn parse(text: &str) -> Result<Duration, Fault> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let invalid = |message: String| Fault::new(Code::Duration, message);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let unit = rest.strip_prefix(' ').unwrap_or(rest);
    if number.is_empty() {
        return Err(invalid(format!("`{text}` is not a duration")).help(format!("write {EXPECTED}")));
    }
    if let Some(fraction) = unit.strip_prefix('.') {
        let fault = invalid("a duration is a whole number and a unit".to_owned());
        return Err(match without_fraction(number, fraction) {
            Some(exact) if parse(&exact).is_ok_and(|exact| exact >= SHORTEST) => fault.instead(exact),
            _ => fault.help(format!("write {EXPECTED}")),
        });
    }
    let Some(&(_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        if unit.is_empty() {
            return Err(invalid(format!("`{text}` has no unit")).help(with_units(number, LIKELY_UNITS)));
        }
        let fault = invalid(format!("unknown unit `{unit}`")).part(text.len() - unit.len()..text.len());
        return Err(match meant_unit(number, unit) {
            Some(meant) => fault.instead(meant),
            None => fault.help("the units are ns, us, ms, s, m and h; one per duration"),
        });
    };
    let ns = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ns));
    match ns {
        Some(ns) if ns <= LONGEST_NS => Ok(Duration::from_nanos(ns)),
        _ => Err(Fault::new(Code::OutOfRange, format!("`{text}` is longer than a year"))),
    }
}

/// A duration as a policy writes one; `None` if the text is none.
pub fn duration(text: &str) -> Option<Duration> {
    parse(text).ok()
}

/// A duration as a policy writes it: a whole number of the largest unit that it is made of.
pub(crate) fn time_text(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let is_whole = |(name, unit): &&(&str, u64)| name.is_ascii() && ns.is_multiple_of(u128::from(*unit));
    match UNITS.iter().rev().find(is_whole) {
        Some((name, unit)) if ns > 0 => format!("{}{name}", ns / u128::from(*unit)),
        _ => "0".to_owned(),
    }
}

/// `1.5s` as `1500ms`, if that is exact.
fn without_fraction(whole: &str, fraction_and_unit: &str) -> Option<String> {
    let digits = fraction_and_unit.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, unit) = fraction_and_unit.split_at(digits);
    let (smaller, factor) = match unit.trim_start() {
        "us" | "µs" => ("ns", 1000),
        "ms" => ("us", 1000),
        "s" => ("ms", 1000),
        "m" => ("s", 60),
        "h" => ("m", 60),
        _ => return None,
    };
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(factor)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    (part % scale == 0).then(|| format!("{}{smaller}", whole.saturating_add(part / scale)))
}

fn meant_unit(number: &str, unit: &str) -> Option<String> {
    let meant = match unit.to_ascii_lowercase().as_str() {
        "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" | "h" => "h",
        "d" | "day" | "days" => {
            return number.parse::<u64>().ok()?.checked_mul(24).map(|hours| format!("{hours}h"));
        }
        "usec" | "micros" | "microseconds" => "us",
        "nanos" | "nanoseconds" => "ns",
        _ => return None,
    };
    Some(format!("{number}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_numbers_with_one_unit() {
        for (text, ns) in
            [("0", 0), ("0ms", 0), ("7ns", 7), ("7us", 7_000), ("7µs", 7_000), ("300 ms", 300_000_000)]
        {
            assert_eq!(parse(text).map_err(|fault| fault.message), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in
            ["", "ms", "-1s", "1", "1 s ", "1d", "1m30s", "1.5s", "9000h", "99999999999999999999ns", "１s"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn is_told_as_a_policy_writes_it() {
        for (ns, text) in [
            (0, "0"),
            (1, "1ns"),
            (1_500, "1500ns"),
            (7_000, "7us"),
            (999_000_000, "999ms"),
            (1_500_000_000, "1500ms"),
            (59_000_000_000, "59s"),
            (60_000_000_000, "1m"),
            (61_000_000_000, "61s"),
            (3_600_000_000_000, "1h"),
            (5_400_000_000_000, "90m"),
            (2_592_000_000_000_000, "720h"),
        ] {
            assert_eq!(time_text(Duration::from_nanos(ns)), text);
            assert_eq!(parse(text).ok(), Some(Duration::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn proposes_what_was_meant() {
        let instead = |text: &str| parse(text).err().and_then(|fault| fault.instead);
        assert_eq!(instead("300"), None, "a unit is never guessed");
        assert_eq!(instead("300 msec").as_deref(), Some("300ms"));
        assert_eq!(instead("2days").as_deref(), Some("48h"));
        assert_eq!(instead("1.5s").as_deref(), Some("1500ms"));
        assert_eq!(instead("1.25m").as_deref(), Some("75s"));
        assert_eq!(instead("0.0001m"), None);
        assert_eq!(instead("1.5ms").as_deref(), Some("1500us"));
        assert_eq!(instead("0.5ms"), None, "what would be refused is not proposed");
        assert_eq!(instead("3fortnights"), None);
    }
}
