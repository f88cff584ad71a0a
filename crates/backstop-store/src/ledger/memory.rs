//! Rows in memory, for tests: nothing survives the process. Several ledgers may share them, one transaction after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use backstop_engine::operation::{
    ClientKey, Epoch, Fence, Identity, NotExecuted, OperationId, Record, Scope, State,
};
use backstop_engine::time::{Mono, Wall};

use super::history::HistoryEvent;
use super::rows::{Filter, Rows, RowsError, SecondLooks};

/// Rows in memory. A clone shows the same rows, as if the process had started again.
#[derive(Clone, Debug, Default)]
pub struct MemoryRows(Arc<(Mutex<Kept>, Condvar)>);

#[derive(Debug, Default)]
struct Kept {
    epoch: u64,
    /// Somebody is in a transaction.
    is_busy: bool,
    records: BTreeMap<OperationId, Record>,
    keys: BTreeMap<(Scope, ClientKey), OperationId>,
    history: BTreeMap<OperationId, Vec<HistoryEvent>>,
    /// What was there before the present transaction, of what it changed.
    undo: Vec<(OperationId, Option<Record>, Vec<HistoryEvent>)>,
}

impl Kept {
    fn put(&mut self, id: OperationId, record: Option<Record>) {
        let history = self.history.get(&id).cloned().unwrap_or_default();
        let before = self.set(id, record);
        self.undo.push((id, before, history));
    }

    fn set(&mut self, id: OperationId, record: Option<Record>) -> Option<Record> {
        let key = |record: &Record| (record.identity.scope, record.identity.key);
        let before = match record {
            Some(record) => {
                self.keys.insert(key(&record), id);
                self.records.insert(id, record)
            }
            None => self.records.remove(&id),
        };
        if let (Some(before), false) = (&before, self.records.contains_key(&id)) {
            self.keys.remove(&key(before));
        }
        before
    }

    fn all(&self, most: usize, mut wanted: impl FnMut(&Record) -> bool) -> Vec<Record> {
        self.records.values().filter(|record| wanted(record)).take(most).cloned().collect()
    }
}

impl MemoryRows {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, mut kept: MutexGuard<'_, Kept>) {
        kept.undo.clear();
        kept.is_busy = false;
        self.0.1.notify_one();
    }
}

impl Rows for MemoryRows {
    fn next_epoch(&mut self) -> Result<Epoch, RowsError> {
        let mut kept = self.kept();
        kept.epoch += 1;
        Ok(Epoch::new(kept.epoch))
    }

    fn begin(&mut self) -> Result<(), RowsError> {
        let waited = self.0.1.wait_while(self.kept(), |kept| kept.is_busy);
        waited.unwrap_or_else(PoisonError::into_inner).is_busy = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), RowsError> {
        self.end(self.kept());
        Ok(())
    }

    fn roll_back(&mut self) -> Result<(), RowsError> {
        let mut kept = self.kept();
        while let Some((id, record, history)) = kept.undo.pop() {
            kept.set(id, record);
            kept.history.insert(id, history);
        }
        self.end(kept);
        Ok(())
    }

    fn by_key(&mut self, scope: &Scope, key: &ClientKey) -> Result<Option<Record>, RowsError> {
        let kept = self.kept();
        Ok(kept.keys.get(&(*scope, *key)).and_then(|id| kept.records.get(id)).cloned())
    }

    fn by_id(&mut self, id: OperationId) -> Result<Option<Record>, RowsError> {
        Ok(self.kept().records.get(&id).cloned())
    }

    fn insert(&mut self, record: &Record) -> Result<bool, RowsError> {
        let mut kept = self.kept();
        let identity = &record.identity;
        if kept.records.contains_key(&identity.id) || kept.keys.contains_key(&(identity.scope, identity.key))
        {
            return Ok(false);
        }
        kept.put(identity.id, Some(record.clone()));
        Ok(true)
    }

    fn update(&mut self, record: &Record, fence: Fence) -> Result<bool, RowsError> {
        let mut kept = self.kept();
        let id = record.identity.id;
        if kept.records.get(&id).is_none_or(|before| before.progress.fence() != fence) {
            return Ok(false);
        }
        kept.put(id, Some(record.clone()));
        Ok(true)
    }

