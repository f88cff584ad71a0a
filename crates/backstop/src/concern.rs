//! Whom an answer that was read for many concerns, by its status.
//!
//! One answer may satisfy several requests only where a cache may give it to others (RFC 9111 sections 3 and 4). Beside 200
//! these are, without the origin's word, the statuses that RFC 9110 section 15.1 and RFC 7725 section 3 (451) list. The
//! errors that a broken or busy service gives to everybody are given to all who wait too: a crowd that asks one by one would
//! break it further.

use http::StatusCode;

/// Whom it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concern {
    /// Everybody who asked for the same.
    Everybody,
    /// Whoever it was said to: it, what it did, or a part of the whole. Others would be told of themselves.
    Caller,
    /// The very request that was sent, in which the origin found a fault. Another one may have none.
    Request,
}

impl Concern {
    /// Reads it from a status.
    pub(crate) fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            200 | 203 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 451 => Self::Everybody,
            401 | 402 | 403 | 407 | 429 => Self::Caller,
            400..=499 => Self::Request,
            200..=399 => Self::Caller,
            _ => Self::Everybody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 section 15.1 lists what may be kept without a word of the origin: 200, 203, 204, 206, 300, 301, 308, 404,
    /// 405, 410, 414 and 501. 204 says what one request did, and 206 is a part.
    #[test]
    fn an_answer_concerns_everybody_only_if_any_cache_may_keep_it_or_all_get_that_error() {
        let of = |status: u16| Concern::of(StatusCode::from_u16(status).unwrap());
        for status in [200, 203, 300, 301, 308, 404, 405, 410, 414, 451, 500, 501, 502, 503, 504] {
            assert_eq!(of(status), Concern::Everybody, "{status}");
        }
        for status in [201, 202, 204, 205, 206, 302, 303, 304, 305, 307, 401, 402, 403, 407, 429] {
            assert_eq!(of(status), Concern::Caller, "{status}");
        }
        for status in
            [400, 406, 408, 409, 411, 412, 413, 415, 416, 417, 421, 422, 423, 424, 425, 426, 428, 431, 499]
        {
            assert_eq!(of(status), Concern::Request, "{status}");
        }
    }
}
