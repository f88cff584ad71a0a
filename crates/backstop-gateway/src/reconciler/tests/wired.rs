//! Within a whole gateway: it follows what the ledger holds and has ended with the gateway, and what it asks takes no place of a
//! request's.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use backstop::clock::Clock;
use backstop_engine::operation::State;
use backstop_policy::{NoFiles, parse};

use super::upstream::{BOUND, Reply, Upstream, answer};
use super::world::{eventually, lose};
use crate::Gateway;

const POLICY: &str = r#"
[gateway]
listen    = "127.0.0.1:0"
admin     = "[::1]:0"
in_flight = 100

[store]
path = "FOLDER"

[dependency.payments]
url         = "http://UPSTREAM"
host        = "pay.internal"
connections = 1

[route.pay.effect]
match              = "POST /payments"
dependency         = "payments"
deadline           = "1s"
in_flight          = 10
scope              = "route"
request_headers    = { set = { authorization = "Bearer ours" } }
outcome            = { succeeded = [{ status = 201 }] }
status_query       = { path = "/payments/{operation_id}", succeeded = [{ status = 200, json = { "/status" = "paid" } }] }
upstream_retention = "24h"
"#;

fn bind(upstream: &Upstream, folder: &Path, clock: &Clock) -> Gateway {
    let policy =
        POLICY.replace("FOLDER", folder.to_str().unwrap()).replace("UPSTREAM", &upstream.address.to_string());
    Gateway::bind(&parse(&policy, "policy.toml", &NoFiles).unwrap(), clock).unwrap()
}

#[test]
fn a_gateway_follows_what_its_ledger_holds() {
    let upstream = Upstream::start(|_| answer(200, r#"{"status":"paid"}"#));
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system().unwrap();
    let gateway = bind(&upstream, folder.path(), &clock);
    let ledger = Arc::clone(&gateway.operations.as_ref().unwrap().ledger);
    let id = lose(&*ledger, "pay", 7, clock.now());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = std::thread::spawn(move || {
        runtime.block_on(gateway.run(async move {
            let _told = stopped.await;
        }))
    });
    let state = || {
        let shown = ledger.show(id).wait().unwrap().unwrap();
        shown.record.progress.state()
    };
    eventually(|| matches!(state(), State::Succeeded(_)));
    stop.send(()).unwrap();
    running.join().unwrap().unwrap();
    assert!(ledger.show(id).wait().is_err(), "the ledger is closed");
    assert!(ledger.close(BOUND));
    let requests = upstream.requests();
    assert_eq!(requests.len(), 1);
    let expected = "GET /payments/k7 HTTP/1.1\r\nhost: pay.internal\r\nauthorization: Bearer ours\r\n";
    assert!(requests[0].starts_with(expected), "{}", requests[0]);
}

/// Questions hang, as many as may be under way, and the only connection for requests is free.
#[test]
fn what_is_asked_takes_no_place_of_a_requests() {
    let upstream = Upstream::start(|line| match line.starts_with("GET ") {
        true => Reply::Hang,
        false => answer(201, "{}"),
    });
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system().unwrap();
    let gateway = bind(&upstream, folder.path(), &clock);
    let address = gateway.bound().unwrap().listen[0];
    let engine = Arc::clone(gateway.backstop().engine());
    let ledger = Arc::clone(&gateway.operations.as_ref().unwrap().ledger);
    for number in 1..=8 {
        lose(&*ledger, "pay", number, clock.now());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = std::thread::spawn(move || {
        runtime.block_on(gateway.run(async move {
            let _told = stopped.await;
        }))
    });
    upstream.until(1);
    assert_eq!((engine.process().in_flight(), engine.dependencies()[0].in_flight.in_flight()), (0, 0));
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(BOUND)).unwrap();
    let request = "POST /payments HTTP/1.1\r\nhost: a\r\nidempotency-key: another\r\ncontent-length: 0\r\n\
                   connection: close\r\n\r\n";
    client.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    stop.send(()).unwrap();
    running.join().unwrap().unwrap();
}
