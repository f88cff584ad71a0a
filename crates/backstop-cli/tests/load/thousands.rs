//! Two thousand requests a second through an outage and its end: every answer is one that the policy asks for, and memory
//! stays as it is.

use std::time::Duration;

use backstop_lab::load;

use crate::timeline::told;
use crate::town::{Town, products_after_ms};
use crate::{alone, times};

const RATE: f64 = 2000.0;
/// Three seconds are good, then the origin is away for two and a half.
const LASTS: Duration = Duration::from_secs(12);
const FAILURE: Duration = Duration::from_secs(3);
const RECOVERY: Duration = Duration::from_millis(5500);
/// How much memory may come on top of what is taken after three good seconds.
const GROWTH_KIB: u64 = 8 * 1024;
const DEPENDENCY: &str = "connections = 256\nbreaker = { open = \"500ms\", open_max = \"500ms\", slow = \"500ms\" }\nrecovery = { tick = \"200ms\" }";
/// Everything that the route's policy names: the origin's answer, or the copy while the origin cannot be had.
const ALLOWED: [&str; 7] = [
    "200 live",
    "200 fallback snapshot connect",
    "200 fallback snapshot reset",
    "200 fallback snapshot incomplete",
    "200 fallback snapshot breaker_open",
    "200 fallback snapshot ramping",
    "200 fallback snapshot dependency_full",
];

/// Resident memory of a process.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

mod timing {
    use super::*;

    #[test]
    fn two_thousand_a_second_get_nothing_that_the_policy_does_not_name() {
        alone(async {
            let town = Town::open(DEPENDENCY, "deadline = \"1s\"").await;
            town.origin.default(products_after_ms("first", 10));
            let (lasts, recovery) = (LASTS * times(), RECOVERY * times());
            let run = load::start(town.plan(RATE, lasts).connections(256)).unwrap();
            town.timeline.until(FAILURE * times()).await;
            let before_kib = resident_kib(town.gateway.pid());
            town.origin.refuse().await.unwrap();
            town.origin.close_connections();
            town.timeline.until(recovery).await;
            town.origin.accept_again().await.unwrap();
            let live = town.timeline.is_live_again(recovery, lasts - recovery - Duration::from_secs(1)).await;
            let summary = run.finish().await.unwrap();
            let after_kib = resident_kib(town.gateway.pid());

            let beyond = town.timeline.answers.beyond(&ALLOWED);
            assert!(beyond.is_empty(), "{beyond:?}");
            assert!(town.timeline.answers.oldest_s() <= 60);
            let total = &summary.total;
            let offered = 24_000 * u64::from(times());
            assert_eq!((total.offered, total.answered), (offered, offered));
            assert_eq!(total.wrong, 0);
            told(&format!(
                "live {:?} after the end, {:?}, {before_kib} KiB, then {after_kib} KiB, {:?}, lag {:?}",
                live - recovery,
                town.timeline.answers.by_name(),
                total.latency,
                total.send_lag
            ));
            assert!(after_kib <= before_kib + GROWTH_KIB, "{before_kib} KiB, then {after_kib} KiB");
        });
    }
}
