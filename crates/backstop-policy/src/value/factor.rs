//! Factors: `1.5`, `"3x"`.

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::value::number::{NotDecimal, decimal, thousandths_text};

/// A factor above zero, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Factor(pub(crate) u32);

const FACTOR: &str = "a factor such as 1.5 or \"3x\"";
/// A thousandfold: whatever is larger is a slip.
const LARGEST_FACTOR: u64 = 1_000_000;

impl Scalar for Factor {
    const EXPECTED: &'static str = FACTOR;
    const NAME: &'static str = "factor such as `1.5` or `\"3x\"`";
    const PATTERN: Option<&'static str> = Some("^[0-9]+([.][0-9]{1,3}0*)?x$");
    const NUMBER: bool = true;

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::Factor, message);
        if let Some(number) = text.strip_suffix('x') {
            return factor(text, number);
        }
        if let Some(Ok(per_mille)) = text.strip_suffix('%').map(|number| decimal(number.trim_end(), 1)) {
            return Err(invalid(format!("`{text}` is a percentage, not a factor"))
                .instead(format!("{}x", thousandths_text(per_mille))));
        }
        let number = text.trim_end_matches(['X', '×']).trim();
        let fault = invalid(format!("`{text}` is not a factor"));
        Err(match decimal(number, 3) {
            Ok(_) => fault.instead(format!("{number}x")),
            Err(_) => fault.help(format!("write {FACTOR}")),
        })
    }

    fn from_number(written: &str) -> Option<Result<Self, Fault>> {
        Some(factor(written, written))
    }
}

fn factor(text: &str, number: &str) -> Result<Factor, Fault> {
    let invalid = |message: String| Err(Fault::new(Code::Factor, message).help(format!("write {FACTOR}")));
    match decimal(number, 3) {
        Ok(0) => Err(Fault::new(Code::Zero, "the factor must be greater than zero")),
        Ok(thousandths @ 1..=LARGEST_FACTOR) => Ok(Factor(u32::try_from(thousandths).unwrap_or(u32::MAX))),
        Ok(_) | Err(NotDecimal::TooLarge) => {
            Err(Fault::new(Code::OutOfRange, format!("`{text}` is more than a thousandfold")))
        }
        Err(NotDecimal::TooPrecise) => invalid(format!("`{text}` has more than three decimals")),
        Err(NotDecimal::Malformed) => invalid(format!("`{text}` is not a factor")),
    }
}

/// Thousandths as a factor: `1.5x` for 1500.
pub(crate) fn factor_text(thousandths: u32) -> String {
    format!("{}x", thousandths_text(u64::from(thousandths)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Factor, String> {
        Factor::parse(text).map_err(|fault| fault.message)
    }

    fn instead(text: &str) -> Option<String> {
        Factor::parse(text).unwrap_err().instead
    }

    #[test]
    fn factors_are_exact_to_a_thousandth() {
        for (text, thousandths) in [("3x", 3000), ("1.5x", 1500), ("0.001x", 1), ("1000x", 1_000_000)] {
            assert_eq!(parsed(text), Ok(Factor(thousandths)), "{text}");
        }
        for text in ["", "x", "0x", "3", "3 x", "1.0005x", "1001x", "-1x", "99999999999999999999x"] {
            assert!(Factor::parse(text).is_err(), "{text}");
        }
        for (written, instead_of) in [("3", "3x"), ("3×", "3x"), ("3X", "3x"), ("150%", "1.5x")] {
            assert_eq!(instead(written).as_deref(), Some(instead_of), "{written}");
        }
        let number = |text: &str| Factor::from_number(text).map(|read| read.map_err(|fault| fault.code));
        assert_eq!(number("1.5"), Some(Ok(Factor(1500))));
        assert_eq!(number("0"), Some(Err(Code::Zero)));
        assert_eq!(number("inf"), Some(Err(Code::Factor)));
        assert_eq!(factor_text(1500), "1.5x");
    }
}
