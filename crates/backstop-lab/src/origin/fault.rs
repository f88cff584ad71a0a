//! The faults that have a name, ready to use.

use std::time::Duration;

use super::{Answer, Behaviour, CutAt, Date, Framing, Then};

/// A JSON text that stops in the middle of a string.
pub const HALF_JSON: &str = r#"{"id":"1","text":"half a descri"#;
/// Bytes that are no HTTP.
pub const GARBAGE: &[u8] = b"\x16\x03\x01\x00\xffnot http at all\r\n\r\n\x00\x01\x02";
const HTML: &str = "<!doctype html><title>Welcome</title><p>Please sign in.</p>";

impl Behaviour {
    /// A 200 with this JSON text.
    #[must_use]
    pub fn json(text: &str) -> Self {
        Answer::json(text.to_owned()).into()
    }

    /// This status with a small `application/json` body that names it.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let body = format!(r#"{{"status":{status}}}"#);
        Answer::new(status).header("Content-Type", "application/json").body(body).into()
    }

    /// A 200 with an HTML page where JSON was wanted, as captive portals and error pages do.
    #[must_use]
    pub fn html_200() -> Self {
        Answer::new(200).header("Content-Type", "text/html; charset=utf-8").body(HTML).into()
    }

    /// A 200 that claims JSON and has no byte of body.
    #[must_use]
    pub fn empty_200() -> Self {
        Answer::json("").into()
    }

    /// A 200 with a whole JSON value of another schema.
    #[must_use]
    pub fn wrong_json() -> Self {
        Self::json(r#"{"unexpected":[1,2,3]}"#)
    }

    /// [`HALF_JSON`], its end told by the close: only the JSON shows that something is missing.
    #[must_use]
    pub fn half_json_close_delimited() -> Self {
        Answer::json(HALF_JSON).framing(Framing::CloseDelimited).into()
    }

    /// [`HALF_JSON`] with the `Content-Length` of the half: the framing is whole, the JSON is not.
    #[must_use]
    pub fn half_json_whole_framing() -> Self {
        Answer::json(HALF_JSON).into()
    }

    /// A 200 that declares `declared` bytes, sends `sent` of them and closes.
    #[must_use]
    pub fn truncated(declared: usize, sent: usize) -> Self {
        Answer::json(json_text(declared)).cut(CutAt::Body(sent), Then::Close).into()
    }

    /// A chunked 200 with one chunk of `bytes` and no last chunk, then a close.
    #[must_use]
    pub fn truncated_chunked(bytes: usize) -> Self {
        Answer::json(json_text(bytes)).chunked(bytes).cut(CutAt::LastChunk, Then::Close).into()
    }

    /// The whole head of a 200 with a body of 600 bytes, then a reset.
    #[must_use]
    pub fn reset_after_head() -> Self {
        Answer::json(json_text(600)).cut(CutAt::Body(0), Then::Reset).into()
    }

    /// A 200 that declares `declared` bytes, sends `sent` of them and resets.
    #[must_use]
    pub fn reset_mid_body(declared: usize, sent: usize) -> Self {
        Answer::json(json_text(declared)).cut(CutAt::Body(sent), Then::Reset).into()
    }

    /// A status line and some of the head with this status, then a close.
    #[must_use]
    pub fn half_head(status: u16) -> Self {
        let answer = Answer::new(status).header("Content-Type", "application/json").body("{}");
        answer.date(Date::Omitted).cut(CutAt::Head(40), Then::Close).into()
    }

    /// [`GARBAGE`], then a close.
    #[must_use]
    pub fn garbage() -> Self {
        Self::raw(GARBAGE, Then::Close)
    }

    /// A 200 with this JSON text and a `Date` that lies `ahead`.
    #[must_use]
    pub fn future_date(text: &str, ahead: Duration) -> Self {
        Answer::json(text.to_owned()).date(Date::Ahead(ahead)).into()
    }

    /// A 200 whose head comes one byte per `interval`.
    #[must_use]
    pub fn slow_head(interval: Duration) -> Self {
        Answer::json("{}").slow_head(interval).into()
    }

    /// A chunked 200: the head at once, then one byte per `interval` for ever.
    #[must_use]
    pub fn drip_forever(interval: Duration) -> Self {
        Answer::new(200).header("Content-Type", "application/json").chunked(1).endless(interval).into()
    }
}

/// A JSON string literal of exactly `length` bytes (at least the two quotes).
fn json_text(length: usize) -> String {
    let filling = length.saturating_sub(2);
    format!("\"{}\"", "x".repeat(filling))
}
