//! The handle of a running service.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time};

use crate::origin::{Behaviour, Origin};

use super::{
    Counts, Effect, Fault, StatusFault, Which,
    book::{Book, Standing},
    serve::serve,
    which::Faults,
};

/// A running payment service. Clones are the same service; it stops when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Payments {
    origin: Origin,
    desk: Arc<Desk>,
    folder: Option<PathBuf>,
}

/// The service did not come to what was waited for within the bound.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not within {bound:?}; by then: {counts:?}")]
pub struct CountsTimeout {
    /// The bound.
    pub bound: Duration,
    /// The counts when the bound was over.
    pub counts: Counts,
}

impl Payments {
    /// Starts a service on a free port of 127.0.0.1 that keeps everything in memory.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).await
    }

    /// As [`Payments::start`], going on with what is in a folder that exists.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on, or the files in the folder cannot be read or written.
    pub async fn start_in(folder: &Path) -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Some(folder)).await
    }

    /// As [`Payments::start_in`], on this address.
    ///
    /// # Errors
    ///
    /// As [`Payments::start_in`].
    pub async fn start_at(addr: SocketAddr, folder: Option<&Path>) -> io::Result<Self> {
        let book = folder.map(Book::open).transpose()?.unwrap_or_default();
        let desk = Arc::new(Desk::new(book));
        let (observing, serving) = (Arc::clone(&desk), Arc::clone(&desk));
        let origin = Origin::builder()
            .addr(addr)
            .observe(move |arrival| observing.change(|book| book.arrived(arrival)))
            .default_behaviour(Behaviour::from_async_fn(move |request| serve(Arc::clone(&serving), request)));
        Ok(Self { origin: origin.start().await?, desk, folder: folder.map(Path::to_owned) })
    }

    /// Ends the service, with every connection and everything that has not happened yet, and starts it at the same address
    /// with what is in its folder; without one, with nothing. Its clones must be gone.
    ///
    /// # Errors
    ///
    /// As [`Payments::start_at`].
    pub async fn restart(self) -> io::Result<Self> {
        let (addr, folder) = (self.addr(), self.folder.clone());
        drop(self);
        Self::start_at(addr, folder.as_deref()).await
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.origin.addr()
    }

    /// The origin below it, for being out of reach ([`Origin::refuse`]) and for what it recorded.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    // === What goes wrong ===

    /// This goes wrong with these payments, above everything set before.
    pub fn fail(&self, which: Which, fault: Fault) {
        lock(&self.desk.faults).set(which, fault);
    }

    /// This goes wrong with these status queries, above everything set before.
    pub fn fail_status(&self, which: Which, fault: StatusFault) {
        lock(&self.desk.status_faults).set(which, fault);
    }

    /// Nothing goes wrong any more with what comes from now on.
    pub fn heal(&self) {
        lock(&self.desk.faults).clear();
        lock(&self.desk.status_faults).clear();
    }

    // === What came of it ===

    /// Everything that is counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        lock(&self.desk.book).counts().clone()
    }

    /// How many payments were made under this key.
    #[must_use]
    pub fn effects_of(&self, key: &str) -> u64 {
        lock(&self.desk.book).counts().effects.get(key).copied().unwrap_or_default()
    }

    /// How many requests came under this key that may change something, whole or cut.
    #[must_use]
    pub fn forwards_of(&self, key: &str) -> u64 {
        lock(&self.desk.book).counts().forwards.get(key).copied().unwrap_or_default()
    }

    /// How often the status of this key was asked for.
    #[must_use]
    pub fn status_queries_of(&self, key: &str) -> u64 {
        lock(&self.desk.book).counts().status_queries.get(key).copied().unwrap_or_default()
    }

    /// The payments made, in the order in which they happened.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        lock(&self.desk.book).effects().to_vec()
    }

    /// Waits until `reached` is true of the counts.
    ///
    /// # Errors
    ///
    /// [`CountsTimeout`] after `bound`, which runs on the caller's clock.
    pub async fn wait_until(
        &self,
        bound: Duration,
        reached: impl Fn(&Counts) -> bool,
    ) -> Result<Counts, CountsTimeout> {
        let mut bell = self.desk.bell.subscribe();
        let watching = async {
            loop {
                let counts = self.counts();
                if reached(&counts) {
                    return counts;
                }
                // The desk holds the sender, so this ends by a change only.
                let _changed = bell.changed().await;
            }
        };
        let watched = time::timeout(bound, watching).await;
        watched.map_err(|_over| CountsTimeout { bound, counts: self.counts() })
    }
}

/// What the handles and the service's own thread share.
#[derive(Debug)]
pub(super) struct Desk {
    book: Mutex<Book>,
    faults: Mutex<Faults<Fault>>,
    status_faults: Mutex<Faults<StatusFault>>,
    bell: watch::Sender<u64>,
}

impl Desk {
    fn new(book: Book) -> Self {
        Self {
            book: Mutex::new(book),
            faults: Mutex::new(Faults::new()),
            status_faults: Mutex::new(Faults::new()),
            bell: watch::Sender::new(0),
        }
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let changed = change(&mut lock(&self.book));
        self.bell.send_modify(|rings| *rings = rings.wrapping_add(1));
        changed
    }

    pub(super) fn fault(&self, key: &str) -> Option<Fault> {
        lock(&self.faults).choose(key)
    }

    pub(super) fn status_fault(&self, key: &str) -> Option<StatusFault> {
        lock(&self.status_faults).choose(key)
    }

    pub(super) fn standing(&self, key: &str, sees_effects: bool) -> Option<Standing> {
        lock(&self.book).standing(key, sees_effects)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
