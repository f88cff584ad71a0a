//! The same requests at the same moments to both sides.
//!
//! Open loop: a request is sent when it is due, however slow the answers are. At most [`PATIENCE`] times the rate are under way on
//! each side, because a client gives up after that; what was due while the machine slept is left out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backstop_lab::client;
use backstop_lab::clock::monotonic_ns;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::judge::{Asked, PATIENCE, judge};
use super::record::{Got, Kind, Side};
use super::wallet::CREDENTIAL;
use super::world::World;

/// Products and how often one is asked for.
const PRODUCTS: u64 = 10;
pub(super) const PRODUCTS_PER_SECOND: u32 = 15;
/// Products with reviews; those are asked for more often than the database alone could answer.
const REVIEWED: u64 = 6;
pub(super) const REVIEWS_PER_SECOND: u32 = 24;
pub(super) const RECOMMENDATIONS_PER_SECOND: u32 = 5;
pub(super) const ACCOUNT_PER_SECOND: u32 = 3;
/// One payment in this time.
pub(super) const PAYMENT_EVERY: Duration = Duration::from_millis(1200);

/// Sends requests until it is dropped.
pub(super) async fn keep_going(world: &Arc<World>) {
    fill_caches(world).await;
    let every = |per_second: u32| Duration::from_secs(1) / per_second;
    tokio::join!(
        each(every(PRODUCTS_PER_SECOND), |number| {
            let language = if number % 2 == 0 { "es" } else { "en" };
            both(world, &Asked::Product { id: one_of(number / 2, PRODUCTS), language });
        }),
        each(every(REVIEWS_PER_SECOND), |number| {
            both(world, &Asked::Reviews { id: one_of(scattered(number), REVIEWED) });
        }),
        each(every(RECOMMENDATIONS_PER_SECOND), |number| {
            both(world, &Asked::Recommendations { id: one_of(number, PRODUCTS) });
        }),
        each(every(ACCOUNT_PER_SECOND), |number| {
            // Told before it is sent: what is asked for after a moment has a higher number.
            world.operations.store(number, Ordering::Relaxed);
            both(world, &Asked::Account { number });
        }),
        each(PAYMENT_EVERY, |number| pay(world, number)),
        world.watch(),
    );
}

/// Reads every review once, one after the other, as a shop that opens does. Nothing of it is counted.
async fn fill_caches(world: &World) {
    for id in 1..=REVIEWED {
        let path = format!("/reviews/{id}");
        let (plain, backstop) = (world.address(Side::Plain), world.address(Side::Backstop));
        let both = async { tokio::join!(client::get(plain, &path, &[]), client::get(backstop, &path, &[])) };
        let _read_later = timeout(PATIENCE, both).await;
    }
}

/// Does something at each moment, with the number of the moment from 1.
async fn each(time: Duration, mut act: impl FnMut(u64)) {
    let mut moments = interval(time);
    moments.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for number in 1.. {
        moments.tick().await;
        act(number);
    }
}

fn one_of(number: u64, of: u64) -> u32 {
    u32::try_from(number % of + 1).unwrap_or(1)
}

/// The same for both sides and in every run, but in no order: one in step with a budget of reads would always find it used up
/// by the same others. (SplitMix64's last steps.)
fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 27)
}

fn both(world: &Arc<World>, asked: &Asked) {
    for side in [Side::Plain, Side::Backstop] {
        let (world, asked) = (Arc::clone(world), asked.clone());
        tokio::spawn(async move { ask(&world, side, &asked).await });
    }
}

fn pay(world: &Arc<World>, number: u64) {
    for side in [Side::Plain, Side::Backstop] {
        let world = Arc::clone(world);
        tokio::spawn(async move {
            let column = world.column(side);
            column.wallet.pay(column.address, &format!("payment-{number}"), &column.record).await;
        });
    }
}

async fn ask(world: &World, side: Side, asked: &Asked) {
    let column = world.column(side);
    let (kind, method, path) = match asked {
        Asked::Product { id, .. } => (Kind::Products, "GET", format!("/products/{id}")),
        Asked::Reviews { id } => (Kind::Reviews, "GET", format!("/reviews/{id}")),
        Asked::Recommendations { id } => (Kind::Recommendations, "GET", format!("/recommendations/{id}")),
        Asked::Account { number } => (Kind::Account, "POST", format!("/account/{number}")),
        Asked::Payment => return,
    };
    let language = match asked {
        Asked::Product { language, .. } => Some(("Accept-Language", *language)),
        _ => None,
    };
    let fields: Vec<(&str, &str)> =
        language.into_iter().chain([CREDENTIAL].into_iter().filter(|_| method == "POST")).collect();
    let (begun, sent_ns) = (Instant::now(), monotonic_ns());
    let answer = timeout(PATIENCE, client::request(column.address, method, &path, &fields, b"")).await.ok();
    let took = begun.elapsed();
    let judged = judge(asked, answer.as_ref(), sent_ns, took);
    column.record.count(kind, Got { at: Instant::now(), judged, took });
}
