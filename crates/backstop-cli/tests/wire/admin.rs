//! The operators' port.

use std::time::Duration;

use backstop_lab::client;

use crate::raw::Wires;
use crate::support::{BOUND, run};

#[test]
fn it_says_that_the_process_lives_and_is_ready() {
    run(async {
        let wires = Wires::open().await;
        let admin = wires.gateway.admin;
        let alive = client::get(admin, "/livez", &[]).await.unwrap();
        assert_eq!((alive.status(), alive.text().as_str()), (200, "alive\n"));
        let ready = client::get(admin, "/readyz", &[]).await.unwrap();
        let expected = serde_json::json!({ "ready": true, "draining": false, "warnings": [] });
        assert_eq!((ready.status(), ready.json().unwrap()), (200, expected));
        for answer in [alive, ready] {
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
        assert_eq!(client::get(admin, "/nothing", &[]).await.unwrap().status(), 404);
        assert_eq!(client::request(admin, "HEAD", "/metrics", &[], b"").await.unwrap().status(), 200);
    });
}

#[test]
fn it_changes_nothing_and_accepts_no_other_method() {
    run(async {
        let wires = Wires::open().await;
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
            for path in ["/metrics", "/livez", "/readyz"] {
                let refused = client::request(wires.gateway.admin, method, path, &[], b"x").await.unwrap();
                assert_eq!(
                    (refused.status(), refused.header("allow")),
                    (405, Some("GET, HEAD")),
                    "{method} {path}"
                );
            }
        }
        assert_eq!(wires.origin.count(), 0, "and nothing of it is for the dependency");
        assert_eq!(
            wires.gateway.get("/metrics", &[]).await.text(),
            r#"{"ok":true}"#,
            "clients get the origin's"
        );
    });
}

/// A broken scraper takes no place for ever, and many of them take nothing from clients.
#[test]
fn scrapers_do_not_disturb_clients() {
    run(async {
        let wires = Wires::open().await;
        let mut silent = Vec::new();
        for _ in 0..80 {
            silent.push(client::Connection::open(wires.gateway.admin).await.unwrap());
        }
        for _ in 0..10 {
            assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
        }
        drop(silent);
        assert_eq!(wires.gateway.metrics().await.outcome("normal"), 10);
    });
}

/// Far more of them than there are places, none of which says a whole word: whoever asks is answered at once, before
/// silence has come to its limit of 5 s, and then they are closed.
#[test]
fn silent_connections_keep_no_scraper_out() {
    run(async {
        let wires = Wires::open().await;
        let mut silent = Vec::new();
        for number in 0..400 {
            let mut connection = client::Connection::open(wires.gateway.admin).await.unwrap().bound(BOUND);
            if number % 2 == 0 {
                connection.send(b"GET /metrics HT").await.unwrap();
            }
            silent.push(connection);
        }
        let asking = async {
            for path in ["/metrics", "/readyz", "/livez"] {
                assert_eq!(client::get(wires.gateway.admin, path, &[]).await.unwrap().status(), 200);
            }
        };
        tokio::time::timeout(Duration::from_secs(3), asking).await.expect("nobody waits for the silent");
        for connection in &mut silent {
            assert_ne!(connection.read_to_end().await.ending, client::Ending::TimedOut);
        }
    });
}
