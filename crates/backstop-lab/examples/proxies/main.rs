//! CPU per request of Backstop beside nginx's, in one interleaved run.
//!
//! Four kinds of work: an answer of 1 KiB passed through, the same checked and kept as a copy, an outage answered from
//! copies, and a load of which most is refused at the limit. The proxy under test runs on core 0 alone with one thread; origin and load share core 1. The same
//! open-loop load goes to both in turn, round by round, so a change of the machine's speed meets both. CPU is the
//! process's time on a core as the scheduler counts it, over the answers that came.

mod process;
mod proxies;
mod work;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use process::Failed;
use work::{Measured, WORKS, Work};

const ROUNDS: usize = 5;

#[expect(clippy::print_stdout, reason = "these figures are what the program is for")]
fn main() -> Result<(), Failed> {
    let backstop = backstop_binary()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    pin_self_to_core(1)?;
    println!("CPU per answered request, median of {ROUNDS} interleaved rounds (smallest to largest)\n");
    println!("{:<34} {:>24} {:>24} {:>8}", "work", "nginx", "Backstop", "ratio");
    for work in WORKS {
        let mut nginx = Vec::new();
        let mut ours = Vec::new();
        for _ in 0..ROUNDS {
            nginx.push(runtime.block_on(work::measure(work, &proxies::nginx(work)?))?);
            ours.push(runtime.block_on(work::measure(work, &proxies::backstop(work, &backstop)?))?);
        }
        println!(
            "{:<34} {:>24} {:>24} {:>8.2}",
            work.title(),
            spread(&nginx),
            spread(&ours),
            median(&ours) / median(&nginx)
        );
        println!("{:<34} {:>24} {:>24}", "", share(work, &nginx), share(work, &ours));
    }
    println!("\nOnly the ratios of one run count; absolute figures move with the machine.");
    Ok(())
}

/// Load and origin stay off the core of the proxy.
fn pin_self_to_core(core: u32) -> Result<(), Failed> {
    let pid = std::process::id().to_string();
    let pinned = Command::new("taskset")
        .args(["-a", "-p", "-c", &core.to_string(), &pid])
        .stdout(Stdio::null())
        .status()?;
    if pinned.success() { Ok(()) } else { Err("taskset cannot pin this process".into()) }
}

fn backstop_binary() -> Result<PathBuf, Failed> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--backstop"), Some(path)) => Ok(path.into()),
        _ => Err("usage: proxies --backstop PATH".into()),
    }
}

fn sorted(rounds: &[Measured]) -> Vec<f64> {
    let mut all: Vec<f64> = rounds.iter().map(|round| round.cpu_us_per_answer).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn median(rounds: &[Measured]) -> f64 {
    let all = sorted(rounds);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn spread(rounds: &[Measured]) -> String {
    let all = sorted(rounds);
    let at = |index: usize| all.get(index).copied().unwrap_or(f64::NAN);
    format!("{:.1} us ({:.1}-{:.1})", median(rounds), at(0), at(all.len().saturating_sub(1)))
}

/// The share of answers that were of the kind that the work is about.
fn share(work: Work, rounds: &[Measured]) -> String {
    let (wanted, all) =
        rounds.iter().fold((0, 0), |(wanted, all), round| (wanted + round.wanted, all + round.answers));
    format!("{:.1} % {}", wanted as f64 * 100.0 / all as f64, work.wanted())
}
