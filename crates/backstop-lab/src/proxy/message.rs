//! Where a request ends.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::{io::AsyncReadExt as _, net::TcpStream};

use crate::{
    origin::{Request, RequestFraming, head::parse_head},
    wire::Chunked,
};

const READ_BYTES: usize = 16 * 1024;
/// Largest request that is taken, head and body.
const REQUEST_MAX: usize = 64 * 1024 * 1024;

/// A whole request as it came.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) request: Request,
    pub(crate) head: Bytes,
    pub(crate) body: Bytes,
}

/// Why there is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMore {
    /// A side closed.
    Closed,
    /// What came is not HTTP.
    NotHttp,
}

/// Reads the next head. While nothing came, the other side's closing ends it too.
pub(crate) async fn read_head(
    down: &mut TcpStream,
    buffer: &mut BytesMut,
    mut up: Option<&mut TcpStream>,
) -> Result<(Request, Bytes), NoMore> {
    loop {
        match parse_head(buffer) {
            Err(_) => return Err(NoMore::NotHttp),
            Ok(Some((request, length))) => return Ok((request, buffer.split_to(length).freeze())),
            Ok(None) if buffer.len() > REQUEST_MAX => return Err(NoMore::NotHttp),
            Ok(None) => {}
        }
        buffer.reserve(READ_BYTES);
        let idle = buffer.is_empty();
        let read = tokio::select! {
            read = down.read_buf(buffer) => read,
            () = leaves(up.as_deref_mut()), if idle => return Err(NoMore::Closed),
        };
        if !matches!(read, Ok(1..)) {
            return Err(NoMore::Closed);
        }
    }
}

/// Reads the body that belongs to this head, as it came.
pub(crate) async fn read_body(
    down: &mut TcpStream,
    buffer: &mut BytesMut,
    framing: RequestFraming,
) -> Result<Bytes, NoMore> {
    match framing {
        RequestFraming::None => Ok(Bytes::new()),
        RequestFraming::ContentLength(length) => {
            let length = usize::try_from(length).ok().filter(|length| *length <= REQUEST_MAX);
            let length = length.ok_or(NoMore::NotHttp)?;
            while buffer.len() < length {
                more(down, buffer).await?;
            }
            Ok(buffer.split_to(length).freeze())
        }
        RequestFraming::Chunked => {
            let (mut decoder, mut taken, mut input) = (Chunked::default(), BytesMut::new(), BytesMut::new());
            loop {
                input.extend_from_slice(buffer);
                taken.extend_from_slice(&buffer.split());
                if decoder.decode(&mut input, |_| {}).map_err(|_wrong| NoMore::NotHttp)? {
                    // What follows the body belongs to the next request.
                    let body = taken.split_to(taken.len() - input.len()).freeze();
                    buffer.unsplit(input);
                    return Ok(body);
                }
                more(down, buffer).await?;
            }
        }
    }
}

async fn more(down: &mut TcpStream, buffer: &mut BytesMut) -> Result<(), NoMore> {
    buffer.reserve(READ_BYTES);
    match down.read_buf(buffer).await {
        Ok(1..) if buffer.len() <= REQUEST_MAX => Ok(()),
        _ => Err(NoMore::Closed),
    }
}

/// Ends when the upstream closes its connection, or says something that nobody asked.
async fn leaves(up: Option<&mut TcpStream>) {
    match up {
        Some(up) => {
            let _closed_or_unasked = up.readable().await;
        }
        None => std::future::pending().await,
    }
}

/// The head with the upstream's own authority where the caller named the proxy's.
pub(crate) fn with_host(head: &Bytes, own: SocketAddr, upstream: &str) -> Bytes {
    let own = own.to_string();
    let Ok(text) = std::str::from_utf8(head) else { return head.clone() };
    let mut lines: Vec<String> = Vec::new();
    let mut is_changed = false;
    for line in text.split("\r\n") {
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("host") && value.trim() == own => {
                lines.push(format!("{name}: {upstream}"));
                is_changed = true;
            }
            _ => lines.push(line.to_owned()),
        }
    }
    if is_changed { lines.join("\r\n").into() } else { head.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_proxys_own_host_is_replaced() {
        let own = SocketAddr::from(([127, 0, 0, 1], 4000));
        let head = Bytes::from_static(b"GET / HTTP/1.1\r\nhost: 127.0.0.1:4000\r\nA: b\r\n\r\n");
        let expected = b"GET / HTTP/1.1\r\nhost: shop.test:80\r\nA: b\r\n\r\n";
        assert_eq!(with_host(&head, own, "shop.test:80"), expected.as_slice());
        let other = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: clients.test\r\n\r\n");
        assert_eq!(with_host(&other, own, "shop.test:80"), other);
    }
}
