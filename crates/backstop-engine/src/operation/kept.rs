//! What is kept of the upstream's answer, for whoever comes with the same key.

/// The largest content that is kept, in bytes.
pub const KEPT_BODY_BYTES: usize = 16 * 1024;

/// The fields that may be kept. Nothing that identifies, sets or grants (`Set-Cookie`, `Authorization`) is among them.
pub const KEPT_FIELDS: [&str; 3] = ["content-type", "location", "etag"];

/// What is kept of an answer. The outcome is kept whatever becomes of the content: an answer too large to keep must not make
/// the operation run again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeptAnswer {
    /// Its status.
    pub status: u16,
    /// Those of its fields that are kept, in lower case, in their order.
    pub fields: Vec<(Box<str>, Box<[u8]>)>,
    /// Its content, whole; `None` if it is not kept. Never a part of it.
    pub body: Option<Box<[u8]>>,
}

impl KeptAnswer {
    /// An answer of which only the status is kept.
    pub const fn of_status(status: u16) -> Self {
        Self { status, fields: Vec::new(), body: None }
    }
}
