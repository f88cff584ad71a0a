//! Incidents as this process sees them: a look once a second, a record of each, in memory and on disk.
//!
//! What an incident is, when it begins and when it is over is the engine's ([`backstop_engine::incident`]). Here it is
//! told once a second, by the gateway's clock, what the engine has counted since; the record of the running incident is
//! written when its phase changes and every five seconds, and once more at a clean stop. A process that is killed loses
//! what it counted after that, and nothing else: the next one goes on with the same incident and notes the gap.
//!
//! While the service is stopping no incident begins: that it refuses is its operator's wish.

mod files;
mod read;
mod sample;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop_engine::engine::Engine;
use backstop_engine::incident::{Baseline, Change, Incidents, Moment, Names, Phase, Record, Signals};
use backstop_engine::time::{Mono, Now};
use serde_json::{Value, json};

use self::sample::Totals;
use crate::state::{Folder, Keeper, json as written};

/// How often the record of a running incident is written, if its phase stays.
const EVERY: Duration = Duration::from_secs(5);
/// How often it is written down what is usual.
const USUAL_EVERY: Duration = Duration::from_secs(60);

/// The incident of the moment and those before it.
#[derive(Debug)]
pub(crate) struct Book {
    engine: Arc<Engine>,
    names: Names,
    keeper: Option<Arc<Keeper>>,
    pages: Mutex<Pages>,
}

#[derive(Debug)]
struct Pages {
    incidents: Incidents,
    totals: Totals,
    /// The last second that was counted.
    looked: Moment,
    written: Option<Mono>,
    usual: Option<(Mono, u64, Baseline)>,
}

/// How many incidents there were, and how the present one stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) begun: u64,
    pub(crate) phase: Option<Phase>,
}

impl Book {
    /// Goes on from what an earlier process wrote, if there is a folder.
    pub(crate) fn open(
        engine: &Arc<Engine>,
        now: Now,
        folder: Option<&Folder>,
        keeper: Option<Arc<Keeper>>,
    ) -> Self {
        let found = folder.map(files::read).unwrap_or_default();
        if let Some(keeper) = &keeper {
            found.excess.iter().for_each(|name| keeper.remove(name));
        }
        let incidents = Incidents::restore(found.saved, now);
        if let Some(record) = incidents.current() {
            let phase = record.phase.token();
            tracing::warn!(target: "backstop::incident", id = %record.id, phase, "an incident goes on");
        }
        let names = sample::names(engine);
        // What an earlier process counted is not among the counters of this one.
        let pages = Pages {
            incidents,
            totals: Totals::default(),
            looked: Moment::from(now),
            written: None,
            usual: None,
        };
        Self { engine: Arc::clone(engine), names, keeper, pages: Mutex::new(pages) }
    }

    /// Takes up what an earlier process wrote and what could not be read at the start, and writes all of it anew.
    pub(crate) fn take_up_late(&self, folder: &Folder, now: Now) {
        let Some(keeper) = &self.keeper else { return };
        let found = files::read(folder);
        found.excess.iter().for_each(|name| keeper.remove(name));
        let mut pages = self.pages();
        // Their numbers change, and with them the names of the files that wait to be written.
        let own =
            |pages: &Pages| pages.incidents.ended().len() + usize::from(pages.incidents.current().is_some());
        let count = own(&pages);
        for record in pages.incidents.ended().chain(pages.incidents.current()) {
            keeper.remove(&files::name(&record.id));
        }
        pages.incidents.take_up_late(found.saved, now);
        let before = own(&pages).saturating_sub(count);
        if before > 0 {
            tracing::warn!(
                target: "backstop::incident",
                before,
                "incidents from before the start are taken up: they could not be read until now"
            );
        }
        for record in pages.incidents.ended() {
            self.write(Some(record), &pages.looked);
        }
        (pages.written, pages.usual) = (None, None);
        self.write_down(&mut pages, now, true);
    }

    /// Takes in what happened since the last look.
    pub(crate) fn look(&self, now: Now) {
        let mut pages = self.pages();
        if self.engine.is_draining() && pages.incidents.current().is_none() {
            return;
        }
        let totals = Totals::read(&self.engine, &self.names);
        let sample = totals.since(&pages.totals, &self.engine, now.mono);
        pages.totals = totals;
        pages.looked = Moment::from(now);
        let oldest = pages.incidents.ended().next().map(|record| record.id.clone());
        let change = pages.incidents.tick(now, &sample, &self.names);
        let is_changed = change.is_some();
        if let Some(change) = change {
            tell(&change);
            let forgotten = oldest.filter(|oldest| pages.incidents.ended().all(|kept| kept.id != *oldest));
            if let (Some(keeper), Some(id)) = (&self.keeper, forgotten) {
                keeper.remove(&files::name(&id));
            }
            if let Change::Ended { id, .. } = &change {
                let ended = pages.incidents.ended().next_back().filter(|record| record.id == *id);
                self.write(ended, &pages.looked);
            }
        }
        self.write_down(&mut pages, now, is_changed);
    }

