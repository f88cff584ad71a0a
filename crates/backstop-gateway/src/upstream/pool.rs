//! The connections of one dependency, over all threads.
//!
//! - Every thread has a [`Shelf`] of connections at rest, the one used last on top, behind a lock that only this thread
//!   takes as long as places are free.
//! - A connection's reading and writing stays with the thread that opened it, and it goes back to that thread's shelf.
//! - Who needs a connection takes, in this order: one at rest on its own shelf that leads to the chosen address; a free
//!   place, to open one; one at rest anywhere. Only the last looks at other threads' shelves. So no call is refused, and
//!   none waits, while a connection rests somewhere or a place is free.
//! - Who needs one of its own takes a free place; where there is none, one at rest is closed for its place.
//! - The chosen address is the one with the least calls under way, those aside that could not be connected to just now.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use backstop::clock::Clock;
use backstop_engine::time::Mono;

use super::counts::{AddressCounts, Closed, Counts, Tally, add};
use super::exchange::{Link, Protocol};
use super::places::{Place, Places};
use super::resolve::Name;
use super::settings::{Address, Settings};

/// What all threads share of one dependency's connections.
pub(super) struct Shared<B> {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) protocol: Protocol,
    pub(super) places: Arc<Places>,
    endpoints: Box<[Endpoint]>,
    turn: AtomicUsize,
    shelves: RwLock<Vec<Arc<Shelf<B>>>>,
    stopped: AtomicBool,
}

/// One address.
pub(super) struct Endpoint {
    pub(super) address: Address,
    pub(super) name: Option<Arc<Name>>,
    in_flight: AtomicU32,
    passed_over_until: AtomicU64,
}

/// A connection that is somebody's.
pub(super) struct Connection<B> {
    pub(super) link: Link<B>,
    pub(super) home: Arc<Shelf<B>>,
    pub(super) endpoint: usize,
}

/// What a call may go on with.
pub(super) enum Found<B> {
    Rested(Connection<B>),
    Place(Place),
}

impl<B> Shared<B> {
    pub(super) fn new(settings: Settings, clock: Clock) -> Self {
        let endpoint = |address: &Address| Endpoint {
            address: address.clone(),
            name: match address {
                Address::Literal(_) => None,
                Address::Name { host, port } => Some(Name::new(host, *port)),
            },
            in_flight: AtomicU32::new(0),
            passed_over_until: AtomicU64::new(0),
        };
        Self {
            protocol: Protocol::new(&settings),
            places: Arc::new(Places::new(settings.connections, settings.excess)),
            endpoints: settings.addresses.iter().map(endpoint).collect(),
            turn: AtomicUsize::new(0),
            shelves: RwLock::default(),
            stopped: AtomicBool::new(false),
            settings,
            clock,
        }
    }

