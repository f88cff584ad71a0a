//! The worker threads: started one by one, waited for together.
//!
//! A worker ends when it is told to. One that ends before has failed, and with it its part of the connections; whoever runs
//! them learns that at once, not only when the service is stopped one day.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::sync::mpsc;

/// Worker threads.
pub(crate) struct Crew {
    workers: Vec<JoinHandle<io::Result<()>>>,
    tell: mpsc::UnboundedSender<()>,
    told: mpsc::UnboundedReceiver<()>,
}

/// Tells when it is dropped, so also of a worker that panics.
struct Tells(mpsc::UnboundedSender<()>);

impl Drop for Tells {
    fn drop(&mut self) {
        let _nobody_waits_any_more = self.0.send(());
    }
}

impl Crew {
    pub(crate) fn new() -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self { workers: Vec::new(), tell, told }
    }

    /// Starts one more.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(crate) fn start(&mut self, work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
        let tells = Tells(self.tell.clone());
        let worker = Builder::new().name(format!("backstop-{}", self.workers.len())).spawn(move || {
            let _tells = tells;
            work()
        })?;
        self.workers.push(worker);
        Ok(())
    }

    /// Ends when the first of them has ended.
    pub(crate) async fn first_end(&mut self) {
        // Never `None`: one sender is kept here.
        let _first = self.told.recv().await;
    }

    /// Waits, blocking, until all have ended.
    ///
    /// # Errors
    /// What the first of them failed with.
    pub(crate) fn join(self) -> io::Result<()> {
        let ends: Vec<io::Result<()>> = self
            .workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| io::Error::other("a worker thread panicked"))?)
            .collect();
        ends.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc as blocking;

    /// Two workers; one of them ends as it is told to here.
    fn with_one_that(ends: impl FnOnce() -> io::Result<()> + Send + 'static) -> String {
        let mut crew = Crew::new();
        let (stop, stopped) = blocking::channel::<()>();
        crew.start(move || {
            let _until_the_stop = stopped.recv();
            Ok(())
        })
        .unwrap();
        crew.start(ends).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let bound = std::time::Duration::from_secs(10);
        let told = runtime.block_on(async { tokio::time::timeout(bound, crew.first_end()).await });
        assert!(told.is_ok(), "it is told while the other one still works");
        drop(stop);
        crew.join().map_or_else(|error| error.to_string(), |()| "no error".to_owned())
    }

    #[test]
    fn a_worker_that_ends_early_is_noticed_at_once() {
        assert_eq!(with_one_that(|| Err(io::Error::other("no descriptor is left"))), "no descriptor is left");
        assert_eq!(with_one_that(|| panic!("a fault")), "a worker thread panicked");
        assert_eq!(with_one_that(|| Ok(())), "no error");
    }
}
