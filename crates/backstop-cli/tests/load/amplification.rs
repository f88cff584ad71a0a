//! A dependency that fails now and then, under a thousand requests a second, asked twice where that is paid for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_lab::load;
use backstop_lab::origin::Behaviour;

use crate::alone;
use crate::support::shop::right_answer;
use crate::timeline::told;
use crate::town::{THOUSAND, Town};

const BREAKER: &str = "connections = 64\nbreaker = { failures = \"50%\", slow = \"500ms\" }";

/// Every third call fails, which is less than what opens the breaker.
fn every_third_fails() -> Behaviour {
    let calls = AtomicU64::new(0);
    Behaviour::from_fn(move |request| {
        if calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            Behaviour::status(503)
        } else {
            right_answer(request, "now and then").into()
        }
    })
}

mod timing {
    use super::*;

    /// Unpaid, every failure would be asked twice: 1.5 calls for a request. Paid by a tenth of the successes, with ten
    /// that were saved, the calls are at most eleven tenths of the requests.
    #[test]
    fn failures_now_and_then_add_a_tenth_at_most() {
        alone(async {
            let town = Town::open(BREAKER, "deadline = \"1s\"\nretry = { attempts = 2 }").await;
            let run = load::start(town.plan(THOUSAND, Duration::from_secs(5))).unwrap();
            town.timeline.until(Duration::from_secs(1)).await;
            town.now_does(every_third_fails());
            let before = town.origin.count();
            let summary = run.finish().await.unwrap();
            let attempts = town.origin.count() - before;
            let requests: u64 = town.timeline.seconds().iter().skip(1).map(|second| second.answered).sum();
            assert!(attempts * 10 <= requests * 11, "{attempts} calls for {requests} requests");
            let retries = town.origin.count_where(|request| request.header("backstop-attempt").is_some());
            assert!(retries > 100, "those that are paid for are made: {retries}");
            let beyond = town.timeline.answers.beyond(&["200 live", "200 fallback snapshot unavailable"]);
            assert!(beyond.is_empty(), "{beyond:?}");
            assert_eq!((summary.total.failed, summary.total.excess), (0, 0));
            told(&format!("{attempts} calls for {requests} requests, {retries} retries"));
        });
    }
}
