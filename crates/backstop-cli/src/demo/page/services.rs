//! One set of the shop's services, and what can go wrong with them.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop_lab::cache::CacheServer;
use backstop_lab::clock::monotonic_ns;
use backstop_lab::database::{Database, Settings};
use backstop_lab::origin::{Answer, Behaviour, Limits, Matcher, Origin, Request, Then};
use backstop_lab::payments::{Fault, Payments, When, Which};
use serde_json::json;

use super::super::Failed;
use super::button::Button;

/// What the catalog's database bears: 36 queries a second when it is warm, 12 right after an outage.
const DATABASE: Settings =
    Settings { capacity: 6, connections: 32, query: Duration::from_millis(165), cold: 3.0, warms_after: 20 };
/// What the slow recommender takes.
const SLOW: Duration = Duration::from_secs(3);
/// What the payment whose answer is lost takes.
const LATE: Duration = Duration::from_secs(3);
/// Most operations that were allowed and not executed yet; older ones are forgotten, and would count as not allowed.
const ALLOWED_MAX: usize = 10_000;

/// One set of services.
#[derive(Debug)]
pub(super) struct Services {
    catalog: Origin,
    database: Database,
    recommender: Origin,
    cache: CacheServer,
    sessions: Origin,
    accounts: Origin,
    payments: Payments,
    desk: Arc<Desk>,
}

/// Which protected operations were allowed, and which were executed.
#[derive(Debug, Default)]
struct Desk {
    allowed: Mutex<HashSet<String>>,
    executed: AtomicU64,
    without_a_yes: AtomicU64,
    /// Operations with a higher number were asked for after the login broke. Zero while it works.
    broken_from: AtomicU64,
    executed_since: AtomicU64,
}

/// What the accounts did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Executed {
    pub(super) in_all: u64,
    /// Nobody had said yes.
    pub(super) without_a_yes: u64,
    /// Asked for since the login broke; `None` while it works.
    pub(super) while_broken: Option<u64>,
}

/// Where they listen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) catalog: SocketAddr,
    pub(super) recommender: SocketAddr,
    pub(super) cache: SocketAddr,
    pub(super) sessions: SocketAddr,
    pub(super) accounts: SocketAddr,
    pub(super) payments: SocketAddr,
}

impl Services {
    pub(super) async fn open() -> Result<Self, Failed> {
        let desk = Arc::new(Desk::default());
        let database = Database::new(DATABASE);
        let (reading, executing) = (database.clone(), Arc::clone(&desk));
        let services = Self {
            catalog: origin(Behaviour::from_async_fn(move |request| read(reading.clone(), request))).await?,
            database,
            recommender: origin(recommendations()).await?,
            cache: CacheServer::start().await?,
            sessions: origin(allowing(&desk)).await?,
            accounts: origin(Behaviour::from_fn(move |request| execute(&executing, request))).await?,
            payments: Payments::start().await?,
            desk,
        };
        Ok(services)
    }