    /// A last look, and everything is written. Blocks for no disk.
    pub(crate) fn close(&self, now: Now) {
        self.look(now);
        self.write_down(&mut self.pages(), now, true);
    }

    /// How many there were, and how the present one stands.
    pub(crate) fn standing(&self) -> Standing {
        let pages = self.pages();
        let phase = pages.incidents.current().map(|record| record.phase);
        Standing { begun: pages.incidents.begun(), phase }
    }

    /// All that are remembered, in a few words each, the newest first.
    pub(crate) fn list(&self) -> Value {
        let pages = self.pages();
        json!({
            "counted_until": written::moment(&pages.looked),
            "on_disk": self.keeper.is_some(),
            "current": pages.incidents.current().map(write::line),
            "ended": pages.incidents.ended().rev().map(write::line).collect::<Vec<_>>(),
        })
    }

    /// Something of each, the newest first. They also get the last second that was counted.
    pub(crate) fn each<T>(&self, of: impl Fn(&Record, &Moment) -> T) -> Vec<T> {
        let pages = self.pages();
        let all = pages.incidents.ended().chain(pages.incidents.current());
        let mut all: Vec<T> = all.map(|record| of(record, &pages.looked)).collect();
        all.reverse();
        all
    }

    /// Something of one of them.
    pub(crate) fn with<T>(&self, id: &str, of: impl FnOnce(&Record, &Moment) -> T) -> Option<T> {
        let pages = self.pages();
        let mut all = pages.incidents.current().into_iter().chain(pages.incidents.ended());
        all.find(|record| *record.id == *id).map(|record| of(record, &pages.looked))
    }

    /// One of them, whole.
    pub(crate) fn one(&self, id: &str) -> Option<Value> {
        self.with(id, |record, looked| write::whole(record, &counted(record, looked)))
    }

    fn write_down(&self, pages: &mut Pages, now: Now, is_changed: bool) {
        let is_due = |last: Mono, every| now.mono.since(last).is_none_or(|passed| passed >= every);
        if let Some(record) = pages.incidents.current()
            && (is_changed || pages.written.is_none_or(|last| is_due(last, EVERY)))
        {
            self.write(Some(record), &pages.looked);
            pages.written = Some(now.mono);
        }
        let (begun, baseline) = (pages.incidents.begun(), *pages.incidents.baseline());
        let is_new = |(last, known, usual): (Mono, u64, Baseline)| {
            known != begun || (usual != baseline && (is_changed || is_due(last, USUAL_EVERY)))
        };
        if pages.usual.is_none_or(is_new) {
            if let Some(keeper) = &self.keeper {
                let _nobody_waits =
                    keeper.write(files::USUAL, written::text(&write::usual(begun, &baseline)));
            }
            pages.usual = Some((now.mono, begun, baseline));
        }
    }

    fn write(&self, record: Option<&Record>, looked: &Moment) {
        if let (Some(keeper), Some(record)) = (&self.keeper, record) {
            let text = written::text(&write::whole(record, &counted(record, looked)));
            let _nobody_waits = keeper.write(&files::name(&record.id), text);
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a file of an incident holds, and the last second that is in it.
pub(crate) fn parse(text: &str) -> Result<(Record, Moment), String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    read::whole(&value).map_err(|error| error.to_string())
}

/// The last second that is in a record.
fn counted(record: &Record, looked: &Moment) -> Moment {
    record.ended.unwrap_or(*looked)
}

fn tell(change: &Change) {
    match change {
        Change::Began { id, began, signals } => tracing::warn!(
            target: "backstop::incident",
            %id,
            began = began.date(),
            signals = words(*signals),
            "an incident began"
        ),
        Change::PhaseChanged { id, from, to, signals } => tracing::warn!(
            target: "backstop::incident",
            %id,
            from = from.token(),
            to = to.token(),
            signals = words(*signals),
            "the incident has another phase"
        ),
        Change::Ended { id, lasted } => tracing::warn!(
            target: "backstop::incident",
            %id,
            seconds = lasted.as_secs(),
            "the incident is over"
        ),
    }
}

fn words(signals: Signals) -> String {
    signals.iter().map(|signal| signal.token()).collect::<Vec<_>>().join(" ")
}
