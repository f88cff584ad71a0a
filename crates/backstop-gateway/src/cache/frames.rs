//! Where one reply ends and the next begins, and how large it may be.
//!
//! Only the framing of RESP2 is looked at here, and only the four kinds of reply that the commands of this client have:
//! `+` status, `-` error, `:` integer, `$` bulk string. What they mean is read by the library behind. Two bounds are held
//! before anything is kept in memory: a line has at most 4 KiB, a bulk string at most as many bytes as a value may have.
//! Sent arrays, maps and pushed messages were not asked for.
//!
//! Specification: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

/// The longest first line of a reply. Messages of errors quote at most 128 bytes of a command.
const LINE_BYTES: usize = 4096;
/// Enough for every length that is allowed.
const DIGITS: usize = 12;

/// What came cannot be a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign;

/// Follows the replies on one connection.
#[derive(Debug)]
pub(super) struct Frames {
    at: At,
    value_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// Before a reply.
    Start,
    /// Within the line of one that ends with its line.
    Line { bytes: usize, cr: bool },
    /// Within the length of a bulk string.
    Length { digits: usize, value: u64, is_nil: bool, cr: bool },
    /// Within a bulk string: what is left of it, its end of line included.
    Bulk { left: u64 },
}

impl Frames {
    pub(super) fn new(value_bytes: u64) -> Self {
        Self { at: At::Start, value_bytes }
    }

    /// Takes what came next. How many replies began in it.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<u64, Foreign> {
        let mut begun = 0;
        while let Some((byte, rest)) = bytes.split_first() {
            if let At::Bulk { left } = self.at {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let left = left.saturating_sub(taken as u64);
                self.at = if left == 0 { At::Start } else { At::Bulk { left } };
                bytes = bytes.get(taken..).unwrap_or_default();
                continue;
            }
            begun += u64::from(matches!(self.at, At::Start));
            self.at = self.next(*byte)?;
            bytes = rest;
        }
        Ok(begun)
    }

    fn next(&self, byte: u8) -> Result<At, Foreign> {
        match (self.at, byte) {
            (At::Start, b'+' | b'-' | b':') => Ok(At::Line { bytes: 1, cr: false }),
            (At::Start, b'$') => Ok(At::Length { digits: 0, value: 0, is_nil: false, cr: false }),
            (At::Line { cr: true, .. }, b'\n') => Ok(At::Start),
            (At::Line { bytes, .. }, byte) if bytes < LINE_BYTES => {
                Ok(At::Line { bytes: bytes + 1, cr: byte == b'\r' })
            }
            (At::Length { digits: 0, value, is_nil: false, cr: false }, b'-') => {
                Ok(At::Length { digits: 0, value, is_nil: true, cr: false })
            }
            (At::Length { digits, value, is_nil, cr: false }, b'0'..=b'9') if digits < DIGITS => {
                let value = value.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
                Ok(At::Length { digits: digits + 1, value, is_nil, cr: false })
            }
            (At::Length { digits, value, is_nil, cr: false }, b'\r') if digits > 0 => {
                Ok(At::Length { digits, value, is_nil, cr: true })
            }
            (At::Length { value: 1, is_nil: true, cr: true, .. }, b'\n') => Ok(At::Start),
            (At::Length { value, is_nil: false, cr: true, .. }, b'\n') if value <= self.value_bytes => {
                Ok(At::Bulk { left: value + 2 })
            }
            _ => Err(Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<u64, Foreign> {
        Frames::new(10).take(bytes)
    }

    #[test]
    fn replies_are_counted_however_they_are_cut() {
        let replies = b"+OK\r\n$-1\r\n$0\r\n\r\n:1\r\n$10\r\n+a\r\n$1\r\nbc\r\n-ERR a\rb\nc\r\n+PONG\r\n";
        assert_eq!(whole(replies), Ok(7));
        for cut in 0..=replies.len() {
            let (first, second) = replies.split_at(cut);
            let mut frames = Frames::new(10);
            let begun = frames.take(first).and_then(|one| frames.take(second).map(|two| one + two));
            assert_eq!(begun, Ok(7), "cut at {cut}");
        }
        let mut frames = Frames::new(10);
        let begun: u64 = replies.iter().map(|byte| frames.take(&[*byte]).expect("a reply")).sum();
        assert_eq!(begun, 7);
    }

    #[test]
    fn a_bulk_string_may_be_as_large_as_a_value_and_not_a_byte_larger() {
        assert_eq!(whole(b"$10\r\n"), Ok(1));
        assert_eq!(whole(b"$11\r\n"), Err(Foreign));
        assert_eq!(whole(b"$9223372036854775807\r\n"), Err(Foreign));
        assert_eq!(whole(b"$18446744073709551626\r\n"), Err(Foreign), "no overflow");
        assert_eq!(whole(b"$0000000000000"), Err(Foreign));
    }

    #[test]
    fn what_no_command_asks_for_is_foreign() {
        let others: [&[u8]; 12] = [
            b"*1\r\n",
            b"%1\r\n",
            b"~1\r\n",
            b">2\r\n",
            b"_\r\n",
            b"#t\r\n",
            b"!5\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"\r\n",
            b"$\r\n",
            b"$-2\r\n",
            b"$1x\r\n",
        ];
        for other in others {
            assert_eq!(whole(other), Err(Foreign), "{}", other.escape_ascii());
        }
        assert_eq!(whole(b"$-1\n"), Err(Foreign));
        assert_eq!(whole(b"$1\r\r\n"), Err(Foreign));
        assert_eq!(whole(b"+OK\r\nx"), Err(Foreign));
    }

    #[test]
    fn a_line_without_end_ends_at_its_limit() {
        let line = |length: usize| [b"-".as_slice(), &vec![b'x'; length - 1]].concat();
        assert_eq!(whole(&line(LINE_BYTES)), Ok(1));
        assert_eq!(whole(&line(LINE_BYTES + 1)), Err(Foreign));
    }
}
