//! What tries a dependency out, while a thousand requests a second would like to.

use std::time::Duration;

use backstop_lab::load;
use backstop_lab::origin::{Behaviour, Gate};

use crate::alone;
use crate::support::{BOUND, products};
use crate::town::{THOUSAND, Town};

/// A call may take three seconds, so that the test can hold it.
const BREAKER: &str = "connections = 64\nbreaker = { open = \"500ms\", slow = \"3s\", probes = 3 }\nrecovery = { tick = \"100ms\" }";

mod timing {
    use super::*;

    #[test]
    fn of_a_thousand_requests_a_second_only_the_probes_try_it() {
        alone(async {
            let town = Town::open(BREAKER, "deadline = \"5s\"").await;
            let run = load::start(town.plan(THOUSAND, Duration::from_secs(60))).unwrap();
            let second = Duration::from_secs(1);
            town.timeline.until(second).await;
            town.now_does(Behaviour::status(503));
            town.timeline.until(second + Duration::from_millis(300)).await;

            let gate = Gate::new();
            town.origin.forget();
            town.now_does(products("second").gate(&gate));
            gate.wait_for_waiting(3, BOUND).await.unwrap();
            let refused = || town.timeline.answers.of("200 fallback snapshot breaker_open");
            let before = refused();
            // A whole second's requests come and go while the three are held.
            let mut at = town.timeline.latest();
            while refused() < before + 1000 {
                at += Duration::from_millis(100);
                town.timeline.until(at).await;
            }
            let stats = town.origin.stats();
            assert_eq!((gate.waiting(), stats.peak_in_flight, stats.requests), (3, 3, 3));
            gate.open();
            town.timeline.is_live_again(at, Duration::from_secs(20)).await;
            run.stop();
            assert_eq!(run.finish().await.unwrap().total.failed, 0);
        });
    }
}
