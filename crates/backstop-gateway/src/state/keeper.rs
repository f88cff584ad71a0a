//! Writes small files on a thread of its own.
//!
//! Nobody waits for it who has a request to answer. For each file only the newest text waits to be written. What could
//! not be written is tried again, every second and as soon as anything else could be; meanwhile it is counted, and said
//! once in the log. What waits is bounded: beyond that the first by name is lost.
//!
//! A folder that could not be held at the start has not been read. Before anything is written into it, it is: what is there
//! is an earlier process's, and of it more than a fresh process knows.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::folder::Folder;

/// Between two attempts to write what could not be written.
const RETRY: Duration = Duration::from_secs(1);
/// Files that wait after a failure.
const WAITING_MAX: usize = 128;

/// What becomes of a file.
#[derive(Debug)]
enum Work {
    Write(Vec<u8>),
    Remove,
}

#[derive(Debug)]
struct Job {
    work: Work,
    told: Option<oneshot::Sender<bool>>,
}

/// Takes up what lies in the folder.
type TakeUp = Box<dyn FnOnce(&Folder) + Send>;

#[derive(Default)]
struct Queue {
    jobs: BTreeMap<Box<str>, Job>,
    failed: BTreeMap<Box<str>, Job>,
    trouble: Option<Box<str>>,
    /// Before the first write.
    take_up: Option<TakeUp>,
    is_closing: bool,
    has_ended: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    failures: AtomicU64,
    lost: AtomicU64,
}

/// The hand that gives it files. The thread ends when this is dropped.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
}

impl Keeper {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(crate) fn start(folder: Folder) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let work = Arc::clone(&shared);
        std::thread::Builder::new().name("backstop-state".into()).spawn(move || work.run(folder))?;
        Ok(Self { shared })
    }

    /// Has what lies in the folder taken up as soon as it can be held, before anything is written into it. Meant for before
    /// the first write.
    pub(crate) fn take_up_first(&self, take_up: impl FnOnce(&Folder) + Send + 'static) {
        self.shared.lock().take_up = Some(Box::new(take_up));
    }

    /// Has a file written. Whoever waits for the answer hears whether it is durable.
    pub(crate) fn write(&self, name: &str, text: String) -> oneshot::Receiver<bool> {
        let (told, answer) = oneshot::channel();
        self.put(name, Job { work: Work::Write(text.into_bytes()), told: Some(told) });
        answer
    }

    /// Has a file removed.
    pub(crate) fn remove(&self, name: &str) {
        self.put(name, Job { work: Work::Remove, told: None });
    }

    /// Writes that failed so far.
    pub(crate) fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// What is wrong with the folder, if the last write failed.
    pub(crate) fn trouble(&self) -> Option<Box<str>> {
        self.shared.lock().trouble.clone()
    }

    /// Writes what waits, each once more, within a time. Whether all of it is on disk. Blocks.
    pub(crate) fn close(&self, within: Duration) -> bool {
        let mut queue = self.shared.lock();
        queue.is_closing = true;
        queue.try_failed_again();
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(queue, within, |queue| !queue.has_ended);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.has_ended && queue.failed.is_empty() && self.shared.lost.load(Ordering::Relaxed) == 0
    }

    fn put(&self, name: &str, job: Job) {
        let mut queue = self.shared.lock();
        queue.failed.remove(name);
        queue.jobs.insert(name.into(), job);
        self.shared.changed.notify_all();
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("trouble", &self.trouble()).finish_non_exhaustive()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
    }
}

impl Queue {
    fn try_failed_again(&mut self) {
        for (name, job) in std::mem::take(&mut self.failed) {
            self.jobs.entry(name).or_insert(job);
        }
    }
}

