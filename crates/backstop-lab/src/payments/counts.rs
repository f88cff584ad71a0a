//! What reached the service and what came of it, by key.

use std::collections::BTreeMap;

/// Counts since the service's folder was new, or since its start without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Payments made, by key.
    pub effects: BTreeMap<String, u64>,
    /// Requests that may change something, by key: from the whole head, or from as much of a head that broke off as holds
    /// the line with the key. Whether the body came does not matter.
    pub forwards: BTreeMap<String, u64>,
    /// Such requests without a key, or cut before it: at least one byte came.
    pub unnamed_forwards: u64,
    /// Status queries, by key.
    pub status_queries: BTreeMap<String, u64>,
    /// Requests with a whole head, by method and path.
    pub requests: BTreeMap<(String, String), u64>,
}

impl Counts {
    /// Payments made.
    #[must_use]
    pub fn effects_in_all(&self) -> u64 {
        self.effects.values().sum()
    }

    /// Requests that may change something, with a key or without.
    #[must_use]
    pub fn forwards_in_all(&self) -> u64 {
        self.forwards.values().sum::<u64>() + self.unnamed_forwards
    }

    /// Status queries.
    #[must_use]
    pub fn status_queries_in_all(&self) -> u64 {
        self.status_queries.values().sum()
    }

    /// The methods seen, each once, in alphabetical order.
    #[must_use]
    pub fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = self.requests.keys().map(|(method, _)| method.as_str()).collect();
        methods.dedup();
        methods
    }
}
