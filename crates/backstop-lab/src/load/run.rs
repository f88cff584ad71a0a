//! One run: its threads, its progress, its end.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime,
    sync::{oneshot, watch},
    task::JoinSet,
    time,
};

use crate::clock::monotonic_ns;

use super::{LoadError, Plan, Progress, Summary, kind::Prepared, pace, queue::Queue, tally::Tally, worker};

/// What the threads of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) prepared: Vec<Prepared>,
    pub(crate) queue: Queue,
    pub(crate) started_ns: u64,
    pub(crate) stopped: AtomicBool,
    tally: Mutex<Tally>,
    bell: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever waits that something was counted.
    pub(crate) fn ring(&self) {
        self.bell.send_modify(|rings| *rings = rings.wrapping_add(1));
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.started_ns))
    }
}

/// A run under way. Dropping it stops it.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    over: Option<oneshot::Receiver<Summary>>,
}

/// Starts a run.
///
/// # Errors
///
/// When the plan cannot be run, its target is not loopback, or a thread cannot be made.
pub fn start(plan: Plan) -> Result<Run, LoadError> {
    let plan = plan.checked()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Start)?;
    let shared = Arc::new(Shared {
        prepared: plan.kinds.iter().map(|kind| kind.prepare(plan.target)).collect(),
        queue: Queue::new(plan.waiting_max),
        started_ns: monotonic_ns(),
        stopped: AtomicBool::new(false),
        tally: Mutex::new(Tally::new(&plan)?),
        bell: watch::Sender::new(0),
        plan,
    });
    let (paced, is_paced) = oneshot::channel();
    let (over, is_over) = oneshot::channel();
    let for_pace = Arc::clone(&shared);
    let pacing = move || {
        pace::keep(&for_pace);
        let _run_gone = paced.send(());
    };
    let for_work = Arc::clone(&shared);
    let working = move || {
        let summary = runtime.block_on(work(&for_work, is_paced));
        let _caller_gone = over.send(summary);
    };
    thread::Builder::new().name("load-work".to_owned()).spawn(working).map_err(LoadError::Start)?;
    if let Err(error) = thread::Builder::new().name("load-pace".to_owned()).spawn(pacing) {
        shared.stopped.store(true, Ordering::Relaxed);
        return Err(LoadError::Start(error));
    }
    Ok(Run { shared, over: Some(is_over) })
}

/// Starts a run and waits until it is over.
///
/// # Errors
///
/// As [`start`], and when a thread of the run died.
pub async fn run(plan: Plan) -> Result<Summary, LoadError> {
    start(plan)?.finish().await
}

impl Run {
    /// Where the run stands now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let over = self.over.as_ref().is_none_or(oneshot::Receiver::is_terminated);
        self.shared.tally().progress(self.shared.elapsed(), self.shared.queue.waiting() as u64, over)
    }

    /// Waits until `reached` is true of the progress, looked at after every answer. `false` when that is not so
    /// within `bound`.
    pub async fn wait_until(&self, bound: Duration, mut reached: impl FnMut(&Progress) -> bool) -> bool {
        let mut bell = self.shared.bell.subscribe();
        let watching = async {
            while !reached(&self.progress()) {
                // The run holds the sender, so this ends by an answer only.
                let _rang = bell.changed().await;
            }
        };
        time::timeout(bound, watching).await.is_ok()
    }

    /// Offers no more requests; those that wait become excess, those in flight are answered or time out.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }

    /// Waits until the run is over.
    ///
    /// # Errors
    ///
    /// [`LoadError::Died`] when a thread of the run died.
    pub async fn finish(mut self) -> Result<Summary, LoadError> {
        let over = self.over.take().ok_or(LoadError::Died)?;
        over.await.map_err(|_died| LoadError::Died)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // After `finish` the run is over and this changes nothing.
        self.stop();
    }
}

/// Runs the connections until every request is answered, failed or excess.
async fn work(shared: &Arc<Shared>, is_paced: oneshot::Receiver<()>) -> Summary {
    let mut workers = JoinSet::new();
    for _ in 0..shared.plan.connections {
        workers.spawn(worker::work(Arc::clone(shared)));
    }
    // An error means that the pace thread died: the run ends all the same.
    let _pace_died = is_paced.await;
    if !shared.stopped.load(Ordering::Relaxed) {
        let mut bell = shared.bell.subscribe();
        let drained = async {
            while shared.queue.waiting() > 0 {
                let _rang = bell.changed().await;
            }
        };
        let _over = time::timeout(shared.plan.drain, drained).await;
    }
    for job in shared.queue.close() {
        shared.tally().excess(job.kind);
    }
    while workers.join_next().await.is_some() {}
    let took = shared.elapsed();
    shared.tally().summary(took)
}
