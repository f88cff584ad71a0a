//! Reading records, from bytes that may be anything.

use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::{BootId, Mono, Wall};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{CHECKSUM, CodecError, Entry, EntryPeek, KIND_COPY, KIND_ENTRY, MAGIC, PREFIX, VERSION};
use crate::copy::StoredCopy;
use crate::key::{CopyKey, Target};
use crate::vary::VaryField;

/// After the identity.
const PEEK_SEQUENCE: usize = PREFIX + 8;
const PEEK_SIZE: usize = PEEK_SEQUENCE + 8;

/// What is left to be read.
struct In<'a>(&'a [u8]);

pub(super) fn entry(bytes: &[u8]) -> Result<Entry, CodecError> {
    let mut input = In::new(bytes, KIND_ENTRY)?;
    let entry = Entry {
        id: input.u64()?,
        sequence: input.u64()?,
        record_bytes: input.u64()?,
        facts: input.facts()?,
        key: input.key()?,
        vary: input.vary()?,
    };
    input.end()?;
    Ok(entry)
}

pub(super) fn peek(bytes: &[u8]) -> Option<EntryPeek> {
    let number = |at: usize| bytes.get(at..)?.first_chunk::<8>().copied().map(u64::from_be_bytes);
    Some(EntryPeek { sequence: number(PEEK_SEQUENCE)?, record_bytes: number(PEEK_SIZE)? })
}

pub(super) fn copy(bytes: &Bytes) -> Result<(u64, CopyKey, StoredCopy), CodecError> {
    let mut input = In::new(bytes, KIND_COPY)?;
    let id = input.u64()?;
    let facts = input.facts()?;
    let key = input.key()?;
    let vary = input.vary()?;
    let status = u16::from_be_bytes(*input.array::<2>()?);
    let headers = input.headers()?;
    let length = usize::try_from(input.u64()?).map_err(|_| CodecError::Length)?;
    if input.0.len() != length {
        return Err(CodecError::Length);
    }
    let end = bytes.len() - CHECKSUM;
    let body = bytes.slice(end - length..end);
    Ok((id, key, StoredCopy { facts, vary, status, headers, body }))
}

impl<'a> In<'a> {
    /// What lies between prefix and checksum, once both are right.
    fn new(bytes: &'a [u8], kind: u8) -> Result<Self, CodecError> {
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(CodecError::Length)?;
        let (prefix, rest) = content.split_first_chunk::<PREFIX>().ok_or(CodecError::Length)?;
        let [m0, m1, m2, m3, version, found] = *prefix;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(CodecError::Kind);
        }
        if crc32fast::hash(content) != u32::from_be_bytes(*checksum) {
            return Err(CodecError::Checksum);
        }
        match (version, found) {
            (VERSION, found) if found == kind => Ok(Self(rest)),
            (VERSION, _) => Err(CodecError::Kind),
            _ => Err(CodecError::Version),
        }
    }

    fn end(&self) -> Result<(), CodecError> {
        if self.0.is_empty() { Ok(()) } else { Err(CodecError::Length) }
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], CodecError> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(CodecError::Length)?;
        self.0 = rest;
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, CodecError> {
        self.array::<1>().map(|[byte]| *byte)
    }

    fn u64(&mut self) -> Result<u64, CodecError> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// A length or count whose items take at least one byte each, so that what is left bounds it.
    fn length(&mut self) -> Result<usize, CodecError> {
        let length = u32::from_be_bytes(*self.array()?) as usize;
        if length > self.0.len() { Err(CodecError::Length) } else { Ok(length) }
    }

    fn bytes(&mut self) -> Result<&'a [u8], CodecError> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(CodecError::Length)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str, CodecError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| CodecError::Content)
    }

    fn present(&mut self) -> Result<bool, CodecError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CodecError::Content),
        }
    }

    fn duration(&mut self) -> Result<Duration, CodecError> {
        let seconds = self.u64()?;
        let nanoseconds = u32::from_be_bytes(*self.array()?);
        if nanoseconds < 1_000_000_000 {
            Ok(Duration::new(seconds, nanoseconds))
        } else {
            Err(CodecError::Content)
        }
    }

    fn facts(&mut self) -> Result<CopyFacts, CodecError> {
        let observed_at = ObservedAt {
            mono: Mono::from_ns(self.u64()?),
            wall: Wall::from_unix_ns(i64::from_be_bytes(*self.array()?)),
            boot: BootId(*self.array()?),
            received_age: self.duration()?,
        };
        let kind = self.u8()?;
        let limit = self.duration()?;
        let origin_limit = match kind {
            0 => OriginLimit::Unlimited,
            1 => OriginLimit::Never,
            2 => OriginLimit::WhileFresh(limit),
            3 => OriginLimit::UpTo(limit),
            _ => return Err(CodecError::Content),
        };
        Ok(CopyFacts { observed_at, origin_limit })
    }

    fn key(&mut self) -> Result<CopyKey, CodecError> {
        let (host, path) = (self.text()?, self.text()?);
        let query = if self.present()? { Some(self.text()?) } else { None };
        Ok(CopyKey {
            target: Target::new(host, path, query),
            route: self.text()?.into(),
            partition: self.bytes()?.into(),
        })
    }

    fn name(&mut self) -> Result<HeaderName, CodecError> {
        HeaderName::from_bytes(self.bytes()?).map_err(|_| CodecError::Content)
    }

    fn vary(&mut self) -> Result<Vec<VaryField>, CodecError> {
        let count = self.length()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let name = self.name()?;
            let value = if self.present()? { Some(self.bytes()?.into()) } else { None };
            fields.push(VaryField { name, value });
        }
        Ok(fields)
    }

    fn headers(&mut self) -> Result<HeaderMap, CodecError> {
        let count = self.length()?;
        let mut headers = HeaderMap::new();
        for _ in 0..count {
            let name = self.name()?;
            let value = HeaderValue::from_bytes(self.bytes()?).map_err(|_| CodecError::Content)?;
            headers.try_append(name, value).map_err(|_| CodecError::Length)?;
        }
        Ok(headers)
    }
}
