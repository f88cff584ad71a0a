//! One gateway in memory, asked by one client in memory.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::{Clock, ManualClock};
use backstop::operation::following::Following;
use backstop::operation::secret::Secret;
use backstop::operation::{Operations, Successes};
use backstop::walk::Recorder;
use backstop_engine::failure::{Failure, Phase, Sent};
use backstop_policy::Loaded;
use backstop_store::Copies;
use backstop_store::ledger::{LedgerOptions, MemoryRows, ThreadLedger};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::CannotExplain;
use super::answers::{Answers, PRINCIPAL};
use super::cache::Told;
use super::dependency::Dependency;
use super::question::{Happens, Question};
use crate::assembly::Assembly;
use crate::authorizer::Assumed;
use crate::caches::Lanes;
use crate::stack::{Draws, Shared, Thread, handle};
use crate::upstream::Network;

/// Room for a request and for its answer on their way.
const PIPE_BYTES: usize = 64 * 1024;
/// How often whoever asks for the states of operations says that it is at work.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A gateway.
pub(super) struct World {
    pub(super) shared: Arc<Shared>,
    thread: Rc<Thread>,
    pub(super) dependencies: Rc<[Dependency]>,
    pub(super) cache: Arc<Told>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    /// Whether it was cut off before its end.
    pub(super) is_cut: bool,
}

/// What a whole day of virtual time knows of itself.
pub(super) struct Time {
    pub(super) clock: Clock,
    pub(super) hand: ManualClock,
}

impl World {
    /// A gateway of this policy on this clock, with these ways to dependencies and this cache, and with nothing kept.
    pub(super) fn new(
        loaded: &Loaded,
        time: &Time,
        answers: &Arc<Answers>,
        cache: &Arc<Told>,
        authorizer: Option<Happens>,
    ) -> Result<Self, CannotExplain> {
        crate::gateway::no_caches(loaded)?;
        let dependencies: Rc<[Dependency]> = loaded
            .dependencies
            .iter()
            .map(|dependency| Dependency::new(&dependency.name, &time.clock, answers))
            .collect();
        let network = |settings: &backstop_policy::DependencySettings| {
            let told = dependencies.get(usize::from(settings.id.0)).cloned();
            told.map_or(Network::System, |told| Network::Script(Arc::new(told)))
        };
        let copies = Copies::memory(loaded.store.memory_bytes);
        let operations = loaded.store.ledger.map(|_| operations()).transpose()?;
        let Assembly { mut shared, pools, .. } =
            Assembly::new(loaded, &time.clock, copies, operations.clone(), network)?;
        // Nobody else has it yet.
        if let (Some(shared), Some(says)) = (Arc::get_mut(&mut shared), assumed(authorizer)) {
            shared.authorizers.iter_mut().for_each(|authorizer| authorizer.assume(says));
        }
        let thread = Rc::new(Thread {
            shared: Arc::clone(&shared),
            lanes: pools.iter().map(crate::upstream::Pool::lane).collect(),
            caches: Lanes::told(Arc::clone(cache)),
            draws: Draws::Known,
            begun: Cell::new(0),
        });
        if let Some(operations) = operations {
            follow(loaded, operations, time.clock.clone());
        }
        Ok(Self { shared, thread, dependencies, cache: Arc::clone(cache) })
    }

    /// Has a client ask.
    pub(super) async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        peer: SocketAddr,
        recorder: Recorder,
    ) -> Result<Received, CannotExplain> {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let thread = Rc::clone(&self.thread);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let thread = Rc::clone(&thread);
            request.extensions_mut().insert(recorder.clone());
            async move { Ok::<_, Infallible>(handle(&thread, peer, None, request).await) }
        });
        let served =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service);
        tokio::task::spawn_local(async move {
            // What a client would not understand, it is told by the end of its connection.
            let _the_client_sees_it = served.await;
        });
        let cannot = |error: hyper::Error| CannotExplain::Request(error.to_string());
        let (mut client, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.map_err(cannot)?;
        tokio::task::spawn_local(async move {
            let _the_answer_tells_it = connection.await;
        });
        let (head, body) = client.send_request(request).await.map_err(cannot)?.into_parts();
        let is_cut = body.collect().await.is_err();
        Ok(Received { status: head.status, fields: head.headers, is_cut })
    }

    /// A dependency, by its name.
    pub(super) fn dependency(&self, name: &str) -> Option<&Dependency> {
        self.dependencies.iter().find(|dependency| dependency.name() == name)
    }
}

/// A ledger in memory, which has done what it is asked before anybody could wait for it.
fn operations() -> Result<Arc<Operations>, CannotExplain> {
    let options = LedgerOptions { on_failed_disk: Arc::new(|_| {}), ..LedgerOptions::default() };
    let ledger = ThreadLedger::at_once(Box::new(MemoryRows::default()), options)
        .map_err(|error| CannotExplain::Request(error.to_string()))?;
    // No digest of it leaves this process.
    let secret = Secret::from_bytes([0; 32]);
    let (following, successes) = (Following::default(), Successes::default());
    Ok(Arc::new(Operations { ledger: Arc::new(ledger), secret, following, successes }))
}

/// Whoever asks for the states of operations is at work, as in a gateway that serves.
fn follow(loaded: &Loaded, operations: Arc<Operations>, clock: Clock) {
    let is_followed = |route: &&backstop_engine::policy::Route| {
        route.class.effect().is_some_and(|rules| rules.verification.is_some())
    };
    operations
        .following
        .follows(loaded.policy.routes.iter().filter(is_followed).map(|route| route.name.clone()));
    tokio::task::spawn_local(async move {
        loop {
            operations.following.is_at_work(None, clock.mono());
            clock.sleep_until(clock.mono().after(HEARTBEAT)).await;
        }
    });
}

/// What tokens come to.
fn assumed(authorizer: Option<Happens>) -> Option<Assumed> {
    let no_keys = |kind| Assumed::NoKeys(Failure::new(kind, Phase::Head, Sent::Maybe));
    Some(match authorizer.unwrap_or(Happens::Ok) {
        Happens::Ok => Assumed::Valid(PRINCIPAL),
        Happens::Denied => Assumed::Invalid,
        Happens::Incorrect => Assumed::Unclear,
        Happens::Fails(kind) => no_keys(kind),
        Happens::Status(status) => no_keys(backstop_engine::failure::FailureKind::Unavailable { status }),
    })
}

/// Where the client is.
pub(super) fn peer(shared: &Shared, question: &Question) -> SocketAddr {
    let is_trusted = |address: &IpAddr| shared.trusted.iter().any(|range| range.contains(*address));
    let trusted = shared.trusted.first().map(backstop_policy::IpRange::first);
    let client = match trusted {
        Some(address) if question.is_trusted => Some(address),
        // Addresses of documentation (RFC 5737); a policy may trust all of them, and then there is no other caller.
        _ => (1..255)
            .map(|last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
            .find(|address| !is_trusted(address)),
    };
    SocketAddr::new(client.unwrap_or(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))), 50_000)
}
