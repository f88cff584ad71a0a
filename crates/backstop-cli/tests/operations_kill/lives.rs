//! The lives of one gateway, each of which ends by a kill but the last, and what is found in the end.
//!
//! What is killed is a [`Subject`]: a policy, and how its ledger is read. Everything is bounded: the
//! lives, the payments, the time of each life and of the whole. A gateway is ended by its pid, or ends itself.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use backstop_lab::payments::Payments;
use backstop_lab::payments::oracle::{Evidence, LedgerEntry, Rule, Violation, check};
use backstop_store::ledger::checkpoint::Checkpoint;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep, timeout};

use crate::clients::Clients;
use crate::support::gateway::{NotStarted, folder};
use crate::support::{BOUND, Gateway, Policy};

const SIGKILL: i32 = 9;
/// Clients that have nothing else to do ask again when the service was asked for a status since, and after this time at the latest:
/// what becomes a matter for a person does so by time alone.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A random kill comes up to so long after an answer, so that it meets others on their way.
const WITHIN_US: u64 = 3000;
/// The most new payments in a life that ends by a kill. Clients are to be at work when it comes.
const NEW_MOST: u64 = 20_000;
/// New payments in the last life.
const NEW_AT_LAST: u64 = 20;

/// What is killed.
pub trait Subject {
    /// The policy whose route `POST /payments` leads to this service.
    fn policy(&self, payments: SocketAddr) -> Policy;

    /// The ledger in the folder of a gateway that has stopped.
    fn ledger(&self, folder: &Path) -> Vec<LedgerEntry>;
}

/// How a life ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// At so many-th passing of a moment.
    At(Checkpoint, u64),
    /// Some time after some answers.
    Random,
}

#[derive(Debug)]
pub struct Plan {
    /// The lives that end by a kill. One more follows.
    pub ends: Vec<End>,
    /// Clients at once.
    pub clients: usize,
    /// A random end comes after at most so many answers.
    pub answers: u64,
    /// Whether clients ask again for what they do not know.
    pub is_stubborn: bool,
    /// The longest time of one life, until its end.
    pub life: Duration,
    /// How long, in the last life, clients go on asking for what they do not know. Whatever is followed has to end in it.
    pub rest: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// Lives that were seen to end by SIGKILL.
    pub kills: usize,
    /// Those of them that ended before anybody could ask: what was left from before led there.
    pub unheard: usize,
    /// Requests that were sent and got no whole answer.
    pub cut: u64,
    /// Payments that no client knows of in the end.
    pub unknown: usize,
    /// What the ledger says in the end.
    pub ledger: Vec<LedgerEntry>,
    /// What must not be.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Which rules were broken.
    pub fn broken(&self) -> BTreeSet<Rule> {
        self.violations.iter().map(|violation| violation.rule).collect()
    }

    /// The keys of what is in this state for this reason in the end.
    pub fn ended(&self, state: &str, why: &str) -> BTreeSet<&str> {
        let is_meant = |entry: &&LedgerEntry| entry.state == state && entry.why == why;
        self.ledger.iter().filter(is_meant).map(|entry| entry.key.as_str()).collect()
    }
}

/// How often something is done: so often, or as a variable of the environment says.
pub fn often(variable: &str, usually: usize) -> usize {
    std::env::var(variable).ok().and_then(|times| times.parse().ok()).unwrap_or(usually)
}

