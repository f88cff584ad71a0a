//! What the writer tells the index.

use std::sync::Arc;

use super::Inner;
use crate::copy::StoredCopy;
use crate::key::CopyKey;
use crate::queue::Put;

impl Inner {
    /// The content that waits to be written for a variant; `None` if it was withdrawn or dropped meanwhile.
    pub(crate) fn take_queued(&self, put: Put) -> Option<(CopyKey, Arc<StoredCopy>)> {
        let mut shard = self.index.write(put.shard);
        let key = shard.live(put.place, put.id)?.0.unpack()?;
        let queued = shard.variant_mut(put.place, put.id)?.queued.as_mut()?;
        queued.waiting = false;
        Some((key, queued.copy.clone()))
    }

    /// The content was written.
    pub(crate) fn written(&self, put: Put, copy: &Arc<StoredCopy>) {
        let mut shard = self.index.write(put.shard);
        let Some(variant) = shard.variant_mut(put.place, put.id) else { return };
        variant.set_stored(Some(copy.facts));
        self.unqueue(variant.queued.take_if(|queued| Arc::ptr_eq(&queued.copy, copy)).is_some(), copy);
    }

    /// The content could not be written: the disk keeps what it had, and the variant lives on if it is in memory.
    pub(crate) fn write_lost(&self, put: Put, copy: &Arc<StoredCopy>) {
        let mut shard = self.index.write(put.shard);
        let before = (shard.bytes(), shard.len());
        let mut removed = Vec::new();
        if let Some(variant) = shard.variant_mut(put.place, put.id) {
            self.unqueue(variant.queued.take_if(|queued| Arc::ptr_eq(&queued.copy, copy)).is_some(), copy);
            if !variant.settle() {
                shard.remove_variant(put.place, put.id, &mut removed);
            }
        }
        self.forget(&removed);
        self.account(before, (shard.bytes(), shard.len()));
    }

    fn unqueue(&self, was_queued: bool, copy: &StoredCopy) {
        if let Some(queue) = self.queue.as_ref().filter(|_| was_queued) {
            queue.release(copy.weight());
        }
    }
}
