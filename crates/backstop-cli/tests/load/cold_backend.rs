//! A dependency that is back, and cold: each call takes three times as long as before. What it is given goes back before it
//! falls over again, and grows when it is warm.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_lab::load;
use backstop_lab::origin::Behaviour;
use tokio::sync::Semaphore;

use crate::alone;
use crate::support::shop::right_answer;
use crate::timeline::told;
use crate::town::{KNOWN, THOUSAND, Town};

/// Three times the usual time is accepted with some room, since the usual time is known to an eighth only; more calls at
/// once than a cold backend can do in time are possible, so that the ramp has to find it out.
const DEPENDENCY: &str = "connections = 250\nbreaker = { slow = \"600ms\", open = \"1s\", open_max = \"1s\" }\nrecovery = { green = { p95 = \"4x\" } }";

/// Thirty workers of 20 ms: 1500 calls a second. Of 60 ms: 500.
const WORKERS: usize = 30;
const WARM_MS: u64 = 20;
const COLD_MS: u64 = 3 * WARM_MS;
const COLD_FOR: Duration = Duration::from_secs(30);
const FULL_WITHIN: Duration = Duration::from_secs(45);

/// Calls wait for a worker in the order in which they came, and none is ever dropped.
fn workers(service_ms: &Arc<AtomicU64>) -> Behaviour {
    let (service_ms, workers) = (Arc::clone(service_ms), Arc::new(Semaphore::new(WORKERS)));
    Behaviour::from_async_fn(move |request| {
        let (service_ms, workers) = (Arc::clone(&service_ms), Arc::clone(&workers));
        async move {
            let _worker = workers.acquire().await;
            tokio::time::sleep(Duration::from_millis(service_ms.load(Ordering::Relaxed))).await;
            right_answer(&request, "worked").into()
        }
    })
}

/// What the breaker and the ramp did so far. Each probe that fails is a trip.
#[derive(Clone, Copy, Debug)]
struct Events {
    trip: u64,
    step_back: u64,
}

async fn events(town: &Town) -> Events {
    let metrics = town.gateway.metrics().await;
    let of =
        |event: &str| metrics.sum("backstop_breaker_events_total", &[&format!("event=\"{event}\"")]) as u64;
    Events { trip: of("trip"), step_back: of("step_back") }
}

mod timing {
    use super::*;

    #[test]
    fn a_cold_backend_is_given_less_again_and_everything_in_the_end() {
        alone(async {
            let town = Town::open(DEPENDENCY, "deadline = \"2s\"").await;
            let service_ms = Arc::new(AtomicU64::new(WARM_MS));
            town.now_does(workers(&service_ms));
            let plan = town.plan(THOUSAND, Duration::from_secs(120)).connections(400);
            let run = load::start(plan).unwrap();
            town.timeline.until(KNOWN).await;
            town.now_does(Behaviour::status(503));
            let down = KNOWN + Duration::from_secs(2);
            town.timeline.until(down).await;
            service_ms.store(COLD_MS, Ordering::Relaxed);
            town.now_does(workers(&service_ms));
            let outage = events(&town).await;
            town.timeline.until(down + COLD_FOR).await;
            let cold = events(&town).await;
            service_ms.store(WARM_MS, Ordering::Relaxed);
            let live = town.timeline.is_live_again(down + COLD_FOR, FULL_WITHIN - COLD_FOR).await;
            run.stop();
            let summary = run.finish().await.unwrap();

            told(&format!(
                "{:?} all live again after {:?}, {outage:?}, then {cold:?}, {:?}",
                town.timeline.live(),
                live - down,
                town.timeline.answers.by_name()
            ));
            assert!(cold.step_back > 0, "it was given more than it could do, and less again: {cold:?}");
            assert_eq!(cold.trip, outage.trip, "it did not fall over again");
            let allowed = ["unavailable", "breaker_open", "ramping", "dependency_full"];
            let allowed = allowed.map(|reason| format!("200 fallback snapshot {reason}"));
            let mut allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
            allowed.push("200 live");
            let beyond = town.timeline.answers.beyond(&allowed);
            assert!(beyond.is_empty(), "{beyond:?}");
            assert_eq!((summary.total.failed, summary.total.excess, summary.total.wrong), (0, 0, 0));
        });
    }
}
