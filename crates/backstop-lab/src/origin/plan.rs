//! From an answer to the bytes and pauses that carry it out.
//!
//! Pure: everything that is decided about the wire is decided here, and `perform.rs` only does it.

use std::time::{Duration, SystemTime};

use bytes::{BufMut as _, Bytes, BytesMut};

use super::{
    Answer, CutAt, Date, Framing, Request, Then,
    answer::{Body, Lines, Pace},
};

/// Declared length of a body that never ends.
const ENDLESS_LENGTH: u64 = 1_000_000_000;

/// One step on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// These bytes at once.
    Send(Bytes),
    /// These pieces, a pause before each but the first.
    Pieces(Vec<Bytes>, Duration),
    /// This piece for ever, a pause before each.
    Endless(Bytes, Duration),
}

/// The steps of an answer and what follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) then: Then,
}

impl Plan {
    pub(crate) fn raw(bytes: Bytes, then: Then) -> Self {
        let steps = if bytes.is_empty() { Vec::new() } else { vec![Step::Send(bytes)] };
        Self { steps, then }
    }

    pub(crate) fn answer(answer: &Answer, request: &Request, now: SystemTime) -> Self {
        let bodiless = request.method == "HEAD" || matches!(answer.status, 204 | 304);
        let (body, endless) = match &answer.body {
            Body::Fixed(body) => (body.clone(), None),
            Body::Computed(compute) => (compute(request), None),
            Body::Endless(byte, interval) => (Bytes::new(), Some((*byte, *interval))),
        };
        let declared = if endless.is_some() { ENDLESS_LENGTH } else { body.len() as u64 };
        let head = head(answer, declared, now);
        let mut steps = Vec::new();
        if let Some((CutAt::Head(bytes), then)) = answer.cut {
            steps.push(paced(head.slice(..bytes.min(head.len())), answer.head_pace));
            return Self { steps, then };
        }
        steps.push(paced(head, answer.head_pace));
        let mut then = answer.then;
        if !bodiless {
            let payload = match answer.cut {
                Some((CutAt::Body(bytes), _)) => body.slice(..bytes.min(body.len())),
                _ => body,
            };
            steps.extend(payload_steps(answer, &payload));
            if let Some((byte, interval)) = endless {
                let piece = framed(answer.framing, &[byte]);
                steps.push(Step::Endless(piece, interval));
            } else if answer.cut.is_none() {
                steps.extend(last_chunk(answer));
            }
            if answer.framing == Framing::CloseDelimited && then == Then::KeepAlive {
                then = Then::Close;
            }
            if let Some((_, cut)) = answer.cut {
                then = cut;
            }
        }
        Self { steps: merged(steps), then }
    }
}

fn head(answer: &Answer, declared: u64, now: SystemTime) -> Bytes {
    let mut head = BytesMut::new();
    for (status, fields) in &answer.informational {
        status_line(&mut head, *status, None);
        lines(&mut head, fields);
        head.put_slice(b"\r\n");
    }
    status_line(&mut head, answer.status, answer.reason.as_deref());
    let date = match &answer.date {
        Date::Now => Some(httpdate::fmt_http_date(now)),
        Date::Ahead(ahead) => Some(httpdate::fmt_http_date(now + *ahead)),
        Date::Behind(behind) => Some(httpdate::fmt_http_date(now - *behind)),
        Date::Text(text) => Some(text.clone()),
        Date::Omitted => None,
    };
    if let Some(date) = date {
        line(&mut head, "Date", &date);
    }
    lines(&mut head, &answer.fields);
    match answer.framing {
        _ if matches!(answer.status, 204 | 304) => {}
        Framing::ContentLength => line(&mut head, "Content-Length", &declared.to_string()),
        Framing::Chunked { .. } => line(&mut head, "Transfer-Encoding", "chunked"),
        Framing::CloseDelimited | Framing::AsWritten => {}
    }
    head.put_slice(b"\r\n");
    head.freeze()
}

fn status_line(head: &mut BytesMut, status: u16, reason: Option<&str>) {
    let reason = reason.unwrap_or_else(|| reason_of(status));
    head.put_slice(format!("HTTP/1.1 {status} {reason}\r\n").as_bytes());
}

fn lines(head: &mut BytesMut, fields: &Lines) {
    for (name, value) in fields {
        line(head, name, value);
    }
}

fn line(head: &mut BytesMut, name: &str, value: &str) {
    head.put_slice(name.as_bytes());
    head.put_slice(b": ");
    head.put_slice(value.as_bytes());
    head.put_slice(b"\r\n");
}

fn payload_steps(answer: &Answer, payload: &Bytes) -> Vec<Step> {
    let size = match (answer.framing, answer.body_pace) {
        (Framing::Chunked { chunk }, None) => chunk.max(1),
        (Framing::Chunked { chunk }, Some(pace)) => chunk.max(1).min(pace.bytes),
        (_, Some(pace)) => pace.bytes,
        (_, None) => payload.len().max(1),
    };
    let pieces: Vec<Bytes> = payload.chunks(size).map(|piece| framed(answer.framing, piece)).collect();
    match answer.body_pace {
        Some(pace) if !pieces.is_empty() => vec![Step::Pieces(pieces, pace.interval)],
        _ => pieces.into_iter().map(Step::Send).collect(),
    }
}

fn framed(framing: Framing, piece: &[u8]) -> Bytes {
    match framing {
        Framing::Chunked { .. } => {
            let mut chunk = BytesMut::from(format!("{:x}\r\n", piece.len()).as_bytes());
            chunk.put_slice(piece);
            chunk.put_slice(b"\r\n");
            chunk.freeze()
        }
        _ => Bytes::copy_from_slice(piece),
    }
}

fn last_chunk(answer: &Answer) -> Option<Step> {
    matches!(answer.framing, Framing::Chunked { .. }).then(|| {
        let mut last = BytesMut::from(&b"0\r\n"[..]);
        lines(&mut last, &answer.trailers);
        last.put_slice(b"\r\n");
        Step::Send(last.freeze())
    })
}

fn paced(bytes: Bytes, pace: Option<Pace>) -> Step {
    match pace {
        None => Step::Send(bytes),
        Some(pace) => {
            let pieces = bytes.chunks(pace.bytes.max(1)).map(Bytes::copy_from_slice).collect();
            Step::Pieces(pieces, pace.interval)
        }
    }
}

/// Joins neighbouring sends, so that they leave in one write.
fn merged(steps: Vec<Step>) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::new();
    let mut run = BytesMut::new();
    for step in steps {
        if let Step::Send(bytes) = step {
            run.put_slice(&bytes);
            continue;
        }
        if !run.is_empty() {
            merged.push(Step::Send(run.split().freeze()));
        }
        merged.push(step);
    }
    if !run.is_empty() {
        merged.push(Step::Send(run.freeze()));
    }
    merged
}

fn reason_of(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
