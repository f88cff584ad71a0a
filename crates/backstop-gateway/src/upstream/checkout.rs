//! From a call to a connection: wait, resolve, connect.
//!
//! - Nothing begins at or after the end of the call's time: the clock is read before every lookup, every connect and
//!   every request.
//! - Whatever fails here fails with nothing sent, so the next address may be asked while there is time.
//! - A connect that ran and did not come about is the dependency's failure. That no place came free, or that the time was
//!   over before anything was begun, is our own lateness: the dependency was not asked.
//! - An address that could not be connected to is passed over for a while as long as there is another.
//! - Who drops the call here cancels the connect, and the place is free at once.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use backstop::upstream::Progress;
use backstop_engine::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use backstop_engine::time::Mono;
use tokio::net::TcpStream;

use super::Lane;
use super::counts::Timed;
use super::lease::{Flight, Lease};
use super::network::{Network, Stream};
use super::places::Place;
use super::pool::{Connection, Endpoint, Found};
use super::resolve::{Asked, Name};
use super::settings::Address;
use super::upload::RequestBody;

/// The connection came about when the time was over.
const CONNECTED_TOO_LATE: Failure = Failure::new(FailureKind::ConnectTimeout, Phase::Connect, Sent::No);

/// The time was over before anything was begun.
const TOO_LATE: Cause = Cause::NotAsked(NotAsked::TooLate);

/// Nobody knows where it is.
const UNKNOWN: Failure = Failure::new(FailureKind::Dns, Phase::Resolve, Sent::No);

impl<B: RequestBody> Lane<B> {
    /// A connection on which a request may be begun now, and what time it is now.
    ///
    /// `alone`: one that nobody had before and nobody gets afterwards.
    pub(super) async fn lease(
        &self,
        until: Mono,
        alone: bool,
        progress: &Progress,
    ) -> Result<(Lease<B>, Mono), Cause> {
        let shared = self.shared();
        let mut tried = Vec::new();
        // What became of the addresses that were tried.
        let mut failed: Option<Failure> = None;
        loop {
            // An address that failed is the reason, whatever then hinders the next one.
            let or_late = |reason| failed.map_or(Cause::NotAsked(reason), Cause::Failed);
            let mut late = NotAsked::TooLate;
            let mut now = shared.clock.mono();
            if now >= until {
                return Err(or_late(late));
            }
            let endpoint = shared.choose(&tried, now).ok_or(or_late(late))?;
            let found = match self.find(endpoint, alone, now) {
                Some(found) => found,
                None => {
                    late = NotAsked::PoolTimeout;
                    let found = self.wait(endpoint, until, alone, progress).await.ok_or(or_late(late))?;
                    now = shared.clock.mono();
                    found
                }
            };
            let opened = match found {
                Found::Rested(connection) if now < until => {
                    return Ok((Lease::rested(connection, self), now));
                }
                Found::Place(place) if now < until => {
                    self.open(endpoint, place, alone, until, progress).await
                }
                Found::Rested(connection) => {
                    self.rest(connection);
                    return Err(or_late(late));
                }
                Found::Place(_) => return Err(or_late(late)),
            };
            match opened {
                Ok(lease) => {
                    now = shared.clock.mono();
                    if now < until {
                        return Ok((lease, now));
                    }
                    lease.finish(true);
                    return Err(Cause::Failed(CONNECTED_TOO_LATE));
                }
                Err(Cause::NotAsked(reason)) => return Err(or_late(reason)),
                Err(Cause::Failed(failure)) => {
                    tried.push(endpoint);
                    failed = Some(failure);
                }
            }
        }
    }

    fn find(&self, endpoint: usize, alone: bool, now: Mono) -> Option<Found<B>> {
        let shared = self.shared();
        if alone { shared.find_place(now) } else { shared.find(self.shelf(), endpoint, now) }
    }

