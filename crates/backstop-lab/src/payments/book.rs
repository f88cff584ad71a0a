//! What the service knows: effects, refusals, what it is at work on, and what reached it.

use std::{collections::BTreeMap, fs::File, io, io::Write as _, path::Path};

use serde::{Deserialize, Serialize};

use crate::origin::{Arrival, Request};

use super::{
    Counts, Effect, key,
    log::{EffectLog, line, open_behind, read_lines},
};

/// The file of arrivals in a service's folder.
const ARRIVALS: &str = "arrivals.jsonl";
/// Where the status of a payment is asked for; its key follows.
pub(super) const BY_KEY: &str = "/payments/by-key/";

/// One line of the file of arrivals. It is not synced: it survives the end of the process, not that of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    Arrived { method: String, path: String, key: Option<String> },
    CutHead { key: Option<String> },
    Declined { key: String, amount: u64 },
}

/// What a status query is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Succeeded { sequence: u64, amount: u64 },
    Processing { amount: u64 },
    Declined { amount: u64 },
}

#[derive(Debug, Default)]
pub(super) struct Book {
    log: EffectLog,
    arrivals: Option<File>,
    counts: Counts,
    processing: BTreeMap<String, u64>,
    declined: BTreeMap<String, u64>,
}

impl Book {
    /// Goes on with what is in a folder.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let log = EffectLog::open(folder)?;
        let path = folder.join(ARRIVALS);
        let (notes, whole) = read_lines(&path)?;
        let mut book = Self { log, arrivals: Some(open_behind(&path, whole)?), ..Self::default() };
        for note in notes {
            book.count(note);
        }
        for effect in &book.log.effects {
            *book.counts.effects.entry(effect.operation_id.clone()).or_default() += 1;
        }
        Ok(book)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn effects(&self) -> &[Effect] {
        &self.log.effects
    }

    pub(super) fn arrived(&mut self, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Head(request) => {
                let path = request.path().to_owned();
                let key = match path.strip_prefix(BY_KEY) {
                    Some(segment) => Some(key::from_path(segment)),
                    None => key_of(request),
                };
                self.note(Note::Arrived { method: request.method.clone(), path, key });
            }
            Arrival::CutHead(bytes) if key::is_safe(bytes) => {}
            Arrival::CutHead(bytes) => self.note(Note::CutHead { key: key::from_cut_head(bytes) }),
        }
    }

    /// A payment happens, and is on disk when this returns.
    pub(super) fn execute(&mut self, key: &str, amount: u64) -> io::Result<Effect> {
        let effect = self.log.execute(key, amount)?;
        *self.counts.effects.entry(key.to_owned()).or_default() += 1;
        Ok(effect)
    }

    pub(super) fn decline(&mut self, key: &str, amount: u64) {
        self.note(Note::Declined { key: key.to_owned(), amount });
    }

    /// The payment is shown as under way until it has happened.
    pub(super) fn process(&mut self, key: &str, amount: u64) {
        self.processing.insert(key.to_owned(), amount);
    }

    /// What is known of a payment; without effects, as a replica knows it that lags behind.
    pub(super) fn standing(&self, key: &str, sees_effects: bool) -> Option<Standing> {
        let effect = self.log.first_of(key).filter(|_| sees_effects);
        let succeeded = effect.map(|it| Standing::Succeeded { sequence: it.sequence, amount: it.amount });
        let processing = || self.processing.get(key).map(|amount| Standing::Processing { amount: *amount });
        let declined = || self.declined.get(key).map(|amount| Standing::Declined { amount: *amount });
        succeeded.or_else(processing).or_else(declined)
    }

    fn note(&mut self, note: Note) {
        if let Some(file) = &mut self.arrivals {
            // A line that cannot be written is missing after a restart; what is counted now is right all the same.
            let _missing_later = line(&note).and_then(|line| file.write_all(&line));
        }
        self.count(note);
    }

    fn count(&mut self, note: Note) {
        let counts = &mut self.counts;
        let key = match note {
            Note::Declined { key, amount } => {
                self.declined.insert(key, amount);
                return;
            }
            Note::CutHead { key } => key,
            Note::Arrived { method, path, key } => {
                let is_safe = matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS");
                let is_query = is_safe && path.starts_with(BY_KEY);
                *counts.requests.entry((method, path)).or_default() += 1;
                if let Some(key) = key.clone().filter(|_| is_query) {
                    *counts.status_queries.entry(key).or_default() += 1;
                }
                if is_safe {
                    return;
                }
                key
            }
        };
        match key {
            Some(key) => *counts.forwards.entry(key).or_default() += 1,
            None => counts.unnamed_forwards += 1,
        }
    }
}

/// The key that a request came with.
pub(super) fn key_of(request: &Request) -> Option<String> {
    request.header(key::FIELD).map(key::plain).filter(|key| !key.is_empty())
}
