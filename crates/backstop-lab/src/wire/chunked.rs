//! The chunked transfer coding, decoded as bytes arrive.
//!
//! Strict on purpose: a size is one to sixteen hexadecimal digits, every line ends in CR LF, and the data of a
//! chunk is followed by CR LF at once. Chunk extensions are skipped. The end is the empty line after the trailer
//! section, so a body whose last chunk never came is never taken for a whole one.

use bytes::{Buf as _, BytesMut};

use super::Fields;

/// Longest accepted chunk-size line or trailer line, in bytes.
const LINE_MAX: usize = 8 * 1024;
/// Most trailer lines accepted.
const TRAILERS_MAX: usize = 128;

/// Why bytes are not a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkFault {
    #[error("a line of the chunked framing does not end in CR LF")]
    BareLineEnd,
    #[error("a chunk size is not one to sixteen hexadecimal digits")]
    Size,
    #[error("chunk data is not followed by CR LF")]
    DataEnd,
    #[error("a trailer line is not a field")]
    Trailer,
    #[error("a line of the chunked framing is too long")]
    LineTooLong,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    Done,
}

/// A decoder for one body.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    state: State,
    trailers: Fields,
}

impl Chunked {
    /// Takes what it can from `input` and gives the payload to `payload`. `true` once the body is whole; bytes
    /// behind its end stay in `input`.
    pub(crate) fn decode(
        &mut self,
        input: &mut BytesMut,
        mut payload: impl FnMut(&[u8]),
    ) -> Result<bool, ChunkFault> {
        loop {
            match self.state {
                State::Size => {
                    let Some(line) = take_line(input)? else { return Ok(false) };
                    self.state = match chunk_size(&line)? {
                        0 => State::Trailers,
                        size => State::Data(size),
                    };
                }
                State::Data(left) => {
                    if input.is_empty() {
                        return Ok(false);
                    }
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    payload(&input[..here]);
                    input.advance(here);
                    let left = left - here as u64;
                    self.state = if left == 0 { State::DataEnd } else { State::Data(left) };
                }
                State::DataEnd => {
                    if !b"\r\n".starts_with(&input[..input.len().min(2)]) {
                        return Err(ChunkFault::DataEnd);
                    }
                    if input.len() < 2 {
                        return Ok(false);
                    }
                    input.advance(2);
                    self.state = State::Size;
                }
                State::Trailers => {
                    let Some(line) = take_line(input)? else { return Ok(false) };
                    if line.is_empty() {
                        self.state = State::Done;
                    } else {
                        self.trailer(&line)?;
                    }
                }
                State::Done => return Ok(true),
            }
        }
    }

    /// The trailer section read so far.
    pub(crate) fn into_trailers(self) -> Fields {
        self.trailers
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), ChunkFault> {
        let colon = line.iter().position(|&byte| byte == b':').ok_or(ChunkFault::Trailer)?;
        let name = std::str::from_utf8(&line[..colon]).map_err(|_not_text| ChunkFault::Trailer)?;
        if name.is_empty() || name.contains([' ', '\t']) || self.trailers.len() >= TRAILERS_MAX {
            return Err(ChunkFault::Trailer);
        }
        self.trailers.push(name, line[colon + 1..].trim_ascii());
        Ok(())
    }
}

fn take_line(input: &mut BytesMut) -> Result<Option<BytesMut>, ChunkFault> {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
        return if input.len() > LINE_MAX { Err(ChunkFault::LineTooLong) } else { Ok(None) };
    };
    if end > LINE_MAX {
        return Err(ChunkFault::LineTooLong);
    }
    if end == 0 || input[end - 1] != b'\r' {
        return Err(ChunkFault::BareLineEnd);
    }
    let mut line = input.split_to(end + 1);
    line.truncate(end - 1);
    Ok(Some(line))
}

fn chunk_size(line: &[u8]) -> Result<u64, ChunkFault> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
    let text = std::str::from_utf8(digits).map_err(|_not_text| ChunkFault::Size)?;
    if text.is_empty() || text.len() > 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ChunkFault::Size);
    }
    u64::from_str_radix(text, 16).map_err(|_overflow| ChunkFault::Size)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::{ChunkFault, Chunked};

    fn decode(bytes: &[u8]) -> Result<(bool, Vec<u8>, usize), ChunkFault> {
        let mut input = BytesMut::from(bytes);
        let mut body = Vec::new();
        let done = Chunked::default().decode(&mut input, |part| body.extend_from_slice(part))?;
        Ok((done, body, input.len()))
    }

    #[test]
    fn a_whole_body_leaves_what_follows() {
        let whole = decode(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\nGET").unwrap();
        assert_eq!(whole, (true, b"abcde".to_vec(), 3));
    }

    #[test]
    fn without_the_last_chunk_it_is_not_whole() {
        assert_eq!(decode(b"3\r\nabc\r\n").unwrap(), (false, b"abc".to_vec(), 0));
        assert_eq!(decode(b"3\r\nabc\r\n0\r\n").unwrap(), (false, b"abc".to_vec(), 0));
    }

    #[test]
    fn any_split_gives_the_same_body() {
        let bytes = b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n";
        for split in 0..bytes.len() {
            let mut decoder = Chunked::default();
            let mut body = Vec::new();
            let mut input = BytesMut::from(&bytes[..split]);
            assert!(!decoder.decode(&mut input, |part| body.extend_from_slice(part)).unwrap());
            input.extend_from_slice(&bytes[split..]);
            assert!(decoder.decode(&mut input, |part| body.extend_from_slice(part)).unwrap());
            assert_eq!(body, b"abc0123456789abcdef");
            assert_eq!(decoder.into_trailers().get("a"), Some("b"));
        }
    }

    #[test]
    fn loose_framing_is_refused() {
        assert_eq!(decode(b"3\nabc\r\n").unwrap_err(), ChunkFault::BareLineEnd);
        assert_eq!(decode(b"3\r\nabcX").unwrap_err(), ChunkFault::DataEnd);
        assert_eq!(decode(b"+3\r\nabc").unwrap_err(), ChunkFault::Size);
        assert_eq!(decode(b"00000000000000003\r\nabc").unwrap_err(), ChunkFault::Size);
    }
}
