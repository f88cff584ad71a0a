//! Two services on one real database, which hangs, comes back, dies and comes back. However many ask, it never has more
//! connections than the resource has places.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop_lab::load::{self, Kind, Plan};
use backstop_lab::origin::{Answer, Behaviour, Origin, Request};

use crate::alone;
use crate::postgres::{Link, Postgres};
use crate::support::shop::HOST;
use crate::support::{Gateway, Policy, product};
use crate::timeline::{Timeline, told};

const PLACES: u64 = 10;
/// One query takes 10 ms. The services' connections are told apart by their name.
const QUERY: &str = "SELECT text FROM products, pg_sleep(0.01) WHERE id = ";
const COUNT: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shop'";

/// A service that runs one query for each request, over a connection that is at rest or else a new one. It has no limit of
/// its own: that is what is tested. After an error all that are at rest are let go.
#[derive(Clone, Debug)]
struct Service {
    port: u16,
    at_rest: Arc<Mutex<VecDeque<Link>>>,
}

impl Service {
    fn behaviour(&self) -> Behaviour {
        let service = self.clone();
        Behaviour::from_async_fn(move |request| {
            let service = service.clone();
            async move {
                match service.text_of(&request).await {
                    Ok(text) => {
                        let id = request.path().rsplit('/').next().unwrap_or_default();
                        Answer::json(product(id, &text, "es")).into()
                    }
                    Err(_) => {
                        service.at_rest.lock().unwrap().clear();
                        Behaviour::status(503)
                    }
                }
            }
        })
    }

    async fn text_of(&self, request: &Request) -> std::io::Result<String> {
        let id: u32 = request.path().rsplit('/').next().unwrap_or_default().parse().unwrap_or(0);
        let at_rest = self.at_rest.lock().unwrap().pop_front();
        let mut link = match at_rest {
            Some(link) => link,
            None => Link::open(self.port, "shop").await?,
        };
        let rows = link.query(&format!("{QUERY}{id}")).await?;
        self.at_rest.lock().unwrap().push_back(link);
        Ok(rows.concat())
    }
}

/// Calls that were given up go on counting until the service has answered, for a minute at most.
fn policy(catalog: &Origin, stock: &Origin) -> Policy {
    let dependency = "uses = [\"db\"]\nbreaker = { min_calls = 10, open = \"500ms\", open_max = \"500ms\" }\nrecovery = { tick = \"200ms\" }";
    let common = "dependency = \"stock\"\ndeadline = \"300ms\"\nin_flight = 500\nabandon_hold = \"60s\"";
    Policy::empty()
        .gateway("in_flight = 2000")
        .table("resource.db", &format!("concurrency = {PLACES}"))
        .dependency("catalog", catalog.addr(), dependency)
        .dependency("stock", stock.addr(), dependency)
        .route("description.public_read", &Policy::description("in_flight = 500\nabandon_hold = \"60s\""))
        .route("stock.direct", &format!("match = \"GET /stock/{{id}}\"\n{common}"))
        .route("order.direct", &format!("match = \"POST /orders/{{id}}\"\n{common}"))
}

fn plan(gateway: &Gateway, timeline: &Arc<Timeline>) -> Plan {
    let of = |prefix: &'static str| (0..50).map(move |id| format!("{prefix}{id}"));
    let noting = Arc::clone(timeline);
    Plan::new(gateway.addr, 200.0, Duration::from_secs(120))
        .connections(256)
        .kind(
            Kind::get("/p/0")
                .targets(of("/p/"))
                .header("Accept-Language", "es")
                .header("X-Tenant", "a")
                .weight(2),
        )
        .kind(Kind::get("/stock/0").targets(of("/stock/")))
        .kind(Kind::new("order", "POST", "/orders/0").targets(of("/orders/")).body("{}"))
        .on_sample(move |sample| noting.note(sample))
}

/// Counts the connections as fast as the database tells, until the end.
async fn watch(port: u16, peak: Arc<AtomicU64>, is_over: Arc<AtomicBool>) -> u64 {
    let mut looks = 0;
    let mut link = None;
    while !is_over.load(Ordering::Relaxed) {
        let Some(open) = &mut link else {
            link = Link::open(port, "watch").await.ok();
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        match open.query(COUNT).await {
            Ok(rows) => {
                peak.fetch_max(rows.concat().parse().unwrap(), Ordering::Relaxed);
                looks += 1;
            }
            Err(_) => link = None,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    looks
}

mod timing {
    use super::*;

    #[test]
    fn a_database_never_has_more_connections_than_its_resource_has_places() {
        alone(async {
            let mut postgres = Postgres::start().await;
            let mut owner = Link::open(postgres.port, "owner").await.unwrap();
            let table =
                "CREATE TABLE products AS SELECT id, 'first' AS text FROM generate_series(0, 49) AS id";
            owner.query(table).await.unwrap();
            let service = Service { port: postgres.port, at_rest: Arc::default() };
            let (catalog, stock) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
            catalog.default(service.behaviour());
            stock.default(service.behaviour());
            let mut gateway = Gateway::start(&policy(&catalog, &stock));
            HOST.clone_into(&mut gateway.host);

            let (peak, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
            let watching = tokio::spawn(watch(postgres.port, Arc::clone(&peak), Arc::clone(&is_over)));
            let timeline = Timeline::new();
            let run = load::start(plan(&gateway, &timeline)).unwrap();
            let second = Duration::from_secs(1);
            timeline.until(2 * second).await;
            let good = peak.swap(0, Ordering::Relaxed);

            // It hangs: whoever reads waits for a lock.
            owner.query("BEGIN; LOCK TABLE products IN ACCESS EXCLUSIVE MODE").await.unwrap();
            timeline.until(4 * second).await;
            let hanging = peak.swap(0, Ordering::Relaxed);
            owner.query("COMMIT").await.unwrap();
            let live = timeline.is_live_again(4 * second, 20 * second).await;
            let back = peak.swap(0, Ordering::Relaxed);

            // It dies, and is started again.
            postgres.end();
            timeline.until(live + second).await;
            postgres.again().await;
            let started = timeline.latest();
            let live_again = timeline.is_live_again(started, 20 * second).await;
            let started_again = peak.load(Ordering::Relaxed);
            run.stop();
            run.finish().await.unwrap();
            is_over.store(true, Ordering::Relaxed);
            let looks = watching.await.unwrap();

            told(&format!(
                "connections at most: {good} in good times, {hanging} while it hangs, {back} as it comes back, {started_again} after its start; {looks} looks; live {:?} after the lock, {:?} after the start; {:?}",
                live - 4 * second,
                live_again - started,
                timeline.answers.by_name()
            ));
            assert_eq!(hanging, PLACES, "while it hangs all places are taken, and not one more");
            for peak in [good, back, started_again] {
                assert!((1..=PLACES).contains(&peak), "{peak} connections for {PLACES} places");
            }
            assert!(looks > 500, "it was looked at all the time: {looks}");
            assert!(catalog.count() > 0 && stock.count() > 0);
        });
    }
}
