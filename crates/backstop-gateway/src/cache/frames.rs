//! Where one reply ends and the next begins, and how large it may be.
//!
//! Only the framing of RESP2 is looked at here, and only the four kinds of reply that the commands of this client have:
//! `+` status, `-` error, `:` integer, `$` bulk string. What they mean is read by the library behind. Two bounds are held
//! before anything is kept in memory: a line has at most 4 KiB, a bulk string at most as many bytes as a value may have.
//! Arrays, maps and pushed messages were not asked for.
//!
//! In lines, whatever is not ASCII is replaced by `?`. Messages of errors quote keys, which may be any bytes, and the
//! library ends a connection on which a line is not UTF-8.
//!
//! Specification: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

/// The longest first line of a reply. Messages of errors quote at most 128 bytes of a command.
const LINE_BYTES: usize = 4096;
/// Enough for every length that is allowed, and a number of so many digits cannot overflow.
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
    /// Within the line of a status or an error.
    Line { bytes: usize, cr: bool },
    /// Within the number of an integer or of a bulk string's length.
    Number { is_length: bool, digits: usize, value: u64, is_negative: bool, cr: bool },
    /// Within a bulk string.
    Bulk { left: u64 },
    /// After one, before its end of line, or within that.
    End { cr: bool },
}

impl Frames {
    pub(super) fn new(value_bytes: u64) -> Self {
        Self { at: At::Start, value_bytes }
    }

    /// Takes what came next. How many replies began in it.
    pub(super) fn take(&mut self, mut bytes: &mut [u8]) -> Result<u64, Foreign> {
        let mut begun = 0;
        loop {
            if let At::Bulk { left } = self.at {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let left = left.saturating_sub(taken as u64);
                self.at = if left == 0 { At::End { cr: false } } else { At::Bulk { left } };
                bytes = bytes.get_mut(taken..).unwrap_or_default();
            }
            let Some((byte, rest)) = bytes.split_first_mut() else { return Ok(begun) };
            begun += u64::from(matches!(self.at, At::Start));
            self.at = self.next(*byte)?;
            if matches!(self.at, At::Line { .. }) && !byte.is_ascii() {
                *byte = b'?';
            }
            bytes = rest;
        }
    }

    fn next(&self, byte: u8) -> Result<At, Foreign> {
        match (self.at, byte) {
            (At::Start, b'+' | b'-') => Ok(At::Line { bytes: 1, cr: false }),
            (At::Start, b':' | b'$') => {
                Ok(At::Number { is_length: byte == b'$', digits: 0, value: 0, is_negative: false, cr: false })
            }
            (At::Line { cr: true, .. } | At::End { cr: true }, b'\n') => Ok(At::Start),
            (At::Line { bytes, .. }, byte) if bytes < LINE_BYTES => {
                Ok(At::Line { bytes: bytes + 1, cr: byte == b'\r' })
            }
            (At::Number { is_length, digits: 0, value, is_negative: false, cr: false }, b'-') => {
                Ok(At::Number { is_length, digits: 0, value, is_negative: true, cr: false })
            }
            (At::Number { is_length, digits, value, is_negative, cr: false }, b'0'..=b'9')
                if digits < DIGITS =>
            {
                let value = value * 10 + u64::from(byte - b'0');
                Ok(At::Number { is_length, digits: digits + 1, value, is_negative, cr: false })
            }
            (At::Number { is_length, digits, value, is_negative, cr: false }, b'\r') if digits > 0 => {
                Ok(At::Number { is_length, digits, value, is_negative, cr: true })
            }
            (At::Number { is_length, value, is_negative, cr: true, .. }, b'\n') => {
                match (is_length, is_negative) {
                    (false, _) => Ok(At::Start),
                    (true, true) if value == 1 => Ok(At::Start),
                    (true, false) if value <= self.value_bytes => Ok(At::Bulk { left: value }),
                    (true, _) => Err(Foreign),
                }
            }
            (At::End { cr: false }, b'\r') => Ok(At::End { cr: true }),
            _ => Err(Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<u64, Foreign> {
        Frames::new(10).take(&mut bytes.to_vec())
    }

    #[test]
    fn replies_are_counted_however_they_are_cut() {
        let replies = b"+OK\r\n$-1\r\n$0\r\n\r\n:1\r\n$10\r\n+a\r\n$1\r\nbc\r\n-ERR a\rb\nc\r\n+PONG\r\n";
        assert_eq!(whole(replies), Ok(7));
        for cut in 0..=replies.len() {
            let mut replies = replies.to_vec();
            let (first, second) = replies.split_at_mut(cut);
            let mut frames = Frames::new(10);
            let begun = frames.take(first).and_then(|one| frames.take(second).map(|two| one + two));
            assert_eq!(begun, Ok(7), "cut at {cut}");
        }
        let mut frames = Frames::new(10);
        let begun: u64 = replies.iter().map(|byte| frames.take(&mut [*byte]).expect("a reply")).sum();
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
        assert_eq!(whole(b":1x\r\n"), Err(Foreign));
        assert_eq!(whole(b":-1\r\n"), Ok(1));
        assert_eq!(whole(b"$1\r\nx\r\r"), Err(Foreign));
        assert_eq!(whole(b"$1\r\nxx\r\n"), Err(Foreign), "longer than it says");
    }

    #[test]
    fn a_line_without_end_ends_at_its_limit() {
        let line = |length: usize| [b"-".as_slice(), &vec![b'x'; length - 1]].concat();
        assert_eq!(whole(&line(LINE_BYTES)), Ok(1));
        assert_eq!(whole(&line(LINE_BYTES + 1)), Err(Foreign));
    }

    #[test]
    fn a_line_is_made_ascii_and_a_value_is_not_touched() {
        let mut said = b"-ERR \xff\xfe\r\n$2\r\n\xff\xfe\r\n".to_vec();
        assert_eq!(Frames::new(10).take(&mut said), Ok(2));
        assert_eq!(said, b"-ERR ??\r\n$2\r\n\xff\xfe\r\n");
    }
}
