//! Percentages: `"50%"`, `"0.5%"`.

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::value::number::{NotDecimal, decimal, thousandths_text};

/// A share from 0 to 100 %, in per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Percent(pub(crate) u16);

/// A share from 0.1 to 100 %, in per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PositivePercent(pub(crate) u16);

const PERCENT: &str = "a percentage such as \"50%\"";
const PERCENT_PATTERN: Option<&str> = Some("^[0-9]+([.][0-9]0*)? ?%$");

impl Scalar for Percent {
    const EXPECTED: &'static str = PERCENT;
    const NAME: &'static str = "percentage";
    const PATTERN: Option<&'static str> = PERCENT_PATTERN;

    fn parse(text: &str) -> Result<Self, Fault> {
        percent(text).map(Percent)
    }

    fn from_number(written: &str) -> Option<Result<Self, Fault>> {
        Some(Err(without_sign(written)))
    }
}

impl Scalar for PositivePercent {
    const EXPECTED: &'static str = PERCENT;
    const NAME: &'static str = "percentage above 0";
    const PATTERN: Option<&'static str> = PERCENT_PATTERN;

    fn parse(text: &str) -> Result<Self, Fault> {
        match percent(text)? {
            0 => Err(Fault::new(Code::Zero, "the percentage must be greater than zero")),
            per_mille => Ok(PositivePercent(per_mille)),
        }
    }

    fn from_number(written: &str) -> Option<Result<Self, Fault>> {
        Some(Err(without_sign(written)))
    }
}

fn percent(text: &str) -> Result<u16, Fault> {
    let invalid = |message: String| Fault::new(Code::Percent, message);
    let Some(number) = text.strip_suffix('%') else { return Err(without_sign(text)) };
    match decimal(number.strip_suffix(' ').unwrap_or(number), 1) {
        Ok(per_mille) if per_mille <= 1000 => Ok(u16::try_from(per_mille).unwrap_or(1000)),
        Ok(_) | Err(NotDecimal::TooLarge) => {
            Err(Fault::new(Code::OutOfRange, format!("`{text}` is more than the whole"))
                .help("a percentage lies between 0 % and 100 %"))
        }
        Err(NotDecimal::TooPrecise) => {
            Err(invalid("a percentage has at most one decimal, such as \"0.5%\"".to_owned()))
        }
        Err(NotDecimal::Malformed) => {
            Err(invalid(format!("`{text}` is not a percentage")).help(format!("write {PERCENT}")))
        }
    }
}

/// A number without `%`: 50 can only mean one thing, 0.5 may be a half or half a percent.
fn without_sign(text: &str) -> Fault {
    let fault = |message: String| Fault::new(Code::Percent, message);
    match decimal(text, 3) {
        Ok(thousandths @ 1..=1000) => {
            let (as_share, as_percent) = (thousandths_text(thousandths * 100), thousandths_text(thousandths));
            fault(format!("`{text}` has no `%`"))
                .help(format!("write `\"{as_share}%\"` or `\"{as_percent}%\"`, whichever is meant"))
        }
        Ok(_) => fault(format!("`{text}` has no `%`")).instead(format!("{text}%")),
        Err(_) => fault(format!("`{text}` is not a percentage")).help(format!("write {PERCENT}")),
    }
}

/// Per mille as a percentage: `0.5%` for 5.
pub(crate) fn percent_text(per_mille: u16) -> String {
    format!("{}%", thousandths_text(u64::from(per_mille) * 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Percent, String> {
        Percent::parse(text).map_err(|fault| fault.message)
    }

    fn instead(text: &str) -> Option<String> {
        Percent::parse(text).unwrap_err().instead
    }

    #[test]
    fn percentages_are_exact_to_a_tenth() {
        for (text, per_mille) in [("0%", 0), ("0.5%", 5), ("50%", 500), ("99.90 %", 999), ("100%", 1000)] {
            assert_eq!(parsed(text), Ok(Percent(per_mille)), "{text}");
        }
        for text in ["", "%", "50", "0.05%", "100.1%", "-1%", ".5%", "5.%", "1e1%", "50 percent", "٥٠%"] {
            assert!(Percent::parse(text).is_err(), "{text}");
        }
        assert_eq!(instead("50").as_deref(), Some("50%"));
        assert_eq!(instead("0.5"), None, "half or half a percent: never guessed");
        assert!(PositivePercent::parse("0%").is_err());
        assert_eq!([percent_text(5), percent_text(1000)], ["0.5%", "100%"]);
    }
}
