//! Both shops, what stands in front of them, and the hand that breaks them.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop::clock::Clock;
use backstop_gateway::Gateway;
use backstop_lab::plain::{Plain, Way};
use backstop_policy::{Address, Loaded};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::Failed;
use super::button::Button;
use super::record::{Record, Side};
use super::services::{Addresses, Services};
use super::state::{self, State};
use super::wallet::Wallet;

/// How long the plain proxy waits for a service: a tenth of nginx's `proxy_read_timeout`.
const PROXY_TIMEOUT: Duration = Duration::from_secs(6);
/// How long the plain proxy's cache keeps what it is given: as the policy says for Backstop's.
const CACHE_TTL: Duration = Duration::from_secs(2);
/// How often the databases are looked at, and for how long that is remembered.
const LOOKS_EVERY: Duration = Duration::from_millis(200);
const LOOKS: usize = 11;
/// Presses that are remembered.
const PRESSES_MAX: usize = 100;

/// One side: its services, its proxy, and what its clients got.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) services: Services,
    pub(super) address: SocketAddr,
    pub(super) record: Record,
    pub(super) wallet: Wallet,
    /// How many queries its database had received, and when; the oldest first.
    pub(super) looks: Mutex<VecDeque<(Instant, u64)>>,
}

/// A button that was pressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Press {
    pub(super) at: Instant,
    pub(super) button: Button,
    pub(super) is_broken: bool,
}

/// Everything that takes part.
#[derive(Debug)]
pub(super) struct World {
    pub(super) begun: Instant,
    pub(super) max_age: Duration,
    plain: Column,
    backstop: Column,
    _proxy: Plain,
    admin: SocketAddr,
    /// The highest number of a protected operation that was asked for.
    pub(super) operations: AtomicU64,
    presses: Mutex<Vec<Press>>,
    /// Nobody presses a second button before the first one has done its work.
    hand: tokio::sync::Mutex<()>,
    gateway: Mutex<Option<Running>>,
    _folder: Folder,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

impl World {
    /// Starts the services, the plain proxy and the gateway.
    pub(super) async fn open(mut loaded: Loaded) -> Result<Self, Failed> {
        let (plain, backstop) = (Services::open().await?, Services::open().await?);
        let proxy = Plain::start(ways(&plain.addresses()), PROXY_TIMEOUT).await?;
        let folder = Folder::new()?;
        let classes = loaded.policy.routes.iter().map(|route| &route.class);
        let max_age = classes.filter_map(|class| class.read()).map(|read| read.max_age).next();
        let max_age = max_age.ok_or("the policy has no public_read route")?;
        fill_in(&mut loaded, &backstop.addresses(), &folder)?;
        let gateway = Gateway::bind(&loaded, &Clock::system()?)?;
        let bound = gateway.bound()?;
        let address = *bound.listen.first().ok_or("the policy listens nowhere")?;
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(gateway.run(async {
            let _closed = stopped.await;
        }));
        Ok(Self {
            begun: Instant::now(),
            max_age,
            plain: Column::new(plain, proxy.addr()),
            backstop: Column::new(backstop, address),
            _proxy: proxy,
            admin: bound.admin,
            operations: AtomicU64::new(0),
            presses: Mutex::default(),
            hand: tokio::sync::Mutex::default(),
            gateway: Mutex::new(Some(Running { stop, ended })),
            _folder: folder,
        })
    }

    /// Stops the gateway.
    pub(super) async fn close(&self) -> Result<(), Failed> {
        let running = lock(&self.gateway).take();
        if let Some(Running { stop, ended }) = running {
            // Its end may also have come early, with an error to tell.
            let _running = stop.send(());
            ended.await??;
        }
        Ok(())
    }

    pub(super) fn column(&self, side: Side) -> &Column {
        match side {
            Side::Plain => &self.plain,
            Side::Backstop => &self.backstop,
        }
    }

    pub(super) fn address(&self, side: Side) -> SocketAddr {
        self.column(side).address
    }

    pub(super) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// What is broken, and when it began.
    pub(super) fn broken(&self) -> Vec<(Button, Instant)> {
        let presses = self.presses();
        let last = |button| presses.iter().rev().find(|press| press.button == button);
        let stays = Button::ALL.into_iter().filter(|button| button.stays());
        stays.filter_map(last).filter(|press| press.is_broken).map(|press| (press.button, press.at)).collect()
    }