    fn forget(&mut self, id: OperationId) -> Result<(), RowsError> {
        let mut kept = self.kept();
        kept.put(id, None);
        kept.history.remove(&id);
        Ok(())
    }

    fn note(&mut self, id: OperationId, event: &HistoryEvent) -> Result<(), RowsError> {
        self.kept().history.entry(id).or_default().push(event.clone());
        Ok(())
    }

    fn history(&mut self, id: OperationId) -> Result<Vec<HistoryEvent>, RowsError> {
        Ok(self.kept().history.get(&id).cloned().unwrap_or_default())
    }

    fn due(&mut self, route: &str, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        let kept = self.kept();
        let is_due = |record: &&Record| {
            *record.identity.route == *route && record.progress.due().is_some_and(|due| due <= at)
        };
        let mut due: Vec<&Record> = kept.records.values().filter(is_due).collect();
        due.sort_by_key(|record| (record.progress.parts().asked, record.progress.due()));
        Ok(due.into_iter().take(most).cloned().collect())
    }

    fn oldest_due_of(&mut self, route: &str) -> Result<Option<Mono>, RowsError> {
        let kept = self.kept();
        let of_route = kept.records.values().filter(|record| *record.identity.route == *route);
        Ok(of_route.filter_map(|record| record.progress.due()).min())
    }

    fn routes(&mut self) -> Result<Vec<Box<str>>, RowsError> {
        let kept = self.kept();
        let routes: BTreeSet<_> = kept.records.values().map(|record| &record.identity.route).collect();
        Ok(routes.into_iter().cloned().collect())
    }

    fn lapsed(&mut self, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        Ok(self.kept().all(most, |record| {
            let parts = record.progress.parts();
            parts.state == State::Dispatching && parts.lease_until.is_some_and(|until| until <= at)
        }))
    }

    fn overdue(&mut self, at: Wall, most: usize) -> Result<Vec<Record>, RowsError> {
        Ok(self.kept().all(most, |record| {
            let parts = record.progress.parts();
            matches!(parts.state, State::Unknown(_)) && parts.verify_until <= at
        }))
    }

    fn decided_before(
        &mut self,
        route: &str,
        at: Wall,
        has_content: bool,
        most: usize,
    ) -> Result<Vec<Record>, RowsError> {
        Ok(self.kept().all(most, |record| {
            let parts = record.progress.parts();
            let content =
                record.answer.as_ref().is_some_and(|kept| kept.body.is_some() || !kept.fields.is_empty());
            let is_of_route = *record.identity.route == *route;
            is_of_route && parts.state.is_decided() && parts.changed <= at && (content || !has_content)
        }))
    }

    fn absent(&mut self, route: &str, which: &SecondLooks) -> Result<Vec<Record>, RowsError> {
        Ok(self.kept().all(which.most.min(SecondLooks::MOST), |record| {
            let Identity { id, created, route: of, .. } = &record.identity;
            record.progress.state() == State::NotExecuted(NotExecuted::Absent)
                && **of == *route
                && *created > which.began_after
                && which.after.is_none_or(|after| *id > after)
                && *id <= which.until
        }))
    }

    fn open_before(&mut self, epoch: Epoch, most: usize) -> Result<Vec<Record>, RowsError> {
        Ok(self.kept().all(most, |record| {
            let parts = record.progress.parts();
            !parts.state.is_decided() && parts.epoch < epoch
        }))
    }

    fn list(&mut self, filter: &Filter) -> Result<Vec<Record>, RowsError> {
        let mut listed = self.kept().all(usize::MAX, |record| {
            filter.state.is_none_or(|state| record.progress.state().token() == state)
                && filter.is_past_page(record.identity.created, record.identity.id)
        });
        listed.sort_by_key(|record| record.identity.created);
        listed.truncate(filter.most.min(Filter::MOST));
        Ok(listed)
    }

    fn counts(&mut self) -> Result<[u64; 6], RowsError> {
        let mut counts = [0; 6];
        for record in self.kept().records.values() {
            if let Some(count) = counts.get_mut(record.progress.state().index()) {
                *count += 1;
            }
        }
        Ok(counts)
    }

    fn oldest(&mut self, state: &'static str) -> Result<Option<Wall>, RowsError> {
        let kept = self.kept();
        let in_state = kept.records.values().filter(|record| record.progress.state().token() == state);
        Ok(in_state.map(|record| record.identity.created).min())
    }
}
