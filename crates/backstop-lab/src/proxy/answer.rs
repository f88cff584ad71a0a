//! Answers that a proxy gives by itself.

use bytes::Bytes;

/// Bytes that are not HTTP.
pub(crate) const GARBAGE: &[u8] = b"\x16\x03\x01\x00\x00 this is not an answer\r\n\r\n";

const PAGE: &str =
    "<!doctype html><title>Error</title><h1>Something went wrong</h1><p>This page is for people.</p>";

/// An error page.
pub(crate) fn page(status: u16) -> Bytes {
    // A 401 without a challenge is no answer (RFC 9110 section 15.5.2).
    let challenge = if status == 401 { "WWW-Authenticate: Basic realm=\"drill\"\r\n" } else { "" };
    let head = format!("HTTP/1.1 {status} Drill\r\nContent-Type: text/html\r\n{challenge}");
    if matches!(status, 204 | 304) {
        return format!("{head}\r\n").into();
    }
    format!("{head}Content-Length: {}\r\n\r\n{PAGE}", PAGE.len()).into()
}

/// What stands for the answer to a request that was withheld.
pub(crate) fn withheld() -> Bytes {
    const BODY: &str = r#"{"drill":"withheld"}"#;
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    )
    .into()
}
