//! Asking for a copy: what is known of it, and the copy itself.

use std::sync::Arc;

use backstop_engine::snapshot::CopyFacts;
use backstop_engine::time::Mono;
use http::HeaderMap;
use tokio::sync::oneshot;

use super::{Copies, Inner};
use crate::confirm::PendingLoad;
use crate::copy::StoredCopy;
use crate::health::add;
use crate::key::CopyKey;
use crate::queue::{Fetch, Purpose, Put};

type Reply = oneshot::Sender<Result<Arc<StoredCopy>, LoadError>>;

/// Where a copy is.
#[derive(Debug)]
pub enum Loaded {
    /// There is none for this key and request.
    Missing,
    /// In memory.
    Ready(Arc<StoredCopy>),
    /// On disk, being read. The caller bounds the wait itself, and judges what comes by its own date: it may be
    /// older than the one that was peeked at, never newer than the answer.
    Disk(PendingLoad),
    /// On disk, and the disk cannot be read now: too many reads wait.
    Unreadable,
}

/// Why a copy could not be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It was withdrawn or dropped meanwhile.
    #[error("the copy was withdrawn or dropped while it was being read")]
    Gone,
    /// The disk failed, or the record is damaged (which is counted, and it is dropped).
    #[error("the copy could not be read back from disk")]
    Unreadable,
}

impl Copies {
    /// What is known of the copy for this request: the most recent variant whose `Vary` fields all match. From the
    /// index in memory, never from disk; allocates nothing.
    pub fn peek(&self, key: &CopyKey, request: &HeaderMap) -> Option<CopyFacts> {
        let located = self.inner.index.locate(key);
        self.inner.index.read(located.shard()).select(located, key, request).map(|(_, variant)| variant.facts)
    }

    /// Whether an answer for this key whose read began at `began` was withdrawn since, or may not be kept. For answers that
    /// lie elsewhere, in a cache that others write too: it is known of withdrawals in this process's life only.
    pub fn withdrawn_since(&self, key: &CopyKey, began: Mono) -> bool {
        self.inner.holds.refuse(key, began) || self.changed_since(key, began)
    }

    /// Whether a change of what this key names has ended since `began`: whoever asks from now on must see it, and no answer
    /// of a read that began at `began` shows it for sure. A change that is still under way concerns nobody yet.
    pub fn changed_since(&self, key: &CopyKey, began: Mono) -> bool {
        let Some(route) = self.inner.routes.get(&key.route) else { return true };
        if route.withdrawn_since(began) {
            return true;
        }
        let located = self.inner.index.locate(key);
        self.inner.index.read(located.shard()).marks.withdrawn_since(&key.target, began)
    }

    /// As [`Copies::load`], of a copy that nobody waits for and that may be replaced at any moment: what lay on the disk
    /// when this was called is read and checked all the same, unless its record is gone. It is not taken into memory.
    pub fn examine(&self, key: &CopyKey, request: &HeaderMap) -> Loaded {
        self.find(key, request, |reply| Purpose::Examine(Box::new(key.clone()), reply))
    }

    /// The copy for this request, selected as [`Copies::peek`] does.
    pub fn load(&self, key: &CopyKey, request: &HeaderMap) -> Loaded {
        self.find(key, request, Purpose::Load)
    }

    fn find(&self, key: &CopyKey, request: &HeaderMap, purpose: impl FnOnce(Reply) -> Purpose) -> Loaded {
        let located = self.inner.index.locate(key);
        let put = {
            let shard = self.inner.index.read(located.shard());
            let Some((place, variant)) = shard.select(located, key, request) else { return Loaded::Missing };
            if let Some(copy) = self.inner.bodies.get(variant.id) {
                return Loaded::Ready(copy);
            }
            if let Some(queued) = &variant.queued {
                return Loaded::Ready(queued.copy.clone());
            }
            Put { id: variant.id, shard: located.shard(), place }
        };
        self.inner.fetch(put, purpose)
    }
}

impl Inner {
    fn fetch(&self, put: Put, purpose: impl FnOnce(Reply) -> Purpose) -> Loaded {
        let Some(queue) = &self.queue else { return Loaded::Missing };
        let (reply, pending) = PendingLoad::channel();
        match queue.fetch(Fetch { put, purpose: purpose(reply) }) {
            Ok(()) => Loaded::Disk(pending),
            Err(_) => {
                add(&self.counters.reads_failed, 1);
                Loaded::Unreadable
            }
        }
    }
}
