//! What is kept of each connection.

/// One accepted connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Its number: connections are numbered from 0 in the order accepted.
    pub number: u64,
    /// Monotonic nanoseconds when it was accepted.
    pub opened_ns: u64,
    /// When the origin was done with it; `None` while it is open.
    pub closed_ns: Option<u64>,
    /// When the peer's FIN or RST was seen, if it was.
    pub peer_left_ns: Option<u64>,
    /// Requests whose whole head came on it.
    pub requests: u64,
    /// Bytes received on it.
    pub received_bytes: u64,
    /// These bytes verbatim, HTTP or not, up to the limit. Empty unless raw recording is on.
    pub received: Vec<u8>,
}

impl ConnectionRecord {
    pub(crate) fn opened(number: u64, opened_ns: u64) -> Self {
        Self {
            number,
            opened_ns,
            closed_ns: None,
            peer_left_ns: None,
            requests: 0,
            received_bytes: 0,
            received: Vec::new(),
        }
    }
}
