//! What the store asks of a disk, and the two threads that ask it.
//!
//! A [`Disk`] is one open file (or whatever keeps bytes); a [`Medium`] opens it, and again after it failed. Both know
//! nothing of copies beyond [`codec`](crate::codec) records: which to keep, when to retry and what to tell whom is
//! decided here, once, so that every disk behaves alike and tests can put a failing one in its place.

mod failure;
mod found;
mod reader;
mod writer;

use std::fmt;
use std::path::PathBuf;

use backstop_engine::time::{Now, Wall};
use bytes::Bytes;

use crate::copies::Copies;
use crate::options::{OpenReport, StoreOptions};

/// Why a disk did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// No room is left on the device.
    #[error("{0}")]
    Full(String),
    /// It cannot be opened, read or written now.
    #[error("{0}")]
    Failed(String),
    /// What it holds is damaged as a whole; it is set aside.
    #[error("{0}")]
    Corrupt(String),
}

/// Something that a disk holds.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// The latest date that was persisted.
    Wall(Wall),
    /// A route was withdrawn: its entries with a lower sequence number are gone.
    Withdrawn {
        /// The route's name.
        route: &'a str,
        /// The sequence number of the withdrawal.
        sequence: u64,
    },
    /// An entry, as it was written.
    Entry {
        /// The identity under which it lies.
        id: u64,
        /// The record.
        bytes: &'a [u8],
    },
}

/// A copy to be written.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its identity; replaces what lies under it.
    pub id: u64,
    /// What the index needs.
    pub entry: Vec<u8>,
    /// The whole copy.
    pub copy: Vec<u8>,
}

/// Changes that are made together or not at all, in this order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Identities whose entry and copy are deleted; unknown ones are ignored.
    pub deletes: Vec<u64>,
    /// Routes withdrawn, with the sequence number of the withdrawal.
    pub withdrawn: Vec<(Box<str>, u64)>,
    /// Copies written.
    pub puts: Vec<Record>,
    /// The date to persist.
    pub wall: Option<Wall>,
    /// Whether the batch and all before it must survive a crash before it counts as applied.
    pub durable: bool,
}

/// What became of a batch.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Entries that were dropped to hold the size limit and are not there any more, as they were written.
    pub evicted: Vec<Vec<u8>>,
    /// Whether everything so far survives a crash; may be so without having been asked for.
    pub durable: bool,
}

/// One open disk. Written by one thread, read by another at the same time.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Shows everything that it holds: the date and withdrawals first, then every entry.
    ///
    /// # Errors
    /// If it cannot be read as a whole.
    fn scan(&self, show: &mut dyn FnMut(Found<'_>)) -> Result<(), DiskError>;

    /// Applies a batch.
    ///
    /// # Errors
    /// If it may not have been applied; the disk is then given up and opened again.
    fn apply(&self, batch: &Batch) -> Result<Applied, DiskError>;

    /// The copy with this identity, as it was written.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, id: u64) -> Result<Option<Bytes>, DiskError>;

    /// Its size, in bytes.
    fn bytes(&self) -> u64;

    /// The largest copy that it takes; one batch holds at most half as much again.
    fn largest_copy(&self) -> u64;
}

/// Opens a disk.
pub trait Medium: fmt::Debug + Send {
    /// Opens it, and makes it if it does not exist.
    ///
    /// # Errors
    /// If that is not possible now.
    fn open(&mut self) -> Result<Box<dyn Disk>, DiskError>;

    /// Moves a damaged one out of the way; the next [`Medium::open`] begins anew.
    ///
    /// # Errors
    /// If it cannot be moved.
    fn set_aside(&mut self) -> Result<PathBuf, DiskError>;

    /// Whether one exists that may hold copies of an earlier life. In doubt, it does.
    fn may_hold_copies(&self) -> bool;

    /// No room is left on the device: the next one opened keeps less.
    fn keep_less(&mut self);
}

impl Copies {
    /// Opens a store on any disk. Never fails: a disk that cannot be used is reported, tried again, and done without.
    pub fn open_on(medium: Box<dyn Medium>, options: StoreOptions, now: Now) -> (Self, OpenReport) {
        writer::open(medium, options, now)
    }
}
