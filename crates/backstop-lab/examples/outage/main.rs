//! Ten thousand requests a second for a minute, through an outage and its end: what every one of them was answered with.
//!
//! Fifteen good seconds, fifteen in which the origin refuses connections, thirty for the way back. Load, origin and gateway
//! share all cores. Each answer is counted under what it says of itself; one that the policy does not name, a request
//! without an answer, or memory that grows ends this with 1. Without that it ends with 2 if nothing was shown: the load was
//! not offered, or not in time, because the machine was too small; no copy stood in; or the origin's own answers did not come
//! back.

#[path = "../proxies/process.rs"]
mod process;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstop_lab::client;
use backstop_lab::load::{self, Answers, Kind, Plan, Sample, Summary};
use backstop_lab::origin::{Answer, Limits, Origin};

use process::{Failed, Process, folder, free_port};

const RATE: f64 = 10_000.0;
const GOOD: Duration = Duration::from_secs(15);
const DOWN: Duration = Duration::from_secs(15);
const LASTS: Duration = Duration::from_secs(60);
/// How much memory may come on top of what is taken after the good seconds.
const GROWTH_KIB: u64 = 16 * 1024;
const BOUND: Duration = Duration::from_secs(10);
/// A load that half of the time is offered later than this is another load.
const MOST_LAG_NS: u64 = 10_000_000;
/// The origin's own answer.
const LIVE: &str = "200 live";
/// What the policy names: the origin's own answer, or the copy while the origin cannot be had.
const ALLOWED: [&str; 7] = [
    LIVE,
    "200 fallback snapshot connect",
    "200 fallback snapshot reset",
    "200 fallback snapshot incomplete",
    "200 fallback snapshot breaker_open",
    "200 fallback snapshot ramping",
    "200 fallback snapshot dependency_full",
];

#[expect(clippy::print_stdout, reason = "these figures are what the program is for")]
fn main() -> Result<ExitCode, Failed> {
    let mut arguments = std::env::args().skip(1);
    let binary: PathBuf = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--backstop"), Some(path)) => path.into(),
        _ => return Err("usage: outage --backstop PATH".into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let seen = runtime.block_on(measure(&binary))?;
    let total = &seen.summary.total;
    println!("\n{RATE} requests a second for {LASTS:?}, the origin away from {GOOD:?} to {:?}", GOOD + DOWN);
    for (name, count) in seen.answers.by_name() {
        println!("{count:>9}  {name}");
    }
    println!(
        "oldest copy {} s; {} not sent, {} without an answer",
        seen.answers.oldest_s(),
        total.excess,
        total.failed
    );
    println!(
        "gateway: {:.1} us of CPU for an answer, {} KiB, then {} KiB",
        seen.cpu_us, seen.before_kib, seen.after_kib
    );
    println!(
        "offered late by p50 {}, p99 {}; answered after p50 {}, p99 {}",
        us(total.send_lag.p50_ns),
        us(total.send_lag.p99_ns),
        us(total.latency.p50_ns),
        us(total.latency.p99_ns)
    );
    match seen.live_again {
        Some(after) => println!("live again to 99 % {after} s after the origin's return"),
        None => println!("not live again to 99 %"),
    }
    let beyond = seen.answers.beyond(&ALLOWED);
    let is_flat = seen.after_kib <= seen.before_kib + GROWTH_KIB;
    let is_right = beyond.is_empty() && total.wrong == 0 && is_flat && seen.answers.oldest_s() <= 60;
    let stand_ins = ALLOWED.iter().filter(|name| **name != LIVE);
    let stood_in = stand_ins.map(|name| seen.answers.of(name)).sum();
    let missing = missing(total.excess, total.send_lag.p50_ns, stood_in, seen.live_again);
    let (verdict, status) = match (is_right, missing) {
        (false, _) => ("NOT AS IT SHOULD BE".to_owned(), 1),
        (true, Some(why)) => (format!("NOTHING WAS SHOWN: {why}"), 2),
        (true, None) => ("nothing that the policy does not name".to_owned(), 0),
    };
    println!("{verdict}");
    Ok(ExitCode::from(status))
}

/// Why the run shows nothing, if it does not.
fn missing(excess: u64, lag_ns: u64, stood_in: u64, live_again: Option<u64>) -> Option<String> {
    if excess > 0 {
        return Some(format!("{excess} requests of the load were never sent"));
    }
    if lag_ns > MOST_LAG_NS {
        return Some(format!("half of the load was offered more than {} late", us(MOST_LAG_NS)));
    }
    if stood_in == 0 {
        return Some("no copy stood in while the origin was away".to_owned());
    }
    live_again.is_none().then(|| "the origin's own answers did not come back".to_owned())
}

fn us(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

struct Seen {
    answers: Arc<Answers>,
    summary: Summary,
    before_kib: u64,
    after_kib: u64,
    cpu_us: f64,
    /// Seconds from the origin's return.
    live_again: Option<u64>,
}

/// Answers, and the origin's own among them, of each second of the load.
#[derive(Default)]
struct Seconds(Mutex<Vec<(u64, u64)>>);

impl Seconds {
    fn count(&self, sample: &Sample) {
        let second = usize::try_from(sample.intended.as_secs()).unwrap_or(0);
        let mut seconds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seconds.len() <= second {
            seconds.resize(second + 1, (0, 0));
        }
        if let Some((all, live)) = seconds.get_mut(second) {
            *all += 1;
            *live += u64::from(sample.status == Some(200) && sample.outcome.is_none());
        }
    }

    /// The first second from `back` on that is live to 99 %, from there.
    fn live_again(&self, back: Duration) -> Option<u64> {
        let seconds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = seconds.iter().skip(usize::try_from(back.as_secs()).ok()?);
        let is_live = |(all, live): &(u64, u64)| *all > 0 && live * 100 >= all * 99;
        (1..).zip(after).find_map(|(second, counts)| is_live(counts).then_some(second))
    }
}

fn policy(listen: u16, admin: u16, origin: SocketAddr) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:{listen}\"\nadmin = \"127.0.0.1:{admin}\"\nin_flight = 4000\n\
         [store]\nsnapshots = {{ memory = \"64 MiB\", disk = \"0 B\" }}\n\
         [dependency.origin]\nurl = \"http://{origin}\"\nconnections = 256\nbreaker = {{}}\n\
         [route.all.public_read]\nmatch = \"GET /{{rest*}}\"\ndependency = \"origin\"\ndeadline = \"2s\"\nin_flight = 2000\n\
         max_age = \"60s\"\nkey = []\ncorrect = {{ type = \"application/json\" }}\n"
    )
}

