//! The gateway starts it before it serves and ends it before its ledger is closed.

use backstop::clock::Clock;
use backstop_engine::operation::State;
use backstop_policy::{NoFiles, parse};

use super::upstream::{BOUND, Upstream, answer};
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
url  = "http://UPSTREAM"
host = "pay.internal"

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

#[test]
fn a_gateway_follows_what_its_ledger_holds() {
    let upstream = Upstream::start(|_| answer(200, r#"{"status":"paid"}"#));
    let folder = tempfile::tempdir().unwrap();
    let policy = POLICY
        .replace("FOLDER", folder.path().to_str().unwrap())
        .replace("UPSTREAM", &upstream.address.to_string());
    let loaded = parse(&policy, "policy.toml", &NoFiles).unwrap();
    let clock = Clock::system().unwrap();
    let gateway = Gateway::bind(loaded, clock.clone()).unwrap();
    let ledger = std::sync::Arc::clone(&gateway.operations.as_ref().unwrap().ledger);
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
