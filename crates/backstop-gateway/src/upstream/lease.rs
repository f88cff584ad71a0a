//! A connection in use, until it rests again or is closed.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};

use super::Lane;
use super::counts::{Closed, add};
use super::exchange::{Answering, Broken, Received};
use super::pool::{Connection, replaced};
use super::upload::{RequestBody, Upload, Watch};

/// How long a connection may take to become ready after its answer was read. It takes no time at all, unless its
/// thread is busy with something else.
const SETTLE: Duration = Duration::from_millis(100);

/// A call under way at one address.
pub(super) struct Flight<B> {
    lane: Lane<B>,
    endpoint: usize,
}

impl<B> Flight<B> {
    pub(super) fn begin(lane: &Lane<B>, endpoint: usize) -> Self {
        if let Some(endpoint) = lane.shared().endpoint(endpoint) {
            endpoint.begin();
        }
        Self { lane: lane.clone(), endpoint }
    }
}

impl<B> Drop for Flight<B> {
    fn drop(&mut self) {
        if let Some(endpoint) = self.lane.shared().endpoint(self.endpoint) {
            endpoint.end();
        }
    }
}

/// A connection that one call has for itself.
pub(super) struct Lease<B> {
    /// `None` only once it was given away.
    connection: Option<Connection<B>>,
    flight: Flight<B>,
    reused: bool,
    /// Nobody else gets its connection afterwards.
    alone: bool,
}

impl<B> Lease<B> {
    /// Of a connection that was just opened.
    pub(super) fn opened(connection: Connection<B>, flight: Flight<B>, alone: bool) -> Self {
        add(&flight.lane.tally().opened);
        Self { connection: Some(connection), flight, reused: false, alone }
    }

    /// Of a connection that had rested.
    pub(super) fn rested(connection: Connection<B>, lane: &Lane<B>) -> Self {
        let tally = lane.tally();
        add(&tally.reused);
        if !Arc::ptr_eq(&connection.home, lane.shelf()) {
            add(&tally.stolen);
        }
        let flight = Flight::begin(lane, connection.endpoint);
        Self { connection: Some(connection), flight, reused: true, alone: false }
    }

    pub(super) fn was_reused(&self) -> bool {
        self.reused
    }

    pub(super) fn lane(&self) -> &Lane<B> {
        &self.flight.lane
    }

    pub(super) fn send(&mut self, request: Request<Upload<B>>) -> Option<Answering<B>>
    where
        B: RequestBody,
    {
        Some(self.connection.as_mut()?.link.send(request))
    }

    pub(super) fn poll_answer(
        &self,
        answering: &mut Answering<B>,
        watch: &Watch,
        context: &mut Context<'_>,
    ) -> Poll<Result<Response<Received>, Broken<B>>> {
        match &self.connection {
            Some(connection) => connection.link.poll_answer(answering, watch, context),
            None => Poll::Pending,
        }
    }

    /// Closes the connection.
    pub(super) fn close(mut self, why: Closed) {
        self.close_now(why);
    }

    /// Closes a connection that turned out to have been dead before anything was sent.
    pub(super) fn replace(mut self) {
        if self.connection.take().is_some() {
            replaced(self.lane().tally());
        }
    }

    fn close_now(&mut self, why: Closed) {
        if self.connection.take().is_some() {
            self.lane().tally().closed(why);
        }
    }
}

impl<B: RequestBody> Lease<B> {
    /// The exchange is over, to the last byte of its answer.
    pub(super) fn finish(mut self, reusable: bool) {
        if self.alone || !reusable {
            return self.close_now(Closed::Answered);
        }
        let Some(connection) = self.connection.take() else { return };
        if connection.link.is_ready() {
            self.lane().rest(connection);
        } else if connection.link.is_closed() {
            self.lane().tally().closed(Closed::Peer);
        } else {
            self.lane().spawn(settle(self.lane().clone(), connection));
        }
    }
}

impl<B> Drop for Lease<B> {
    fn drop(&mut self) {
        self.close_now(Closed::Left);
    }
}

impl<B> Lane<B> {
    /// Puts a connection to rest.
    pub(super) fn rest(&self, connection: Connection<B>) {
        if let Err(why) = self.shared().put(connection, self.shared().clock.mono()) {
            self.tally().closed(why);
        }
    }
}

async fn settle<B>(lane: Lane<B>, mut connection: Connection<B>) {
    let clock = &lane.shared().clock;
    let ready = tokio::select! {
        biased;
        ready = poll_fn(|context| connection.link.poll_ready(context)) => ready,
        () = clock.sleep_until(clock.mono().after(SETTLE)) => false,
    };
    if ready {
        lane.rest(connection);
    } else {
        lane.tally().closed(Closed::Peer);
    }
}
