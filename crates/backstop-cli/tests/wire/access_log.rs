//! The access log: one line for each request at its last byte, read as whoever has such a file reads it.

use std::path::Path;
use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use serde_json::Value;

use crate::raw::{Wires, direct};
use crate::support::shop::down;
use crate::support::{BOUND, Gateway, Policy, products, run};

fn policy(origin: std::net::SocketAddr, log: &str) -> Policy {
    let description = Policy::description("languages =\ncorrect =").replace("\"language\", ", "");
    Policy::empty()
        .gateway(&format!("access_log = {log}"))
        .dependency("catalog", origin, "")
        .route("description.public_read", &description)
        .route("rest.direct", &direct("GET /rest/{rest*}", ""))
}

/// The lines of a file, once there are so many.
async fn lines(file: &Path, count: usize) -> Vec<String> {
    let read = || std::fs::read_to_string(file).unwrap_or_default();
    let waiting = async {
        while read().lines().count() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _compared_below = tokio::time::timeout(BOUND, waiting).await;
    let text = read();
    assert!(text.is_empty() || text.ends_with('\n'), "only whole lines");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), count, "{text}");
    lines
}

fn log(gateway: &Gateway) -> std::path::PathBuf {
    gateway.folder().join("access.log")
}

#[test]
fn every_request_leaves_one_line_that_says_what_it_came_to() {
    run(async {
        let wires = Wires::with(|origin| policy(origin, "{ path = \"access.log\" }")).await;
        let gateway = &wires.gateway;
        wires.origin.default(products("saved"));
        let mut hand = gateway.hand();
        hand.freeze();
        assert_eq!(gateway.get("/p/1?token=secret", &[]).await.status(), 200);
        assert_eq!(gateway.request("HEAD", "/p/1", &[], b"").await.status(), 200);
        assert_eq!(gateway.get("/nowhere", &[]).await.status(), 404);
        wires.origin.on(Matcher::path("/rest/500"), Behaviour::status(500));
        assert_eq!(gateway.get("/rest/500", &[]).await.status(), 500);
        down(&wires.origin).await;
        hand.advance(Duration::from_secs(30));
        assert_eq!(gateway.get("/p/1?token=secret", &[]).await.status(), 200);
        assert_eq!(gateway.get("/p/2", &[]).await.status(), 503);
        let lines = lines(&log(gateway), 6).await;
        let told: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let words = |line: &Value| {
            let texts = ["method", "path", "route", "outcome", "source", "reason"]
                .map(|key| line[key].as_str().unwrap_or("-").to_owned());
            (line["status"].as_u64().unwrap(), texts.join(" "))
        };
        let expected = [
            (200, "GET /p/1 description normal primary none"),
            (200, "HEAD /p/1 description normal primary none"),
            (404, "GET /nowhere - rejected none no_route"),
            (500, "GET /rest/500 rest failed primary server_error"),
            (200, "GET /p/1 description fallback snapshot connect"),
            (503, "GET /p/2 description rejected none missing"),
        ];
        assert_eq!(
            told.iter().map(words).collect::<Vec<_>>(),
            expected.map(|(status, text)| (status, text.to_owned()))
        );
        assert_eq!((&told[4]["age_s"], &told[0]["age_s"]), (&30.into(), &Value::Null));
        // {"id":"1","text":"saved","lang":"none"} has 38 bytes, and HEAD has none.
        assert_eq!((&told[0]["bytes"], &told[1]["bytes"]), (&39.into(), &0.into()));
        assert_eq!((&told[0]["peer"], &told[0]["protocol"]), (&"127.0.0.1".into(), &"HTTP/1.1".into()));
        assert!(!lines.concat().contains("secret"), "a query is no part of it");
        let metrics = gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_telemetry_sent_total", &["signal=\"access_log\""]), 6.0);
        assert_eq!(metrics.sum("backstop_telemetry_dropped_total", &["signal=\"access_log\""]), 0.0);
    });
}

/// `%h %l %u %t "%r" %>s %b` (<https://httpd.apache.org/docs/current/logs.html#common>), read by its definition.
fn common(line: &str) -> Option<[&str; 4]> {
    let (host, rest) = line.split_once(" - - [")?;
    let (time, rest) = rest.split_once("] \"")?;
    let bytes = rest.as_bytes();
    let mut end = 0;
    // A quote that ends the request line has no backslash before it that is none itself escaped.
    while *bytes.get(end)? != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    let (request, rest) = (&rest[..end], rest[end + 1..].strip_prefix(' ')?);
    let (status, size) = rest.split_once(' ')?;
    let is_size = size == "-" || size.parse::<u64>().is_ok();
    let is_time = {
        let (date, zone) = time.split_once(' ')?;
        zone == "+0000" && date.split(['/', ':']).count() == 6
    };
    let is_whole = host.parse::<std::net::IpAddr>().is_ok() && status.len() == 3 && is_size && is_time;
    is_whole.then_some([time, request, status, size])
}

