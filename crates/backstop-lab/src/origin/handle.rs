//! The handle of a running origin.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::{
    Behaviour, Builder, ConnectionRecord, ExpectContinue, Matcher, OnAccept, Request, Stats, Then,
    server::{Command, Reach, Shared},
};

/// A running origin. Clones are the same origin; it stops when the last one is dropped.
#[derive(Clone)]
pub struct Origin(Arc<Running>);

struct Running {
    addr: SocketAddr,
    shared: Arc<Shared>,
    commands: Option<mpsc::UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
    control: Mutex<Option<Origin>>,
}

/// The origin did not see what was waited for within the bound.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not within {bound:?}; by then: {stats:?}")]
pub struct WaitTimeout {
    /// The bound.
    pub bound: Duration,
    /// The counters when the bound was over.
    pub stats: Stats,
}

impl Origin {
    /// Starts an origin on a free port of 127.0.0.1 that answers 200 `{"ok":true}`.
    ///
    /// # Errors
    ///
    /// As [`Builder::start`].
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    /// Settings for an origin.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn running(
        addr: SocketAddr,
        shared: Arc<Shared>,
        commands: mpsc::UnboundedSender<Command>,
        thread: JoinHandle<()>,
    ) -> Self {
        let running = Running {
            addr,
            shared,
            commands: Some(commands),
            thread: Some(thread),
            control: Mutex::new(None),
        };
        Self(Arc::new(running))
    }

    pub(crate) fn keep_control(&self, face: Self) {
        *self.0.control.lock().unwrap_or_else(PoisonError::into_inner) = Some(face);
    }

    pub(crate) fn downgrade(&self) -> WeakOrigin {
        WeakOrigin(Arc::downgrade(&self.0))
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.0.addr
    }

    /// `http://ADDRESS`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.0.addr)
    }

    /// The address of the control face, if it has one.
    #[must_use]
    pub fn control_addr(&self) -> Option<SocketAddr> {
        let face = self.0.control.lock().unwrap_or_else(PoisonError::into_inner);
        face.as_ref().map(Self::addr)
    }

    // === What it does ===

    /// Sets the behaviour for the requests that match, above every rule set before.
    pub fn on(&self, matcher: Matcher, behaviour: impl Into<Behaviour>) {
        self.0.shared.rules().set(matcher, [behaviour.into()]);
    }

    /// Sets a queue of behaviours: each holds for its number of times (once, where none was given), in this order;
    /// then the rules set before hold again.
    pub fn script(&self, matcher: Matcher, behaviours: impl IntoIterator<Item = Behaviour>) {
        let limited = behaviours.into_iter().map(|behaviour| {
            let times = behaviour.times.unwrap_or(1);
            behaviour.times(times)
        });
        self.0.shared.rules().set(matcher, limited);
    }

    /// Sets the behaviour where no rule matches.
    pub fn default(&self, behaviour: impl Into<Behaviour>) {
        self.0.shared.rules().set_default(behaviour.into());
    }

    /// No rule any more, the behaviour of an origin that was just started, connections served. What is over is forgotten
    /// and counters are zero. Open connections and requests in flight go on and stay counted, in the peaks too; of an open
    /// connection it stays recorded that it is there. Reachability and whether raw bytes are recorded do not change.
    pub fn reset(&self) {
        self.0.shared.rules().reset();
        self.0.shared.set_on_accept(OnAccept::Serve);
        self.0.shared.journal.reset();
    }

    /// Forgets what was recorded and counted; rules stay.
    pub fn forget(&self) {
        self.0.shared.journal.reset();
    }

    /// What happens to connections accepted from now on.
    pub fn on_accept(&self, on_accept: OnAccept) {
        self.0.shared.set_on_accept(on_accept);
    }

    /// How `Expect: 100-continue` is answered from now on.
    pub fn expect_continue(&self, rule: ExpectContinue) {
        *self.0.shared.expect_continue.lock().unwrap_or_else(PoisonError::into_inner) = rule;
    }

    /// Keeps the bytes of every connection verbatim from now on, or stops.
    pub fn record_raw(&self, raw: bool) {
        self.0.shared.journal.record_raw(raw);
    }

    // === Whether it is there ===

    /// Closes the listening socket: new connects are refused. Open connections go on.
    ///
    /// # Errors
    ///
    /// When the origin's thread is gone.
    pub async fn refuse(&self) -> io::Result<()> {
        self.reach(Reach::Refusing).await
    }

    /// Listens on the same port again, after [`Origin::refuse`] or [`Origin::fill_backlog`].
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on.
    pub async fn accept_again(&self) -> io::Result<()> {
        self.reach(Reach::Serving).await
    }

    /// Makes new connects hang: the accept queue is filled and never accepted from. Open connections go on.
    /// Linux only; see `origin/listening.rs` for how. Takes about 300 ms.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on or its queue does not fill up.
    pub async fn fill_backlog(&self) -> io::Result<()> {
        self.reach(Reach::Full).await
    }

    /// Ends every open connection with FIN, in the midst of whatever it does. Returns before they are gone.
    pub fn close_connections(&self) {
        self.command(Command::EndConnections(Then::Close));
    }

    /// Ends every open connection with RST, in the midst of whatever it does. Returns before they are gone.
    pub fn reset_connections(&self) {
        self.command(Command::EndConnections(Then::Reset));
    }

    async fn reach(&self, reach: Reach) -> io::Result<()> {
        let (done, is_done) = oneshot::channel();
        self.command(Command::Reach(reach, done));
        is_done.await.map_err(|_died| io::Error::other("the origin's thread is gone"))?
    }

    fn command(&self, command: Command) {
        if let Some(commands) = &self.0.commands {
            // A thread that is gone has ended everything already; an answer that is waited for then never comes.
            let _thread_gone = commands.send(command);
        }
    }

    // === What it saw ===

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.shared.journal.stats()
    }

    /// Every recorded request, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.0.shared.journal.requests()
    }

    /// How many requests arrived (whole heads), recorded or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.stats().requests
    }

    /// How many requests arrived with this method and path, whatever their query.
    #[must_use]
    pub fn count_of(&self, method: &str, path: &str) -> u64 {
        self.0.shared.journal.count_of(method, path)
    }

    /// How many recorded requests `wanted` is true of.
    #[must_use]
    pub fn count_where(&self, wanted: impl Fn(&Request) -> bool) -> usize {
        self.0.shared.journal.count_where(wanted)
    }

    /// Connections accepted.
    #[must_use]
    pub fn connections_accepted(&self) -> u64 {
        self.stats().connections_accepted
    }

    /// Connections open now.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        self.stats().connections_open
    }

    /// Most connections open at one time.
    #[must_use]
    pub fn peak_connections(&self) -> u64 {
        self.stats().peak_connections
    }

    /// Most requests in flight at one time.
    #[must_use]
    pub fn peak_in_flight(&self) -> u64 {
        self.stats().peak_in_flight
    }

    /// Bytes received, HTTP or not.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.stats().bytes_received
    }

    /// The connections, in the order accepted; with their bytes where raw recording was on.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionRecord> {
        self.0.shared.journal.connections()
    }

    /// Waits until `count` requests arrived with their whole body.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`] after `bound`, which runs on the caller's clock.
    pub async fn wait_for(&self, count: u64, bound: Duration) -> Result<Stats, WaitTimeout> {
        self.wait_until(bound, |stats| stats.complete_requests >= count).await
    }

    /// Waits until `reached` is true of the counters.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`] after `bound`, which runs on the caller's clock.
    pub async fn wait_until(
        &self,
        bound: Duration,
        mut reached: impl FnMut(&Stats) -> bool,
    ) -> Result<Stats, WaitTimeout> {
        let journal = &self.0.shared.journal;
        let mut bell = journal.bell();
        let watching = async {
            loop {
                let stats = journal.stats();
                if reached(&stats) {
                    return stats;
                }
                // The journal holds the sender, so this ends by a change only.
                let _changed = bell.changed().await;
            }
        };
        time::timeout(bound, watching).await.map_err(|_over| WaitTimeout { bound, stats: journal.stats() })
    }

    /// Waits until `count` complete recorded requests match.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`] after `bound`, which runs on the caller's clock.
    pub async fn wait_for_matching(
        &self,
        matcher: &Matcher,
        count: usize,
        bound: Duration,
    ) -> Result<Stats, WaitTimeout> {
        let wanted =
            |request: &Request| request.complete && matcher.matches(&request.method, &request.target);
        self.wait_until(bound, |_| self.count_where(wanted) >= count).await
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Origin").field("addr", &self.0.addr).field("stats", &self.stats()).finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The thread ends when the last sender is gone.
        self.commands = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}

/// A handle that does not keep the origin running.
#[derive(Clone)]
pub(crate) struct WeakOrigin(Weak<Running>);

impl WeakOrigin {
    pub(crate) fn upgrade(&self) -> Option<Origin> {
        self.0.upgrade().map(Origin)
    }
}
