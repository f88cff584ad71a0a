//! What the origin holds at most. Nothing grows without a bound, and what goes over a bound is counted in
//! [`Stats`](super::Stats).

/// Bounds of one origin.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest request head, in bytes; a longer one is answered 431 and the connection closed.
    pub head_bytes: usize,
    /// Longest request body that is read, in bytes; a longer one ends the connection.
    pub body_bytes: u64,
    /// Most body bytes kept of one request.
    pub recorded_body_bytes: usize,
    /// Most requests kept. Later ones are served and counted, not kept.
    pub records: usize,
    /// Most raw bytes kept of one connection, when raw recording is on.
    pub raw_bytes: usize,
    /// Most connections kept in the record of connections.
    pub connection_records: usize,
    /// Most bytes kept in all: heads, bodies and raw recordings.
    pub recorded_total_bytes: usize,
    /// Most connections open at once; one more is closed as soon as it is accepted.
    pub connections: usize,
    /// Most rules; the oldest goes when one more is set.
    pub rules: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            body_bytes: 64 * 1024 * 1024,
            recorded_body_bytes: 1024 * 1024,
            records: 100_000,
            raw_bytes: 1024 * 1024,
            connection_records: 100_000,
            recorded_total_bytes: 256 * 1024 * 1024,
            connections: 4096,
            rules: 4096,
        }
    }
}
