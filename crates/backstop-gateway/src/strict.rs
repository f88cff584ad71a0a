//! What is refused before anything is asked.
//!
//! A message whose end or addressee two parsers could see differently goes no further: it is answered here and its
//! connection closes (RFC 9112 sections 3.2, 6.1, 6.3; RFC 9113 section 8.3). What hyper's own parser refuses never
//! comes here; where it reads one of the two lengths as RFC 9112 section 6.3 allows (`Transfer-Encoding` before
//! `Content-Length`), the origin gets that one reading.

use backstop::canonical;
use backstop_engine::status::Problem;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{Method, StatusCode, Version, request};

use crate::hop;
use crate::via;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    HeadTooLarge,
    Host,
    Misdirected,
    NominatedField,
    Credential,
    Framing,
    TransferCoding,
    Path,
    Method,
    Expectation,
    Loop,
    NoRoute,
    TooLarge,
    Slow,
    Broken,
    NoMemory,
    NoKey,
    MalformedKey,
    SaidTwice,
    NoCaller,
    NoOperation,
    NoLedger,
    NoRandom,
    Lost,
}

impl Fault {
    pub(crate) const ALL: [Fault; 24] = [
        Fault::HeadTooLarge,
        Fault::Host,
        Fault::Misdirected,
        Fault::NominatedField,
        Fault::Credential,
        Fault::Framing,
        Fault::TransferCoding,
        Fault::Path,
        Fault::Method,
        Fault::Expectation,
        Fault::Loop,
        Fault::NoRoute,
        Fault::TooLarge,
        Fault::Slow,
        Fault::Broken,
        Fault::NoMemory,
        Fault::NoKey,
        Fault::MalformedKey,
        Fault::SaidTwice,
        Fault::NoCaller,
        Fault::NoOperation,
        Fault::NoLedger,
        Fault::NoRandom,
        Fault::Lost,
    ];

    /// The fault as one word, as in metrics and problem types.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Fault::HeadTooLarge => "head_too_large",
            Fault::Host => "host",
            Fault::Misdirected => "misdirected",
            Fault::NominatedField => "nominated_field",
            Fault::Credential => "credential",
            Fault::Framing => "framing",
            Fault::TransferCoding => "transfer_coding",
            Fault::Path => "path",
            Fault::Method => "method",
            Fault::Expectation => "expectation",
            Fault::Loop => "loop",
            Fault::NoRoute => "no_route",
            Fault::TooLarge => "client_too_large",
            Fault::Slow => "client_slow",
            Fault::Broken => "client_left",
            Fault::NoMemory => "no_memory",
            Fault::NoKey => "no_key",
            Fault::MalformedKey => "malformed_key",
            Fault::SaidTwice => "said_twice",
            Fault::NoCaller => "no_caller",
            Fault::NoOperation => "no_such_operation",
            Fault::NoLedger => "ledger_unreadable",
            Fault::NoRandom => "no_random",
            Fault::Lost => "lost",
        }
    }

    /// The last part of its problem type.
    pub(crate) const fn problem(self) -> &'static str {
        match self {
            Fault::HeadTooLarge => "head-too-large",
            Fault::Host => "host",
            Fault::Misdirected => "misdirected",
            Fault::NominatedField => "nominated-field",
            Fault::Credential => "credential",
            Fault::Framing => "framing",
            Fault::TransferCoding => "transfer-coding",
            Fault::Path => "path",
            Fault::Method => "method",
            Fault::Expectation => "expectation",
            Fault::Loop => "loop",
            Fault::NoRoute => "no-route",
            // The same fault as one that is found while the content arrives.
            Fault::TooLarge => Problem::ContentTooLarge.token(),
            Fault::Slow => Problem::ClientTooSlow.token(),
            Fault::Broken => Problem::ContentBroken.token(),
            Fault::NoMemory => Problem::Capacity.token(),
            Fault::NoKey => "key-missing",
            Fault::MalformedKey => "key-malformed",
            Fault::SaidTwice => "content-ambiguous",
            Fault::NoCaller => "no-caller",
            Fault::NoOperation => Problem::NoSuchOperation.token(),
            Fault::NoLedger => Problem::LedgerUnreadable.token(),
            Fault::NoRandom => "no-random",
            Fault::Lost => "lost",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Fault::Host | Fault::NominatedField | Fault::Credential => StatusCode::BAD_REQUEST,
            Fault::Framing | Fault::Path => StatusCode::BAD_REQUEST,
            Fault::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Fault::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Fault::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Fault::Method => StatusCode::METHOD_NOT_ALLOWED,
            Fault::Expectation => StatusCode::EXPECTATION_FAILED,
            Fault::Loop => StatusCode::BAD_GATEWAY,
            Fault::NoRoute => StatusCode::NOT_FOUND,
            Fault::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Fault::Slow => StatusCode::REQUEST_TIMEOUT,
            Fault::Broken => StatusCode::BAD_REQUEST,
            Fault::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            Fault::NoKey => StatusCode::BAD_REQUEST,
            Fault::MalformedKey => StatusCode::BAD_REQUEST,
            Fault::SaidTwice => StatusCode::BAD_REQUEST,
            Fault::NoCaller => StatusCode::BAD_REQUEST,
            Fault::NoOperation => StatusCode::NOT_FOUND,
            Fault::NoLedger => StatusCode::SERVICE_UNAVAILABLE,
            Fault::NoRandom => StatusCode::SERVICE_UNAVAILABLE,
            Fault::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Fault::HeadTooLarge => "The request's head is larger than accepted",
            Fault::Host => "The request names no host, several, or an invalid one",
            Fault::Misdirected => "The request is for a scheme that is not served here",
            Fault::NominatedField => "Connection names a field that must reach the other end",
            Fault::Credential => "The request has several credentials",
            Fault::Framing => "The end of the request's content is not certain",
            Fault::TransferCoding => "The request's transfer coding is not supported",
            Fault::Path => "The path cannot be forwarded as it is written",
            Fault::Method => "The method is not accepted here",
            Fault::Expectation => "The expectation cannot be met",
            Fault::Loop => "The request has passed here before",
            Fault::NoRoute => "No route answers this request",
            Fault::TooLarge => Problem::ContentTooLarge.title(),
            Fault::Slow => Problem::ClientTooSlow.title(),
            Fault::Broken => Problem::ContentBroken.title(),
            Fault::NoMemory => Problem::Capacity.title(),
            Fault::NoKey => "The request has no key for its operation",
            Fault::MalformedKey => "The key of the operation has not 1 to 255 visible ASCII characters",
            Fault::SaidTwice => {
                "The request's JSON content has a name twice in one object, or one that is no text"
            }
            Fault::NoCaller => "Nobody who is trusted says whose request it is",
            Fault::NoOperation => Problem::NoSuchOperation.title(),
            Fault::NoLedger => Problem::LedgerUnreadable.title(),
            Fault::NoRandom => "The system gives no random numbers",
            Fault::Lost => "What came of the request was lost",
        }
    }

    /// Whether the connection closes, because what else comes on it cannot be trusted or will not be read. After the others it
    /// goes on, unless the request has content.
    pub(crate) const fn closes(self) -> bool {
        !matches!(
            self,
            Fault::NoRoute
                | Fault::Loop
                | Fault::NoKey
                | Fault::MalformedKey
                | Fault::SaidTwice
                | Fault::NoCaller
                | Fault::NoOperation
                | Fault::NoLedger
                | Fault::NoRandom
                | Fault::Lost
        )
    }
}

