//! The reconciler's lives: one that panics is followed by another, on the same thread.
//!
//! What is unknown and when it is due is in the ledger, so another life goes on where the last one was; what that had claimed is
//! asked again when its lease is over. Between two lives nothing says that anybody is at work: after the limit of its last
//! sign of life nobody hears "in verification". The waits grow, so that a fault that comes each time costs little.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backstop_engine::entropy::Entropy;
use backstop_engine::time::Mono;
use tokio::sync::watch;

use super::counts::{Counts, add};
use super::{Settings, turn};
use crate::worker::on_own_runtime;

/// The wait before the second life; each is twice the one before.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// After a life that was so long the waits begin anew.
const LONG_LIFE: Duration = Duration::from_secs(60);

/// Lives until it is told to stop, or its ledger is closed.
pub(super) fn run(settings: &Settings, counts: &Arc<Counts>, seed: u64, stopped: &watch::Receiver<bool>) {
    let mut entropy = Entropy::new(seed);
    let mut wait = FIRST;
    let mut begins = settings.clock.mono();
    loop {
        let life = life(settings.clone(), Arc::clone(counts), entropy.bits(), begins, stopped.clone());
        // All that a life changes is its own, or plain data behind atomics and locks that is whole at any moment.
        match catch_unwind(AssertUnwindSafe(|| on_own_runtime(life))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::error!(target: "backstop::operations", %error, "unknown operations are not followed");
                return;
            }
            Err(_panic) => {}
        }
        let now = settings.clock.mono();
        if now.since(begins).is_some_and(|lived| lived >= LONG_LIFE) {
            wait = FIRST;
        }
        begins = now.after(wait);
        tracing::error!(
            target: "backstop::operations",
            wait_s = wait.as_secs(),
            "the reconciler has panicked, and unknown operations are not followed until it is started again: report this with \
             what the process wrote to standard error"
        );
        add(&counts.restarts);
        wait = wait.saturating_mul(2).min(LONGEST);
    }
}

async fn life(
    settings: Settings,
    counts: Arc<Counts>,
    seed: u64,
    begins: Mono,
    mut stopped: watch::Receiver<bool>,
) {
    let clock = settings.clock.clone();
    tokio::select! {
        biased;
        _ = stopped.wait_for(|is_stopped| *is_stopped) => return,
        () = clock.sleep_until(begins) => {}
    }
    turn::run(settings, counts, seed, stopped).await;
}
