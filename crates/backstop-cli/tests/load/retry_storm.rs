//! A database that becomes slower than its callers' patience, behind a service and its stand-in, which both use it. A public
//! report: callers that asked again and again kept a slow shared service down, <https://aws.amazon.com/message/5467D2/>.
//!
//! Everything takes a fifth of the time that it took there: a worker that does one job at a time, in order, and drops none;
//! 10 ms a job, 80 ms while it is slow; 50 requests a second, so half of what it can do in good times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_lab::client;
use backstop_lab::clock::monotonic_ns;
use backstop_lab::origin::{Behaviour, Origin};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::alone;
use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, right_answer};
use crate::support::{Gateway, Policy};
use crate::timeline::told;

const GOOD_MS: u64 = 10;
const SLOW_MS: u64 = 80;
const EVERY: Duration = Duration::from_millis(20);
const SLOW_FROM: Duration = Duration::from_secs(2);
const SLOW_TO: Duration = Duration::from_secs(3);
const WELL_AGAIN: Duration = Duration::from_secs(4);
const LASTS: Duration = Duration::from_secs(6);

const EVIDENCE: &str = "dependency = \"replica\"\nrate = \"50/s\"\nconcurrency = 8\np95 = \"20ms\"\nmeasured = 2026-01-01\nvalid_until = 2099-01-01\nload = \"50 reads/s\"\n";

/// One worker, and how long it takes for a job.
#[derive(Clone, Debug)]
struct Database {
    worker: Arc<Mutex<()>>,
    job_ms: Arc<AtomicU64>,
}

impl Database {
    /// A service that has it do one job for each request and says how long it waited for it.
    fn service(&self) -> Behaviour {
        let Self { worker, job_ms } = self.clone();
        Behaviour::from_async_fn(move |request| {
            let (worker, job_ms) = (Arc::clone(&worker), Arc::clone(&job_ms));
            async move {
                let asked_ns = monotonic_ns();
                let _worker = worker.lock().await;
                let waited_ms = (monotonic_ns() - asked_ns) / 1_000_000;
                tokio::time::sleep(Duration::from_millis(job_ms.load(Ordering::Relaxed))).await;
                let timing = format!("db;dur={waited_ms}");
                right_answer(&request, "done").header("Server-Timing", &timing).into()
            }
        })
    }
}

fn policy(service: &Origin, replica: &Origin) -> Policy {
    let dependency = "uses = [\"db\"]\nconnections = 16\nbreaker = { window = \"2s\", min_calls = 5, open = \"200ms\", open_max = \"400ms\" }\nrecovery = { start = \"50%\", tick = \"200ms\" }";
    let read = "deadline = \"200ms\"\nin_flight = 100\nretry = { attempts = 2 }\nalternative = { dependency = \"replica\", verified = \"replica.toml\" }";
    Policy::empty()
        .table("resource.db", "concurrency = 8\nrate = \"100/s\"")
        .dependency("catalog", service.addr(), dependency)
        .dependency("replica", replica.addr(), dependency)
        .route("description.public_read", &Policy::description(read))
}

/// One request of a client, and when it was made.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Duration,
    status: u16,
    took: Duration,
}

/// Asks for a product that nobody asked for before, at most so many times until the answer is 200.
async fn client(
    gateway: std::net::SocketAddr,
    number: u64,
    tries: u32,
    began: tokio::time::Instant,
) -> Vec<Asked> {
    let mut all = Vec::new();
    for _ in 0..tries {
        let at = began.elapsed();
        let answer = client::get(gateway, &format!("/p/{number}"), &SPANISH).await.unwrap();
        all.push(Asked { at, status: answer.status(), took: answer.took });
        if answer.status() == 200 {
            break;
        }
    }
    all
}

/// The whole story with clients that ask so many times.
async fn a_slow_database(tries: u32) {
    let (service, replica) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
    let job_ms = Arc::new(AtomicU64::new(GOOD_MS));
    let database = Database { worker: Arc::default(), job_ms: Arc::clone(&job_ms) };
    service.default(database.service());
    replica.default(database.service());
    let folder = folder();
    std::fs::write(folder.join("replica.toml"), EVIDENCE).unwrap();
    let mut gateway = Gateway::start_in(&folder, &policy(&service, &replica));
    HOST.clone_into(&mut gateway.host);
    gateway.hand().say("sync on");

    let began = tokio::time::Instant::now();
    let (mut pace, mut clients) = (tokio::time::interval(EVERY), JoinSet::new());
    let jobs = || service.count() + replica.count();
    let (mut before, mut slow) = (0, 0);
    for number in 0.. {
        pace.tick().await;
        let now = began.elapsed();
        if now >= SLOW_FROM && before == 0 {
            job_ms.store(SLOW_MS, Ordering::Relaxed);
            before = jobs();
        }
        if now >= SLOW_TO && slow == 0 {
            job_ms.store(GOOD_MS, Ordering::Relaxed);
            slow = jobs() - before;
        }
        if now >= LASTS {
            break;
        }
        clients.spawn(client(gateway.addr, number, tries, began));
    }
    let asked: Vec<Asked> = clients.join_all().await.into_iter().flatten().collect();

    let in_span =
        |from: Duration, to: Duration| asked.iter().filter(move |asked| (from..to).contains(&asked.at));
    let requests = in_span(SLOW_FROM, SLOW_TO).count() as u64;
    assert!(slow * 10 <= requests * 11, "{slow} jobs for {requests} requests while it was slow");
    assert_eq!(replica.count(), 0, "the stand-in uses what is the cause");
    assert!(asked.iter().all(|asked| matches!(asked.status, 200 | 503)), "{asked:?}");
    let mut refused: Vec<Duration> =
        asked.iter().filter(|asked| asked.status == 503).map(|asked| asked.took).collect();
    refused.sort_unstable();
    let median = refused[refused.len() / 2];
    assert!(median < Duration::from_millis(50), "what is too much is refused at once: {median:?}");
    let (all, good) = in_span(WELL_AGAIN, LASTS)
        .fold((0, 0), |(all, good), asked| (all + 1, good + u32::from(asked.status == 200)));
    assert!(good * 100 >= all * 99, "{good} of {all} a second after it was well again");
    told(&format!(
        "tries {tries}: {slow} jobs for {requests} requests while slow, {} refused, median {median:?}, then {good} of {all}",
        refused.len()
    ));
}

mod timing {
    use super::*;

    #[test]
    fn a_slow_shared_database_is_not_kept_down_by_quiet_clients() {
        alone(a_slow_database(1));
    }

    #[test]
    fn a_slow_shared_database_is_not_kept_down_by_clients_that_ask_again() {
        alone(a_slow_database(3));
    }
}
