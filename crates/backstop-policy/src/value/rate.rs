//! Rates: `"2000/s"`, `"600/m"`.

use std::time::Duration;

use crate::code::Code;
use crate::read::{Fault, Scalar, with_units};
use crate::value::number::{NotDecimal, decimal};

/// So many per second or per minute, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How many.
    pub(crate) count: u32,
    /// In which time: a second or a minute.
    pub(crate) per: Duration,
}

const RATE: &str = "a rate such as \"2000/s\" or \"600/m\"";
const RATE_UNITS: [&str; 2] = ["/s", "/m"];

impl Scalar for Rate {
    const EXPECTED: &'static str = RATE;
    const NAME: &'static str = "rate";
    const PATTERN: Option<&'static str> = Some("^[0-9]*[1-9][0-9]* ?/ ?(s|m)$");
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = Some((Code::Rate, RATE_UNITS));

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::Rate, message);
        let end = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, rest) = text.split_at(end);
        let unit = rest.trim().strip_prefix('/').map(str::trim_start);
        if decimal(number, 9).is_err_and(|error| error == NotDecimal::Malformed) {
            return Err(invalid(format!("`{text}` is not a rate")).help(format!("write {RATE}")));
        }
        let per = match unit {
            Some("s") => Duration::from_secs(1),
            Some("m") => Duration::from_secs(60),
            _ if rest.is_empty() => {
                return Err(invalid(format!("`{text}` has no unit")).help(with_units(number, RATE_UNITS)));
            }
            _ => return Err(unknown_unit(number, rest.trim())),
        };
        match decimal(number, 0) {
            Ok(0) => Err(Fault::new(Code::Zero, "the rate must be greater than zero")),
            Ok(count) if count <= u64::from(u32::MAX) => {
                Ok(Rate { count: u32::try_from(count).unwrap_or(u32::MAX), per })
            }
            Err(NotDecimal::TooPrecise | NotDecimal::Malformed) => Err(per_minute(
                invalid("a rate is a whole number per second or minute".to_owned()),
                number,
                per,
            )),
            Ok(_) | Err(NotDecimal::TooLarge) => {
                Err(Fault::new(Code::OutOfRange, format!("`{text}` is more than {} at a time", u32::MAX)))
            }
        }
    }
}

/// `0.5/s` as `30/m`, if that is exact.
fn per_minute(fault: Fault, number: &str, per: Duration) -> Fault {
    let exact = decimal(number, 3).ok().and_then(|thousandths| thousandths.checked_mul(60));
    match exact.filter(|exact| per == Duration::from_secs(1) && *exact > 0 && exact % 1000 == 0) {
        Some(exact) => fault.instead(format!("{}/m", exact / 1000)),
        None => fault.help(format!("write {RATE}")),
    }
}

fn unknown_unit(number: &str, rest: &str) -> Fault {
    let fault = Fault::new(Code::Rate, format!("unknown unit `{rest}`"));
    let word = rest.trim_start_matches("per ").trim_start_matches(['/', ' ']).to_ascii_lowercase();
    match word.as_str() {
        "s" | "sec" | "second" | "rps" | "qps" | "tps" => fault.instead(format!("{number}/s")),
        "m" | "min" | "minute" | "rpm" | "qpm" => fault.instead(format!("{number}/m")),
        _ => fault.help("the units are `/s` and `/m`"),
    }
}

impl Rate {
    /// How many per second, rounded down: never more than was written.
    pub(crate) fn per_second(self) -> u64 {
        u64::from(self.count) / self.per.as_secs().max(1)
    }

    /// Whether [`Rate::per_second`] is exact.
    pub(crate) fn is_whole_per_second(self) -> bool {
        u64::from(self.count).is_multiple_of(self.per.as_secs().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Rate, String> {
        Rate::parse(text).map_err(|fault| fault.message)
    }

    fn instead(text: &str) -> Option<String> {
        Rate::parse(text).unwrap_err().instead
    }

    #[test]
    fn rates_are_whole_numbers_per_second_or_minute() {
        let rate = |count, secs| Ok(Rate { count, per: Duration::from_secs(secs) });
        for (text, expected) in [("2000/s", rate(2000, 1)), ("30/m", rate(30, 60)), ("1 / s", rate(1, 1))] {
            assert_eq!(parsed(text), expected, "{text}");
        }
        for text in ["", "/s", "2000", "0/s", "1.5/s", "2000/d", "2000s", "-1/s", "4294967296/s", "1.2.3/s"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        for (written, instead_of) in [("1.5/s", "90/m"), ("20rps", "20/s"), ("20 per minute", "20/m")] {
            assert_eq!(instead(written).as_deref(), Some(instead_of), "{written}");
        }
        assert_eq!(instead("2000"), None, "a unit is never guessed");
        let per_minute = |count| Rate { count, per: Duration::from_secs(60) };
        assert_eq!([59, 60, 119, 120].map(|count| per_minute(count).per_second()), [0, 1, 1, 2]);
        assert_eq!([60, 119].map(|count| per_minute(count).is_whole_per_second()), [true, false]);
    }
}
