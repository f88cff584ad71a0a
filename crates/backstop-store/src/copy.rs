//! A copy: one correct answer, complete, with the date at which its read began.

use backstop_engine::snapshot::CopyFacts;
use bytes::Bytes;
use http::HeaderMap;

use crate::vary::VaryField;

/// What a header field takes beside its bytes: a bucket, a slot of the hash table, two handles.
const FIELD_OVERHEAD: usize = 104;
/// What a copy takes beside what it holds: the allocation itself, its place in the map and in the index.
const COPY_OVERHEAD: usize = 320;

/// The last correct answer for a key and variant. Never changed once stored: a renewal makes a new one that shares
/// the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCopy {
    /// Its date, and what the origin said about old copies.
    pub facts: CopyFacts,
    /// The request fields that select it; empty where the answer does not vary.
    pub vary: Vec<VaryField>,
    /// The status.
    pub status: u16,
    /// The fields, as they may be sent again.
    pub headers: HeaderMap,
    /// The complete body.
    pub body: Bytes,
}

impl StoredCopy {
    /// The memory that it takes, overhead included, in bytes: what the memory limit counts.
    pub fn weight(&self) -> u64 {
        let vary: usize = self.vary.iter().map(VaryField::bytes).sum();
        (COPY_OVERHEAD + fields_bytes(&self.headers) + vary + self.body.len()) as u64
    }
}

/// The memory that fields take, in bytes.
pub(crate) fn fields_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| FIELD_OVERHEAD + name.as_str().len() + value.len()).sum()
}
