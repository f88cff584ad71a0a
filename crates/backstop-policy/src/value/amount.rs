//! Sizes in bytes (`"64 MiB"`) and whole numbers.

use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Fault, Node, Scalar, Shape, Value, with_units};

/// A size in bytes, maybe zero.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size(pub(crate) u64);

/// Room on a disk: none, or at least [`SMALLEST_DISK`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskSize(pub(crate) u64);

/// The store's own structure takes up what is smaller, and no copy would find room.
const SMALLEST_DISK: u64 = 1 << 20;

/// A size in bytes, at least one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PositiveSize(pub(crate) u64);

/// The largest request head: at least [`SMALLEST_HEAD`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadSize(pub(crate) u64);

/// A gateway reads a head in pieces of this size, so a smaller limit could not be kept.
const SMALLEST_HEAD: u64 = 8 << 10;

const EXPECTED: &str = "a size such as \"64 MiB\" (units B, KiB, MiB, GiB, TiB)";
const BARE_NUMBER: Option<(Code, [&str; 2])> = Some((Code::Size, LIKELY_UNITS));
const LIKELY_UNITS: [&str; 2] = [" KiB", " MiB"];
const PATTERN: Option<&str> = Some("^([0-9]+ ?(B|KiB|MiB|GiB|TiB)|0)$");
const UNITS: [(&str, u32); 5] = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
/// A pebibyte: whatever is larger is a slip.
const LARGEST: u64 = 1 << 50;

impl Scalar for Size {
    const EXPECTED: &'static str = EXPECTED;
    const NAME: &'static str = "size";
    const PATTERN: Option<&'static str> = PATTERN;
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = BARE_NUMBER;

    fn parse(text: &str) -> Result<Self, Fault> {
        parse(text).map(Size)
    }
}

impl Scalar for PositiveSize {
    const EXPECTED: &'static str = EXPECTED;
    const NAME: &'static str = "size above 0";
    const PATTERN: Option<&'static str> = PATTERN;
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = BARE_NUMBER;

    fn parse(text: &str) -> Result<Self, Fault> {
        match parse(text)? {
            0 => Err(Fault::new(Code::Zero, "the size must be greater than zero")),
            size => Ok(PositiveSize(size)),
        }
    }
}

impl Scalar for DiskSize {
    const EXPECTED: &'static str = EXPECTED;
    const NAME: &'static str = "0, or size from 1 MiB";
    const PATTERN: Option<&'static str> = PATTERN;
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = BARE_NUMBER;

    fn parse(text: &str) -> Result<Self, Fault> {
        match parse(text)? {
            1..SMALLEST_DISK => {
                Err(Fault::new(Code::OutOfRange, format!("`{text}` is no room for copies: at least 1 MiB"))
                    .help("the file takes some room for itself; `\"0\"` keeps copies in memory only"))
            }
            size => Ok(DiskSize(size)),
        }
    }
}

