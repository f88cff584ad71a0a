//! A copy: one correct answer, complete, with the date at which its read began.

use backstop_engine::snapshot::CopyFacts;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

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

/// Fields in memory of their own: a name or value that arrived may be a slice of a connection's read buffer, and would keep
/// all of it, counted by nobody, for as long as it is kept itself.
pub fn owned_fields(fields: &HeaderMap) -> HeaderMap {
    let mut owned = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).unwrap_or_else(|_| name.clone());
        let mut copy = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
        copy.set_sensitive(value.is_sensitive());
        owned.append(name, copy);
    }
    owned
}

/// The memory that fields take, in bytes.
pub(crate) fn fields_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| FIELD_OVERHEAD + name.as_str().len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use http::header::ETAG;

    use super::*;

    #[test]
    fn owned_fields_keep_no_buffer_alive() {
        let buffer = Bytes::from(vec![b'x'; 30_000]);
        let mut sent = HeaderMap::new();
        sent.append(ETAG, HeaderValue::from_maybe_shared(buffer.slice(..10)).unwrap());
        assert!(!buffer.is_unique());
        let owned = owned_fields(&sent);
        assert_eq!(owned, sent);
        drop(sent);
        assert!(buffer.is_unique());
    }
}
