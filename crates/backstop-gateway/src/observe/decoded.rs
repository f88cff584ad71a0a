//! What an answer would have been without its content coding.
//!
//! A route that keeps copies asks for answers without one, because a coded body cannot be looked into. An observed route forwards what
//! the client accepts, so its shadow undoes the coding (gzip and deflate, RFC 9110 section 8.4.1). An answer in another coding is taken for what it
//! says, and would not have been kept.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, ETAG};
use http::{HeaderMap, HeaderValue};

/// What came is not what its fields say, or more than one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecodable;

/// Undoes a content coding, piece by piece.
pub(super) struct Decoder {
    coding: Coding,
    /// Content has come: without any there is nothing to be decoded.
    has_begun: bool,
    /// What more is decoded is not decoded any more: the answer is too large to be looked into by then.
    is_full: bool,
}

enum Coding {
    Gzip(MultiGzDecoder<Decoded>),
    Deflate(ZlibDecoder<Decoded>),
}

/// What has been decoded and not yet been taken.
struct Decoded {
    bytes: Vec<u8>,
    left_bytes: u64,
}

impl Write for Decoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // One piece above the limit tells that it is exceeded.
        if self.left_bytes == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// For an answer with these fields, if it has one coding and that one is known.
    pub(super) fn of(headers: &HeaderMap, limit_bytes: u64) -> Option<Self> {
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        let coding = codings.next()?.to_str().ok()?.trim();
        if codings.next().is_some() {
            return None;
        }
        let decoded = Decoded { bytes: Vec::new(), left_bytes: limit_bytes.saturating_add(1) };
        let coding = match coding {
            _ if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") => {
                Coding::Gzip(MultiGzDecoder::new(decoded))
            }
            _ if coding.eq_ignore_ascii_case("deflate") => Coding::Deflate(ZlibDecoder::new(decoded)),
            _ => return None,
        };
        Some(Self { coding, has_begun: false, is_full: false })
    }

    /// Makes of an answer's fields those that it has without its coding. A strong validator is the coded answer's alone (RFC 9110
    /// section 8.8.3).
    pub(super) fn undress(headers: &mut HeaderMap) {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        let weak = headers.get(ETAG).and_then(|tag| {
            let tag = tag.to_str().ok()?;
            let weak = if tag.starts_with("W/") { tag.to_owned() } else { format!("W/{tag}") };
            HeaderValue::from_str(&weak).ok()
        });
        match weak {
            Some(weak) => _ = headers.insert(ETAG, weak),
            None => _ = headers.remove(ETAG),
        }
    }

    /// The next piece.
    pub(super) fn decode(&mut self, piece: Bytes) -> Result<Bytes, Undecodable> {
        self.has_begun |= !piece.is_empty();
        if self.is_full {
            return Ok(piece);
        }
        let written = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.write_all(&piece),
            Coding::Deflate(decoder) => decoder.write_all(&piece),
        };
        self.take(&written)
    }

    /// What is left at the end.
    pub(super) fn end(&mut self) -> Result<Option<Bytes>, Undecodable> {
        if self.is_full || !self.has_begun {
            return Ok(None);
        }
        let written = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Deflate(decoder) => decoder.try_finish(),
        };
        let rest = self.take(&written)?;
        self.is_full = true;
        Ok(Some(rest).filter(|rest| !rest.is_empty()))
    }

    fn take(&mut self, written: &io::Result<()>) -> Result<Bytes, Undecodable> {
        let decoded = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Deflate(decoder) => decoder.get_mut(),
        };
        match written {
            Err(_) if decoded.left_bytes == 0 => self.is_full = true,
            Err(_) => return Err(Undecodable),
            Ok(()) => {}
        }
        Ok(Bytes::from(std::mem::take(&mut decoded.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    const TEXT: &[u8] = br#"{"id":"1","text":"first"}"#;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut coder = GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(text).unwrap();
        coder.finish().unwrap()
    }

    fn coded(coding: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
        headers
    }

    /// All that comes of these pieces, and how it ends.
    fn decode(coding: &str, pieces: &[&[u8]], limit_bytes: u64) -> Result<Vec<u8>, Undecodable> {
        let mut decoder = Decoder::of(&coded(coding), limit_bytes).expect("a known coding");
        let mut decoded = Vec::new();
        for piece in pieces {
            decoded.extend_from_slice(&decoder.decode(Bytes::copy_from_slice(piece))?);
        }
        while let Some(rest) = decoder.end()? {
            decoded.extend_from_slice(&rest);
        }
        Ok(decoded)
    }

    #[test]
    fn what_was_coded_comes_out_whatever_the_pieces_are() {
        let whole = gzip(TEXT);
        for cut in 0..whole.len() {
            let (before, after) = whole.split_at(cut);
            assert_eq!(decode("gzip", &[before, after], 1000).unwrap(), TEXT, "cut at {cut}");
        }
        assert_eq!(decode("X-GZIP", &[&whole], 1000).unwrap(), TEXT);
        let mut coder = ZlibEncoder::new(Vec::new(), Compression::default());
        coder.write_all(TEXT).unwrap();
        assert_eq!(decode("deflate", &[&coder.finish().unwrap()], 1000).unwrap(), TEXT);
    }

    #[test]
    fn what_is_no_such_coding_says_nothing() {
        let whole = gzip(TEXT);
        let and_zeros = [&whole[..], &[0; 8]].concat();
        for wrong in [&whole[..whole.len() - 1], TEXT, &and_zeros] {
            assert_eq!(decode("gzip", &[wrong], 1000), Err(Undecodable));
        }
    }

    #[test]
    fn without_content_there_is_nothing_to_decode() {
        for coding in ["gzip", "deflate"] {
            assert_eq!(decode(coding, &[], 1000).unwrap(), b"");
            assert_eq!(decode(coding, &[b""], 1000).unwrap(), b"");
        }
    }

    /// A million zeros are a thousand bytes. No more is decoded than tells that the answer is too large to be looked into.
    #[test]
    fn no_more_is_decoded_than_the_limit_and_one_piece() {
        let bomb = gzip(&vec![0; 1_000_000]);
        assert!(bomb.len() < 2_000, "{}", bomb.len());
        let decoded = decode("gzip", &[&bomb], 10_000).unwrap();
        assert!(decoded.len() > 10_000, "so it is too large");
        assert!(decoded.len() < 10_000 + (64 << 10), "{}", decoded.len());
        assert_eq!(
            decode("gzip", &[&gzip(TEXT)], TEXT.len() as u64).unwrap(),
            TEXT,
            "the limit itself is not too large"
        );
    }

    #[test]
    fn other_codings_are_left_alone() {
        for coding in ["br", "zstd", "identity", "gzip, br", ""] {
            assert!(Decoder::of(&coded(coding), 1000).is_none(), "{coding}");
        }
        let mut twice = coded("gzip");
        twice.append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(Decoder::of(&twice, 1000).is_none());
        assert!(Decoder::of(&HeaderMap::new(), 1000).is_none());
    }

    /// RFC 9110 section 8.8.3.3: a strong validator of the coded answer is none of the answer without its coding.
    #[test]
    fn the_fields_are_those_of_the_answer_without_its_coding() {
        for (tag, weak) in [("\"7\"", "W/\"7\""), ("W/\"7\"", "W/\"7\"")] {
            let mut headers = coded("gzip");
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("40"));
            headers.insert(ETAG, HeaderValue::from_static(tag));
            Decoder::undress(&mut headers);
            assert_eq!(headers.len(), 1);
            assert_eq!(headers[ETAG], weak);
        }
    }
}
