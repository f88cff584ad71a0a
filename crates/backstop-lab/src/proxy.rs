//! A proxy that stands between a gateway and what it depends on, and fails on demand.
//!
//! In front of each [`Upstream`] it listens on a free port of 127.0.0.1 per address. What comes is passed on byte for byte and so
//! is what comes back, unless a [`Window`] says otherwise at that moment: then the call meets its [`Fault`]. It knows enough
//! of HTTP/1.1 to see where a request and an answer end; it works with any upstream, and what speaks no HTTP (a shared
//! cache) passes as bytes.
//!
//! * Every call is counted ([`Call`]): when it began and ended, what was asked, what came of it, and a hash of what was answered.
//!   A request that carries [`MARKER`] is known again.
//! * With [`Writes::Withhold`] no request that may write reaches an upstream. It is counted, it meets its fault, and without one
//!   it is answered here.
//! * Nothing else is ever connected to: an upstream's address is what it was given.
//!
//! It runs on a thread and runtime of its own, so that neither load nor gateway delays what is measured.

mod acceptor;
mod answer;
mod call;
mod conversation;
mod fault;
mod message;
mod raw;
mod relay;
mod schedule;
mod site;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{runtime, sync::watch};

pub use call::{Call, Ended, content_hash};
pub use fault::{Fault, Moment, Window};
pub use site::{Protocol, Upstream, Writes};

use acceptor::Acceptor;
use site::{Shared, Site};

/// The field by which a request of a drill is known again at the dependency.
pub const MARKER: &str = "x-drill-request";

/// Proxies in front of some upstreams. They end when this is dropped.
#[derive(Debug)]
pub struct Proxies {
    shared: Arc<Shared>,
    addresses: Vec<Vec<SocketAddr>>,
    ending: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxies {
    /// Begins to listen in front of all of them. Faults begin with [`Proxies::begin`].
    ///
    /// # Errors
    ///
    /// When a port or a thread cannot be had.
    pub fn start(
        upstreams: &[Upstream],
        windows: Vec<Window>,
        writes: Writes,
        seed: u64,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(windows, writes, seed));
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let mut acceptors = Vec::new();
        let mut addresses = Vec::new();
        for (target, upstream) in upstreams.iter().enumerate() {
            let mut own = Vec::new();
            for address in &upstream.addresses {
                let site = Site::new(Arc::clone(&shared), target, upstream.protocol, address);
                let acceptor = Acceptor::bind(site)?;
                own.push(acceptor.address());
                acceptors.push(acceptor);
            }
            addresses.push(own);
        }
        let (ending, ended) = watch::channel(false);
        let serve = move || runtime.block_on(serve(acceptors, ended));
        let thread = thread::Builder::new().name("drill-proxy".to_owned()).spawn(serve)?;
        Ok(Self { shared, addresses, ending, thread: Some(thread) })
    }

    /// Where the proxies of this upstream listen, in the order of its addresses.
    #[must_use]
    pub fn addresses(&self, upstream: usize) -> &[SocketAddr] {
        self.addresses.get(upstream).map_or(&[], Vec::as_slice)
    }

    /// From now on time counts, for windows and for calls. Only the first time counts.
    pub fn begin(&self) {
        self.shared.begin();
    }

    /// What has passed since [`Proxies::begin`]; zero before it.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.elapsed()
    }

    /// Every call so far, in the order in which they began.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.journal.calls()
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.ending.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

async fn serve(acceptors: Vec<Acceptor>, mut ended: watch::Receiver<bool>) {
    let mut tasks = tokio::task::JoinSet::new();
    for acceptor in acceptors {
        tasks.spawn(acceptor.serve());
    }
    let _sender_gone = ended.wait_for(|ended| *ended).await;
    tasks.abort_all();
}
