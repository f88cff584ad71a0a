//! The state of the disk in words, and the log line for every change of it.

use backstop_store::{DiskState, StoreHealth};

/// What is wrong with the disk, in one word and in the system's own words; `None` if nothing is.
pub(crate) fn trouble(state: &DiskState) -> Option<(&'static str, &str)> {
    match state {
        DiskState::Off | DiskState::Ok => None,
        DiskState::Full(trouble) => Some(("full", &trouble.message)),
        DiskState::Failed(trouble) => Some(("failing", &trouble.message)),
    }
}

/// Remembers what was said of the disk, so that each change is said once, and so is each loss.
#[derive(Debug)]
pub(crate) struct Watch {
    said: Option<&'static str>,
    lost: u64,
}

impl Watch {
    /// Begins with what was found at the start, which whoever started has said.
    pub(crate) fn new(found: &DiskState) -> Self {
        Self { said: trouble(found).map(|(word, _)| word), lost: 0 }
    }

    pub(crate) fn look(&mut self, health: &StoreHealth) {
        // A trouble that came and went between two looks has still cost something.
        let lost = health.writes_failed + health.writes_dropped;
        if lost > self.lost {
            let count = lost - std::mem::replace(&mut self.lost, lost);
            tracing::warn!(
                target: "backstop::store",
                count,
                "copies were not written to disk and are kept in memory only"
            );
        }
        let trouble = trouble(&health.disk);
        let word = trouble.map(|(word, _)| word);
        if word == self.said {
            return;
        }
        self.said = word;
        match trouble {
            Some((word, error)) => tracing::error!(
                target: "backstop::store",
                error,
                "the disk is {word}: copies are kept in memory only and will not survive a restart"
            ),
            None => tracing::info!(
                target: "backstop::store",
                "the disk is used again: copies survive a restart"
            ),
        }
    }
}
