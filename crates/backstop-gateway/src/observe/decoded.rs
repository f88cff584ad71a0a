//! What an answer would have been without its content coding.
//!
//! A route that keeps copies asks for answers without one, because a coded body cannot be looked into. An observed route forwards what
//! the client accepts, so its shadow undoes the coding (gzip and deflate, RFC 9110 section 8.4.1). An answer in another coding is taken for what it
//! says, and would not have been kept.

use std::io::{self, Write};

use backstop::upstream::BrokenOff;
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, ETAG};
use http::{HeaderMap, HeaderValue};

/// Undoes a content coding, piece by piece.
pub(super) struct Decoder {
    coding: Coding,
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
        Some(Self { coding, is_full: false })
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
    pub(super) fn decode(&mut self, piece: Bytes) -> Result<Bytes, BrokenOff> {
        if self.is_full {
            return Ok(piece);
        }
        let written = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.write_all(&piece),
            Coding::Deflate(decoder) => decoder.write_all(&piece),
        };
        self.take(written)
    }

    /// What is left at the end.
    pub(super) fn end(&mut self) -> Result<Option<Bytes>, BrokenOff> {
        if self.is_full {
            return Ok(None);
        }
        let written = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Deflate(decoder) => decoder.try_finish(),
        };
        let rest = self.take(written)?;
        self.is_full = true;
        Ok(Some(rest).filter(|rest| !rest.is_empty()))
    }

    fn take(&mut self, written: io::Result<()>) -> Result<Bytes, BrokenOff> {
        let decoded = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Deflate(decoder) => decoder.get_mut(),
        };
        match written {
            Err(_) if decoded.left_bytes == 0 => self.is_full = true,
            Err(_) => {
                let failure = Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe);
                return Err(failure.into());
            }
            Ok(()) => {}
        }
        Ok(Bytes::from(std::mem::take(&mut decoded.bytes)))
    }
}
