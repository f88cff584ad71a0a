//! A Redis or Valkey server as a cache: a dependency of its own, with its own limits and its own failures.
//!
//! A [`Cache`] is what all threads share, a [`Lane`] one thread's way to it. The rules:
//!
//! 1. **One command, one outcome.** Nothing is sent twice, and nothing is tried again, neither here nor in the library
//!    below. What the outcome is not known of is told so: [`CacheError::may_have_been_sent`].
//! 2. **Every command ends at its own limit**, [`CacheSettings::timeout`] or the caller's time, whichever is first: also
//!    when the server is frozen, the network swallows everything, or an answer comes byte by byte.
//! 3. **A bounded number of commands** is under way on a thread; what is more is refused at once. A command that nobody
//!    waits for any more goes on counting until it is answered or its time is over, because the server goes on with it.
//! 4. **One connection per thread**, opened when a command needs it, and not again before a pause is over (`link`).
//! 5. **An answer belongs to its command.** Replies come in order, each is counted, and one that nobody asked for ends the
//!    connection (`guard`). After a command without an answer, the connection takes no new ones (`call`). And a copy says
//!    what it is a copy of (`copies`).
//! 6. **Nothing that is sent to us grows without bound**: a reply has at most [`CacheSettings::value_bytes`], known before
//!    it is read (`frames`).
//! 7. **What is damaged is a miss**, and it is counted.
//!
//! The server needs to know `AUTH`, `SELECT`, `PING`, `GETRANGE`, `SET` with `PX`, and `DEL`; the first two only if the
//! settings ask for them. Values are read with `GETRANGE`, so that the server does not send more of one than may be read.

mod call;
mod connection;
mod copies;
mod counts;
mod error;
mod frames;
mod guard;
mod key;
mod link;
mod open;
mod settings;
mod thread;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::time::Mono;
use bytes::Bytes;
use redis::Value;

pub use copies::Cached;
pub use counts::{Counts, Ended};
pub use error::{CacheError, Refusal};
pub use settings::CacheSettings;
pub use thread::Lane;

use connection::Connection;
use counts::add;
use thread::Shared;

/// One cache, over all threads. Cheap to clone.
#[derive(Clone)]
pub struct Cache(Arc<Shared>);

impl Cache {
    /// Nothing is opened before it is needed.
    pub fn new(settings: CacheSettings, clock: Clock) -> Self {
        Self(Arc::new(Shared::new(settings, clock)))
    }

    /// A way to the cache for the present thread. `entropy` is any number that other threads and gateways do not have.
    ///
    /// # Panics
    /// Outside a [`LocalSet`](tokio::task::LocalSet) or a local runtime, as [`tokio::task::spawn_local`] does: the
    /// connection is driven there.
    pub fn lane(&self, entropy: u64) -> Lane {
        Lane::new(Arc::clone(&self.0), entropy)
    }

    /// What there is now and what there was so far.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }
}

impl Lane {
    /// The value under a key. An empty one is taken for none.
    ///
    /// # Errors
    /// If the cache gave no answer, or the value is larger than allowed.
    pub async fn get(&self, key: &[u8], until: Mono) -> Result<Option<Bytes>, CacheError> {
        let (value, _) = self.fetch(key, until).await.map_err(|error| self.failed(error))?;
        add(if value.is_some() { &self.0.tally.hits } else { &self.0.tally.misses });
        Ok(value)
    }

    /// Stores a value for a time, at least a millisecond, in place of what was there.
    ///
    /// # Errors
    /// If the cache did not confirm it. Unless it was not sent, it may be stored all the same, also later.
    pub async fn set(&self, key: &[u8], value: &[u8], ttl: Duration, until: Mono) -> Result<(), CacheError> {
        if value.len() > self.shared().settings.value_bytes {
            return Err(self.failed(CacheError::TooLarge));
        }
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_TTL_MS);
        let mut set = redis::cmd("SET");
        set.arg(key).arg(value).arg("PX").arg(millis);
        match self.command(set, until).await {
            Ok((Value::Okay, _)) => {
                add(&self.0.tally.stored);
                Ok(())
            }
            Ok((_, connection)) => Err(self.failed(self.foreign(&connection))),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Removes a value. Whether there was one.
    ///
    /// # Errors
    /// If the cache did not confirm it. Then the value may still be there.
    pub async fn delete(&self, key: &[u8], until: Mono) -> Result<bool, CacheError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(key);
        match self.command(delete, until).await {
            Ok((Value::Int(removed @ 0..=1), _)) => {
                add(&self.0.tally.deleted);
                Ok(removed == 1)
            }
            Ok((_, connection)) => Err(self.failed(self.foreign(&connection))),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// A value and the connection on which it came. Nothing is counted.
    async fn fetch(&self, key: &[u8], until: Mono) -> Result<(Option<Bytes>, Rc<Connection>), CacheError> {
        let most = self.shared().settings.value_bytes;
        let mut get = redis::cmd("GETRANGE");
        get.arg(key).arg(0).arg(most);
        match self.command(get, until).await? {
            (Value::BulkString(value), _) if value.len() > most => Err(CacheError::TooLarge),
            (Value::BulkString(value), connection) => {
                Ok(((!value.is_empty()).then(|| Bytes::from(value)), connection))
            }
            (_, connection) => Err(self.foreign(&connection)),
        }
    }

    /// What came is an answer, but to another command.
    fn foreign(&self, connection: &Rc<Connection>) -> CacheError {
        self.0.end(connection, CacheError::Protocol);
        CacheError::Protocol
    }
}

/// A year. A server refuses times that lead beyond what it can count.
const LONGEST_TTL_MS: u64 = 365 * 24 * 3_600 * 1_000;

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
