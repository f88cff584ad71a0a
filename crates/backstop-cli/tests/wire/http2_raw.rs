//! HTTP/2 frames by hand: what no well-behaved client can be made to send.

use std::time::Duration;

use backstop_lab::origin::{Answer as Given, Matcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::raw::{Wires, direct};
use crate::support::{BOUND, Policy, expect, run};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
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

/// A connection that does only what it is told.
struct Raw(TcpStream);

struct Came {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

impl Raw {
    async fn open(wires: &Wires, settings: &[u8], frames: &[Vec<u8>]) -> Self {
        let mut raw = Self(TcpStream::connect(wires.gateway.addr).await.expect("the gateway accepts"));
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, settings));
        frames.iter().for_each(|frame| bytes.extend_from_slice(frame));
        raw.send(&bytes).await;
        raw
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("the gateway reads");
    }

    /// The next frame; `None` at the end of the connection.
    async fn next(&mut self) -> Option<Came> {
        let reading = async {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await.ok()?;
            Some(Came { kind: head[3], flags: head[4], payload })
        };
        timeout(BOUND, reading).await.expect("a frame or the end in time")
    }

    /// Whether the gateway answers on this connection.
    async fn lives(&mut self) -> bool {
        self.send(&frame(PING, 0, 0, b"are you?")).await;
        while let Some(came) = self.next().await {
            if came.kind == PING && came.flags == ACK && came.payload == b"are you?" {
                return true;
            }
        }
        false
    }
}

async fn send(wires: &Wires, frames: &[Vec<u8>]) -> Answer {
    let mut raw = Raw::open(wires, &[], frames).await;
    while let Some(came) = raw.next().await {
        match came.kind {
            RESET | GO_AWAY => return Answer::Error,
            HEADERS => return Answer::Head(came.payload[0]),
            _ => {}
        }
    }
    Answer::Error
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

/// RFC 9113 section 8.1: a request is complete with its END_STREAM. A client that resets its stream in the middle has left,
/// also where it gives no error as the reason, and the origin must not take what it has for all there is.
#[test]
fn an_upload_that_is_reset_is_never_completed() {
    run(async {
        let wires = Wires::open().await;
        for (reason, half) in [(0_u32, "none-half"), (8, "cancel-half")] {
            let request = [(":method", "POST"), WHOLE[1], WHOLE[2], WHOLE[3]];
            let headers = frame(HEADERS, END_HEADERS, 1, &fields(&request));
            let mut raw = Raw::open(&wires, &[], &[headers, frame(DATA, 0, 1, half.as_bytes())]).await;
            wires.until_received(half.as_bytes()).await;
            raw.send(&frame(RESET, 0, 1, &reason.to_be_bytes())).await;
            assert!(raw.lives().await, "only the stream has ended");
            wires.origin.wait_until(BOUND, |stats| stats.in_flight == 0).await.unwrap();
            let complete = wires.origin.count_where(|request| request.complete);
            assert_eq!(complete, 0, "{half}: {:?}", wires.origin.requests());
        }
        expect::idle(&wires.gateway).await;
        let metrics = wires.gateway.metrics().await;
        assert_eq!((metrics.outcome("abandoned"), metrics.dependency_failures()), (2, 0));
    });
}

/// RFC 9113 section 8.1: what ends a request may be a field section, and nothing says that it has fields.
#[test]
fn a_request_may_end_with_trailers_of_no_field() {
    run(async {
        let wires = Wires::open().await;
        let request = [(":method", "POST"), WHOLE[1], WHOLE[2], WHOLE[3]];
        let headers = frame(HEADERS, END_HEADERS, 1, &fields(&request));
        let frames =
            [headers, frame(DATA, 0, 1, b"content"), frame(HEADERS, END_STREAM | END_HEADERS, 1, &[])];
        assert_eq!(send(&wires, &frames).await, Answer::Head(0x88));
        let [request] = &wires.origin.requests()[..] else { panic!("one request") };
        assert_eq!((request.text().as_str(), request.complete), ("content", true));
    });
}

/// RFC 9110 section 9.3.2: an answer to HEAD has no content, a refusal neither.
#[test]
fn a_refusal_of_head_has_no_content() {
    run(async {
        let wires = Wires::open().await;
        for (method, has_content) in [("HEAD", false), ("GET", true)] {
            let request = [(":method", method), WHOLE[1], WHOLE[2], (":path", "/a/../b")];
            let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(&request));
            let mut raw = Raw::open(&wires, &[], &[headers]).await;
            let (mut heads, mut bytes, mut ended) = (0, 0, false);
            while !ended && let Some(came) = raw.next().await {
                heads += usize::from(came.kind == HEADERS);
                bytes += if came.kind == DATA { came.payload.len() } else { 0 };
                ended = matches!(came.kind, HEADERS | DATA) && came.flags & END_STREAM != 0;
            }
            assert_eq!((heads, bytes > 0, ended), (1, has_content, true), "{method}");
        }
        assert_eq!(wires.origin.count(), 0);
    });
}

