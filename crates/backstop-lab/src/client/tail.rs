//! What is left on a connection.

use bytes::Bytes;

use super::Ending;

/// Every byte until the end, and the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The bytes.
    pub bytes: Bytes,
    /// How they ended.
    pub ending: Ending,
}
