//! Decimal numbers, each kept as a whole number of its smallest step, so that what is compared is exactly what was
//! written.

/// Why a text is not the decimal number that it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotDecimal {
    Malformed,
    TooPrecise,
    TooLarge,
}

/// A decimal number times ten to the power of `places`: `1.5` with three places is 1500.
pub(super) fn decimal(text: &str, places: u32) -> Result<u64, NotDecimal> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !fraction.is_none_or(digits) {
        return Err(NotDecimal::Malformed);
    }
    let fraction = fraction.unwrap_or_default().trim_end_matches('0');
    let missing = u32::try_from(fraction.len()).ok().and_then(|used| places.checked_sub(used));
    let missing = missing.ok_or(NotDecimal::TooPrecise)?;
    let scaled = |text: &str, power: u32| text.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(power)?);
    let whole = scaled(whole, places);
    let part = if fraction.is_empty() { Some(0) } else { scaled(fraction, missing) };
    whole.zip(part).and_then(|(whole, part)| whole.checked_add(part)).ok_or(NotDecimal::TooLarge)
}

/// A whole number of thousandths as it would be written: `1.5` for 1500.
pub(super) fn thousandths_text(thousandths: u64) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        assert_eq!(decimal("1.5", 3), Ok(1500));
        assert_eq!(decimal("0012.340", 2), Ok(1234));
        assert_eq!(decimal("1.05", 1), Err(NotDecimal::TooPrecise));
        assert_eq!(decimal("18446744073709551616", 0), Err(NotDecimal::TooLarge));
        assert_eq!(decimal("18446744073709551615", 1), Err(NotDecimal::TooLarge));
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1_0", "1.2.3", "١"] {
            assert_eq!(decimal(text, 3), Err(NotDecimal::Malformed), "{text}");
        }
        assert_eq!([0, 5, 1500, 2000].map(thousandths_text), ["0", "0.005", "1.5", "2"]);
    }
}
