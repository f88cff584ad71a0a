//! Names and where they point.
//!
//! - An IP address is never looked up.
//! - What a lookup found is used until the next one succeeds, however long that takes: a name service that fails or
//!   hangs costs nothing as long as the addresses that it gave are still right. Their age is kept beside them.
//! - One lookup per name at a time, for all threads. Only calls that have no addresses at all wait for it.
//! - A lookup goes on when the call that began it ends.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::time::Mono;
use tokio::sync::Notify;

use crate::tasks::Tasks;

/// One name.
#[derive(Debug)]
pub(crate) struct Name {
    host: Box<str>,
    port: u16,
    state: Mutex<State>,
    looked_up: Notify,
}

#[derive(Debug, Default)]
struct State {
    last_good: Option<(Arc<[SocketAddr]>, Mono)>,
    tried_at: Option<Mono>,
    looking: bool,
    lookups: u64,
}

/// What is known before anything is waited for.
enum Known {
    /// These; and, if so said, a lookup is due and is now the caller's to begin.
    Addresses(Arc<[SocketAddr]>, Option<Lookup>),
    /// Nothing; likewise. `lookups` have ended so far.
    Nothing { lookups: u64, lookup: Option<Lookup> },
}

/// Where a name points, or whoever waits for that.
pub(crate) enum Asked<'a> {
    /// It is known.
    Known(Arc<[SocketAddr]>),
    /// A lookup has to end first.
    Waits(Waits<'a>),
}

/// One who waits for a lookup that is under way.
pub(crate) struct Waits<'a> {
    name: &'a Name,
    lookups: u64,
}

impl Waits<'_> {
    /// What the lookup brought. `None` if that is nothing.
    pub(crate) async fn found(self) -> Option<Arc<[SocketAddr]>> {
        self.name.wait(self.lookups).await
    }
}

impl Name {
    pub(crate) fn new(host: &str, port: u16) -> Arc<Self> {
        let (state, looked_up) = (Mutex::default(), Notify::new());
        Arc::new(Self { host: host.into(), port, state, looked_up })
    }

    pub(crate) fn resolved_at(&self) -> Option<Mono> {
        self.state().last_good.as_ref().map(|(_, at)| *at)
    }

    /// Where it points, by a lookup that is at most `refresh` old if there can be one. What is to be looked up anew is handed
    /// to `tasks`.
    pub(crate) fn ask(self: &Arc<Self>, clock: &Clock, refresh: Duration, tasks: &Tasks) -> Asked<'_> {
        let (asked, lookup) = match self.known(clock.mono(), refresh) {
            Known::Addresses(addresses, lookup) => (Asked::Known(addresses), lookup),
            Known::Nothing { lookups, lookup } => (Asked::Waits(Waits { name: self, lookups }), lookup),
        };
        if let Some(lookup) = lookup {
            tasks.spawn(lookup.run(clock.clone()));
        }
        asked
    }

    fn known(self: &Arc<Self>, now: Mono, refresh: Duration) -> Known {
        let mut state = self.state();
        let due = state.last_good.is_none() || state.tried_at.is_none_or(|at| now >= at.after(refresh));
        let begin = due && !state.looking;
        let lookup = begin.then(|| {
            state.looking = true;
            state.tried_at = Some(now);
            Lookup { name: Arc::clone(self), found: None }
        });
        match &state.last_good {
            Some((addresses, _)) => Known::Addresses(Arc::clone(addresses), lookup),
            None => Known::Nothing { lookups: state.lookups, lookup },
        }
    }

    /// Waits until more than `lookups` have ended. `None` if that brought nothing.
    async fn wait(&self, lookups: u64) -> Option<Arc<[SocketAddr]>> {
        loop {
            let mut looked_up = pin!(self.looked_up.notified());
            looked_up.as_mut().enable();
            {
                let state = self.state();
                if let Some((addresses, _)) = &state.last_good {
                    return Some(Arc::clone(addresses));
                }
                if state.lookups > lookups {
                    return None;
                }
            }
            looked_up.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lookup under way. It ends when this is dropped, whatever it found.
struct Lookup {
    name: Arc<Name>,
    found: Option<(Arc<[SocketAddr]>, Mono)>,
}

impl Lookup {
    async fn run(mut self, clock: Clock) {
        let name = Arc::clone(&self.name);
        let found = tokio::net::lookup_host((&*name.host, name.port)).await;
        self.found(found, &clock);
    }

    fn found(&mut self, found: io::Result<impl Iterator<Item = SocketAddr>>, clock: &Clock) {
        let addresses: Arc<[SocketAddr]> = found.into_iter().flatten().collect();
        if !addresses.is_empty() {
            self.found = Some((addresses, clock.mono()));
        }
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        let mut state = self.name.state();
        state.looking = false;
        state.lookups += 1;
        if let Some(found) = self.found.take() {
            state.last_good = Some(found);
        }
        drop(state);
        self.name.looked_up.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use backstop_engine::time::Now;

    use super::*;

    const REFRESH: Duration = Duration::from_secs(5);

    fn lookup(known: Known) -> Lookup {
        match known {
            Known::Addresses(_, Some(lookup)) | Known::Nothing { lookup: Some(lookup), .. } => lookup,
            _ => panic!("no lookup is due"),
        }
    }

    #[test]
    fn the_last_good_addresses_outlive_a_name_service_that_fails() {
        let (clock, hand) = Clock::manual(Now::default());
        let name = Name::new("catalog.internal", 80);
        let address: SocketAddr = "10.0.0.1:80".parse().expect("a socket address");

        let mut first = lookup(name.known(clock.mono(), REFRESH));
        let second = name.known(clock.mono(), REFRESH);
        assert!(matches!(second, Known::Nothing { lookups: 0, lookup: None }), "one at a time");
        first.found(Ok([address].into_iter()), &clock);
        drop(first);
        assert!(matches!(name.known(clock.mono(), REFRESH), Known::Addresses(_, None)));

        hand.advance(REFRESH);
        let mut failing = lookup(name.known(clock.mono(), REFRESH));
        failing.found(Err::<std::array::IntoIter<_, 0>, _>(io::ErrorKind::TimedOut.into()), &clock);
        drop(failing);
        let Known::Addresses(addresses, None) = name.known(clock.mono(), REFRESH) else {
            panic!("the last good addresses, and no new lookup so soon")
        };
        assert_eq!(*addresses, [address]);
        assert_eq!(name.resolved_at(), Some(Mono::from_ns(0)), "their age is not renewed");
    }

    #[tokio::test]
    async fn a_lookup_that_is_given_up_leaves_nobody_waiting() {
        let name = Name::new("catalog.internal", 80);
        let lookup = lookup(name.known(Mono::from_ns(0), REFRESH));
        let (found, ()) = tokio::join!(name.wait(0), async move { drop(lookup) });
        assert_eq!(found, None);
        assert!(matches!(
            name.known(Mono::from_ns(0), REFRESH),
            Known::Nothing { lookups: 1, lookup: Some(_) }
        ));
    }
}
