//! The way of an answer back to the caller: as it comes, or as a fault shapes it.

use std::{
    hash::{DefaultHasher, Hasher as _},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};

use crate::{
    client::{ResponseFraming, ResponseHead},
    wire::{Chunked, head_length},
};

use super::{acceptor::End, call::Entry};

const READ_BYTES: usize = 16 * 1024;

/// What is done to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing.
    Whole,
    /// The head and a part of the body, then the end.
    Half(End),
    /// One byte of the body at a time.
    Drip(Duration),
    /// `Date` lies so many seconds ahead.
    Dated(u32),
    /// `Age` is so many seconds.
    Aged(u32),
}

impl Shape {
    /// Whether it can be done to an answer of this framing, so that the caller can tell.
    fn befalls(self, framing: ResponseFraming) -> bool {
        match self {
            // There is nothing of which a part could be missing.
            Self::Half(_) | Self::Drip(_)
                if matches!(framing, ResponseFraming::None | ResponseFraming::ContentLength(0)) =>
            {
                false
            }
            // Where only the end of the connection ends the body, a short one is as whole as any.
            Self::Half(End::Close) => framing != ResponseFraming::CloseDelimited,
            _ => true,
        }
    }
}

/// Why an answer did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Whoever asked is gone.
    CallerLeft,
    /// The upstream or a fault ended it.
    Cut(End),
}

/// An answer under way.
#[derive(Debug)]
pub(crate) struct Given {
    method: String,
    bytes: BytesMut,
}

impl Given {
    /// One that an upstream gives.
    pub(crate) fn of(method: &str) -> Self {
        Self { method: method.to_owned(), bytes: BytesMut::new() }
    }

    /// One whose bytes are all here.
    pub(crate) fn own(bytes: &Bytes, method: &str) -> Self {
        Self { method: method.to_owned(), bytes: bytes.as_ref().into() }
    }
}

/// Gives the answer to the caller. `true` if the connection may carry another request.
pub(crate) async fn give(
    down: &mut TcpStream,
    asked: &mut BytesMut,
    mut up: Option<&mut TcpStream>,
    given: &mut Given,
    shape: Shape,
    call: &Entry,
) -> Result<bool, Break> {
    let (head, framing) = loop {
        let head = read_head(down, asked, up.as_deref_mut(), given).await?;
        if head.status >= 200 {
            let framing = head.framing_to_pass_on(&given.method).map_err(|_wrong| Break::Cut(End::Reset))?;
            break (head, framing);
        }
        send(down, &head.raw).await?;
    };
    let age = match shape {
        Shape::Aged(age) => Some(u64::from(age)),
        _ => head.fields.get("age").and_then(|age| age.parse().ok()),
    };
    call.note(|call| {
        call.status = Some(head.status);
        call.age = Duration::from_secs(age.unwrap_or(0));
    });
    let shape = match shape.befalls(framing) {
        true => shape,
        false => {
            // What reaches the caller is whole, and nobody is to be held to have met a fault.
            call.note(|call| call.fault = None);
            Shape::Whole
        }
    };
    send(down, &shaped(&head, shape)).await?;
    let mut body = Body::new(framing);
    while !body.is_over() {
        if given.bytes.is_empty() {
            let stream = up.as_deref_mut().ok_or(Break::Cut(End::Close))?;
            match read(down, asked, stream, &mut given.bytes).await {
                Err(Break::Cut(_)) if framing == ResponseFraming::CloseDelimited => break,
                other => other?,
            }
        }
        let piece = body.take(&mut given.bytes)?;
        match shape {
            Shape::Half(end) => {
                let part = piece.get(..piece.len() / 2).unwrap_or_default();
                send(down, part).await?;
                // The caller must have the part before it hears of the end.
                time::sleep(Duration::from_millis(1)).await;
                return Err(Break::Cut(end));
            }
            Shape::Drip(pause) => drip(down, asked, &piece, pause).await?,
            Shape::Whole | Shape::Dated(_) | Shape::Aged(_) => send(down, &piece).await?,
        }
    }
    call.note(|call| {
        call.content = Some(body.hash.finish());
        // A body that was to end early and had not a byte.
        if matches!(shape, Shape::Half(_)) {
            call.fault = None;
        }
    });
    let keeps = framing != ResponseFraming::CloseDelimited && !head.fields.lists("connection", "close");
    Ok(keeps && head.minor_version == 1)
}

/// Ends when the caller has left. Bytes that come before are kept.
pub(crate) async fn until_left(down: &mut TcpStream, buffer: &mut BytesMut) {
    loop {
        buffer.reserve(READ_BYTES);
        if !matches!(down.read_buf(buffer).await, Ok(1..)) {
            return;
        }
    }
}

