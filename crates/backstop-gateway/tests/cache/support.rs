//! What every test needs: a cache with a clock that is moved by hand.

use std::net::SocketAddr;
use std::task::{Context, Waker};
use std::time::Duration;

use backstop::clock::{Clock, ManualClock};
use backstop_engine::time::{Mono, Now};
use backstop_gateway::cache::{Cache, CacheError, CacheSettings, Counts, Lane};
use bytes::Bytes;
use tokio::task::JoinHandle;

pub(crate) const START: Mono = Mono::from_ns(1_000_000_000_000);
pub(crate) const TIMEOUT: Duration = Duration::from_millis(20);
pub(crate) const CONNECT: Duration = Duration::from_millis(50);
/// No pause before a connection is opened is longer.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) type Answer = Result<Option<Bytes>, CacheError>;

/// Waits for an event. Only a failing test ever reaches the bound.
pub(crate) async fn soon<F: Future>(event: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), event).await.expect("it happens")
}

/// Runs a test on this thread as the gateway runs one of its threads.
pub(crate) fn on_a_thread<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(Duration::from_secs(60), test).await.expect("it ends")
    })
}

pub(crate) fn settings(address: SocketAddr) -> CacheSettings {
    CacheSettings::new(vec![address.into()], TIMEOUT, CONNECT)
}

/// One cache.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) hand: ManualClock,
    pub(crate) cache: Cache,
}

impl World {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::with(settings(address))
    }

    pub(crate) fn with(settings: CacheSettings) -> Self {
        let (clock, hand) = Clock::manual(Now { mono: START, ..Now::default() });
        Self { cache: Cache::new(settings, clock.clone()), clock, hand }
    }

    pub(crate) fn lane(&self) -> Lane {
        self.cache.lane(7)
    }

    /// Later than any command ends by itself.
    pub(crate) fn later(&self) -> Mono {
        self.clock.mono().after(MINUTE)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.cache.counts()
    }

    pub(crate) async fn get(&self, lane: &Lane, key: &str) -> Answer {
        soon(lane.get(key.as_bytes(), self.later())).await
    }

    /// A `get` that goes on while the test does something else.
    pub(crate) fn begin(&self, lane: &Lane, key: &str) -> UnderWay<Answer> {
        self.begin_until(lane, key, self.later())
    }

    pub(crate) fn begin_until(&self, lane: &Lane, key: &str, until: Mono) -> UnderWay<Answer> {
        let (lane, key) = (lane.clone(), key.to_owned());
        UnderWay::begin(async move { lane.get(key.as_bytes(), until).await })
    }

    pub(crate) async fn set(&self, lane: &Lane, key: &str, value: &str) {
        let set = lane.set(key.as_bytes(), value.as_bytes(), MINUTE, self.later());
        soon(set).await.expect("it is stored");
    }

    /// Waits until the counts are so, while everything else goes on.
    pub(crate) async fn until(&self, mut condition: impl FnMut(&Counts) -> bool) {
        let counts = async {
            while !condition(&self.counts()) {
                tokio::task::yield_now().await;
            }
        };
        soon(counts).await;
    }

    /// Lets the pause pass, and opens a connection again.
    pub(crate) async fn reopen(&self, lane: &Lane) {
        self.hand.advance(PAUSE);
        self.get(lane, "absent").await.expect("the server answers again");
    }
}

/// A command that is under way whether the test waits for it or not. When this is dropped, its caller has left.
pub(crate) struct UnderWay<T>(JoinHandle<T>);

impl<T: 'static> UnderWay<T> {
    /// Begins it.
    pub(crate) fn begin(command: impl Future<Output = T> + 'static) -> Self {
        let mut command = Box::pin(command);
        let begun = command.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(begun.is_pending(), "it has ended at once");
        Self(tokio::task::spawn_local(command))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    pub(crate) async fn outcome(mut self) -> T {
        soon(&mut self.0).await.expect("it ends well")
    }
}

impl<T> Drop for UnderWay<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lets everything that can go on go on, a few times.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn value(text: &str) -> Answer {
    Ok(Some(Bytes::copy_from_slice(text.as_bytes())))
}
