//! Clients that take their answer slowly: as slowly as they like, as long as they take it.

use std::time::Duration;

use backstop_lab::origin::{Answer, Matcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::raw::Wires;
use crate::support::{BOUND, Policy, expect, run};

const MIB: usize = 1 << 20;
/// Of an answer that is held back until it is whole, and so goes out as one piece.
const LARGE: usize = 48 * MIB;
/// More than the sockets between the two hold: who got it has made the gateway write more since.
const PART: usize = 12 * MIB;

async fn wires() -> Wires {
    let wires = Wires::with(|origin| {
        Policy::empty()
            .gateway("limits = { reply_time = \"30s\" }")
            .gateway("buffer_memory = \"128 MiB\"")
            .store("snapshots = { memory = \"128 MiB\", disk = \"0 B\" }")
            .dependency("catalog", origin, "")
            .route(
                "read.public_read",
                "match = \"GET /large\"\ndependency = \"catalog\"\ndeadline = \"10s\"\nin_flight = 8\nmax_age = \"60s\"\nbuffer = \"64 MiB\"",
            )
    })
    .await;
    wires.origin.on(Matcher::any(), Answer::new(200).body(vec![b'x'; LARGE]));
    wires
}

/// A part of it every 20 s: 80 s for what is one piece, of which something always waits. Then nothing for 30 s.
#[test]
fn a_slow_reader_gets_all_of_a_large_answer() {
    run(async {
        let wires = wires().await;
        let mut hand = wires.gateway.hand();
        hand.freeze();
        for parts in [LARGE / PART, 1] {
            let socket = TcpSocket::new_v4().unwrap();
            // The system makes it no larger then.
            socket.set_recv_buffer_size(64 * 1024).unwrap();
            let mut stream = socket.connect(wires.gateway.addr).await.unwrap();
            stream
                .write_all(b"GET /large HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
                .await
                .unwrap();
            let mut part = vec![0; PART];
            for _ in 0..parts {
                let read = tokio::time::timeout(BOUND, stream.read_exact(&mut part)).await.expect("it comes");
                assert_eq!(read.expect("it is not cut"), PART);
                hand.pass(Duration::from_secs(20));
            }
            let mut rest = Vec::new();
            if parts == 1 {
                // When the gateway found the sockets full, only it knows: the time passes until it is over.
                while wires.gateway.metrics().await.outcomes().abandoned == 0 {
                    hand.pass(Duration::from_secs(31));
                }
                let _or_a_reset = stream.read_to_end(&mut rest).await;
                assert!(PART + rest.len() < LARGE, "it was cut");
            } else {
                stream.read_to_end(&mut rest).await.unwrap();
                assert!((1..1000).contains(&rest.len()), "as much as the head is long: {}", rest.len());
            }
            expect::idle(&wires.gateway).await;
        }
    });
}
