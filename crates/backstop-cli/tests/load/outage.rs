//! An outage and the way back under a thousand requests a second: the dependency is left alone, and then given more in
//! steps, each of them no larger than it may be.

use std::time::Duration;

use backstop_lab::load;
use backstop_lab::origin::Behaviour;

use crate::alone;
use crate::timeline::told;
use crate::town::{KNOWN, THOUSAND, Town, products_after_ms, within};

/// Open for a second, give or take a fifth, each time.
const BREAKER: &str = "connections = 64\nbreaker = { window = \"10s\", min_calls = 20, failures = \"50%\", slow = \"500ms\", open = \"1s\", open_max = \"1s\", probes = 3 }";
const READ: &str = "deadline = \"1s\"\nretry = { attempts = 2 }";
const SECOND_NS: u64 = 1_000_000_000;
/// What is given in the ticks of a recovery: a tenth of the thousand before, then half as much again in each tick, in whole
/// thousandths.
const SHARES: [u64; 6] = [100, 150, 225, 337, 505, 757];

mod timing {
    use super::*;

    #[test]
    fn an_outage_costs_a_few_calls_and_the_load_comes_back_in_steps() {
        alone(async {
            let town = Town::open(BREAKER, READ).await;
            town.now_does(products_after_ms("first", 20));
            let run = load::start(town.plan(THOUSAND, Duration::from_secs(60))).unwrap();
            town.timeline.until(KNOWN).await;
            assert_eq!(town.timeline.answers.by_name().len(), 1, "{:?}", town.timeline.answers);

            let failed_ns = town.now_does(Behaviour::status(503));
            let down = KNOWN + Duration::from_secs(5);
            town.timeline.until(down).await;
            let back_ns = town.now_does(products_after_ms("second", 20));
            let live = town.timeline.is_live_again(down, Duration::from_secs(20)).await;
            town.timeline.until(live + Duration::from_secs(1)).await;
            run.stop();
            let summary = run.finish().await.unwrap();

            // Every answer is the origin's own or the copy of the same product, seconds old.
            let allowed = ["live", "fallback snapshot unavailable", "fallback snapshot breaker_open"];
            let allowed = allowed.map(|name| format!("200 {name}"));
            let mut allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
            allowed.push("200 fallback snapshot ramping");
            let beyond = town.timeline.answers.beyond(&allowed);
            assert!(beyond.is_empty(), "{beyond:?}");
            assert!(town.timeline.answers.oldest_s() <= 60);
            assert_eq!((summary.total.failed, summary.total.excess, summary.total.wrong), (0, 0, 0));

            let arrivals = town.arrivals(failed_ns);
            an_outage_costs_a_few_calls(&arrivals, failed_ns, back_ns);
            nothing_is_multiplied(&town, &arrivals, failed_ns);
            each_step_is_bounded(&arrivals, back_ns);
            told(&format!("{:?} {:?}", town.timeline.live(), summary.total.latency));
        });
    }
}

/// Ten failures in a row open it, while at most as many more as there are connections are under way, and ten retries at
/// most were paid for. It is open for 0.8 s at least, and tried by three at once: six times in five seconds.
fn an_outage_costs_a_few_calls(arrivals: &[u64], failed_ns: u64, back_ns: u64) {
    let first_probe_ns = failed_ns + 800_000_000;
    let before = within(arrivals, failed_ns, first_probe_ns);
    assert!((10..=10 + 64 + 10).contains(&before), "{before} calls until it was open");
    let probes = within(arrivals, first_probe_ns, back_ns);
    assert!((4..=6 * 3).contains(&probes), "{probes} calls while it was open");
    told(&format!("calls until open: {before}, probes in the outage: {probes}"));
}

/// Of a thousand requests a second no more than a tenth is added, from the failure until all is well again. Ten retries
/// were saved, and ten successes pay for one.
fn nothing_is_multiplied(town: &Town, arrivals: &[u64], failed_ns: u64) {
    let requests = town.timeline.seconds().iter().skip(12).map(|second| second.answered).sum::<u64>();
    let attempts = arrivals.len() as u64;
    assert!(attempts * 10 <= requests * 11, "{attempts} calls for {requests} requests");
    let is_retry = |request: &backstop_lab::origin::Request| request.header("backstop-attempt").is_some();
    let retries =
        town.origin.count_where(|request| request.arrived_ns >= failed_ns && is_retry(request)) as u64;
    assert!(retries <= 10, "{retries} retries; none is paid for while it comes back");
    told(&format!("attempts {attempts} of {requests} requests, retries {retries}"));
}

/// In the nth second after the third probe the share is at most the nth, of a thousand a second and a twentieth more; with
/// a tenth of a second's calls at once. The thousand is what the gateway counted, and its first second may hold what the
/// load had to catch up with at its start: a hundredth more.
fn each_step_is_bounded(arrivals: &[u64], back_ns: u64) {
    let probes: Vec<u64> = arrivals.iter().copied().filter(|&ns| ns >= back_ns).take(3).collect();
    let began_ns = probes[2] + 1;
    let mut given = Vec::new();
    for (tick, share) in (0..).zip(SHARES) {
        let from_ns = began_ns + tick * SECOND_NS;
        let calls = within(arrivals, from_ns, from_ns + SECOND_NS);
        let most = share * (1050 + 105) * 101 / 100_000 + 1;
        assert!(calls <= most, "{calls} calls in second {tick} of the recovery, {most} at most");
        given.push(calls);
    }
    assert!(given[0] >= 50, "a tenth is given at once: {given:?}");
    assert!(given.iter().max() >= Some(&(3 * given[0])), "it grows: {given:?}");
    told(&format!("calls per second of the recovery: {given:?}"));
}