/// Checks a head. On success the host that it addresses, in one spelling and without a port.
///
/// Whoever is `trusted` may have received the request over a connection of another kind.
pub(crate) fn check(head: &request::Parts, own_name: &str, trusted: bool) -> Result<Box<str>, Fault> {
    let host = host(head)?;
    // This connection is not secured, and an answer for one scheme is none for another (RFC 9110 section 7.4).
    if !trusted && head.uri.scheme_str().is_some_and(|scheme| !scheme.eq_ignore_ascii_case("http")) {
        return Err(Fault::Misdirected);
    }
    if hop::nominates_end_to_end(&head.headers) {
        return Err(Fault::NominatedField);
    }
    // Whoever is asked about it and whoever gets it could read different ones (RFC 9110 section 5.3: it is no list).
    if head.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
        return Err(Fault::Credential);
    }
    framing(head)?;
    if matches!(head.method, Method::CONNECT | Method::TRACE) {
        return Err(Fault::Method);
    }
    if has_dot_segment(head.uri.path()) {
        return Err(Fault::Path);
    }
    let expects_other = |value: &http::HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if head.version > Version::HTTP_10 && head.headers.get_all(EXPECT).iter().any(expects_other) {
        return Err(Fault::Expectation);
    }
    if via::passed_here(&head.headers, own_name) {
        return Err(Fault::Loop);
    }
    Ok(host)
}

fn host(head: &request::Parts) -> Result<Box<str>, Fault> {
    let mut lines = head.headers.get_all(HOST).iter();
    let line = match (lines.next(), lines.next()) {
        (None, _) => None,
        (Some(line), None) => {
            Some(line.to_str().ok().and_then(|text| text.parse::<Authority>().ok()).ok_or(Fault::Host)?)
        }
        (Some(_), Some(_)) => return Err(Fault::Host),
    };
    let target = head.uri.authority();
    let authority = match (target, &line) {
        // In HTTP/2 a Host beside :authority must say the same (RFC 9113 section 8.3.1).
        (Some(target), Some(line)) if head.version == Version::HTTP_2 && !same(target, line) => {
            return Err(Fault::Host);
        }
        // In HTTP/1.1 the absolute form wins, but a Host must be there all the same (RFC 9112 sections 3.2, 3.2.2).
        (Some(_), None) if head.version == Version::HTTP_11 => return Err(Fault::Host),
        (Some(target), _) => target,
        (None, Some(line)) => line,
        (None, None) if head.version == Version::HTTP_10 => return Ok("".into()),
        (None, None) => return Err(Fault::Host),
    };
    // In the spelling that goes on and that is in a copy's key: a route is not left by writing its host otherwise.
    let name = canonical::host(authority.host());
    if authority.as_str().contains('@') || name.is_empty() || !has_plain_port(authority) {
        return Err(Fault::Host);
    }
    Ok(name.into())
}

