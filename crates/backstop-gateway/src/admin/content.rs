//! The content of a request that changes something, read within a bound of size and of time.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// Reads it, whole. `most`: the largest that is read, in bytes.
///
/// # Errors
/// The status and the words that refuse it.
pub(super) async fn read<B>(body: B, most: usize, within: Duration) -> Result<Bytes, (StatusCode, String)>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match tokio::time::timeout(within, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, format!("a body of at most {most} bytes is read here")))
        }
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body broke off".into())),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body took too long".into())),
    }
}