    /// Waits for a connection of a call that has ended to be closed, or to go to rest. `None` if none did in time.
    async fn wait(&self, endpoint: usize, until: Mono, alone: bool, progress: &Progress) -> Option<Found<B>> {
        let shared = self.shared();
        progress.enter(Phase::Queue);
        let waiting = shared.places.wait();
        loop {
            let mut freed = pin!(waiting.freed());
            freed.as_mut().enable();
            if let Some(found) = self.find(endpoint, alone, shared.clock.mono()) {
                return Some(found);
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = shared.clock.sleep_until(until) => return None,
            }
        }
    }

    async fn open(
        &self,
        endpoint: usize,
        place: Place,
        alone: bool,
        until: Mono,
        progress: &Progress,
    ) -> Result<Lease<B>, Cause> {
        let shared = self.shared();
        let flight = Flight::begin(self, endpoint);
        let at = shared.endpoint(endpoint).ok_or(Cause::Failed(UNKNOWN))?;
        let stream = match (&at.address, &at.name) {
            (Address::Literal(address), _) => self.connect(at, &[*address], until, progress).await?,
            (Address::Name { host, port }, Some(name)) => {
                let addresses = self.resolve(host, *port, name, progress).await.map_err(Cause::Failed)?;
                self.connect(at, &addresses, until, progress).await?
            }
            (Address::Name { .. }, None) => return Err(Cause::Failed(UNKNOWN)),
        };
        let refused = Failure::new(FailureKind::Connect, Phase::Connect, Sent::No);
        let (link, task) = shared.protocol.open(stream, place).await.ok_or(Cause::Failed(refused))?;
        self.spawn(task);
        Ok(Lease::opened(Connection { link, home: Arc::clone(self.shelf()), endpoint }, flight, alone))
    }

    async fn resolve(
        &self,
        host: &str,
        port: u16,
        name: &Arc<Name>,
        progress: &Progress,
    ) -> Result<Arc<[SocketAddr]>, Failure> {
        if let Network::Script(script) = &self.shared().settings.network {
            return script.resolve(host, port).ok_or(UNKNOWN);
        }
        let (clock, refresh) = (&self.shared().clock, self.shared().settings.refresh);
        match name.ask(clock, refresh, &self.0.tasks) {
            Asked::Known(addresses) => Ok(addresses),
            Asked::Waits(waits) => {
                progress.enter(Phase::Resolve);
                let began = clock.mono();
                let found = waits.found().await;
                self.tally().took(Timed::Resolve, began, clock.mono());
                found.ok_or(UNKNOWN)
            }
        }
    }

    async fn connect(
        &self,
        at: &Endpoint,
        addresses: &[SocketAddr],
        until: Mono,
        progress: &Progress,
    ) -> Result<Stream, Cause> {
        let shared = self.shared();
        let mut cause = TOO_LATE;
        // Every other time from another one of a name's addresses.
        let first = shared.next_turn(addresses.len());
        for address in addresses.iter().cycle().skip(first).take(addresses.len()) {
            let began = shared.clock.mono();
            if began >= until {
                break;
            }
            progress.enter(Phase::Connect);
            let limit = until.min(began.after(shared.settings.connect));
            let connected = tokio::select! {
                biased;
                connected = shared.settings.network.connect(*address) => connected,
                () = shared.clock.sleep_until(limit) => Err(FailureKind::ConnectTimeout),
            };
            let now = shared.clock.mono();
            self.tally().took(Timed::Connect, began, now);
            match connected {
                Ok(stream) => {
                    at.trust();
                    return Ok(stream);
                }
                Err(kind) => {
                    at.pass_over(now.after(shared.settings.rest));
                    cause = Cause::Failed(Failure::new(kind, Phase::Connect, Sent::No));
                }
            }
        }
        Err(cause)
    }
}

pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream, FailureKind> {
    let kind = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        _ => FailureKind::Connect,
    };
    let stream = TcpStream::connect(address).await.map_err(kind)?;
    // A port of this host that nobody listens on may be given to the connecting side itself, which then talks to itself.
    if stream.local_addr().map_err(kind)? == address {
        return Err(FailureKind::Connect);
    }
    stream.set_nodelay(true).map_err(kind)?;
    Ok(stream)
}
