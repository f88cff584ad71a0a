//! A load while it runs: how far it is, and what share of its requests got the origin's own answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop_lab::load::{Answers, Sample};
use tokio::sync::watch;

use crate::support::BOUND;

/// Requests of one second of the load, by the time at which they should have been sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    pub(crate) answered: u64,
    /// Answered by the origin itself.
    pub(crate) live: u64,
}

/// What the answers of a load tell while it runs.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) answers: Answers,
    seconds: Mutex<Vec<Second>>,
    latest: watch::Sender<Duration>,
}

impl Timeline {
    pub(crate) fn new() -> Arc<Self> {
        let latest = watch::Sender::new(Duration::ZERO);
        Arc::new(Self { answers: Answers::default(), seconds: Mutex::default(), latest })
    }

    /// What a plan calls with every sample.
    pub(crate) fn note(&self, sample: &Sample) {
        self.answers.count(sample);
        let second = usize::try_from(sample.intended.as_secs()).unwrap();
        let mut seconds = self.seconds.lock().unwrap();
        if seconds.len() <= second {
            seconds.resize(second + 1, Second::default());
        }
        seconds[second].answered += 1;
        seconds[second].live += u64::from(sample.status == Some(200) && sample.outcome.is_none());
        drop(seconds);
        self.latest.send_if_modified(|latest| {
            let is_later = sample.intended > *latest;
            *latest = sample.intended.max(*latest);
            is_later
        });
    }

    pub(crate) fn seconds(&self) -> Vec<Second> {
        self.seconds.lock().unwrap().clone()
    }

    /// Requests of each second that the origin itself answered.
    pub(crate) fn live(&self) -> Vec<u64> {
        self.seconds().iter().map(|second| second.live).collect()
    }

    /// The latest request that was answered, by when it should have been sent.
    pub(crate) fn latest(&self) -> Duration {
        *self.latest.borrow()
    }

    /// Waits until the requests of this moment of the load are answered.
    pub(crate) async fn until(&self, at: Duration) {
        let mut latest = self.latest.subscribe();
        let reached = tokio::time::timeout(at + BOUND, latest.wait_for(|latest| *latest >= at)).await;
        assert!(reached.is_ok(), "the load stands still before {at:?}: {:?}", self.answers.by_name());
    }

    /// Waits until a whole second of the load that begins at `from` or later is live to 99 %, and is over; when that is,
    /// from the start of the load. Fails after `within` of `from`.
    pub(crate) async fn is_live_again(&self, from: Duration, within: Duration) -> Duration {
        let first = usize::try_from(from.as_secs() + 1).unwrap();
        for second in first.. {
            let end = Duration::from_secs(second as u64 + 1);
            assert!(end <= from + within, "not live within {within:?}: {:?}", self.live());
            self.until(end + Duration::from_millis(100)).await;
            let Second { answered, live } = self.seconds()[second];
            if live * 100 >= answered * 99 {
                return end;
            }
        }
        unreachable!("seconds have no end");
    }
}

/// What was measured, for whoever runs a test with `--no-capture`.
#[expect(clippy::print_stdout, reason = "figures for whoever asks for them")]
pub(crate) fn told(figures: &str) {
    println!("{figures}");
}