    pub(super) fn addresses(&self) -> Addresses {
        Addresses {
            catalog: self.catalog.addr(),
            recommender: self.recommender.addr(),
            cache: self.cache.addr(),
            sessions: self.sessions.addr(),
            accounts: self.accounts.addr(),
            payments: self.payments.addr(),
        }
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn payments(&self) -> &Payments {
        &self.payments
    }

    pub(super) fn executed(&self) -> Executed {
        let is_broken = self.desk.broken_from.load(Ordering::Relaxed) > 0;
        Executed {
            in_all: self.desk.executed.load(Ordering::Relaxed),
            without_a_yes: self.desk.without_a_yes.load(Ordering::Relaxed),
            while_broken: is_broken.then(|| self.desk.executed_since.load(Ordering::Relaxed)),
        }
    }

    /// Breaks something, or repairs it. `operations` is how many protected operations were asked for so far.
    pub(super) async fn befall(
        &self,
        button: Button,
        is_broken: bool,
        operations: u64,
    ) -> std::io::Result<()> {
        match (button, is_broken) {
            (Button::BreakCatalog, true) => {
                self.catalog.refuse().await?;
                self.catalog.reset_connections();
                self.database.restart();
            }
            (Button::BreakCatalog, false) => self.catalog.accept_again().await?,
            (Button::SlowRecommendations, true) => {
                self.recommender.on(Matcher::any(), recommendations().delay(SLOW));
            }
            (Button::SlowRecommendations, false) => self.recommender.on(Matcher::any(), recommendations()),
            (Button::StopCache, true) => self.cache.stop(),
            (Button::StopCache, false) => self.cache.start_again().await?,
            (Button::BreakLogin, true) => {
                self.desk.executed_since.store(0, Ordering::Relaxed);
                self.desk.broken_from.store(operations.max(1), Ordering::Relaxed);
                self.sessions.on(Matcher::any(), Behaviour::status(500));
            }
            (Button::BreakLogin, false) => {
                self.sessions.on(Matcher::any(), allowing(&self.desk));
                self.desk.broken_from.store(0, Ordering::Relaxed);
            }
            (Button::LosePayment, _) => {
                let fault = Fault::lost_and_late(Then::Reset, When::After(LATE)).seen_as_processing();
                self.payments.fail(Which::next(1), fault);
            }
            (Button::Heal, _) => self.payments.heal(),
        }
        Ok(())
    }
}

/// An origin that keeps no record of what it saw: it may run for hours.
async fn origin(behaviour: Behaviour) -> std::io::Result<Origin> {
    let limits = Limits { records: 0, connection_records: 0, ..Limits::default() };
    Origin::builder().limits(limits).default_behaviour(behaviour).start().await
}

/// Products and reviews, each with the moment at which it was made.
async fn read(database: Database, request: Arc<Request>) -> Behaviour {
    let path: Vec<&str> = request.path().trim_start_matches('/').split('/').collect();
    let &[kind, id] = path.as_slice() else { return Behaviour::status(404) };
    if database.query().await.is_err() {
        return Behaviour::status(503);
    }
    let made_ns = monotonic_ns();
    let made = match kind {
        "products" => {
            let wanted = request.header("accept-language").unwrap_or_default();
            let (lang, text) = if wanted.starts_with("es") { ("es", "Producto") } else { ("en", "Product") };
            json!({"id": id, "lang": lang, "text": format!("{text} {id}"), "made_ns": made_ns})
        }
        "reviews" => json!({"id": id, "stars": [5, 4], "made_ns": made_ns}),
        _ => return Behaviour::status(404),
    };
    Answer::json(made.to_string()).into()
}

fn recommendations() -> Behaviour {
    Behaviour::from_fn(|request| {
        let id = request.path().rsplit('/').next().unwrap_or_default();
        Answer::json(json!({"for": id, "items": ["4", "8", "15"]}).to_string())
    })
}

/// Says yes, and remembers to what. Both proxies tell what is asked for, each in its usual field.
fn allowing(desk: &Arc<Desk>) -> Behaviour {
    let desk = Arc::clone(desk);
    Behaviour::from_fn(move |request| {
        let what = request.header("x-forwarded-uri").or_else(|| request.header("x-original-uri"));
        if let Some(what) = what {
            let mut allowed = lock(&desk.allowed);
            if allowed.len() >= ALLOWED_MAX {
                allowed.clear();
            }
            allowed.insert(what.to_owned());
        }
        Answer::new(204).header("X-Allowed", "yes").header("X-User", "ana")
    })
}

fn execute(desk: &Desk, request: &Request) -> Answer {
    desk.executed.fetch_add(1, Ordering::Relaxed);
    if !lock(&desk.allowed).remove(request.path()) {
        desk.without_a_yes.fetch_add(1, Ordering::Relaxed);
    }
    let id = request.path().rsplit('/').next().unwrap_or_default();
    let broken_from = desk.broken_from.load(Ordering::Relaxed);
    if broken_from > 0 && id.parse::<u64>().is_ok_and(|number| number > broken_from) {
        desk.executed_since.fetch_add(1, Ordering::Relaxed);
    }
    Answer::json(json!({"executed": id}).to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use backstop_lab::client;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_operation_that_nobody_allowed_is_counted() {
        let services = Services::open().await.unwrap();
        let at = services.addresses();
        let uri = [("X-Original-URI", "/account/7")];
        assert_eq!(client::get(at.sessions, "/check", &uri).await.unwrap().status(), 204);
        for _ in 0..2 {
            client::request(at.accounts, "POST", "/account/7", &[], b"").await.unwrap();
        }
        let executed = Executed { in_all: 2, without_a_yes: 1, while_broken: None };
        assert_eq!(services.executed(), executed, "a yes is for one operation");
        services.befall(Button::BreakLogin, true, 7).await.unwrap();
        for operation in ["/account/7", "/account/8"] {
            client::request(at.accounts, "POST", operation, &[], b"").await.unwrap();
        }
        assert_eq!(services.executed().while_broken, Some(1), "the first was asked for before");
    }
}
