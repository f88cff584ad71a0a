//! How a copy is written on disk.
//!
//! There are two kinds of record. An **entry** is all that the index needs: identity, sequence number, size, date,
//! key and `Vary` fields. A **copy** is the whole answer. Both begin with a magic number, the format's version and
//! their kind, and end with a CRC-32 over everything before it; numbers are big-endian, every variable part is
//! preceded by its length.
//!
//! The checksum is verified before anything is understood, and every length is compared with what is left before
//! anything is allocated, so damaged or hostile bytes cost an error and no memory. A record of another version is an
//! error as well: copies may be lost, never misread.

mod reader;
mod writer;

use backstop_engine::snapshot::CopyFacts;
use bytes::Bytes;

use crate::copy::StoredCopy;
use crate::key::CopyKey;
use crate::vary::VaryField;

const MAGIC: [u8; 4] = *b"BSTC";
const VERSION: u8 = 1;
const KIND_ENTRY: u8 = b'E';
const KIND_COPY: u8 = b'C';
/// Magic, version, kind.
const PREFIX: usize = 6;
const CHECKSUM: usize = 4;

/// Why a record cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// It is shorter than its parts say, or longer.
    #[error("the record is truncated or overlong")]
    Length,
    /// It is not a record of this kind.
    #[error("not a record of this kind")]
    Kind,
    /// It was written in another version of the format.
    #[error("the record is of another version")]
    Version,
    /// Its checksum does not match.
    #[error("the checksum does not match")]
    Checksum,
    /// A part of it has no meaning.
    #[error("the record has a part without meaning")]
    Content,
}

/// What the index needs of a copy on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its identity.
    pub id: u64,
    /// Its place in the order in which the file was written.
    pub sequence: u64,
    /// The length of its record, in bytes.
    pub record_bytes: u64,
    /// Its date, and what the origin said about old copies.
    pub facts: CopyFacts,
    /// What it is found by.
    pub key: CopyKey,
    /// The request fields that select it.
    pub vary: Vec<VaryField>,
}

/// What a disk needs of an entry to decide which to drop, without checking all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPeek {
    /// Its place in the order in which the file was written.
    pub sequence: u64,
    /// The length of its record, in bytes.
    pub record_bytes: u64,
}

/// Writes an entry.
pub fn encode_entry(entry: &Entry) -> Vec<u8> {
    writer::entry(entry)
}

/// Reads an entry.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn decode_entry(bytes: &[u8]) -> Result<Entry, CodecError> {
    reader::entry(bytes)
}

/// Reads the place and the size of an entry, without checking the rest.
pub fn peek_entry(bytes: &[u8]) -> Option<EntryPeek> {
    reader::peek(bytes)
}

/// Writes the withdrawal of a route: its sequence number, and a CRC-32 over that and the route's name.
pub fn encode_withdrawn(route: &str, sequence: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    let (number, checksum) = bytes.split_at_mut(8);
    number.copy_from_slice(&sequence.to_be_bytes());
    checksum.copy_from_slice(&crc32fast::hash(&[number, route.as_bytes()].concat()).to_be_bytes());
    bytes
}

/// Reads the sequence number of the withdrawal of a route.
///
/// # Errors
/// If it is not what was written for this route.
pub fn decode_withdrawn(route: &str, bytes: &[u8]) -> Result<u64, CodecError> {
    let number = bytes.first_chunk().ok_or(CodecError::Length)?;
    let sequence = u64::from_be_bytes(*number);
    if encode_withdrawn(route, sequence) == *bytes { Ok(sequence) } else { Err(CodecError::Checksum) }
}

/// Writes a copy.
pub fn encode_copy(id: u64, key: &CopyKey, copy: &StoredCopy) -> Vec<u8> {
    writer::copy(id, key, copy)
}

/// Reads a copy. Its body shares the memory of `bytes`.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn decode_copy(bytes: &Bytes) -> Result<(u64, CopyKey, StoredCopy), CodecError> {
    reader::copy(bytes)
}

#[cfg(test)]
mod tests;