/// Whether what follows the host is nothing, or a colon and a number that may be empty (RFC 3986 section 3.2.3).
fn has_plain_port(authority: &Authority) -> bool {
    match authority.as_str().get(authority.host().len()..).and_then(|rest| rest.strip_prefix(':')) {
        Some(port) => {
            port.bytes().all(|byte| byte.is_ascii_digit())
                && (port.is_empty() || authority.port_u16().is_some())
        }
        None => authority.as_str().len() == authority.host().len(),
    }
}

fn same(one: &Authority, other: &Authority) -> bool {
    one.as_str().eq_ignore_ascii_case(other.as_str())
}

fn framing(head: &request::Parts) -> Result<(), Fault> {
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if codings.next().is_some() || head.headers.contains_key(CONTENT_LENGTH) {
            return Err(Fault::Framing);
        }
        if !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(Fault::TransferCoding);
        }
        if head.version != Version::HTTP_11 {
            return Err(Fault::Framing);
        }
    }
    let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next() {
        let digits = !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
        if lengths.next().is_some() || !digits {
            return Err(Fault::Framing);
        }
    }
    Ok(())
}

/// Whether a path has a segment `.` or `..`, however it is disguised: percent-encoded, before a `;`, or between what some
/// servers take for a slash. Some servers resolve these, others do not; the route that was matched would not be the one
/// that answers.
fn has_dot_segment(path: &str) -> bool {
    let mut dots = 0;
    // Whether the present segment has nothing but dots so far, and whether its parameters have begun.
    let (mut only_dots, mut parameters) = (true, false);
    let mut rest = path.as_bytes();
    loop {
        let (byte, after) = match rest {
            [] => return only_dots && (dots == 1 || dots == 2),
            [b'%', b'2', b'e' | b'E', after @ ..] => (b'.', after),
            [b'%', b'2', b'f' | b'F', after @ ..] | [b'%', b'5', b'c' | b'C', after @ ..] => (b'/', after),
            [b'\\', after @ ..] => (b'/', after),
            [byte, after @ ..] => (*byte, after),
        };
        rest = after;
        match byte {
            b'/' => {
                if only_dots && (dots == 1 || dots == 2) {
                    return true;
                }
                (dots, only_dots, parameters) = (0, true, false);
            }
            _ if parameters => {}
            b'.' => dots += 1,
            b';' => parameters = true,
            _ => only_dots = false,
        }
    }
}

/// Whether a head is larger than accepted. hyper asks only while the head is not complete, and so takes whatever comes with
/// its last piece. An HTTP/2 head was measured as it came (RFC 9113 section 10.5.1).
pub(crate) fn is_too_large(head: &request::Parts, most_bytes: usize) -> bool {
    head.version < Version::HTTP_2 && head_bytes(head) > most_bytes
}

/// The bytes of a head in HTTP/1, without blanks around values that could be left out.
fn head_bytes(head: &request::Parts) -> usize {
    let origin = head.uri.authority().map_or(0, |authority| authority.as_str().len() + "http://".len());
    let target = origin + head.uri.path_and_query().map_or(1, |target| target.as_str().len());
    let first = head.method.as_str().len() + target + "  HTTP/1.1\r\n".len();
    let line =
        |(name, value): (&HeaderName, &http::HeaderValue)| name.as_str().len() + value.len() + ": \r\n".len();
    first + head.headers.iter().map(line).sum::<usize>() + "\r\n".len()
}

/// The length that a request announces.
pub(crate) fn announced_length(headers: &http::HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether only whoever is trusted may send this field: it says how somebody else was asked. Which of them there are,
/// nobody can list; services read `X-Forwarded-Prefix`, `-Ssl`, `-Scheme`, `-User` and more.
pub(crate) fn is_forwarding(name: &HeaderName) -> bool {
    *name == http::header::FORWARDED || name.as_str().starts_with("x-forwarded-")
}

/// Whether a name is one of these, written with underscores. Services that put fields into variables of their environment
/// (RFC 3875 section 4.1.18) cannot tell the two apart.
pub(crate) fn is_disguised(name: &HeaderName, is_one: impl Fn(&HeaderName) -> bool) -> bool {
    let name = name.as_str();
    name.contains('_') && HeaderName::try_from(name.replace('_', "-")).is_ok_and(|name| is_one(&name))
}

/// Whether a name is another one that such a service takes for this one, whichever of the two has underscores.
pub(crate) fn passes_for(name: &HeaderName, this: &HeaderName) -> bool {
    let meant = |name: &HeaderName| {
        name.as_str().bytes().map(|byte| if byte == b'_' { b'-' } else { byte }).collect()
    };
    let (one, other): (Vec<u8>, Vec<u8>) = (meant(name), meant(this));
    name != this && one == other
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
