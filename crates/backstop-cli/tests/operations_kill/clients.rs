//! Clients that want payments made, and go on asking for each under its own key until they know.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use backstop_lab::client::{self, ClientError};
use backstop_lab::payments::oracle::{Asked, Attempt, ClientLog, Heard, Told};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The fields of every request beside the key. The tenant is the scope of [`operations`](super::operations).
const TENANT: (&str, &str) = ("X-Tenant", "shop-1");
/// Every so many-th payment is of the amount that the service declines.
const DECLINED_EACH: u64 = 50;
const DECLINED: u64 = 402;
/// Amounts below those that the service refuses.
const AMOUNTS: u64 = 300;
/// Of so many payments that are known, one is asked for once more.
const REPEATED_EACH: u64 = 4;

/// A payment that a client wants.
#[derive(Clone, Debug)]
struct Wanted {
    number: u64,
    is_known: bool,
}

impl Wanted {
    fn key(&self) -> String {
        format!("k-{}", self.number)
    }

    fn amount(&self) -> u64 {
        if self.number % DECLINED_EACH == DECLINED_EACH - 1 { DECLINED } else { 1 + self.number % AMOUNTS }
    }
}

/// What all clients of a run share, over all lives of the gateway.
#[derive(Debug)]
pub struct Clients {
    /// What they sent and heard.
    pub log: ClientLog,
    /// Whether they ask again for what they do not know.
    is_stubborn: bool,
    /// How many new payments may still be asked for in this life.
    new: AtomicU64,
    numbers: AtomicU64,
    now: Mutex<VecDeque<Wanted>>,
    /// For the next life, so that within one life nobody asks in circles.
    later: Mutex<VecDeque<Wanted>>,
    heard: watch::Sender<u64>,
    cut: AtomicU64,
}

impl Clients {
    pub fn new(is_stubborn: bool) -> Self {
        Self {
            log: ClientLog::new(),
            is_stubborn,
            new: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            now: Mutex::default(),
            later: Mutex::default(),
            heard: watch::Sender::new(0),
            cut: AtomicU64::new(0),
        }
    }

    /// So many clients at once begin to ask for everything that is still wanted, and then for new payments, at most so many,
    /// until all of that was asked for or the gateway is gone.
    pub fn start(self: &Arc<Self>, gateway: SocketAddr, clients: usize, new: u64) -> JoinSet<()> {
        let mut now = self.now.lock().unwrap();
        now.append(&mut self.later.lock().unwrap());
        self.new.store(new, Ordering::SeqCst);
        let mut working = JoinSet::new();
        for _ in 0..clients {
            let all = Arc::clone(self);
            working.spawn(async move { all.one(gateway).await });
        }
        working
    }

    fn next(&self) -> Option<Wanted> {
        if let Some(wanted) = self.now.lock().unwrap().pop_front() {
            return Some(wanted);
        }
        let one_less = |new: u64| new.checked_sub(1);
        self.new.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).ok()?;
        Some(Wanted { number: self.numbers.fetch_add(1, Ordering::SeqCst), is_known: false })
    }

    /// How many answers they heard so far, as it changes.
    pub fn heard(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    /// How many payments they still want to know of.
    pub fn unknown(&self) -> usize {
        let is_unknown = |wanted: &&Wanted| !wanted.is_known;
        let now = self.now.lock().unwrap().iter().filter(is_unknown).count();
        now + self.later.lock().unwrap().iter().filter(is_unknown).count()
    }

    /// How many requests were sent and got no whole answer.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    async fn one(&self, gateway: SocketAddr) {
        while let Some(mut wanted) = self.next() {
            let (told, is_gone) = self.ask(gateway, &wanted).await;
            let is_known =
                matches!(told, Some(Told::Succeeded | Told::Failed | Told::NotExecuted | Told::Attention));
            let is_repeated = is_known && !wanted.is_known && wanted.number % REPEATED_EACH == 0;
            if self.is_stubborn && (is_repeated || !is_known) {
                wanted.is_known |= is_known;
                self.later.lock().unwrap().push_back(wanted);
            }
            if is_gone {
                return;
            }
        }
    }

    /// Asks once. What was told, and whether nobody listens any more.
    async fn ask(&self, gateway: SocketAddr, wanted: &Wanted) -> (Option<Told>, bool) {
        let (key, amount) = (wanted.key(), wanted.amount());
        let asked = Asked::Execute { amount };
        let attempt = self.log.sends(&key, asked);
        let body = format!(r#"{{"amount":{amount}}}"#);
        let fields = [TENANT, ("Idempotency-Key", &key), ("Content-Type", "application/json")];
        let answer = client::request(gateway, "POST", "/payments", &fields, body.as_bytes()).await;
        let is_gone = matches!(&answer, Err(ClientError::Connect(_)));
        let heard = Heard::from(&answer);
        self.log.hears(attempt, heard.clone());
        if matches!(heard, Heard::Answer(_)) {
            self.heard.send_modify(|heard| *heard += 1);
        } else if !is_gone {
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
        (Told::by(&Attempt { key, asked, sent: 0, heard_at: None, heard }), is_gone)
    }
}