async fn send(down: &mut TcpStream, bytes: &[u8]) -> Result<(), Break> {
    down.write_all(bytes).await.map_err(|_gone| Break::CallerLeft)
}

async fn drip(
    down: &mut TcpStream,
    asked: &mut BytesMut,
    piece: &[u8],
    pause: Duration,
) -> Result<(), Break> {
    for byte in piece {
        tokio::select! {
            () = time::sleep(pause) => {}
            () = until_left(down, asked) => return Err(Break::CallerLeft),
        }
        send(down, std::slice::from_ref(byte)).await?;
    }
    Ok(())
}

/// Reads what the upstream says, unless the caller leaves first.
async fn read(
    down: &mut TcpStream,
    asked: &mut BytesMut,
    up: &mut TcpStream,
    bytes: &mut BytesMut,
) -> Result<(), Break> {
    bytes.reserve(READ_BYTES);
    tokio::select! {
        read = up.read_buf(bytes) => match read {
            Ok(1..) => Ok(()),
            Ok(_) => Err(Break::Cut(End::Close)),
            Err(_) => Err(Break::Cut(End::Reset)),
        },
        () = until_left(down, asked) => Err(Break::CallerLeft),
    }
}

async fn read_head(
    down: &mut TcpStream,
    asked: &mut BytesMut,
    mut up: Option<&mut TcpStream>,
    given: &mut Given,
) -> Result<ResponseHead, Break> {
    loop {
        if let Some(length) = head_length(&given.bytes) {
            let raw = given.bytes.split_to(length).freeze();
            return ResponseHead::parse(raw).map_err(|_wrong| Break::Cut(End::Reset));
        }
        let stream = up.as_deref_mut().ok_or(Break::Cut(End::Reset))?;
        read(down, asked, stream, &mut given.bytes).await?;
    }
}

/// The head as the fault has it.
fn shaped(head: &ResponseHead, shape: Shape) -> Bytes {
    let (name, value) = match shape {
        Shape::Dated(ahead) => {
            let then = std::time::SystemTime::now() + Duration::from_secs(u64::from(ahead));
            ("date", httpdate::fmt_http_date(then))
        }
        Shape::Aged(age) => ("age", age.to_string()),
        Shape::Whole | Shape::Half(_) | Shape::Drip(_) => return head.raw.clone(),
    };
    let text = String::from_utf8_lossy(&head.raw);
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let mut edited = format!("{}\r\n", lines.next().unwrap_or_default());
    for line in lines {
        if !line.split_once(':').is_some_and(|(other, _)| other.eq_ignore_ascii_case(name)) {
            edited.push_str(line);
            edited.push_str("\r\n");
        }
    }
    format!("{edited}{name}: {value}\r\n\r\n").into()
}

/// Where a body ends, and the hash of what it says.
struct Body {
    left: Left,
    hash: DefaultHasher,
}

enum Left {
    Bytes(u64),
    /// With what was left over of the last piece.
    Chunks(Chunked, BytesMut),
    UntilClose,
    Over,
}

impl Body {
    fn new(framing: ResponseFraming) -> Self {
        let left = match framing {
            ResponseFraming::None | ResponseFraming::ContentLength(0) => Left::Over,
            ResponseFraming::ContentLength(length) => Left::Bytes(length),
            ResponseFraming::Chunked => Left::Chunks(Chunked::default(), BytesMut::new()),
            ResponseFraming::CloseDelimited => Left::UntilClose,
        };
        Self { left, hash: DefaultHasher::new() }
    }

    fn is_over(&self) -> bool {
        matches!(self.left, Left::Over)
    }

    /// Takes what belongs to the body, as it is to be sent on.
    fn take(&mut self, bytes: &mut BytesMut) -> Result<Bytes, Break> {
        let (piece, is_over) = match &mut self.left {
            Left::Over => (Bytes::new(), true),
            Left::UntilClose => {
                self.hash.write(bytes);
                (bytes.split().freeze(), false)
            }
            Left::Bytes(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                let piece = bytes.split_to(here).freeze();
                self.hash.write(&piece);
                *left -= here as u64;
                (piece, *left == 0)
            }
            Left::Chunks(decoder, pending) => {
                let raw = bytes.split().freeze();
                pending.extend_from_slice(&raw);
                let hash = &mut self.hash;
                let decoded = decoder.decode(pending, |payload| hash.write(payload));
                (raw, decoded.map_err(|_wrong| Break::Cut(End::Reset))?)
            }
        };
        if is_over {
            self.left = Left::Over;
        }
        Ok(piece)
    }
}