impl Scalar for HeadSize {
    const EXPECTED: &'static str = EXPECTED;
    const NAME: &'static str = "size from 8 KiB";
    const PATTERN: Option<&'static str> = PATTERN;
    const BARE_NUMBER: Option<(Code, [&'static str; 2])> = BARE_NUMBER;

    fn parse(text: &str) -> Result<Self, Fault> {
        match PositiveSize::parse(text)? {
            PositiveSize(size) if size < SMALLEST_HEAD => Err(Fault::new(
                Code::OutOfRange,
                format!("a limit of `{text}` cannot be kept: at least 8 KiB"),
            )
            .help("heads are read in pieces of up to 8 KiB, so a smaller limit would not hold")
            .instead("8 KiB")),
            PositiveSize(size) => Ok(HeadSize(size)),
        }
    }
}

fn parse(text: &str) -> Result<u64, Fault> {
    if text == "0" {
        return Ok(0);
    }
    let invalid = |message: String| Fault::new(Code::Size, message);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let unit = rest.strip_prefix(' ').unwrap_or(rest);
    if number.is_empty() {
        return Err(invalid(format!("`{text}` is not a size")).help(format!("write {EXPECTED}")));
    }
    let Some(&(_, shift)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        if unit.is_empty() {
            return Err(invalid(format!("`{text}` has no unit")).help(with_units(number, LIKELY_UNITS)));
        }
        let fault = invalid(format!("unknown unit `{unit}`")).part(text.len() - unit.len()..text.len());
        let meant = match unit.to_ascii_lowercase().as_str() {
            "b" | "byte" | "bytes" => "B",
            "k" | "kb" | "kib" => "KiB",
            "m" | "mb" | "mib" => "MiB",
            "g" | "gb" | "gib" => "GiB",
            "t" | "tb" | "tib" => "TiB",
            _ => {
                return Err(fault.help("the units are B, KiB, MiB, GiB and TiB, each 1024 of the one before"));
            }
        };
        return Err(fault
            .help("units are powers of 1024 and spelt so: KiB, MiB, GiB, TiB")
            .instead(format!("{number} {meant}")));
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)) {
        Some(size) if size <= LARGEST => Ok(size),
        _ => Err(Fault::new(Code::OutOfRange, format!("`{text}` is more than a pebibyte"))),
    }
}

/// A size as it would be written: in the largest unit that is exact.
pub(crate) fn size_text(bytes: u64) -> String {
    let exact = |shift: &u32| bytes > 0 && bytes.trailing_zeros() >= *shift;
    let (unit, shift) = UNITS.iter().rev().find(|(_, shift)| exact(shift)).unwrap_or(&UNITS[0]);
    format!("{} {unit}", bytes >> shift)
}

/// A whole number from 1 to `u32::MAX`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(pub(crate) u32);

/// A number of threads, from 1 to 1024.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Threads(pub(crate) u16);

/// How often a call may be sent: once or twice. More would only load what is already failing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempts(pub(crate) u32);

const MOST_ATTEMPTS: u64 = 2;

/// Calls at once that try a dependency, from 1 to 16: more would not be a trial.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probes(pub(crate) u32);

const MOST_PROBES: u64 = 16;

impl Value for Count {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        integer(node, 1, u64::from(u32::MAX), cx).and_then(|number| u32::try_from(number).ok()).map(Count)
    }

    fn shape() -> Shape {
        Shape::Integer { min: 1, max: u64::from(u32::MAX) }
    }
}

impl Value for Attempts {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        integer(node, 1, MOST_ATTEMPTS, cx).and_then(|number| u32::try_from(number).ok()).map(Attempts)
    }

    fn shape() -> Shape {
        Shape::Integer { min: 1, max: MOST_ATTEMPTS }
    }
}

impl Value for Probes {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        integer(node, 1, MOST_PROBES, cx).and_then(|number| u32::try_from(number).ok()).map(Probes)
    }

    fn shape() -> Shape {
        Shape::Integer { min: 1, max: MOST_PROBES }
    }
}

impl Value for Threads {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        integer(node, 1, 1024, cx).and_then(|number| u16::try_from(number).ok()).map(Threads)
    }

    fn shape() -> Shape {
        Shape::Integer { min: 1, max: 1024 }
    }
}

/// Reads a whole number within bounds, both inclusive.
pub(super) fn integer(node: Node<'_>, min: u64, max: u64, cx: &mut Context<'_>) -> Option<u64> {
    let DeValue::Integer(written) = node.get() else {
        cx.report(node.wrong_type("a whole number"));
        return None;
    };
    let number = i128::from_str_radix(written.as_str(), written.radix()).ok();
    let within =
        number.and_then(|number| u64::try_from(number).ok()).filter(|number| (min..=max).contains(number));
    if within.is_none() {
        cx.report(match number {
            Some(0) if min > 0 => {
                Finding::new(Code::Zero, node.bytes(), format!("`{}` must be greater than zero", node.path))
            }
            _ => Finding::new(
                Code::OutOfRange,
                node.bytes(),
                format!("`{}` must lie between {min} and {max}", node.path),
            ),
        });
    }
    within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [("0", 0), ("0 B", 0), ("1B", 1), ("64 MiB", 64 << 20), ("1TiB", 1 << 40)] {
            assert_eq!(parse(text).map_err(|fault| fault.message), Ok(bytes), "{text}");
        }
        for text in
            ["", "1", "1 kB", "1MB", "1  MiB", "MiB", "-1 B", "1.5 MiB", "2000 TiB", "99999999999999999999 B"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        let fault = parse("64MB").err();
        assert_eq!(fault.and_then(|fault| fault.instead).as_deref(), Some("64 MiB"));
    }
}
