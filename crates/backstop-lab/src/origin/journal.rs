//! The record of what reached the origin, and the bell that rings when it changes.
//!
//! One lock, held for a few assignments and never across an await. Every change moves a watch channel, so that a
//! waiter looks again; the look itself goes through the lock, so no change is missed and none is seen twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::watch;

use crate::clock::monotonic_ns;

use super::{Arrival, Limits, Request, Stats, connections::ConnectionRecord, observer::Observer};

/// Most different method-and-path pairs counted apart.
const PATHS_MAX: usize = 65_536;

/// Where a request stands in the record. Void after a reset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    generation: u64,
    at: Option<usize>,
}

#[derive(Debug, Default)]
struct Pages {
    generation: u64,
    stats: Stats,
    requests: Vec<Arc<Request>>,
    by_path: HashMap<(String, String), u64>,
    connections: Vec<ConnectionRecord>,
    connections_seen: u64,
    recorded_bytes: usize,
    raw: bool,
}

#[derive(Debug)]
pub(crate) struct Journal {
    pages: Mutex<Pages>,
    bell: watch::Sender<u64>,
    limits: Limits,
    observer: Option<Observer>,
}

impl Journal {
    pub(crate) fn new(limits: Limits, raw: bool, observer: Option<Observer>) -> Self {
        let pages = Pages { raw, ..Pages::default() };
        Self { pages: Mutex::new(pages), bell: watch::Sender::new(0), limits, observer }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Pages) -> T) -> T {
        let changed = change(&mut self.pages());
        self.bell.send_modify(|rings| *rings = rings.wrapping_add(1));
        changed
    }

    /// Counts something.
    pub(crate) fn count(&self, count: impl FnOnce(&mut Stats)) {
        self.change(|pages| count(&mut pages.stats));
    }

    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.pages().stats
    }

    pub(crate) fn requests(&self) -> Vec<Arc<Request>> {
        self.pages().requests.clone()
    }

    pub(crate) fn count_where(&self, wanted: impl Fn(&Request) -> bool) -> usize {
        self.pages().requests.iter().filter(|request| wanted(request)).count()
    }

    pub(crate) fn count_of(&self, method: &str, path: &str) -> u64 {
        self.pages().by_path.get(&(method.to_owned(), path.to_owned())).copied().unwrap_or(0)
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionRecord> {
        self.pages().connections.clone()
    }

    pub(crate) fn record_raw(&self, raw: bool) {
        self.change(|pages| pages.raw = raw);
    }

    /// Forgets what was recorded and counted. Open connections and running requests stay counted as such.
    pub(crate) fn reset(&self) {
        self.change(|pages| {
            pages.generation += 1;
            pages.stats = pages.stats.restarted();
            pages.requests.clear();
            pages.by_path.clear();
            pages.connections.retain(|connection| connection.closed_ns.is_none());
            for connection in &mut pages.connections {
                connection.received = Vec::new();
            }
            pages.recorded_bytes = 0;
        });
    }

    /// A connection was accepted. `None` when too many are open.
    pub(crate) fn connected(&self) -> Option<u64> {
        self.change(|pages| {
            pages.stats.connections_accepted += 1;
            if pages.stats.connections_open >= self.limits.connections as u64 {
                pages.stats.connections_over_limit += 1;
                return None;
            }
            pages.stats.connections_open += 1;
            pages.stats.peak_connections = pages.stats.peak_connections.max(pages.stats.connections_open);
            let number = pages.connections_seen;
            pages.connections_seen += 1;
            if pages.connections.len() < self.limits.connection_records {
                pages.connections.push(ConnectionRecord::opened(number, monotonic_ns()));
            }
            Some(number)
        })
    }

    pub(crate) fn disconnected(&self, connection: u64) {
        self.change(|pages| {
            pages.stats.connections_open -= 1;
            if let Some(record) = pages.connection(connection) {
                record.closed_ns = Some(monotonic_ns());
            }
        });
    }

    /// The peer's FIN (`reset == false`) or RST was seen.
    pub(crate) fn peer_left(&self, connection: u64, reset: bool) {
        self.change(|pages| {
            if reset {
                pages.stats.peers_reset += 1;
            } else {
                pages.stats.peers_closed += 1;
            }
            if let Some(record) = pages.connection(connection) {
                record.peer_left_ns = Some(monotonic_ns());
            }
        });
    }

    /// Bytes came in.
    pub(crate) fn received(&self, connection: u64, bytes: &[u8]) {
        self.change(|pages| {
            pages.stats.bytes_received += bytes.len() as u64;
            let room = self.limits.recorded_total_bytes.saturating_sub(pages.recorded_bytes);
            let raw = pages.raw;
            let Some(record) = pages.connection(connection) else { return };
            record.received_bytes += bytes.len() as u64;
            if !raw {
                return;
            }
            let free = self.limits.raw_bytes.saturating_sub(record.received.len()).min(room);
            let kept = bytes.len().min(free);
            record.received.extend_from_slice(&bytes[..kept]);
            pages.recorded_bytes += kept;
            pages.stats.unrecorded_bytes += (bytes.len() - kept) as u64;
        });
    }

    /// A head ended before it was whole, or was cut short by the end of its connection.
    pub(crate) fn cut_head(&self, bytes: &[u8]) {
        self.count(|stats| stats.cut_heads += 1);
        if let Some(observer) = &self.observer {
            observer.tell(Arrival::CutHead(bytes));
        }
    }

    /// A whole head arrived. Fills in the order and records the request.
    pub(crate) fn arrived(&self, request: &mut Request) -> Place {
        let place = self.record(request);
        if let Some(observer) = &self.observer {
            observer.tell(Arrival::Head(request));
        }
        place
    }

    fn record(&self, request: &mut Request) -> Place {
        self.change(|pages| {
            request.order = pages.stats.requests;
            pages.stats.requests += 1;
            pages.stats.in_flight += 1;
            pages.stats.peak_in_flight = pages.stats.peak_in_flight.max(pages.stats.in_flight);
            if let Some(record) = pages.connection(request.connection) {
                record.requests += 1;
            }
            let path = (request.method.clone(), request.path().to_owned());
            if pages.by_path.len() < PATHS_MAX || pages.by_path.contains_key(&path) {
                *pages.by_path.entry(path).or_default() += 1;
            }
            let room = self.limits.recorded_total_bytes.saturating_sub(pages.recorded_bytes);
            let kept = pages.requests.len() < self.limits.records && request.head.len() <= room;
            let at = if kept {
                pages.recorded_bytes += request.head.len();
                pages.requests.push(Arc::new(request.clone()));
                Some(pages.requests.len() - 1)
            } else {
                pages.stats.unrecorded_requests += 1;
                None
            };
            Place { generation: pages.generation, at }
        })
    }

    /// The body came to its end, or broke off: replaces the record.
    pub(crate) fn body_ended(&self, place: Place, request: &Arc<Request>) {
        self.change(|pages| {
            if request.complete {
                pages.stats.complete_requests += 1;
            } else {
                pages.stats.cut_bodies += 1;
            }
            let room = self.limits.recorded_total_bytes.saturating_sub(pages.recorded_bytes);
            let unkept = request.body_bytes - request.body.len() as u64;
            pages.stats.unrecorded_bytes += unkept;
            let Some(at) = place.at.filter(|_| place.generation == pages.generation) else { return };
            if request.body.len() > room {
                pages.stats.unrecorded_bytes += request.body.len() as u64;
                let bodiless = Request { body: Bytes::new(), ..Request::clone(request) };
                pages.requests[at] = Arc::new(bodiless);
            } else {
                pages.recorded_bytes += request.body.len();
                pages.requests[at] = Arc::clone(request);
            }
        });
    }

    /// The behaviour of a request is over, or its connection was ended under it.
    pub(crate) fn left_flight(&self, finished: bool) {
        self.change(|pages| {
            pages.stats.in_flight -= 1;
            pages.stats.finished += u64::from(finished);
        });
    }
}

impl Pages {
    fn connection(&mut self, number: u64) -> Option<&mut ConnectionRecord> {
        let at = self.connections.binary_search_by_key(&number, |record| record.number).ok()?;
        self.connections.get_mut(at)
    }
}