/// Lives through the plan.
///
/// # Errors
/// If a life did not end as it should, with what happened instead.
pub async fn run(subject: &impl Subject, payments: &Payments, plan: &Plan) -> Result<Report, String> {
    let policy = subject.policy(payments.addr());
    let clients = Arc::new(Clients::new(plan.is_stubborn));
    let mut folder = folder();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut kills, mut unheard) = (0, 0);
    for (life, end) in plan.ends.iter().enumerate() {
        let ended = match *end {
            End::At(point, passing) => at(&folder, &policy, &clients, plan, point, passing).await,
            End::Random => at_random(&folder, &policy, &clients, plan, &mut random).await,
        };
        let Ended { status, was_heard } = ended.map_err(|what| format!("life {life}: {what}"))?;
        kills += usize::from(status.signal() == Some(SIGKILL));
        unheard += usize::from(!was_heard);
    }
    let gateway = Gateway::start_in(&folder, &policy);
    clients.start(gateway.addr, plan.clients, NEW_AT_LAST).join_all().await;
    // What is known is asked for once more, and what is not until it is.
    let end = Instant::now() + plan.rest;
    loop {
        let queries = payments.counts().status_queries_in_all();
        clients.start(gateway.addr, plan.clients, 0).join_all().await;
        if clients.unknown() == 0 || Instant::now() >= end {
            break;
        }
        let asked = payments.wait_until(ASK_EVERY, |counts| counts.status_queries_in_all() > queries);
        let _or_it_is_time = asked.await;
    }
    folder = gateway.stop();
    payments
        .origin()
        .wait_until(BOUND, |stats| stats.in_flight == 0)
        .await
        .expect("the service comes to rest");
    let attempts = clients.log.attempts();
    let ledger = block_in_place(|| subject.ledger(&folder));
    let violations = check(Evidence {
        attempts: &attempts,
        effects: &payments.effects(),
        forwards: &payments.counts().forwards,
        ledger: &ledger,
    });
    let (cut, unknown) = (clients.cut(), clients.unknown());
    let _left_behind = std::fs::remove_dir_all(&folder);
    Ok(Report { kills, unheard, cut, unknown, ledger, violations })
}

/// How a life ended, and whether it listened before.
struct Ended {
    status: ExitStatus,
    was_heard: bool,
}

/// An end by SIGKILL, or what happened instead.
fn killed(status: ExitStatus, was_heard: bool, when: &str, log: &[String]) -> Result<Ended, String> {
    if status.signal() == Some(SIGKILL) {
        Ok(Ended { status, was_heard })
    } else {
        Err(format!("it ended with {status} {when}: {log:#?}"))
    }
}

/// A life that the gateway ends itself.
async fn at(
    folder: &Path,
    policy: &Policy,
    clients: &Arc<Clients>,
    plan: &Plan,
    point: Checkpoint,
    passing: u64,
) -> Result<Ended, String> {
    let at = format!("{}:{passing}", point.token());
    let started = block_in_place(|| Gateway::start_to_be_killed(folder, policy, &at));
    let mut gateway = match started {
        Ok(gateway) => gateway,
        // What was left from the life before may have led it there before it listened.
        Err(NotStarted { status: Some(status), log }) => {
            return killed(status, false, "before it listened", &log);
        }
        Err(NotStarted { status: None, log }) => return Err(format!("it did not start: {log:#?}")),
    };
    let working = clients.start(gateway.addr, plan.clients, NEW_MOST);
    // The clients go on meanwhile.
    let Some(status) = block_in_place(|| gateway.ended_within(plan.life)) else {
        return Err(format!("within {:?} it never passed {at}", plan.life));
    };
    working.join_all().await;
    let ended = killed(status, true, &format!("before {at}"), &gateway.log())?;
    gateway.into_folder();
    Ok(ended)
}

/// A life that is ended from outside.
async fn at_random(
    folder: &Path,
    policy: &Policy,
    clients: &Arc<Clients>,
    plan: &Plan,
    random: &mut Random,
) -> Result<Ended, String> {
    let mut gateway = Gateway::start_in(folder, policy);
    let mut heard = clients.heard();
    let after = *heard.borrow() + 1 + random.below(plan.answers);
    let pause = Duration::from_micros(random.below(WITHIN_US));
    let working = clients.start(gateway.addr, plan.clients, NEW_MOST);
    if timeout(plan.life, heard.wait_for(|heard| *heard >= after)).await.is_err() {
        return Err(format!("within {:?} there were no {after} answers: {:#?}", plan.life, gateway.log()));
    }
    sleep(pause).await;
    // The clients go on meanwhile.
    let status = block_in_place(|| {
        gateway.signal("KILL");
        gateway.wait()
    });
    working.join_all().await;
    let ended = killed(status, true, "before it was killed", &gateway.log())?;
    gateway.into_folder();
    Ok(ended)
}

/// The same numbers in each run (xorshift64*, Vigna 2016): what differs is the machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound.max(1)
    }
}