    /// The buttons that were pressed, the oldest first.
    pub(super) fn presses(&self) -> Vec<Press> {
        lock(&self.presses).clone()
    }

    /// Does to both shops what a button says. What is as it should be already stays so.
    pub(super) async fn press(&self, button: Button, is_broken: bool) -> std::io::Result<()> {
        let _one_at_a_time = self.hand.lock().await;
        let broken = self.broken();
        let is_already = |button| broken.iter().any(|(one, _)| *one == button);
        if button.stays() && is_already(button) == is_broken {
            return Ok(());
        }
        if button == Button::Heal {
            for (one, _) in &broken {
                self.befall(*one, false).await?;
                self.note(*one, false);
            }
        }
        self.befall(button, is_broken).await?;
        self.note(button, is_broken);
        Ok(())
    }

    async fn befall(&self, button: Button, is_broken: bool) -> std::io::Result<()> {
        let operations = self.operations.load(Ordering::Relaxed);
        let (plain, backstop) = tokio::join!(
            self.plain.services.befall(button, is_broken, operations),
            self.backstop.services.befall(button, is_broken, operations)
        );
        plain.and(backstop)
    }

    fn note(&self, button: Button, is_broken: bool) {
        let mut presses = lock(&self.presses);
        presses.push(Press { at: Instant::now(), button, is_broken });
        if presses.len() > PRESSES_MAX {
            // The last press of each button stays: it says what is broken now.
            let is_last = |at: usize| {
                let button = presses.get(at).map(|press| press.button);
                !presses.iter().skip(at + 1).any(|later| Some(later.button) == button)
            };
            if let Some(at) = (0..presses.len()).find(|at| !is_last(*at)) {
                presses.remove(at);
            }
        }
    }

    /// Looks at the databases again and again.
    pub(super) async fn watch(&self) {
        loop {
            for column in [&self.plain, &self.backstop] {
                let queries = column.services.database().load().queries;
                let mut looks = lock(&column.looks);
                looks.push_back((Instant::now(), queries));
                while looks.len() > LOOKS {
                    looks.pop_front();
                }
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }

    /// What is shown now.
    pub(super) fn state(&self) -> State {
        state::of(self, Instant::now())
    }
}

impl Column {
    fn new(services: Services, address: SocketAddr) -> Self {
        let (record, wallet, looks) = (Record::default(), Wallet::default(), Mutex::default());
        Self { services, address, record, wallet, looks }
    }

    /// Queries that its database received per second, over the last two.
    pub(super) fn queries_per_second(&self) -> f64 {
        let looks = lock(&self.looks);
        let (Some((from, first)), Some((to, last))) = (looks.front(), looks.back()) else { return 0.0 };
        let seconds = to.saturating_duration_since(*from).as_secs_f64();
        if seconds > 0.0 { last.saturating_sub(*first) as f64 / seconds } else { 0.0 }
    }
}

/// Where the plain proxy sends what.
fn ways(at: &Addresses) -> Vec<Way> {
    let way = |prefix, upstream| Way { prefix, upstream, authorizer: None, cache: None };
    vec![
        way("/products/", at.catalog),
        Way { cache: Some((at.cache, CACHE_TTL)), ..way("/reviews/", at.catalog) },
        way("/recommendations/", at.recommender),
        Way { authorizer: Some(at.sessions), ..way("/account/", at.accounts) },
        Way { authorizer: Some(at.sessions), ..way("/payments", at.payments) },
    ]
}

/// Writes into the policy where the services are, and lets the gateway listen on free ports.
fn fill_in(loaded: &mut Loaded, at: &Addresses, folder: &Folder) -> Result<(), Failed> {
    for dependency in &mut loaded.dependencies {
        let socket = match &*dependency.name {
            "catalog" => at.catalog,
            "recommender" => at.recommender,
            "accounts" => at.accounts,
            "payments" => at.payments,
            "sessions" => at.sessions,
            other => return Err(format!("the demo has no service `{other}`").into()),
        };
        dependency.addresses = vec![address(socket)];
    }
    for cache in &mut loaded.caches {
        cache.address = address(at.cache);
    }
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    loaded.gateway.listen = vec![free];
    loaded.gateway.admin = free;
    loaded.store.path = folder.0.to_string_lossy().into();
    Ok(())
}

fn address(socket: SocketAddr) -> Address {
    Address { host: socket.ip().to_string().into(), port: socket.port() }
}

/// The folder of the ledger, which goes with the demo.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("backstop-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
