//! Plays one drill: proxies, a gateway between them and the load, faults, and what came of it.

use std::{
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
    time::Duration,
};

use backstop_engine::policy::Mode;
use backstop_policy::{Address, Loaded};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    sync::mpsc,
    time::{self, Instant},
};

use crate::proxy::{Proxies, Writes};

use super::{
    DrillReport, Expect, Facts, Finding, Sample, Scenario, Sending, Stage, StageError, View, derived,
    facts::behind_proxies,
    load::{self, Order},
    report,
};

/// How long a dependency is waited for before a drill begins.
const REACHABLE_WITHIN: Duration = Duration::from_secs(2);
/// Further requests that are sent after a restart, and how far apart.
const AFTER_RESTART: Duration = Duration::from_millis(100);

/// Why a drill could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A dependency cannot be reached although nothing was broken yet.
    #[error("`{name}` cannot be reached at {address}")]
    Unreachable {
        /// Its name.
        name: String,
        /// Where it should be.
        address: String,
        /// What came instead.
        #[source]
        source: std::io::Error,
    },
    /// The scenario calls a route with effects, and is no sandbox.
    #[error("the route `{0}` has effects: it is called in a sandbox only")]
    Effect(String),
    /// Something that the policy calls is not behind a proxy.
    #[error("`{0}` could not be put behind a proxy, so nothing is started")]
    NotBehindProxy(String),
    /// The proxies could not be started.
    #[error("the fault proxies could not be started")]
    Proxies(#[source] std::io::Error),
    /// The load could not be sent.
    #[error("requests could not be sent")]
    Load(#[source] std::io::Error),
    /// The temporary folder could not be made.
    #[error("cannot make a temporary folder in {path}")]
    Folder {
        /// Where.
        path: PathBuf,
        /// What came instead.
        #[source]
        source: std::io::Error,
    },
    /// The gateway could not be started or stopped.
    #[error("the gateway could not be run: {0}")]
    Stage(StageError),
}

/// What a watcher is told while a drill is played.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What has passed.
    pub elapsed: Duration,
    /// How long it lasts.
    pub duration: Duration,
    /// Answers so far: normal, alternatives, refused, failed or none.
    pub answers: [u64; 4],
    /// What is broken now.
    pub broken: Vec<String>,
}

