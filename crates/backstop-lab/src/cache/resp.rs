//! RESP2 as clients send it: an array of bulk strings (Redis serialization protocol specification, "Sending commands to a
//! Redis server"). The other form, a line of plain words, is not spoken.

/// Most parts of one command.
const PARTS_MAX: usize = 64;
/// Longest part, in bytes.
const PART_MAX: usize = 4 * 1024 * 1024;
/// Longest number, its line end included.
const NUMBER_MAX: usize = 16;

/// What came is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A command's name and arguments.
pub(super) type Command = Vec<Vec<u8>>;

/// The first command of what was received and how many bytes it has; `None` while it is not whole.
pub(super) fn command(received: &[u8]) -> Result<Option<(Command, usize)>, Malformed> {
    let mut rest = received;
    let Some(parts) = number(&mut rest, b'*', PARTS_MAX)? else { return Ok(None) };
    let mut command = Vec::with_capacity(parts);
    for _ in 0..parts {
        let Some(length) = number(&mut rest, b'$', PART_MAX)? else { return Ok(None) };
        let Some((part, behind)) = rest.split_at_checked(length) else { return Ok(None) };
        let Some((end, behind)) = behind.split_at_checked(2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(Malformed);
        }
        command.push(part.to_vec());
        rest = behind;
    }
    Ok(Some((command, received.len() - rest.len())))
}

/// A marker, a number and a line end, taken from the front.
pub(super) fn number(rest: &mut &[u8], marker: u8, most: usize) -> Result<Option<usize>, Malformed> {
    let Some((first, behind)) = rest.split_first() else { return Ok(None) };
    if *first != marker {
        return Err(Malformed);
    }
    let Some(end) = behind.windows(2).position(|pair| pair == b"\r\n") else {
        return if behind.len() > NUMBER_MAX { Err(Malformed) } else { Ok(None) };
    };
    let (digits, line_end) = behind.split_at(end);
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
    let number = number.filter(|number| *number <= most).ok_or(Malformed)?;
    *rest = line_end.get(2..).unwrap_or_default();
    Ok(Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_when_its_last_byte_is_there() {
        let whole = b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n*1";
        let parts = vec![b"GET".to_vec(), b"a\r\n".to_vec()];
        assert_eq!(command(whole), Ok(Some((parts, whole.len() - 2))));
        for cut in 0..whole.len() - 2 {
            assert_eq!(command(&whole[..cut]), Ok(None), "{cut} bytes");
        }
    }

    #[test]
    fn what_is_no_command_is_told_at_once() {
        for sent in [
            &b"GET a\r\n"[..],
            b"*2\r\n+OK\r\n",
            b"*-1\r\n",
            b"*65\r\n",
            b"*1\r\n$4194305\r\n",
            b"*1\r\n$1\r\nab\r\n",
            b"*00000000000000000000",
        ] {
            assert_eq!(command(sent), Err(Malformed), "{}", String::from_utf8_lossy(sent));
        }
    }
}
