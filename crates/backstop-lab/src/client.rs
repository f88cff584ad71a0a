//! A raw HTTP/1.1 client for black-box tests: it sends any bytes, and reads answers strictly.
//!
//! * Nothing is repaired and nothing is sent twice.
//! * A head must be exact: CR LF line ends, no folding, no blank before a colon, one framing. A malformed head is
//!   an error that has the bytes.
//! * A body ends as its framing says. If the bytes end otherwise, the answer says how ([`Completeness`]): a short
//!   body is never taken for a whole one.
//! * Everything has a bound ([`Connection::bound`], 5 s to begin with), on the caller's clock.
//!
//! ```no_run
//! # async fn example(addr: std::net::SocketAddr) -> Result<(), backstop_lab::client::ClientError> {
//! use backstop_lab::client;
//!
//! let response = client::get(addr, "/products/1", &[("Accept-Language", "es")]).await?;
//! assert_eq!(response.status(), 200);
//! assert!(response.is_complete());
//! # Ok(())
//! # }
//! ```

mod connection;
mod error;
mod head;
mod mark;
mod request;
mod response;
mod tail;

use std::net::SocketAddr;

pub use connection::{Connection, DEFAULT_BOUND};
pub use error::{ClientError, Ending};
pub use head::ResponseHead;
pub use mark::{Mark, MarkError};
pub use request::RequestBytes;
pub use response::{Completeness, Response, ResponseFraming};
pub use tail::Tail;

/// `GET` on a connection of its own, with `Connection: close` unless `fields` say otherwise.
///
/// # Errors
///
/// As [`request`].
pub async fn get(addr: SocketAddr, target: &str, fields: &[(&str, &str)]) -> Result<Response, ClientError> {
    request(addr, "GET", target, fields, b"").await
}

/// One request on a connection of its own, with `Connection: close` unless `fields` say otherwise; the body, if
/// any, framed by `Content-Length`.
///
/// # Errors
///
/// When there is no connection, no head or a malformed head. A body that breaks off is not an error; see
/// [`Response::completeness`].
pub async fn request(
    addr: SocketAddr,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> Result<Response, ClientError> {
    let mut connection = Connection::open(addr).await?;
    let close = [("Connection", "close")];
    let closes = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let fields: Vec<_> = fields.iter().chain(close.iter().filter(|_| !closes)).copied().collect();
    connection.exchange(method, target, &fields, body).await
}
