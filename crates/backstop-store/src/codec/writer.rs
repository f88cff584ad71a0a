//! Writing records.

use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, OriginLimit};

use super::{Entry, KIND_COPY, KIND_ENTRY, MAGIC, VERSION};
use crate::copy::StoredCopy;
use crate::key::CopyKey;
use crate::vary::VaryField;

struct Out(Vec<u8>);

pub(super) fn entry(entry: &Entry) -> Vec<u8> {
    let mut out = Out::new(KIND_ENTRY, 192 + entry.key.bytes());
    out.u64(entry.id);
    out.u64(entry.sequence);
    out.u64(entry.record_bytes);
    out.facts(&entry.facts);
    out.key(&entry.key);
    out.vary(&entry.vary);
    out.seal()
}

pub(super) fn copy(id: u64, key: &CopyKey, copy: &StoredCopy) -> Vec<u8> {
    let weight = usize::try_from(copy.weight()).unwrap_or(0);
    let mut out = Out::new(KIND_COPY, weight + key.bytes());
    out.u64(id);
    out.facts(&copy.facts);
    out.key(key);
    out.vary(&copy.vary);
    out.0.extend_from_slice(&copy.status.to_be_bytes());
    out.length(copy.headers.len());
    for (name, value) in &copy.headers {
        out.bytes(name.as_str().as_bytes());
        out.bytes(value.as_bytes());
    }
    out.u64(copy.body.len() as u64);
    out.0.extend_from_slice(&copy.body);
    out.seal()
}

impl Out {
    fn new(kind: u8, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, kind]);
        Self(bytes)
    }

    fn seal(mut self) -> Vec<u8> {
        let checksum = crc32fast::hash(&self.0);
        self.0.extend_from_slice(&checksum.to_be_bytes());
        self.0
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// A length; one that cannot be written makes a record that cannot be read, which is the safe side.
    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.0.push(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }

    fn duration(&mut self, duration: Duration) {
        self.u64(duration.as_secs());
        self.0.extend_from_slice(&duration.subsec_nanos().to_be_bytes());
    }

    fn facts(&mut self, facts: &CopyFacts) {
        let date = &facts.observed_at;
        self.u64(date.mono.as_ns());
        self.0.extend_from_slice(&date.wall.as_unix_ns().to_be_bytes());
        self.0.extend_from_slice(&date.boot.0);
        self.duration(date.received_age);
        let (kind, limit) = match facts.origin_limit {
            OriginLimit::Unlimited => (0, Duration::ZERO),
            OriginLimit::Never => (1, Duration::ZERO),
            OriginLimit::WhileFresh(limit) => (2, limit),
            OriginLimit::UpTo(limit) => (3, limit),
        };
        self.0.push(kind);
        self.duration(limit);
    }

    fn key(&mut self, key: &CopyKey) {
        self.bytes(key.target.host().as_bytes());
        self.bytes(key.target.path().as_bytes());
        self.optional(key.target.query().map(str::as_bytes));
        self.bytes(key.route.as_bytes());
        self.bytes(&key.partition);
    }

    fn vary(&mut self, vary: &[VaryField]) {
        self.length(vary.len());
        for field in vary {
            self.bytes(field.name.as_str().as_bytes());
            self.optional(field.value.as_deref());
        }
    }
}
