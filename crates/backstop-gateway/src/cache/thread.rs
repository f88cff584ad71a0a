//! What all threads share, and what one thread has of its own.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use backstop::clock::Clock;
use backstop_engine::time::Mono;
use tokio::sync::Notify;

use super::connection::Connection;
use super::counts::{Counts, Ended, Tally, add};
use super::error::CacheError;
use super::link::Link;
use super::settings::CacheSettings;
use crate::tasks::Tasks;
use crate::upstream::Address;
use crate::upstream::resolve::Name;

/// What all threads share.
pub(super) struct Shared {
    pub(super) settings: CacheSettings,
    pub(super) clock: Clock,
    /// One for each of the addresses that is a name.
    pub(super) names: Vec<Option<Arc<Name>>>,
    /// Which of the addresses answered last.
    pub(super) answered_last: AtomicUsize,
    tallies: Mutex<Vec<Arc<Tally>>>,
}

impl Shared {
    pub(super) fn new(settings: CacheSettings, clock: Clock) -> Self {
        let name = |address: &Address| match address {
            Address::Literal(_) => None,
            Address::Name { host, port } => Some(Name::new(host, *port)),
        };
        let names = settings.addresses.iter().map(name).collect();
        Self { settings, clock, names, answered_last: AtomicUsize::new(0), tallies: Mutex::default() }
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.iter().for_each(|tally| tally.add_to(&mut counts));
        counts
    }

    fn add_tally(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&tally));
        tally
    }
}

/// One thread's way to a cache. Cheap to clone, and bound to its thread.
#[derive(Clone)]
pub struct Lane(pub(super) Rc<Thread>);

/// What one thread has.
pub(super) struct Thread {
    pub(super) shared: Arc<Shared>,
    pub(super) tally: Arc<Tally>,
    pub(super) link: RefCell<Link<Connection>>,
    /// An opening has ended.
    pub(super) opened: Notify,
    pub(super) tasks: Tasks,
}

impl Lane {
    pub(super) fn new(shared: Arc<Shared>, entropy: u64) -> Self {
        let (tally, link) = (shared.add_tally(), RefCell::new(Link::new(entropy)));
        Self(Rc::new(Thread { shared, tally, link, opened: Notify::new(), tasks: Tasks::of_this_thread() }))
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(super) fn weak(&self) -> Weak<Thread> {
        Rc::downgrade(&self.0)
    }

    /// Has a task driven on this thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.tasks.spawn(task);
    }
}

impl Thread {
    /// An opening ended.
    pub(super) fn opened(&self, opened: Result<Rc<Connection>, CacheError>) {
        add(if opened.is_ok() { &self.tally.opened } else { &self.tally.not_opened });
        self.link.borrow_mut().opened(opened, self.now());
        self.opened.notify_waiters();
    }

    /// A connection is not used for new commands any more. Those that are under way on it come to their own end.
    pub(super) fn end(&self, connection: &Rc<Connection>, why: CacheError) {
        if self.link.borrow_mut().ended(connection, why, self.now()) {
            self.tally.ended(match why {
                CacheError::Timeout => Ended::Timeout,
                CacheError::Protocol => Ended::Protocol,
                _ => Ended::Closed,
            });
        }
    }

    pub(super) fn now(&self) -> Mono {
        self.shared.clock.mono()
    }

    /// The address to begin with.
    pub(super) fn first_address(&self) -> usize {
        self.shared.answered_last.load(Ordering::Relaxed)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.link.get_mut().stop().is_some() {
            self.tally.ended(Ended::Stopped);
        }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("settings", &self.shared().settings).finish_non_exhaustive()
    }
}
