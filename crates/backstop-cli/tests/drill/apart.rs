//! What a drill leaves to production as it is: shared caches, the access log, traces.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::services::{Place, drills, said};
use crate::support::{BOUND, Redis, run};

const REVIEWS: &str = include_str!("../../../../examples/reviews.toml");
/// As production's clients name it: the host is part of a copy's key.
const HOST: &str = "shop.example";

/// The example's reviews, of which any answer may be kept.
async fn reviews(redis: &Redis) -> Place {
    let policy = REVIEWS.replace("redis://127.0.0.1:6379", &redis.url());
    let policy = policy.replace("correct    = { type = \"application/json\" }\n", "");
    Place::new(1, &policy.replace("\"5s\"", "\"60s\"").replace("\"30s\"", "\"90s\"")).await
}

/// `backstop run` on the policy of a place.
struct Production {
    child: Child,
    listen: std::net::SocketAddr,
}

impl Production {
    async fn start(place: &Place) -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
        let (listen, admin) = (free(), free());
        let policy = std::fs::read_to_string(place.folder.join("policy.toml")).expect("the policy");
        let policy = policy.replace("\"127.0.0.1:8080\"", &format!("\"{listen}\"\nadmin = \"{admin}\""));
        place.write("production.toml", &policy);
        let child = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .current_dir(&place.folder)
            .args(["run", "production.toml"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let this = Self { child, listen };
        let listens = async {
            while tokio::net::TcpStream::connect(listen).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(BOUND, listens).await.expect("it listens");
        this
    }

    async fn get(&self, target: &str) -> String {
        backstop_lab::client::get(self.listen, target, &[("Host", HOST)]).await.expect("an answer").text()
    }
}

impl Drop for Production {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Every answer is a page for people, and all of them are kept.
const WRONG: &str = r#"
duration = "1s"
load = [{ request = "GET /products/{key}/reviews", rate = "40/s", keys = 2, headers = { host = "shop.example" } }]

[[fault]]
dependency = "catalog"
kind       = "wrong_body"
from       = "0"
to         = "1s"
"#;

#[test]
fn what_a_drill_keeps_in_a_shared_cache_is_nobody_elses() {
    run(async {
        let redis = Redis::start();
        let place = reviews(&redis).await;
        let production = Production::start(&place).await;
        assert!(production.get("/products/1/reviews").await.contains("/products/1/reviews"));
        redis.values_until(1).await;
        let key = redis.only_key();
        let digest = |key: &[u8]| {
            let script = b"return {ok=redis.sha1hex(redis.call('GET', KEYS[1]))}";
            redis.say_bytes(&[b"EVAL", script, b"1", key])
        };
        let before = digest(&key);
        place.write("drill.toml", WRONG);
        let calls = place.services[0].count();
        let output = place.drill(&["drill.toml"]);
        assert!(redis.values() >= 3, "the drill's gateway keeps what it read: {}", said(&output));
        assert_eq!(place.services[0].count(), calls, "every call met the fault");
        assert_eq!(digest(&key), before, "what production keeps is as it was");
        // A gateway that has no copy of its own, so that it asks the cache first.
        drop(production);
        std::fs::remove_dir_all(place.folder.join("backstop-data")).expect("a folder");
        let production = Production::start(&place).await;
        for target in ["/products/1/reviews", "/products/2/reviews"] {
            let body = production.get(target).await;
            assert!(body.contains(target), "{target}: {body}");
        }
        // Nor is it another drill's: the next one reads for itself.
        let healthy = WRONG.split("[[fault]]").next().expect("the load");
        place.write("drill.toml", healthy);
        let calls = place.services[0].count();
        let output = place.drill(&["drill.toml"]);
        assert!(place.services[0].count() > calls, "{}", said(&output));
        // And each of them ends: nothing is kept without a time.
        let script = b"local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', k) < 0 then n = n + 1 end end return n";
        assert_eq!(redis.say_bytes(&[b"EVAL", script, b"0"]), ":0");
    });
}

#[test]
fn a_drill_leaves_no_line_and_no_span_where_production_is_watched() {
    run(async {
        let collector = backstop_lab::origin::Origin::start().await.expect("a collector");
        let policy = include_str!("../../../../examples/shop.toml").replace("\"6s\"", "\"600ms\"");
        let place = Place::new(2, &policy).await;
        let policy = std::fs::read_to_string(place.folder.join("policy.toml")).expect("the policy");
        let log = place.folder.join("access.log");
        let watched =
            format!("[gateway]\naccess_log = {{ format = \"json\", path = \"{}\" }}\n", log.display());
        let traces = format!(
            "\n[telemetry]\ntraces = {{ url = \"http://{}/v1/traces\", sample = \"100%\" }}\n",
            collector.addr()
        );
        place.write("policy.toml", &format!("{}{traces}", policy.replacen("[gateway]\n", &watched, 1)));
        let output = place.drill(&["--ready", "no-copy"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(drills(&place.report(), "held"), ["no-copy"]);
        assert_eq!(collector.connections_accepted(), 0);
        assert!(!log.exists(), "{:?}", std::fs::read_to_string(&log));
    });
}