/// Plays a drill.
///
/// # Errors
/// If it could not be run. What did not hold is no error: the report tells.
pub async fn run(
    facts: &Facts,
    scenario: &Scenario,
    stage: &dyn Stage,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<DrillReport, RunError> {
    if let Some(route) = scenario.forbidden_effect(facts) {
        return Err(RunError::Effect(route.to_owned()));
    }
    reachable(facts).await?;
    let began = Instant::now();
    let folder = Folder::make()?;
    let writes = if scenario.sandbox { Writes::PassOn } else { Writes::Withhold };
    let proxies =
        Proxies::start(&behind_proxies(facts), windows(scenario), writes, seed).map_err(RunError::Proxies)?;
    let policy = between(facts, &proxies, &folder, &namespace())?;
    let gateway = stage.start(policy.clone(), false).await.map_err(RunError::Stage)?;
    let patience = facts.routes().iter().map(|route| route.deadline).max().unwrap_or_default();
    proxies.begin();
    let began_counting = Instant::now() - proxies.elapsed();
    let order = Order {
        target: gateway.address(),
        asks: scenario.asks.clone().into(),
        sendings: scenario.sendings.clone(),
        first_marker: 1,
        began: began_counting,
        patience: patience * 2 + Duration::from_secs(2),
        seed,
    };
    let (watcher, watched) = mpsc::unbounded_channel();
    let watching = watch(scenario, facts, began_counting, watched, progress);
    let (loaded, ()) = tokio::join!(load::send(order, Some(watcher)), watching);
    let mut loaded = loaded.map_err(RunError::Load)?;
    gateway.stop().await.map_err(RunError::Stage)?;
    if !scenario.restart.is_empty() && stage.can_turn_back() {
        let again = restarted(scenario, stage, policy, &loaded.samples, began_counting, seed).await?;
        loaded.samples.extend(again);
    }
    let calls = proxies.calls();
    drop(proxies);
    let windows = &scenario.windows;
    let view = View::new(facts, &scenario.asks, &loaded.samples, &calls, windows);
    let mut findings = derived::all(&view);
    let judge = |expect: &Expect| expect.judge(&view).expected(scenario.must_look);
    findings.extend(scenario.expects.iter().map(judge));
    if loaded.unsent > 0 {
        let mut finding = Finding::new("sent", "every request is sent at its moment");
        finding.look(Some(format!("{} were not: too many were under way", loaded.unsent)));
        findings.push(finding);
    }
    Ok(report::of(&view, scenario, findings, began.elapsed()))
}

/// The faults; those that are open when the load ends hold for a restart too.
fn windows(scenario: &Scenario) -> Vec<crate::proxy::Window> {
    let longer = |window: &crate::proxy::Window| {
        let lasts = !scenario.restart.is_empty() && window.to >= scenario.duration;
        crate::proxy::Window {
            to: if lasts { window.to + Duration::from_secs(3600) } else { window.to },
            ..*window
        }
    };
    scenario.windows.iter().map(longer).collect()
}

/// Whether everything is there before anything is broken.
async fn reachable(facts: &Facts) -> Result<(), RunError> {
    for upstream in facts.upstreams() {
        for address in &upstream.addresses {
            let connected = time::timeout(REACHABLE_WITHIN, TcpStream::connect(address)).await;
            let late = || Err(std::io::ErrorKind::TimedOut.into());
            if let Err(source) = connected.unwrap_or_else(|_over| late()) {
                let (name, address) = (upstream.name.to_string(), address.clone());
                return Err(RunError::Unreachable { name, address, source });
            }
        }
    }
    Ok(())
}

/// The policy with a proxy in every place where it names an address, keys of its own in shared caches, and nothing of this
/// machine's but free ports and a folder of its own.
fn between(facts: &Facts, proxies: &Proxies, folder: &Folder, namespace: &str) -> Result<Loaded, RunError> {
    let mut policy = facts.loaded().clone();
    let address =
        |socket: &std::net::SocketAddr| Address { host: socket.ip().to_string().into(), port: socket.port() };
    let dependencies = policy.dependencies.len();
    for (index, dependency) in policy.dependencies.iter_mut().enumerate() {
        let own: Vec<Address> = proxies.addresses(index).iter().map(address).collect();
        if own.is_empty() || own.len() != dependency.addresses.len() {
            return Err(RunError::NotBehindProxy(dependency.name.to_string()));
        }
        dependency.addresses = own;
    }
    for (index, cache) in policy.caches.iter_mut().enumerate() {
        let own = proxies.addresses(dependencies + index).first().map(address);
        cache.address = own.ok_or_else(|| RunError::NotBehindProxy(cache.name.to_string()))?;
        // What is kept there while things are broken on purpose may be wrong, and what is there already is not of this drill.
        cache.prefix = format!("{namespace}:{}", cache.prefix).into();
    }
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    policy.gateway.listen = vec![loopback];
    policy.gateway.admin = loopback;
    // Nobody is called or told because of a rehearsal: who reads these takes what is in them for what clients got.
    policy.gateway.webhook = None;
    policy.gateway.traces = None;
    policy.gateway.access_log = None;
    policy.gateway.mode = Mode::Enforce;
    for route in &mut policy.policy.routes {
        route.mode = Mode::Enforce;
    }
    policy.store.path = folder.path().to_string_lossy().into();
    Ok(policy)
}

/// What the keys of this run begin with in shared caches. Nobody else has it: two hashes that each begin with what the system gave
/// as chance, so no other gateway and no other run, on whatever machine, reads or overwrites what stands under them.
fn namespace() -> String {
    let chance = || RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
    format!("backstop-drill-{:016x}{:016x}", chance(), chance())
}

/// Starts the gateway anew on the same store, with a clock that is behind, and asks it.
async fn restarted(
    scenario: &Scenario,
    stage: &dyn Stage,
    policy: Loaded,
    before: &[Sample],
    began: Instant,
    seed: u64,
) -> Result<Vec<Sample>, RunError> {
    let gateway = stage.start(policy, true).await.map_err(RunError::Stage)?;
    let now = began.elapsed();
    let sendings = scenario.restart.iter().zip(1_u32..);
    let order = Order {
        target: gateway.address(),
        asks: scenario.asks.clone().into(),
        sendings: sendings
            .map(|(ask, number)| Sending { at: now + AFTER_RESTART * number, ask: *ask })
            .collect(),
        first_marker: before.last().map_or(1, |sample| sample.marker) + 1_000_000,
        began,
        patience: Duration::from_secs(5),
        seed,
    };
    let loaded = load::send(order, None).await.map_err(RunError::Load)?;
    gateway.stop().await.map_err(RunError::Stage)?;
    Ok(loaded.samples.into_iter().map(|sample| Sample { after_restart: true, ..sample }).collect())
}

/// How often a watcher is told.
const TOLD_EVERY: Duration = Duration::from_millis(250);

async fn watch(
    scenario: &Scenario,
    facts: &Facts,
    began: Instant,
    mut watched: mpsc::UnboundedReceiver<Sample>,
    progress: &mut dyn FnMut(Progress),
) {
    let mut answers = [0; 4];
    let mut every = time::interval(TOLD_EVERY);
    loop {
        tokio::select! {
            sample = watched.recv() => match sample {
                Some(sample) => {
                    let place = match sample.outcome() {
                        "normal" => 0,
                        "fallback" => 1,
                        "rejected" => 2,
                        _ => 3,
                    };
                    if let Some(count) = answers.get_mut(place) {
                        *count += 1;
                    }
                }
                None => break,
            },
            _ = every.tick() => progress(now(scenario, facts, began.elapsed(), answers)),
        }
    }
    progress(now(scenario, facts, scenario.duration, answers));
}

fn now(scenario: &Scenario, facts: &Facts, elapsed: Duration, answers: [u64; 4]) -> Progress {
    let open = scenario.windows.iter().filter(|window| window.is_open(elapsed));
    let broken =
        open.map(|window| format!("{} {}", facts.upstream_name(window.upstream), window.fault.name()));
    let elapsed = elapsed.min(scenario.duration);
    Progress { elapsed, duration: scenario.duration, answers, broken: broken.collect() }
}

/// A folder of this drill alone, which goes with it.
#[derive(Debug)]
struct Folder(Option<TempDir>);

/// How often what could not be removed is tried again, and after what pause.
const REMOVALS: u32 = 20;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(10);

impl Folder {
    /// One whose name nobody has: what a drill left behind that was killed is in nobody's way.
    fn make() -> Result<Self, RunError> {
        let made = tempfile::Builder::new().prefix("backstop-drill-").tempdir();
        let failed = |source| RunError::Folder { path: std::env::temp_dir(), source };
        made.map(|folder| Self(Some(folder))).map_err(failed)
    }

    fn path(&self) -> &std::path::Path {
        self.0.as_ref().map_or(std::path::Path::new(""), TempDir::path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(folder) = self.0.take() else { return };
        let path = folder.keep();
        // A gateway that was not waited for, because the drill was given up, may write while its files are removed.
        for _ in 0..REMOVALS {
            let removed = std::fs::remove_dir_all(&path);
            if removed.is_ok() || !path.exists() {
                return;
            }
            std::thread::sleep(BETWEEN_REMOVALS);
        }
    }
}
