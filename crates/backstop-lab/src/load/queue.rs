//! The requests whose time has come and that wait for a connection.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Semaphore;

/// One request to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) sequence: u64,
    pub(crate) kind: usize,
    /// Which of the kind's requests.
    pub(crate) request: usize,
    /// When it should be sent, in monotonic nanoseconds.
    pub(crate) intended_ns: u64,
}

/// A bounded queue, first come first served. One permit of the semaphore stands for one waiting job.
#[derive(Debug)]
pub(crate) struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    ready: Semaphore,
    waiting_max: usize,
}

impl Queue {
    pub(crate) fn new(waiting_max: usize) -> Self {
        Self { jobs: Mutex::new(VecDeque::new()), ready: Semaphore::new(0), waiting_max }
    }

    fn jobs(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. `false` when too many wait.
    pub(crate) fn push(&self, job: Job) -> bool {
        let mut jobs = self.jobs();
        if jobs.len() >= self.waiting_max {
            return false;
        }
        jobs.push_back(job);
        drop(jobs);
        self.ready.add_permits(1);
        true
    }

    /// The next job; `None` once the queue is closed.
    pub(crate) async fn pop(&self) -> Option<Job> {
        loop {
            self.ready.acquire().await.ok()?.forget();
            if let Some(job) = self.jobs().pop_front() {
                return Some(job);
            }
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.jobs().len()
    }

    /// Ends it. Gives back the jobs that still waited.
    pub(crate) fn close(&self) -> Vec<Job> {
        let left = self.jobs().drain(..).collect();
        self.ready.close();
        left
    }
}