/// Also with methods that have content hardly ever, and without its length.
#[test]
fn content_without_a_length_reaches_the_origin() {
    run(async {
        let wires = Wires::open().await;
        for method in ["GET", "HEAD", "POST"] {
            wires.origin.forget();
            let request = [(":method", method), WHOLE[1], WHOLE[2], WHOLE[3]];
            let headers = frame(HEADERS, END_HEADERS, 1, &fields(&request));
            let answer = send(&wires, &[headers, frame(DATA, END_STREAM, 1, b"content")]).await;
            assert_eq!(answer, Answer::Head(0x88), "{method}");
            let [request] = &wires.origin.requests()[..] else { panic!("one request") };
            assert_eq!(
                (request.text().as_str(), request.complete, request.ambiguous),
                ("content", true, false)
            );
            assert_eq!(request.header("transfer-encoding"), Some("chunked"));
        }
        expect::idle(&wires.gateway).await;
    });
}

/// Answers of 60 000 bytes, collected and passed on as they come, to whom takes them within 5 s.
async fn large() -> Wires {
    let wires = Wires::with(|origin| {
        Policy::empty()
            .gateway("limits = { reply_time = \"5s\" }")
            .dependency("catalog", origin, "")
            .route(
                "read.public_read",
                "match = \"GET /p/1\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 8\nmax_age = \"60s\"",
            )
            .route("rest.direct", &direct("*", ""))
    })
    .await;
    wires.origin.on(Matcher::any(), Given::new(200).body(vec![b'x'; 60_000]));
    wires
}

/// `SETTINGS_INITIAL_WINDOW_SIZE`.
fn window(size: u16) -> [u8; 6] {
    let [high, low] = size.to_be_bytes();
    [0, 4, 0, 0, high, low]
}

/// A window of one byte takes the whole answer from whoever gives it, and gives none of it to the client.
#[test]
fn a_reply_behind_a_shut_window_ends_the_connection() {
    run(async {
        let wires = large().await;
        let mut hand = wires.gateway.hand();
        hand.freeze();
        for path in ["/p/1", "/p/2"] {
            let request = [WHOLE[0], WHOLE[1], WHOLE[2], (":path", path)];
            let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(&request));
            let mut raw = Raw::open(&wires, &window(1), &[headers]).await;
            while raw.next().await.expect("the first byte").kind != DATA {}
            hand.advance(Duration::from_millis(4_900));
            assert!(raw.lives().await, "{path}");
            hand.advance(Duration::from_millis(200));
            while raw.next().await.is_some() {}
        }
        expect::idle(&wires.gateway).await;
    });
}

/// A slow reader is one that takes something: it gets its answer although all of it takes longer.
#[test]
fn a_slow_reader_gets_its_whole_answer() {
    run(async {
        let wires = large().await;
        let mut hand = wires.gateway.hand();
        hand.freeze();
        let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(&WHOLE));
        let mut raw = Raw::open(&wires, &window(16_384), &[headers]).await;
        let (mut bytes, mut allowed, mut ended) = (0, 16_384, false);
        while !ended {
            while bytes < allowed && !ended {
                let came = raw.next().await.expect("a piece");
                if came.kind == DATA {
                    bytes += came.payload.len();
                    ended = came.flags & END_STREAM != 0;
                }
            }
            hand.advance(Duration::from_millis(4_900));
            raw.send(&frame(WINDOW_UPDATE, 0, 1, &16_384_u32.to_be_bytes())).await;
            allowed += 16_384;
        }
        assert_eq!(bytes, 60_000);
    });
}

/// A client that rests for a minute is told to come again.
#[test]
fn a_connection_that_rests_is_closed() {
    run(async {
        let wires = Wires::open().await;
        let mut hand = wires.gateway.hand();
        hand.freeze();
        let headers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(&WHOLE));
        let mut raw = Raw::open(&wires, &[], &[headers]).await;
        while raw.next().await.expect("an answer").kind != HEADERS {}
        expect::idle(&wires.gateway).await;
        hand.advance(Duration::from_millis(59_900));
        assert!(raw.lives().await);
        hand.advance(Duration::from_millis(200));
        while raw.next().await.expect("a word before the end").kind != GO_AWAY {}
        // It does not say that it understood, and is left all the same.
        // The time until then may begin a moment after its word has come: the clock goes on until the end is there.
        let ends = async { while raw.next().await.is_some() {} };
        let time_goes_on = async {
            loop {
                hand.advance(Duration::from_millis(60_100));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = ends => {}
            () = time_goes_on => {}
        }
    });
}
