//! Copies as values.
//!
//! A value is the whole answer, in the store's versioned form with a checksum over all of it
//! ([`backstop_store::codec`]), and it says what it was stored for. What is damaged, of another format, or of another key
//! is never served: it is a miss, and it is counted.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use backstop_engine::time::Mono;
use backstop_store::codec::{decode_copy, encode_copy};
use backstop_store::{CopyKey, StoredCopy, VaryField};
use http::HeaderMap;

use super::counts::add;
use super::error::CacheError;
use super::key::encoded;
use super::thread::Lane;

/// What the cache has for a request. All but a hit are misses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cached {
    /// A copy for it. Whether it may still be served is for the caller to judge by its date: a write that the server
    /// carries out late begins its time to live late.
    Hit(Box<StoredCopy>),
    /// Nothing.
    Absent,
    /// A copy for a request with other fields, of those that the answer's `Vary` names.
    OtherVariant,
    /// Something that is no copy of what was asked for.
    Damaged,
}

impl Lane {
    /// The copy for a request, if there is one.
    ///
    /// # Errors
    /// If the cache gave no answer.
    pub async fn get_copy(
        &self,
        key: &CopyKey,
        request: &HeaderMap,
        until: Mono,
    ) -> Result<Cached, CacheError> {
        let (value, connection) = match self.fetch(&self.key(key), until).await {
            Ok(found) => found,
            // One value's fault, not the cache's.
            Err(CacheError::TooLarge) => return Ok(self.counted(Cached::Damaged)),
            Err(error) => return Err(self.failed(error)),
        };
        let Some(value) = value else { return Ok(self.counted(Cached::Absent)) };
        Ok(self.counted(match decode_copy(&value) {
            Ok((_, found, copy)) if found == *key => {
                if copy.vary.iter().all(|field: &VaryField| field.matches(request)) {
                    Cached::Hit(Box::new(copy))
                } else {
                    Cached::OtherVariant
                }
            }
            Ok(_) => {
                // Whole, and for another key: perhaps it is the answer to another command.
                self.0.end(&connection, CacheError::Protocol);
                Cached::Damaged
            }
            Err(_) => Cached::Damaged,
        }))
    }

    /// Stores a copy for a time, in place of what was there.
    ///
    /// # Errors
    /// If the cache did not confirm it. Unless it was not sent, it may be stored all the same, also later.
    pub async fn set_copy(
        &self,
        key: &CopyKey,
        copy: &StoredCopy,
        ttl: Duration,
        until: Mono,
    ) -> Result<(), CacheError> {
        let value = encode_copy(0, key, copy);
        self.set(&self.key(key), &value, ttl, until).await
    }

    /// Removes a copy. Whether there was one.
    ///
    /// # Errors
    /// If the cache did not confirm it. Then the copy may still be there.
    pub async fn delete_copy(&self, key: &CopyKey, until: Mono) -> Result<bool, CacheError> {
        self.delete(&self.key(key), until).await
    }

    fn key(&self, key: &CopyKey) -> Vec<u8> {
        encoded(&self.shared().settings.prefix, key)
    }

    pub(super) fn counted(&self, cached: Cached) -> Cached {
        let tally = &self.0.tally;
        let count: &AtomicU64 = match &cached {
            Cached::Hit(_) => &tally.hits,
            Cached::Absent => &tally.misses,
            Cached::OtherVariant => &tally.other_variants,
            Cached::Damaged => &tally.damaged,
        };
        add(count);
        cached
    }

    pub(super) fn failed(&self, error: CacheError) -> CacheError {
        self.0.tally.failed(error);
        error
    }
}
