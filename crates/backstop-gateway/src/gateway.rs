//! The gateway as a whole: bound first, so that whoever starts it learns what is wrong before anything is served; then
//! run until it is told to stop.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop::{Backstop, SetupError};
use backstop_policy::{DependencySettings, Loaded};
use backstop_store::{Copies, OpenReport, StoreOptions};
use tokio::sync::watch;

use crate::admin::Admin;
use crate::assembly::Assembly;
use crate::authorizer::{Authorizer, CannotAsk, Fetch};
use crate::caches::Caches;
use crate::client_body::RequestContent;
use crate::connection::ConnectionLimits;
use crate::crew::Crew;
use crate::disk;
use crate::forward::sent_host;
use crate::operations::{self, LedgerUnusable, Operations};
use crate::probe::{CannotProbe, Probe};
use crate::reconciler::{self, CannotFollow, Reconciler};
use crate::router::RouteConflict;
use crate::stack::Shared;
use crate::state::State;
use crate::telemetry::{AccessLog, CannotTell, Reopen, Telemetry};
use crate::upstream::{Network, Pool};
use crate::worker::{Stage, Worker};

/// A gateway whose ports are bound and whose copies are open, not yet serving.
pub struct Gateway {
    backstop: Backstop,
    shared: Arc<Shared>,
    pools: Vec<Pool<RequestContent>>,
    caches: Caches,
    probes: Vec<Probe>,
    listeners: Vec<TcpListener>,
    admin: TcpListener,
    threads: usize,
    limits: ConnectionLimits,
    drain: Duration,
    report: OpenReport,
    state: State,
    pub(crate) operations: Option<Arc<Operations>>,
    reconciler: Option<reconciler::Settings>,
}

/// Where a gateway listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// For clients.
    pub listen: Vec<SocketAddr>,
    /// For operators.
    pub admin: SocketAddr,
}

