//! From the bytes of a head to a [`Request`].
//!
//! As lenient as the parser beneath it: an origin that a gateway protects may be lenient, and what it then sees is
//! the finding. Framing alone is strict, because a guess about where a body ends would spoil the record.

use bytes::Bytes;

use crate::wire::{Fields, content_length};

use super::{Request, RequestFraming};

/// Header lines that are parsed without an allocation.
const LINES_AS_A_RULE: usize = 32;
/// Most header lines of one request.
const LINES_MAX: usize = 512;

/// The bytes are no request head, or its framing cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRequest;

/// The request whose head `bytes` begin with, and the length of that head. `None` when more bytes are needed.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<(Request, usize)>, NoRequest> {
    match parse_with(bytes, &mut [httparse::EMPTY_HEADER; LINES_AS_A_RULE]) {
        Err(httparse::Error::TooManyHeaders) => {
            parse_with(bytes, &mut vec![httparse::EMPTY_HEADER; LINES_MAX])
        }
        parsed => parsed,
    }
    .map_err(|_wrong| NoRequest)?
    .transpose()
}

/// The parser's verdict in the outer result, the framing's in the inner one.
type Parsed = Option<Result<(Request, usize), NoRequest>>;

fn parse_with<'a>(bytes: &'a [u8], lines: &mut [httparse::Header<'a>]) -> Result<Parsed, httparse::Error> {
    let mut parsed = httparse::Request::new(lines);
    let httparse::Status::Complete(length) = parsed.parse(bytes)? else { return Ok(None) };
    let mut fields = Fields::default();
    for line in parsed.headers.iter() {
        fields.push(line.name, line.value);
    }
    let request = Request {
        order: 0,
        connection: 0,
        arrived_ns: 0,
        head: Bytes::new(),
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        minor_version: parsed.version.unwrap_or_default(),
        framing: match framing(&fields) {
            Ok(framing) => framing,
            Err(wrong) => return Ok(Some(Err(wrong))),
        },
        ambiguous: ambiguous(&fields),
        fields,
        body: Bytes::new(),
        body_bytes: 0,
        complete: false,
        trailers: Fields::default(),
    };
    Ok(Some(Ok((request, length))))
}

fn framing(fields: &Fields) -> Result<RequestFraming, NoRequest> {
    if let Some(coding) = fields.all("transfer-encoding").last() {
        let last = coding.rsplit(',').next().unwrap_or_default().trim();
        return if last.eq_ignore_ascii_case("chunked") {
            Ok(RequestFraming::Chunked)
        } else {
            Err(NoRequest)
        };
    }
    match fields.get("content-length") {
        None => Ok(RequestFraming::None),
        Some(value) => match content_length(value).ok_or(NoRequest)? {
            length if fields.all("content-length").all(|other| other == value) => {
                Ok(RequestFraming::ContentLength(length))
            }
            _ => Err(NoRequest),
        },
    }
}

fn ambiguous(fields: &Fields) -> bool {
    fields.count("content-length") + fields.count("transfer-encoding") > 1
}

#[cfg(test)]
mod tests {
    use super::{super::RequestFraming, NoRequest, parse_head};

    fn framing(lines: &str) -> Result<RequestFraming, NoRequest> {
        let head = format!("POST / HTTP/1.1\r\n{lines}\r\n");
        Ok(parse_head(head.as_bytes())?.unwrap().0.framing)
    }

    #[test]
    fn framing_is_strict() {
        assert_eq!(framing(""), Ok(RequestFraming::None));
        assert_eq!(framing("Content-Length: 3\r\n"), Ok(RequestFraming::ContentLength(3)));
        assert_eq!(framing("Content-Length: 3\r\nContent-Length: 4\r\n"), Err(NoRequest));
        assert_eq!(framing("Content-Length: +3\r\n"), Err(NoRequest));
        assert_eq!(framing("Transfer-Encoding: gzip\r\n"), Err(NoRequest));
        assert_eq!(framing("Transfer-Encoding: gzip, chunked\r\n"), Ok(RequestFraming::Chunked));
    }

    #[test]
    fn two_framings_are_marked() {
        let head = b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let (request, length) = parse_head(head).unwrap().unwrap();
        assert!(request.ambiguous);
        assert_eq!(request.framing, RequestFraming::Chunked);
        assert_eq!(&head[length..], b"0\r\n\r\n");
    }
}
