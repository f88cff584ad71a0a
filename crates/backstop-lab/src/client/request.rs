//! Request bytes, put together without any check.

use bytes::{BufMut as _, Bytes, BytesMut};

/// The bytes of one request. `Host` is added unless the fields have one; `Content-Length` is added to a body unless
/// they frame it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestBytes(pub Bytes);

impl RequestBytes {
    /// The bytes of a request to `host`.
    #[must_use]
    pub fn new(host: &str, method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Self {
        let has = |wanted: &str| fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut bytes = BytesMut::with_capacity(256 + body.len());
        for part in [method, " ", target, " HTTP/1.1\r\n"] {
            bytes.put_slice(part.as_bytes());
        }
        if !has("host") {
            line(&mut bytes, "Host", host);
        }
        for (name, value) in fields {
            line(&mut bytes, name, value);
        }
        if !body.is_empty() && !has("content-length") && !has("transfer-encoding") {
            line(&mut bytes, "Content-Length", &body.len().to_string());
        }
        bytes.put_slice(b"\r\n");
        bytes.put_slice(body);
        Self(bytes.freeze())
    }
}

fn line(bytes: &mut BytesMut, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        bytes.put_slice(part.as_bytes());
    }
}