#[test]
fn the_common_format_holds_against_whoever_writes_the_request() {
    run(async {
        let log_to = "{ format = \"common\", path = \"access.log\", query = true }";
        let wires = Wires::with(|origin| policy(origin, log_to)).await;
        let gateway = &wires.gateway;
        wires.origin.default(Answer::new(200).body(b"four".to_vec()));
        assert_eq!(gateway.get("/rest/a", &[]).await.status(), 200);
        let hostile: [&[u8]; 3] = [
            b"GET /rest/\"%0a%0d?q=\\ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"GET /rest/\xc3\xbc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            // What is no HTTP leaves no line: nobody knows what was asked.
            b"GE\"T /rest/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ];
        for request in hostile {
            wires.say(request).await;
        }
        let lines = lines(&log(gateway), 3).await;
        for line in &lines {
            assert!(common(line).is_some(), "{line:?}");
            assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
        }
        let [_, request, status, size] = common(&lines[0]).unwrap();
        assert_eq!((request, status, size), ("GET /rest/a HTTP/1.1", "200", "4"));
        assert!(lines[1].contains("\"GET /rest/\\\"%0a%0d?q=\\\\ HTTP/1.1\""), "{lines:#?}");
        assert!(lines[2].contains("\"GET /rest/\\xc3\\xbc HTTP/1.1\""), "{lines:#?}");
    });
}

/// A file that is moved away goes on being written until SIGHUP; then there is a new one.
#[test]
fn a_file_that_is_moved_away_is_opened_anew() {
    run(async {
        let wires = Wires::with(|origin| policy(origin, "{ path = \"access.log\" }")).await;
        let gateway = &wires.gateway;
        wires.origin.default(Answer::new(200));
        gateway.get("/rest/1", &[]).await;
        lines(&log(gateway), 1).await;
        let moved = gateway.folder().join("access.log.1");
        std::fs::rename(log(gateway), &moved).unwrap();
        gateway.get("/rest/2", &[]).await;
        lines(&moved, 2).await;
        gateway.signal("HUP");
        let reopened = async {
            while !gateway.log().iter().any(|line| line.contains("opened anew")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(BOUND, reopened).await.expect("it is said");
        gateway.get("/rest/3", &[]).await;
        assert!(lines(&log(gateway), 1).await[0].contains("/rest/3"));
        lines(&moved, 2).await;
    });
}

/// The device that is always full (`/dev/full`): every line is lost, and not one request.
#[test]
fn a_full_disk_costs_lines_and_no_request() {
    run(async {
        let wires = Wires::with(|origin| policy(origin, "{ path = \"/dev/full\" }")).await;
        wires.origin.default(Answer::new(200));
        for _ in 0..20 {
            assert_eq!(wires.gateway.get("/rest/1", &[]).await.status(), 200);
        }
        let lost = |metrics: &crate::support::Metrics| {
            metrics.sum("backstop_telemetry_dropped_total", &["signal=\"access_log\""])
        };
        wires.gateway.metrics_until(|metrics| lost(metrics) == 20.0).await;
        let said = wires.gateway.log();
        assert_eq!(said.iter().filter(|line| line.contains("backstop::access_log")).count(), 1, "{said:#?}");
    });
}

/// A pipe that nobody reads: the writer hangs, the queue fills, and requests are answered as before.
#[test]
fn a_disk_that_hangs_costs_lines_and_no_request() {
    run(async {
        let folder = crate::support::gateway::folder();
        let pipe = folder.join("access.log");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Held open, so that opening it for writing does not wait.
        let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let origin = backstop_lab::origin::Origin::start().await.unwrap();
        origin.default(Answer::new(200));
        let gateway = Gateway::start_in(&folder, &policy(origin.addr(), "{ path = \"access.log\" }"));
        let mut connection = backstop_lab::client::Connection::open(gateway.addr).await.unwrap().bound(BOUND);
        // A pipe holds 64 KiB and the queue 8192 lines of about 300 bytes.
        let request = b"GET /rest/1 HTTP/1.1\r\nHost: a\r\n\r\n";
        for _ in 0..10_000 {
            connection.send(request).await.unwrap();
            assert_eq!(connection.read_response().await.unwrap().status(), 200);
        }
        let lost = |metrics: &crate::support::Metrics| {
            metrics.sum("backstop_telemetry_dropped_total", &["signal=\"access_log\""])
        };
        gateway.metrics_until(|metrics| lost(metrics) > 0.0).await;
        drop(reader);
    });
}

/// Who leaves before there is an answer leaves a line all the same.
#[test]
fn whoever_leaves_leaves_a_line() {
    run(async {
        let wires = Wires::with(|origin| policy(origin, "{ path = \"access.log\" }")).await;
        let gate = Gate::new();
        wires.origin.on(Matcher::any(), Behaviour::status(200).gate(&gate));
        let mut client = wires.connect().await;
        client.send(b"GET /rest/1 HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        client.reset().unwrap();
        let line: Value = serde_json::from_str(&lines(&log(&wires.gateway), 1).await[0]).unwrap();
        assert_eq!(
            (&line["status"], &line["outcome"], &line["reason"]),
            (&499.into(), &"abandoned".into(), &"client_left".into())
        );
        assert_eq!(line["route"], "rest");
        gate.open();
    });
}

#[test]
fn a_file_that_cannot_be_opened_refuses_the_start() {
    let folder = crate::support::gateway::folder();
    let text = policy("127.0.0.1:9".parse().unwrap(), "{ path = \"/dev/null/access.log\" }").text();
    std::fs::write(folder.join("policy.toml"), text).unwrap();
    let (status, _, told) = crate::support::gateway::output(&["run", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(2), "{told}");
    assert!(told.contains("the access log /dev/null/access.log cannot be opened"), "{told}");
}

/// What a client got on a route that is only observed: the dependency's answer, or a word of ours and why.
#[test]
fn an_observed_request_is_logged_as_what_its_client_got() {
    run(async {
        let wires =
            Wires::with(|origin| policy(origin, "{ path = \"access.log\" }").gateway("mode = \"observe\""))
                .await;
        wires.origin.default(products("saved"));
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
        down(&wires.origin).await;
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 502);
        let lines = lines(&log(&wires.gateway), 2).await;
        let told: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let words = |line: &Value| {
            ["outcome", "source", "reason"].map(|name| line[name].as_str().unwrap().to_owned())
        };
        assert_eq!(words(&told[0]), ["observed", "primary", "none"]);
        assert_eq!(words(&told[1]), ["observed", "none", "connect"]);
    });
}