/// A gateway that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// This build cannot ask the caches that the policy names.
    #[error("this build has no shared caches (feature `redis`), and the policy names `{cache}`")]
    NoCaches {
        /// The first of them.
        cache: Box<str>,
    },
    /// The policy cannot be run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// An authorizer cannot be asked as the policy says.
    #[error(transparent)]
    Authorizer(#[from] CannotAsk),
    /// A probe cannot be sent as the policy says.
    #[error(transparent)]
    Probe(#[from] CannotProbe),
    /// Operations cannot be followed as the policy says.
    #[error(transparent)]
    Follow(#[from] CannotFollow),
    /// Two rules claim the same requests.
    #[error(transparent)]
    Routes(#[from] RouteConflict),
    /// Requests cannot be told of as the policy says.
    #[error(transparent)]
    Tell(#[from] CannotTell),
    /// Operations cannot be written down.
    #[error("the ledger of operations cannot be used")]
    Ledger(#[from] LedgerUnusable),
}

/// How often what nobody waits for is looked after: clocks, idle connections, the high-water mark.
const TICK: Duration = Duration::from_secs(1);
/// How long a stop waits for queued copies to reach the disk.
const CLOSE_STORE: Duration = Duration::from_secs(2);
/// How long a stop waits for what is told of requests.
const CLOSE_TELEMETRY: Duration = Duration::from_secs(1);
/// How often a stop looks whether the requests under way are done.
const DRAIN_STEP: Duration = Duration::from_millis(10);

impl Gateway {
    /// Binds every address and opens the copies. A bad disk is no error: see [`Gateway::report`].
    ///
    /// # Errors
    /// An address that cannot be bound, or a policy that cannot be run.
    pub fn bind(loaded: &Loaded, clock: &Clock) -> Result<Self, BindError> {
        no_caches(loaded)?;
        let Loaded { gateway, store, dependencies, authorizers, routes, .. } = loaded;
        let listeners =
            gateway.listen.iter().map(|address| listen(*address)).collect::<Result<Vec<_>, _>>()?;
        let admin = listen(gateway.admin)?;
        let (copies, report) = open_copies(store, &loaded.policy, clock);
        let open = |_| operations::open(Path::new(&*store.path), clock.now()).map(Arc::new);
        let operations = store.ledger.map(open).transpose()?;
        let (access_log, traces) = (gateway.access_log.as_ref(), gateway.traces.as_ref());
        let telemetry = Telemetry::start(access_log, traces, &gateway.name, clock)?;
        let assembly =
            Assembly::new(loaded, clock, copies, operations.clone(), telemetry, |_| Network::System)?;
        let Assembly { backstop, shared, pools, caches } = assembly;
        let state = State::open(store, backstop.engine(), clock, dependencies, authorizers, routes);
        let follow = |operations: &Arc<Operations>| {
            let followed = reconciler::followed(backstop.engine(), routes, dependencies)?;
            reconciler::Settings::new(Arc::clone(operations), followed, gateway.webhook.as_ref(), clock)
        };
        let reconciler = operations.as_ref().map(follow).transpose()?;
        let reply_time = gateway.limits.route.reply_time;
        let head_bytes = shared.head_bytes;
        Ok(Self {
            backstop,
            shared,
            pools,
            caches,
            probes: probes(dependencies)?,
            listeners,
            admin,
            threads: gateway.threads.map_or_else(cores, usize::from),
            limits: ConnectionLimits {
                head_bytes,
                head_time: gateway.limits.head_time,
                reply_time,
                connections: most_connections(gateway.in_flight),
            },
            drain: gateway.drain,
            report,
            state,
            operations,
            reconciler,
        })
    }

    /// Where it listens: the real ports, also where the policy says port 0.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn bound(&self) -> io::Result<Bound> {
        let listen = self.listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        Ok(Bound { listen, admin: self.admin.local_addr()? })
    }

    /// What was found when the copies were opened.
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// What has the access log's file opened anew, where there is one.
    pub fn access_log(&self) -> Option<Reopen> {
        self.shared.telemetry.access_log.as_ref().map(AccessLog::reopener)
    }

    /// Limits, counters, copies and clock, for whoever shows them.
    pub fn backstop(&self) -> &Backstop {
        &self.backstop
    }

    /// Serves until `shutdown` ends. Then new requests are refused at once while those under way finish, within the
    /// policy's `drain`; what is left is cut.
    ///
    /// Needs a tokio runtime with time and I/O for the admin port; requests run on threads of their own.
    ///
    /// # Errors
    /// If a thread or a socket cannot be set up, or a thread fails: that ends the service like `shutdown`, as an error.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let reconciler = self.reconciler.take().map(Reconciler::start).transpose()?;
        let (stage, stages) = watch::channel(Stage::Serving);
        let mut crew = Crew::new();
        for number in 0..self.threads.max(1) {
            let worker = self.worker(number, stages.clone())?;
            crew.start(move || worker.run())?;
        }
        drop(stages);
        let state = self.state.clone();
        let admin = Admin::new(
            self.backstop.clone(),
            Arc::clone(&self.shared),
            self.pools.clone(),
            self.caches.clone(),
            state.clone(),
            self.operations.clone(),
            reconciler.as_ref().map(|reconciler| Arc::clone(reconciler.counts())),
        );
        let admin = tokio::spawn(admin.serve(tokio::net::TcpListener::from_std(self.admin.try_clone()?)?));
        let housekeeping = tokio::spawn(keep_house(
            self.backstop.clone(),
            self.pools.clone(),
            disk::Watch::new(&self.report.disk),
        ));
        let watch = tokio::spawn(state.clone().watch());

        let ended_early = tokio::select! {
            () = shutdown => false,
            () = crew.first_end() => true,
        };
        if ended_early {
            tracing::error!(target: "backstop::gateway", "a worker thread has ended; the others cannot do its part");
        }
        tracing::info!(target: "backstop::gateway", "stopping: new requests are refused, those under way finish");
        self.backstop.engine().drain();
        stage.send_replace(Stage::Draining);
        self.wait_until_idle().await;
        self.pools.iter().for_each(Pool::close_idle);
        stage.send_replace(Stage::Closed);
        housekeeping.abort();
        admin.abort();
        watch.abort();
        // A worker ends at once now; joining it may block for as long as one poll.
        let joined = tokio::task::spawn_blocking(move || crew.join()).await.map_err(io::Error::other)?;
        let copies = self.backstop.copies().clone();
        let operations = self.operations.clone();
        let shared = Arc::clone(&self.shared);
        let closing = move || {
            let _lost_as_others_are = shared.telemetry.close(CLOSE_TELEMETRY);
            let follows_no_more = reconciler.is_none_or(|reconciler| reconciler.close(CLOSE_STORE));
            let ledger = operations.is_none_or(|operations| operations.ledger.close(CLOSE_STORE));
            (copies.close(CLOSE_STORE), state.close(CLOSE_STORE), follows_no_more && ledger)
        };
        let (copies, state, operations) = tokio::task::spawn_blocking(closing).await.unwrap_or_default();
        // Only now another process can take the addresses: it finds what was written, and the folder free.
        drop(self);
        if !copies {
            tracing::warn!(target: "backstop::gateway", "stopped before every copy was on disk");
        }
        if !state {
            tracing::warn!(
                target: "backstop::gateway",
                "stopped before incidents and the states of breakers were on disk"
            );
        }
        if !operations {
            tracing::warn!(
                target: "backstop::gateway",
                "stopped before the ledger of operations was closed; what it had acknowledged is on disk"
            );
        }
        joined?;
        if ended_early { Err(io::Error::other("a worker thread ended before the stop")) } else { Ok(()) }
    }

    fn worker(&self, number: usize, stages: watch::Receiver<Stage>) -> io::Result<Worker> {
        Ok(Worker {
            shared: Arc::clone(&self.shared),
            listeners: self.listeners.iter().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            pools: self.pools.clone(),
            caches: self.caches.clone(),
            limits: self.limits,
            clock: self.backstop.clock().clone(),
            stages,
            probes: if number == 0 { self.probes.clone() } else { Vec::new() },
            fetches: if number == 0 { self.fetches() } else { Vec::new() },
            engine: Arc::clone(self.backstop.engine()),
        })
    }

    /// The keys that are fetched for verifying tokens.
    fn fetches(&self) -> Vec<Fetch> {
        let tokens = self.shared.authorizers.iter().filter_map(Authorizer::tokens);
        tokens.map(|tokens| tokens.fetch().clone()).collect()
    }

    /// Waits until no request is in flight and every connection from before the stop has ended, with whatever its client
    /// had still to take; within the drain's bound. Real time: a stop is the operator's, not the requests'.
    async fn wait_until_idle(&self) {
        let in_flight = || self.backstop.engine().process().in_flight();
        let connections = || self.shared.tallies.open_early_count();
        let idle = async {
            while in_flight() > 0 || connections() > 0 {
                tokio::time::sleep(DRAIN_STEP).await;
            }
        };
        if tokio::time::timeout(self.drain, idle).await.is_err() {
            let (left, connections) = (in_flight(), connections());
            tracing::warn!(
                target: "backstop::gateway",
                left,
                connections,
                "requests did not finish in time and are cut"
            );
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("backstop", &self.backstop).finish_non_exhaustive()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// How many clients may be connected: enough for every request in flight to have three that rest beside it, and never
/// so many that no file is left for dependencies, copies and operators.
fn most_connections(in_flight: u32) -> u64 {
    let wanted = u64::from(in_flight) * 4 + 1000;
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files.map_or(wanted, |files| wanted.min(files / 5 * 4)).max(1)
}

fn listen(address: SocketAddr) -> Result<TcpListener, BindError> {
    let failed = |source| BindError::Listen { address, source };
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None).map_err(failed)?;
    // A restart must not wait for the last connections' time-wait.
    socket.set_reuse_address(true).map_err(failed)?;
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(4096).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket.into())
}

fn open_copies(
    store: &backstop_policy::StoreSettings,
    policy: &backstop_engine::policy::Policy,
    clock: &Clock,
) -> (Copies, OpenReport) {
    let path = PathBuf::from(&*store.path);
    // A withdrawal is remembered for longer than any read that could have begun before it.
    let of_route = |route: &backstop_engine::policy::Route| {
        let cached = route.class.cached().map(|cached| cached.fill.deadline.max(cached.ttl));
        route.deadline.max(cached.unwrap_or_default()) + route.abandon_hold.unwrap_or_default()
    };
    let longest = policy.routes.iter().map(of_route).max();
    let options = StoreOptions {
        memory_bytes: store.memory_bytes,
        disk_bytes: store.disk_bytes,
        mark_lifetime: longest.unwrap_or_default().saturating_mul(2).max(Duration::from_secs(600)),
        ..StoreOptions::new(path)
    };
    if store.disk_bytes == 0 {
        return (Copies::memory_with(options), OpenReport::default());
    }
    Copies::open(options, clock.now())
}

/// What the dependencies that name a probe are probed with.
fn probes(dependencies: &[DependencySettings]) -> Result<Vec<Probe>, CannotProbe> {
    let probe = |dependency: &DependencySettings| {
        let settings = dependency.probe.as_ref()?;
        Some(Probe::new(dependency.id, settings, &sent_host(dependency)))
    };
    dependencies.iter().filter_map(probe).collect()
}

/// This build can ask every cache that the policy names.
pub(crate) fn no_caches(loaded: &Loaded) -> Result<(), BindError> {
    match loaded.caches.first() {
        Some(cache) if cfg!(not(feature = "redis")) => Err(BindError::NoCaches { cache: cache.name.clone() }),
        _ => Ok(()),
    }
}

async fn keep_house(backstop: Backstop, pools: Vec<Pool<RequestContent>>, mut disk: disk::Watch) {
    loop {
        tokio::time::sleep(TICK).await;
        let now = backstop.keep_house();
        disk.look(&backstop.copies().health());
        for pool in &pools {
            pool.sweep(now.mono);
        }
    }
}
