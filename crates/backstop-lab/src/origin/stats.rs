//! Counters of one origin.

use serde::Serialize;

/// Counters since the start or the last reset. Gauges (`connections_open`, `in_flight`) are as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests whose whole head arrived: deliveries.
    pub requests: u64,
    /// Requests whose body arrived to its declared end too.
    pub complete_requests: u64,
    /// Requests whose behaviour was carried out to its end.
    pub finished: u64,
    /// Heads that were no HTTP, and framings that could not be understood.
    pub invalid_requests: u64,
    /// Connections that ended inside a head.
    pub cut_heads: u64,
    /// Bodies that ended before their declared end, were malformed, or were left unread by the behaviour.
    pub cut_bodies: u64,
    /// Heads and bodies over their limit.
    pub too_large: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Most connections open at one time.
    pub peak_connections: u64,
    /// Connections closed at once because too many were open.
    pub connections_over_limit: u64,
    /// Requests between their head and the end of their behaviour, now.
    pub in_flight: u64,
    /// Most requests in flight at one time.
    pub peak_in_flight: u64,
    /// Bytes received, HTTP or not.
    pub bytes_received: u64,
    /// Connections on which the peer's FIN was seen before the origin ended them.
    pub peers_closed: u64,
    /// Connections that the peer reset.
    pub peers_reset: u64,
    /// Requests not recorded, because enough were.
    pub unrecorded_requests: u64,
    /// Body and raw bytes not recorded, because enough were.
    pub unrecorded_bytes: u64,
    /// Failures of `accept`.
    pub accept_errors: u64,
}

impl Stats {
    /// After a reset: nothing counted, gauges kept, peaks as of now.
    pub(crate) fn restarted(self) -> Self {
        Self {
            connections_open: self.connections_open,
            peak_connections: self.connections_open,
            in_flight: self.in_flight,
            peak_in_flight: self.in_flight,
            ..Self::default()
        }
    }
}