impl Shared {
    fn run(&self, mut folder: Folder) {
        while let Some((name, mut job)) = self.next() {
            self.take_up(&mut folder, &name, &mut job);
            let done = match &job.work {
                Work::Write(bytes) => folder.write(&name, bytes),
                Work::Remove => folder.remove(&name),
            };
            let (told, is_durable) = (job.told.take(), done.is_ok());
            // Whoever is told finds it counted already.
            match done {
                Ok(()) => self.succeeded(),
                Err(error) => self.failed(&folder, name, job, &error),
            }
            if let Some(told) = told {
                let _nobody_waits = told.send(is_durable);
            }
        }
        // Whoever is told of the end finds the folder free.
        drop(folder);
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Before the first write into a folder that was not read. What is written of the same file because of that replaces what
    /// was to be written without knowing of it.
    fn take_up(&self, folder: &mut Folder, name: &str, job: &mut Job) {
        let is_due = self.lock().take_up.is_some();
        if !is_due || folder.hold().is_err() {
            return;
        }
        let Some(take_up) = self.lock().take_up.take() else { return };
        take_up(folder);
        if let Some(newer) = self.lock().jobs.remove(name) {
            job.work = newer.work;
        }
    }

    fn next(&self) -> Option<(Box<str>, Job)> {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_first() {
                return Some(job);
            }
            if queue.is_closing {
                return None;
            }
            if queue.failed.is_empty() {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.changed.wait_timeout(queue, RETRY).unwrap_or_else(PoisonError::into_inner);
            queue = waited.0;
            if waited.1.timed_out() {
                queue.try_failed_again();
            }
        }
    }

    fn succeeded(&self) {
        let mut queue = self.lock();
        // The trouble is over once everything that failed is written too.
        let was_in_trouble = queue.failed.is_empty() && queue.trouble.take().is_some();
        queue.try_failed_again();
        drop(queue);
        if was_in_trouble {
            tracing::info!(
                target: "backstop::state",
                "the folder is written again: incidents and the states of breakers survive a restart"
            );
        }
    }

    fn failed(&self, folder: &Folder, name: Box<str>, job: Job, error: &io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let said = format!("{}: {error}", folder.path().join(&*name).display());
        let mut queue = self.lock();
        let is_new = queue.trouble.is_none();
        queue.trouble = Some(said.as_str().into());
        if !queue.jobs.contains_key(&name) {
            queue.failed.insert(name, job);
        }
        if queue.failed.len() > WAITING_MAX && queue.failed.pop_first().is_some() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        drop(queue);
        if is_new {
            tracing::error!(
                target: "backstop::state",
                error = said,
                "cannot be written: incidents and the states of breakers are kept in memory only"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BOUND: Duration = Duration::from_secs(10);

    #[test]
    fn the_newest_text_is_on_disk_at_the_end() {
        let place = tempfile::tempdir().unwrap();
        let keeper = Keeper::start(Folder::new(place.path())).unwrap();
        for number in 0..100 {
            keeper.write("a.json", number.to_string());
        }
        keeper.write("b.json", "b".into());
        keeper.remove("b.json");
        assert!(keeper.close(BOUND));
        let read = |name| fs::read_to_string(place.path().join(name)).ok();
        assert_eq!((read("a.json").as_deref(), read("b.json")), (Some("99"), None));
        assert_eq!((keeper.failures(), keeper.trouble()), (0, None));
    }

    /// The folder's own name belongs to a file. Once that is gone, everything is written.
    #[test]
    fn what_could_not_be_written_is_tried_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        fs::write(&path, "in the way").unwrap();
        let keeper = Keeper::start(Folder::new(&path)).unwrap();
        assert_eq!(keeper.write("a.json", "a".into()).blocking_recv(), Ok(false));
        assert!(keeper.failures() >= 1 && keeper.trouble().is_some_and(|trouble| trouble.contains("data")));
        fs::remove_file(&path).unwrap();
        assert_eq!(keeper.write("b.json", "b".into()).blocking_recv(), Ok(true));
        assert!(keeper.close(BOUND));
        assert_eq!(fs::read_to_string(path.join("a.json")).unwrap(), "a");
        assert_eq!(keeper.trouble(), None);
    }

    /// Another process holds it at first, and leaves a file. The first write finds that, and knows of it.
    #[test]
    fn what_was_not_read_at_the_start_is_read_before_the_first_write() {
        let place = tempfile::tempdir().unwrap();
        let mut other = Folder::new(place.path());
        other.write("a.json", b"theirs").unwrap();
        let keeper = Arc::new(Keeper::start(Folder::new(place.path())).unwrap());
        let hand = Arc::downgrade(&keeper);
        keeper.take_up_first(move |folder| {
            let found = folder.read("a.json").unwrap().unwrap();
            drop(hand.upgrade().unwrap().write("a.json", format!("{found} and ours")));
        });
        assert_eq!(keeper.write("a.json", "ours".into()).blocking_recv(), Ok(false));
        assert_eq!(other.read("a.json").unwrap().as_deref(), Some("theirs"));
        drop(other);
        assert_eq!(keeper.write("b.json", "b".into()).blocking_recv(), Ok(true));
        assert!(keeper.close(BOUND));
        let mut next = Folder::new(place.path());
        next.hold().expect("it is free");
        assert_eq!(next.read("a.json").unwrap().as_deref(), Some("theirs and ours"));
    }

    #[test]
    fn an_end_without_a_disk_says_so() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        fs::write(&path, "in the way").unwrap();
        let keeper = Keeper::start(Folder::new(&path)).unwrap();
        for number in 0..200 {
            keeper.write(&format!("{number:03}.json"), "x".into());
        }
        assert!(!keeper.close(BOUND));
        assert!(keeper.shared.lock().failed.len() <= WAITING_MAX);
    }
}
