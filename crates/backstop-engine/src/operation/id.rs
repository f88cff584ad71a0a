//! What names an operation, and what orders those who write about it.

use std::fmt;
use std::str::FromStr;

/// 128 bits that nobody can guess and that name one operation, in its address and in the ledger. Shown as 32 digits in
/// lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId([u8; 16]);

impl OperationId {
    /// The operation of these bits, which were drawn at random.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bits.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not the name of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnOperationId;

impl fmt::Display for NotAnOperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation is named by 32 digits in lower-case hexadecimal")
    }
}

impl std::error::Error for NotAnOperationId {}

impl FromStr for OperationId {
    type Err = NotAnOperationId;

    /// # Errors
    /// Any other spelling than the one that is shown: an address has one form.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(NotAnOperationId),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 16];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(NotAnOperationId);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

/// How often a record was written by somebody who had to own it. A write that names an older fence is refused: whoever
/// holds it has been overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// Of an intent.
    pub const FIRST: Fence = Fence(1);

    /// The fence with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The fence after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The number of a life of the ledger: one more each time that an embedded one is opened. Moments on its clock are compared
/// within one life only. A shared ledger, whose server's clock goes on, stays in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The epoch after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand.
    #[test]
    fn an_operation_has_one_spelling() {
        let id = OperationId::from_bytes([0x00, 0x1f, 0xa0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff]);
        let text = "001fa0090000000000000000000000ff";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
        for wrong in [
            "",
            "001FA0090000000000000000000000ff",
            &text[1..],
            &format!("{text}0"),
            &format!("{text}00"),
            "001fa009-000000000000000000000ff",
            "001fa00900000000000000000000000é",
            "+01fa0090000000000000000000000ff",
        ] {
            assert_eq!(wrong.parse::<OperationId>(), Err(NotAnOperationId), "{wrong}");
        }
    }
}
