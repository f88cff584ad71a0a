//! `Max-Forwards`: how far an `OPTIONS` request may go (RFC 9110 section 7.6.2).
//!
//! It finds where a chain of proxies breaks or turns in a circle. Who gets it with nothing left answers it as if the request
//! had been meant for itself; who passes it on takes one off. The standard asks for that with `OPTIONS` and `TRACE` (which is
//! refused here in any case) and leaves it to everybody with other methods, which go on as they came.

use http::header::{HeaderName, MAX_FORWARDS};
use http::{HeaderMap, HeaderValue, Method, request};

const FIELD: HeaderName = MAX_FORWARDS;

/// The methods that a route may be for, as far as they have names that everybody knows.
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No further: it is answered here.
    Here,
    /// On.
    On,
}

/// Takes one off what is left. What is no number is nobody's limit, and goes on as it came.
pub(crate) fn reach(head: &mut request::Parts) -> Reach {
    if head.method != Method::OPTIONS {
        return Reach::On;
    }
    match left(&head.headers) {
        Some(0) => Reach::Here,
        Some(left) => {
            head.headers.insert(FIELD, HeaderValue::from(left - 1));
            Reach::On
        }
        None => Reach::On,
    }
}

fn left(headers: &HeaderMap) -> Option<u64> {
    let mut lines = headers.get_all(FIELD).iter();
    let digits = lines.next().filter(|_| lines.next().is_none())?.to_str().ok()?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More than can be counted is as much as can be.
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// `Allow`: the methods for which there is a route, and `OPTIONS`, which is answered.
pub(crate) fn allow(has_route: impl Fn(&Method) -> bool) -> HeaderValue {
    let allowed = METHODS.iter().filter(|method| **method == Method::OPTIONS || has_route(method));
    let allowed: Vec<&str> = allowed.map(Method::as_str).collect();
    HeaderValue::try_from(allowed.join(", ")).unwrap_or_else(|_| HeaderValue::from_static("OPTIONS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(method: &str, lines: &[&str]) -> (Reach, Vec<String>) {
        let mut request = http::Request::builder().method(method).uri("/");
        for line in lines {
            request = request.header("max-forwards", *line);
        }
        let mut head = request.body(()).unwrap().into_parts().0;
        let reach = reach(&mut head);
        (reach, head.headers.get_all(FIELD).iter().map(|line| line.to_str().unwrap().to_owned()).collect())
    }

    fn on(value: &str) -> (Reach, Vec<String>) {
        (Reach::On, vec![value.to_owned()])
    }

    #[test]
    fn one_is_taken_off_and_nothing_left_ends_here() {
        assert_eq!(sent("OPTIONS", &["0"]).0, Reach::Here);
        assert_eq!(sent("OPTIONS", &["000"]).0, Reach::Here);
        assert_eq!(sent("OPTIONS", &["1"]), on("0"));
        assert_eq!(sent("OPTIONS", &["10"]), on("9"));
        // 2^64 is more than can be counted: 2^64 - 1, less one.
        assert_eq!(sent("OPTIONS", &["18446744073709551616"]), on("18446744073709551614"));
        assert_eq!(sent("OPTIONS", &[]), (Reach::On, vec![]));
        for other in ["-1", "+0", "0x0", "1, 0", ""] {
            assert_eq!(sent("OPTIONS", &[other]), on(other), "{other}");
        }
        assert_eq!(sent("OPTIONS", &["0", "0"]).0, Reach::On);
        assert_eq!(sent("GET", &["0"]), on("0"), "of other methods it may be ignored");
    }

    #[test]
    fn what_is_allowed_is_what_has_a_route() {
        assert_eq!(allow(|_| false), "OPTIONS");
        assert_eq!(allow(|method| *method == Method::GET || *method == Method::PUT), "GET, OPTIONS, PUT");
    }
}