    pub(super) fn add_shelf(&self) -> Arc<Shelf<B>> {
        let shelf = Arc::new(Shelf { rested: Mutex::new(Some(Vec::new())), tally: Tally::default() });
        self.shelves.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&shelf));
        shelf
    }

    pub(super) fn endpoint(&self, index: usize) -> Option<&Endpoint> {
        self.endpoints.get(index)
    }

    /// The address to ask, of those that were not tried yet.
    pub(super) fn choose(&self, tried: &[usize], now: Mono) -> Option<usize> {
        let count = self.endpoints.len();
        if count == 1 {
            return tried.is_empty().then_some(0);
        }
        // Equals are taken in turn.
        let first = self.next_turn(count);
        (first..count).chain(0..first).filter(|index| !tried.contains(index)).min_by_key(|index| {
            self.endpoint(*index).map(|endpoint| {
                let passed_over = now.as_ns() < endpoint.passed_over_until.load(Ordering::Relaxed);
                (passed_over, endpoint.in_flight.load(Ordering::Relaxed))
            })
        })
    }

    /// Where to begin among so many.
    pub(super) fn next_turn(&self, count: usize) -> usize {
        if count < 2 { 0 } else { self.turn.fetch_add(1, Ordering::Relaxed).checked_rem(count).unwrap_or(0) }
    }

    /// A connection or the place for one, at once or not at all.
    pub(super) fn find(&self, own: &Arc<Shelf<B>>, endpoint: usize, now: Mono) -> Option<Found<B>> {
        if let Some(connection) = self.take(own, Some(endpoint), now) {
            return Some(Found::Rested(connection));
        }
        if let Some(place) = self.places.try_take() {
            return Some(Found::Place(place));
        }
        self.take(own, None, now)
            .or_else(|| self.take_anywhere(Some(endpoint), now))
            .or_else(|| self.take_anywhere(None, now))
            .map(Found::Rested)
    }

    /// The place for a connection, and nothing else. Where only a connection at rest has one, that is closed: its place comes
    /// back once its socket is closed, and whoever waits for one is told.
    pub(super) fn find_place(&self, now: Mono) -> Option<Found<B>> {
        let place = self.places.try_take();
        if place.is_none()
            && let Some(rested) = self.take_anywhere(None, now)
        {
            rested.home.tally.closed(Closed::Idle);
        }
        place.map(Found::Place)
    }

    fn take_anywhere(&self, endpoint: Option<usize>, now: Mono) -> Option<Connection<B>> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.iter().find_map(|shelf| self.take(shelf, endpoint, now))
    }

    fn take(&self, shelf: &Arc<Shelf<B>>, endpoint: Option<usize>, now: Mono) -> Option<Connection<B>> {
        let mut rested = shelf.rested();
        let rested = rested.as_mut()?;
        loop {
            let top = rested.iter().rposition(|one| endpoint.is_none_or(|wanted| one.endpoint == wanted))?;
            let one = rested.remove(top);
            match self.unfit(&one, now) {
                Some(why) => shelf.tally.closed(why),
                None => {
                    let home = Arc::clone(shelf);
                    return Some(Connection { link: one.link, home, endpoint: one.endpoint });
                }
            }
        }
    }

    fn unfit(&self, one: &Rested<B>, now: Mono) -> Option<Closed> {
        if now >= one.since.after(self.settings.idle) {
            Some(Closed::Idle)
        } else if !one.link.is_ready() {
            Some(Closed::Peer)
        } else {
            None
        }
    }

    /// Puts a connection to rest on its own thread's shelf, or says why it has to be closed.
    pub(super) fn put(&self, connection: Connection<B>, now: Mono) -> Result<(), Closed> {
        let Connection { link, home, endpoint } = connection;
        {
            let mut rested = home.rested();
            // Under the lock: what is put here after the flag was raised would never be closed.
            if self.is_stopped() {
                return Err(Closed::Stopped);
            }
            rested.as_mut().ok_or(Closed::Stopped)?.push(Rested { link, endpoint, since: now });
        }
        self.places.rested();
        Ok(())
    }

    /// Closes what has rested too long or was closed by the other side.
    pub(super) fn sweep(&self, now: Mono) {
        self.close_where(|one| self.unfit(one, now));
    }

    /// Closes what rests, and keeps no connection any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.close_where(|_| Some(Closed::Stopped));
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn close_where(&self, why: impl Fn(&Rested<B>) -> Option<Closed>) {
        for shelf in self.shelves.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(rested) = shelf.rested().as_mut() {
                rested.retain(|one| why(one).inspect(|why| shelf.tally.closed(*why)).is_none());
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts =
            Counts { open: self.places.open(), waiting: self.places.waiting(), ..Counts::default() };
        for shelf in self.shelves.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let rested = shelf
                .rested()
                .as_ref()
                .map_or(0, |rested| rested.iter().filter(|one| one.link.is_ready()).count());
            counts.idle = counts.idle.saturating_add(u32::try_from(rested).unwrap_or(u32::MAX));
            shelf.tally.add_to(&mut counts);
        }
        counts.in_use = counts.open.saturating_sub(counts.idle);
        counts.addresses.extend(self.endpoints.iter().map(|endpoint| {
            let passed_over_until = endpoint.passed_over_until.load(Ordering::Relaxed);
            AddressCounts {
                address: endpoint.address.clone(),
                in_flight: endpoint.in_flight.load(Ordering::Relaxed),
                passed_over_until: (passed_over_until > 0).then(|| Mono::from_ns(passed_over_until)),
                resolved_at: endpoint.name.as_ref().and_then(|name| name.resolved_at()),
            }
        }));
        counts
    }
}

/// One thread's connections at rest, and what it counts.
pub(super) struct Shelf<B> {
    /// `None` once the thread has left: its connections can be driven by nobody.
    rested: Mutex<Option<Vec<Rested<B>>>>,
    pub(super) tally: Tally,
}

struct Rested<B> {
    link: Link<B>,
    endpoint: usize,
    since: Mono,
}

impl<B> Shelf<B> {
    /// The thread leaves.
    pub(super) fn abolish(&self) {
        for _closed in self.rested().take().into_iter().flatten() {
            self.tally.closed(Closed::Stopped);
        }
    }

    fn rested(&self) -> MutexGuard<'_, Option<Vec<Rested<B>>>> {
        self.rested.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    pub(super) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// It could not be connected to.
    pub(super) fn pass_over(&self, until: Mono) {
        self.passed_over_until.store(until.as_ns(), Ordering::Relaxed);
    }

    /// It could.
    pub(super) fn trust(&self) {
        self.passed_over_until.store(0, Ordering::Relaxed);
    }
}

/// A connection was found dead before any byte of a request was sent on it.
pub(super) fn replaced(tally: &Tally) {
    add(&tally.replaced);
    tally.closed(Closed::Peer);
}
