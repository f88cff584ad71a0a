//! HTTP/2 frames by hand: what no well-behaved client can be made to send.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::raw::Wires;
use crate::support::{BOUND, expect, run};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
    frame.extend_from_slice(payload);
    frame
}

/// Fields as literals without indexing and without Huffman coding (RFC 7541 section 6.2.2).
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("a short text"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// How the gateway answered stream 1.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// By resetting the stream, or by closing the connection.
    Error,
    /// By a head; its first byte, an indexed field: 0x88 is `:status 200`, 0x8c is `:status 400`.
    Head(u8),
}

async fn send(wires: &Wires, frames: &[Vec<u8>]) -> Answer {
    let mut stream = TcpStream::connect(wires.gateway.addr).await.expect("the gateway accepts");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    frames.iter().for_each(|frame| bytes.extend_from_slice(frame));
    stream.write_all(&bytes).await.expect("the gateway reads");
    let reading = async {
        loop {
            let mut head = [0; 9];
            if stream.read_exact(&mut head).await.is_err() {
                return Answer::Error;
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            if stream.read_exact(&mut payload).await.is_err() {
                return Answer::Error;
            }
            match head[3] {
                RESET | GO_AWAY => return Answer::Error,
                HEADERS => return Answer::Head(payload[0]),
                _ => {}
            }
        }
    };
    timeout(BOUND, reading).await.expect("an answer in time")
}

const WHOLE: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":authority", "shop"), (":path", "/p/1")];

#[test]
fn a_well_formed_stream_is_answered() {
    run(async {
        let wires = Wires::open().await;
        let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(&WHOLE));
        assert_eq!(send(&wires, &[headers]).await, Answer::Head(0x88));
        assert_eq!(wires.origin.count(), 1);
    });
}

/// RFC 9113 sections 8.1.1, 8.2.1, 8.2.2, 8.3: malformed requests are never passed on.
#[test]
fn malformed_streams_never_reach_the_origin() {
    let with = |more: &[(&'static str, &'static str)]| [&WHOLE[..], more].concat();
    let without = |name: &str| WHOLE.into_iter().filter(|(known, _)| *known != name).collect::<Vec<_>>();
    let mut late = WHOLE.to_vec();
    late.insert(3, ("x-a", "1"));
    let cases = [
        ("an uppercase name", with(&[("X-Upper", "1")])),
        ("a blank in a name", with(&[("x upper", "1")])),
        ("a line end in a value", with(&[("x-a", "1\r\nx-b: 2")])),
        ("a NUL in a value", with(&[("x-a", "1\0")])),
        ("Connection", with(&[("connection", "close")])),
        ("Keep-Alive", with(&[("keep-alive", "timeout=5")])),
        ("Proxy-Connection", with(&[("proxy-connection", "keep-alive")])),
        ("Transfer-Encoding", with(&[("transfer-encoding", "chunked")])),
        ("Upgrade", with(&[("upgrade", "h2c")])),
        ("a TE that is not trailers", with(&[("te", "gzip")])),
        ("an unknown pseudo field", with(&[(":user", "1")])),
        ("two paths", with(&[(":path", "/p/2")])),
        ("a pseudo field behind a field", late),
        ("no path", without(":path")),
        ("no method", without(":method")),
        ("no scheme", without(":scheme")),
        ("a user in the authority", vec![WHOLE[0], WHOLE[1], (":authority", "me@shop"), WHOLE[3]]),
        ("an empty path", vec![WHOLE[0], WHOLE[1], WHOLE[2], (":path", "")]),
        ("a line end in the path", vec![WHOLE[0], WHOLE[1], WHOLE[2], (":path", "/ HTTP/1.1\r\nx: y")]),
        ("a blank in the method", vec![(":method", "GET /x"), WHOLE[1], WHOLE[2], WHOLE[3]]),
        ("dot segments", vec![WHOLE[0], WHOLE[1], WHOLE[2], (":path", "/a/../b")]),
    ];
    run(async {
        let wires = Wires::open().await;
        for (what, request) in cases {
            let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(&request));
            let answer = send(&wires, &[headers]).await;
            assert!(matches!(answer, Answer::Error | Answer::Head(0x8c)), "{what}: {answer:?}");
            assert_eq!(wires.origin.count(), 0, "{what}: {:?}", wires.origin.requests());
        }
        expect::idle(&wires.gateway).await;
    });
}

/// RFC 9113 section 8.1.1: the sum of the DATA frames is the announced length, or the request is malformed.
#[test]
fn a_length_that_the_data_contradicts_is_never_completed() {
    let post = [(":method", "POST"), WHOLE[1], WHOLE[2], WHOLE[3], ("content-length", "5")];
    run(async {
        let wires = Wires::open().await;
        for data in ["abc", "abcdefg"] {
            let headers = frame(HEADERS, END_HEADERS, 1, &fields(&post));
            let answer = send(&wires, &[headers, frame(DATA, END_STREAM, 1, data.as_bytes())]).await;
            assert!(matches!(answer, Answer::Error | Answer::Head(0x8c)), "{data}: {answer:?}");
        }
        expect::idle(&wires.gateway).await;
        assert_eq!(wires.origin.count_where(|request| request.complete), 0, "{:?}", wires.origin.requests());
    });
}
