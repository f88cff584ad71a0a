//! Clients' connections: how long one may say nothing, and how many there may be.

use std::time::Duration;

use backstop_lab::client::{Connection, Ending};

use crate::raw::{Wires, everything};
use crate::support::{BOUND, Gateway, Metrics, run};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

async fn open(gateway: &Gateway) -> Connection {
    Connection::open(gateway.addr).await.expect("the system accepts").bound(BOUND)
}

async fn open_count(gateway: &Gateway, wanted: usize) {
    gateway.metrics_until(|metrics| metrics.sum("backstop_client_connections", &[]) == wanted as f64).await;
}

/// Whatever it began with: without a request in the time of a head, a connection is closed.
#[test]
fn a_connection_without_a_request_is_closed() {
    run(async {
        let wires = Wires::open().await;
        let mut hand = wires.gateway.hand();
        hand.freeze();
        let settings = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
        let mut connections = Vec::new();
        for begun in [&b""[..], b"G", b"GET / HT", b"PRI * HT", PREFACE, &settings] {
            let mut connection = open(&wires.gateway).await;
            connection.send(begun).await.unwrap();
            connections.push((begun, connection));
        }
        open_count(&wires.gateway, connections.len()).await;
        hand.advance(Duration::from_millis(9_900));
        // One that has a request is not meant, and these go through the same threads.
        for _ in 0..20 {
            assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
        }
        open_count(&wires.gateway, connections.len()).await;
        hand.advance(Duration::from_millis(200));
        for (begun, mut connection) in connections {
            let tail = connection.read_to_end().await;
            assert_ne!(tail.ending, Ending::TimedOut, "{:?}", begun.escape_ascii().to_string());
        }
        open_count(&wires.gateway, 0).await;
    });
}

/// Starts a gateway that may open so many files.
fn with_files(wires: &Wires, files: u64) -> Gateway {
    Gateway::start_with_files(&everything(wires.origin.addr()), files)
}

/// Four fifths of the files are for clients. One more client is told by the end of its connection, and the gateway goes
/// on to work.
#[test]
fn there_are_never_more_connections_than_files_allow() {
    run(async {
        let wires = Wires::open().await;
        let gateway = with_files(&wires, 200);
        let mut held = Vec::new();
        for _ in 0..160 {
            held.push(open(&gateway).await);
        }
        open_count(&gateway, 160).await;
        for _ in 0..10 {
            let tail = open(&gateway).await.read_to_end().await;
            assert_eq!((tail.bytes.len(), tail.ending), (0, Ending::Fin));
        }
        let metrics = gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_client_connections_refused_total", &[]), 10.0);
        assert_eq!(metrics.sum("backstop_client_connections_accepted_total", &[]), 160.0);
        assert_eq!(
            held[0].get("/p/1", &[("Host", "shop")]).await.unwrap().status(),
            200,
            "those that are open are served"
        );
        drop(held.pop());
        open_count(&gateway, 159).await;
        assert_eq!(gateway.get("/p/1", &[]).await.status(), 200);
    });
}

/// A gateway without a file left says so once a second on each of its two threads.
#[test]
fn a_lack_of_files_does_not_fill_the_log() {
    run(async {
        let wires = Wires::open().await;
        let gateway = with_files(&wires, 40);
        let mut hand = gateway.hand();
        hand.freeze();
        // Open before there is a lack: later nobody could ask.
        let mut admin = Connection::open(gateway.admin).await.unwrap().bound(BOUND);
        assert_eq!(
            admin.get("/livez", &[]).await.unwrap().status(),
            200,
            "it is accepted, with a file of its own"
        );
        let mut failures = async |wanted: u64| {
            let mut count = 0.0;
            while count < wanted as f64 {
                let answer = admin.get("/metrics", &[]).await;
                let text = answer.unwrap_or_else(|error| panic!("{error:?}: {:#?}", gateway.log())).text();
                count = Metrics::parse(&text).sum("backstop_client_accept_failures_total", &[]);
            }
        };
        let mut held = Vec::new();
        for _ in 0..40 {
            held.push(open(&gateway).await);
        }
        let lines = || {
            let log = gateway.log();
            log.into_iter().filter(|line| line.contains("cannot accept connections")).collect::<Vec<_>>()
        };
        failures(10).await;
        assert!(lines().len() <= 2, "{:#?}", lines());
        hand.advance(Duration::from_secs(1));
        failures(20).await;
        let tells_the_rest = |line: &String| line.contains("left_out") && !line.contains("left_out=0");
        let waiting = async {
            while !lines().iter().any(tells_the_rest) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(BOUND, waiting).await.unwrap_or_else(|_| panic!("{:#?}", lines()));
        assert!(lines().len() <= 4, "{:#?}", lines());
    });
}
