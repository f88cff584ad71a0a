//! The services, the gateway and the load between them.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_gateway::Gateway;
use backstop_lab::load::{Kind, Plan};
use backstop_lab::origin::{Behaviour, Matcher, Origin};
use backstop_policy::{Address, Loaded};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::board::{Board, Face};
use super::script::{Phase, State};
use super::shop::{self, LANGUAGES, PRODUCTS};
use super::{DRAIN, Failed, check};

/// A client gives up after this long; only those who ask directly ever have to.
const CLIENT_PATIENCE: Duration = Duration::from_secs(3);

/// Everything that takes part.
pub(super) struct Stage {
    catalog: Origin,
    recommender: Origin,
    plain_catalog: Origin,
    plain_recommender: Origin,
    gateway: SocketAddr,
    admin: SocketAddr,
    max_age: Duration,
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::io::Result<()>>,
}

/// What the product services really received.
pub(super) struct Calls {
    pub(super) behind_backstop: u64,
    pub(super) without: u64,
}

impl Stage {
    /// Starts the services and the gateway in front of one shop.
    pub(super) async fn set(mut loaded: Loaded) -> Result<Self, Failed> {
        let (catalog, recommender) = (Origin::start().await?, Origin::start().await?);
        let (plain_catalog, plain_recommender) = (Origin::start().await?, Origin::start().await?);
        for origin in [&catalog, &plain_catalog] {
            shop::open_products(origin);
        }
        for origin in [&recommender, &plain_recommender] {
            shop::open_recommendations(origin);
        }
        for dependency in &mut loaded.dependencies {
            let origin = match &*dependency.name {
                "catalog" => &catalog,
                "recommender" => &recommender,
                other => {
                    return Err(format!("the demo serves `catalog` and `recommender`, not `{other}`").into());
                }
            };
            dependency.addresses = vec![address(origin.addr())];
        }
        let classes = loaded.policy.routes.iter().map(|route| &route.class);
        let max_age =
            classes.filter(|class| class.keeps_copies()).find_map(|class| Some(class.read()?.max_age));
        let max_age = max_age.ok_or("the demo needs a policy with a public_read route")?;
        // Nothing of a demo is worth keeping.
        loaded.store.disk_bytes = 0;
        for listen in &mut loaded.gateway.listen {
            *listen = free(*listen)?;
        }
        loaded.gateway.admin = free(loaded.gateway.admin)?;
        let gateway = Gateway::bind(&loaded, &Clock::system()?)?;
        let bound = gateway.bound()?;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(gateway.run(async {
            let _struck = stopped.await;
        }));
        let listen = *bound.listen.first().ok_or("the policy listens nowhere")?;
        Ok(Self {
            catalog,
            recommender,
            plain_catalog,
            plain_recommender,
            gateway: listen,
            admin: bound.admin,
            max_age,
            stop,
            running,
        })
    }

    /// Stops everything.
    pub(super) async fn strike(self) -> Result<(), Failed> {
        // Its end may also have come early, with an error to tell.
        let _running = self.stop.send(());
        self.running.await??;
        Ok(())
    }

    pub(super) fn gateway(&self) -> SocketAddr {
        self.gateway
    }

    pub(super) fn admin(&self) -> SocketAddr {
        self.admin
    }

    pub(super) fn max_age(&self) -> Duration {
        self.max_age
    }

    /// The same fate for the services of both shops, at the same moment.
    pub(super) async fn befall(&self, phase: &Phase) -> Result<(), Failed> {
        for origin in [&self.catalog, &self.plain_catalog] {
            befall(origin, phase.product_service, shop::open_products).await?;
        }
        for origin in [&self.recommender, &self.plain_recommender] {
            befall(origin, phase.recommender, shop::open_recommendations).await?;
        }
        Ok(())
    }

    /// What the product services received so far.
    pub(super) fn calls(&self) -> Calls {
        Calls { behind_backstop: self.catalog.count(), without: self.plain_catalog.count() }
    }

    /// Four of five requests are for a product, one for recommendations.
    pub(super) fn through_backstop(&self, rate: u32, lasts: Duration, board: &Arc<Board>) -> Plan {
        let max_age = self.max_age;
        let mut plan = plan(self.gateway, f64::from(rate), lasts);
        for product in products(max_age) {
            plan = plan.kind(product);
        }
        let of_products = PRODUCTS * LANGUAGES.len() as u32;
        plan = plan.kind(recommendations().weight(of_products / 4).check(check::recommendations));
        let board = Arc::clone(board);
        plan.on_sample(move |sample| {
            let is_product = u32::try_from(sample.kind).is_ok_and(|kind| kind < of_products);
            let face = if is_product { Face::Product } else { Face::Recommendations };
            board.through_backstop(face, sample);
        })
    }

    pub(super) fn direct_products(&self, rate: u32, lasts: Duration, board: &Arc<Board>) -> Plan {
        let mut plan = plan(self.plain_catalog.addr(), f64::from(rate) * 0.8, lasts);
        for product in products(Duration::MAX) {
            plan = plan.kind(product);
        }
        let board = Arc::clone(board);
        plan.on_sample(move |sample| board.direct(Face::Product, sample))
    }

    pub(super) fn direct_recommendations(&self, rate: u32, lasts: Duration, board: &Arc<Board>) -> Plan {
        let board = Arc::clone(board);
        plan(self.plain_recommender.addr(), f64::from(rate) * 0.2, lasts)
            .kind(recommendations().check(check::recommendations))
            .on_sample(move |sample| board.direct(Face::Recommendations, sample))
    }
}

fn plan(target: SocketAddr, rate: f64, lasts: Duration) -> Plan {
    Plan::new(target, rate, lasts).connections(4000).timeout(CLIENT_PATIENCE).drain(DRAIN)
}

/// Every product in every language, each with a check of its own.
fn products(max_age: Duration) -> impl Iterator<Item = Kind> {
    let all = (1..=PRODUCTS).flat_map(|id| LANGUAGES.map(|language| (id, language)));
    all.map(move |(id, language)| {
        let check = move |response: &_| check::product(response, id, language, max_age);
        Kind::get(&format!("/products/{id}")).header("Accept-Language", language).check(check)
    })
}

fn recommendations() -> Kind {
    Kind::get("/products/1/recommendations")
}

fn address(socket: SocketAddr) -> Address {
    Address { host: socket.ip().to_string().into(), port: socket.port() }
}

async fn befall(origin: &Origin, state: State, open: fn(&Origin)) -> std::io::Result<()> {
    match state {
        State::Works => {
            origin.accept_again().await?;
            open(origin);
        }
        State::Refuses => {
            origin.refuse().await?;
            origin.reset_connections();
        }
        State::Hangs => origin.on(Matcher::any(), Behaviour::hang()),
        State::SendsGarbage => origin.on(Matcher::any(), Behaviour::half_json_whole_framing()),
    }
    Ok(())
}

/// The address itself if nobody listens there, else a free port of the same interface.
fn free(wanted: SocketAddr) -> std::io::Result<SocketAddr> {
    match TcpListener::bind(wanted) {
        Ok(_released) => Ok(wanted),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Ok(SocketAddr::new(wanted.ip(), 0)),
        Err(error) => Err(error),
    }
}
