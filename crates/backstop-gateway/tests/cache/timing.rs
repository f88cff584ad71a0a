//! How long things take by a real clock.

use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::time::Mono;
use backstop_gateway::cache::{Cache, CacheError, Lane};

use super::server::Server;
use super::support::{on_a_thread, settings, soon};

const LIMIT: Duration = Duration::from_millis(50);

async fn answered(lane: &Lane, clock: &Clock) {
    let answered = async {
        while lane.get(b"key", clock.mono().after(LIMIT)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(answered).await;
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() / 2]
}

/// How long a command takes that has no answer: the median of several.
fn unanswered(until: impl Fn(Mono) -> Mono) -> Duration {
    let server = Server::start();
    on_a_thread(async {
        let mut limited = settings(server.address);
        limited.timeout = LIMIT;
        let clock = Clock::system().expect("a clock");
        let cache = Cache::new(limited, clock.clone());
        let lane = cache.lane(7);
        let mut took = Vec::new();
        for _ in 0..9 {
            answered(&lane, &clock).await;
            server.freeze();
            let began = clock.mono();
            let outcome = soon(lane.get(b"key", until(began))).await;
            took.push(began.until(clock.mono()));
            assert_eq!(outcome, Err(CacheError::Timeout));
            server.thaw();
        }
        median(took)
    })
}

#[test]
fn a_frozen_server_takes_as_long_as_the_limit_and_ten_milliseconds_at_most() {
    let took = unanswered(|began| began.after(Duration::from_secs(60)));
    assert!(took >= LIMIT && took < LIMIT + Duration::from_millis(10), "{took:?}");
}

#[test]
fn a_caller_with_less_time_is_not_kept_longer() {
    let took = unanswered(|began| began.after(LIMIT / 5));
    assert!(took >= LIMIT / 5 && took < LIMIT / 5 + Duration::from_millis(10), "{took:?}");
}