async fn measure(binary: &Path) -> Result<Seen, Failed> {
    // Half a million requests are counted, not kept.
    let limits = Limits { records: 0, ..Limits::default() };
    let origin = Origin::builder().limits(limits).start().await?;
    // A JSON document of exactly 1 KiB.
    origin.default(Answer::json(format!("{{\"text\":\"{}\"}}", "x".repeat(1024 - 11))));
    let (listen, admin, folder) = (free_port()?, free_port()?, folder()?);
    std::fs::write(folder.join("policy.toml"), policy(listen, admin, origin.addr()))?;
    let cores = std::thread::available_parallelism()?.get() - 1;
    let binary = std::path::absolute(binary)?;
    let gateway = Process::start(&binary, &["run", "policy.toml"], folder, &format!("0-{cores}"))?;
    let listen = SocketAddr::from(([127, 0, 0, 1], listen));
    let up = async {
        while client::get(listen, "/item/0", &[]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(BOUND, up).await?;
    // Each has a copy before the load begins: a first moment in which all connections are taken is not what is measured.
    for target in targets() {
        client::get(listen, &target, &[]).await?;
    }

    let (answers, seconds) = (Arc::new(Answers::default()), Arc::new(Seconds::default()));
    let noting = (Arc::clone(&answers), Arc::clone(&seconds));
    let latest_ms = Arc::new(AtomicU64::new(0));
    let noting_latest = Arc::clone(&latest_ms);
    let plan = Plan::new(listen, RATE, LASTS)
        .connections(256)
        .kind(Kind::get("/item/0").targets(targets()))
        .on_sample(move |sample| {
            noting.0.count(sample);
            noting.1.count(sample);
            noting_latest.fetch_max(sample.intended.as_millis() as u64, Ordering::Relaxed);
        });
    let before = gateway.cpu()?;
    let run = load::start(plan)?;
    let until = async |at: Duration| {
        while u128::from(latest_ms.load(Ordering::Relaxed)) < at.as_millis() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    until(GOOD).await;
    let before_kib = resident_kib(gateway.pid())?;
    origin.refuse().await?;
    origin.close_connections();
    until(GOOD + DOWN).await;
    origin.accept_again().await?;
    let summary = run.finish().await?;
    let cpu = gateway.cpu()?.saturating_sub(before);
    Ok(Seen {
        cpu_us: cpu.as_secs_f64() * 1e6 / summary.total.answered as f64,
        before_kib,
        after_kib: resident_kib(gateway.pid())?,
        live_again: seconds.live_again(GOOD + DOWN),
        answers,
        summary,
    })
}

fn targets() -> impl Iterator<Item = String> {
    (0..100).map(|number| format!("/item/{number}"))
}

/// Resident memory of a process now.
fn resident_kib(pid: u32) -> Result<u64, Failed> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_its_load_an_outage_or_a_recovery_shows_nothing() {
        assert_eq!(missing(0, MOST_LAG_NS, 1, Some(4)), None);
        for (excess, lag_ns, stood_in, live_again) in
            [(1, 0, 1, Some(4)), (0, MOST_LAG_NS + 1, 1, Some(4)), (0, 0, 0, Some(4)), (0, 0, 1, None)]
        {
            assert!(missing(excess, lag_ns, stood_in, live_again).is_some());
        }
    }

    #[test]
    fn a_second_is_live_again_with_99_of_100_and_not_without_an_answer() {
        let again =
            |seconds: &[(u64, u64)]| Seconds(Mutex::new(seconds.to_vec())).live_again(Duration::from_secs(1));
        assert_eq!(again(&[(100, 100), (100, 98), (0, 0), (100, 99), (100, 100)]), Some(3));
        assert_eq!(again(&[(100, 100), (100, 98), (0, 0)]), None);
        assert_eq!(again(&[(100, 100)]), None);
    }
}
