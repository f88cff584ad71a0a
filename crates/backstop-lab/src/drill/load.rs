//! Sends requests at their moments, whatever became of earlier ones, and writes down what came back.
//!
//! It runs on a thread of its own. How late that thread itself was is measured all the while ([`Lags`]), so that what this machine
//! delayed is not blamed on the gateway.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime,
    sync::mpsc,
    task::JoinSet,
    time::{self, Instant},
};

use crate::{
    client::{ClientError, Connection, Mark, RequestBytes, Response},
    load::Failure,
    proxy::{MARKER, content_hash},
};

use super::{Ask, Sending};

/// One request and what came back.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Its number, by which it is known again at the dependencies.
    pub marker: u64,
    /// Which of the requests it was.
    pub ask: usize,
    /// Which route it is for.
    pub route: usize,
    /// When it was sent, from the beginning.
    pub sent: Duration,
    /// When its answer was whole, or had failed.
    pub done: Duration,
    /// How late this machine itself was meanwhile.
    pub lag: Duration,
    /// The status, where there was a head.
    pub status: Option<u16>,
    /// Why there was no whole answer.
    pub failure: Option<Failure>,
    /// What the `Backstop` field says.
    pub mark: Option<Mark>,
    /// A hash of the whole body.
    pub content: Option<u64>,
    /// Whether it was sent to the gateway that was started anew.
    pub after_restart: bool,
}

impl Sample {
    /// The outcome as its answer tells it: without a field, that is the dependency's own.
    #[must_use]
    pub fn outcome(&self) -> &str {
        match &self.mark {
            _ if self.failure.is_some() => "none",
            Some(mark) => &mark.outcome,
            None => "normal",
        }
    }

    /// Where the answer came from, if it says so.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.mark.as_ref()?.source.as_deref()
    }

    /// Why it is no normal one, if it says so.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.mark.as_ref()?.reason.as_deref()
    }

    /// What went wrong with the dependency, if it says so apart.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.mark.as_ref()?.cause.as_deref()
    }

    /// Whether the dependency's own answer came.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        self.outcome() == "normal"
    }

    /// Whether it is one that was kept earlier.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.source() == Some("snapshot")
    }

    /// From sent to whole.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.done.saturating_sub(self.sent)
    }

    /// In a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let status = self.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let words = [Some(self.outcome()), self.source(), self.reason(), self.cause()];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        let failure = self.failure.map(|failure| format!(" ({})", failure.name())).unwrap_or_default();
        format!("{status}{failure} {} at {:.3} s", words.join(" "), self.sent.as_secs_f64())
    }
}

/// What one load came to.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) samples: Vec<Sample>,
    /// How many requests could not be sent in time, because too many were under way.
    pub(crate) unsent: u64,
}

/// What is sent to whom.
pub(crate) struct Order {
    pub(crate) target: SocketAddr,
    pub(crate) asks: Arc<[Ask]>,
    pub(crate) sendings: Vec<Sending>,
    pub(crate) first_marker: u64,
    /// When time began to count.
    pub(crate) began: Instant,
    /// How long an answer is waited for.
    pub(crate) patience: Duration,
    pub(crate) seed: u64,
}

/// Most requests under way at once.
const UNDER_WAY_MAX: usize = 4000;

/// Sends all of it and waits for the answers. Whoever watches hears of each.
pub(crate) async fn send(
    order: Order,
    watcher: Option<mpsc::UnboundedSender<Sample>>,
) -> std::io::Result<Loaded> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (over, is_over) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("drill-load".to_owned()).spawn(move || {
        let loaded = runtime.block_on(work(order, watcher));
        let _nobody_waits = over.send(loaded);
    })?;
    is_over.await.map_err(std::io::Error::other)
}

async fn work(mut order: Order, watcher: Option<mpsc::UnboundedSender<Sample>>) -> Loaded {
    order.sendings.sort_by_key(|sending| sending.at);
    let lags = Lags::default();
    let watch = tokio::spawn(lags.clone().watch(order.began));
    let shelf = Shelf::default();
    let mut under_way = JoinSet::new();
    let mut loaded = Loaded::default();
    let keep = |sample: Result<Sample, tokio::task::JoinError>, loaded: &mut Loaded| {
        let Ok(mut sample) = sample else { return };
        sample.lag = lags.between(sample.sent, sample.done);
        if let Some(watcher) = &watcher {
            let _nobody_watches = watcher.send(sample.clone());
        }
        loaded.samples.push(sample);
    };
    for (number, sending) in order.sendings.iter().enumerate() {
        time::sleep_until(order.began + sending.at).await;
        while let Some(done) = under_way.try_join_next() {
            keep(done, &mut loaded);
        }
        let Some(ask) = order.asks.get(sending.ask) else { continue };
        if under_way.len() >= UNDER_WAY_MAX {
            loaded.unsent += 1;
            continue;
        }
        let marker = order.first_marker + number as u64;
        let one = One {
            target: order.target,
            bytes: bytes(&order, ask, marker),
            method: ask.method.clone(),
            sample: Sample { marker, ask: sending.ask, route: ask.route, ..Sample::default() },
            began: order.began,
            patience: order.patience,
        };
        under_way.spawn(one.send(shelf.clone()));
    }
    while let Some(done) = under_way.join_next().await {
        keep(done, &mut loaded);
    }
    watch.abort();
    loaded.samples.sort_by_key(|sample| sample.marker);
    loaded
}

fn bytes(order: &Order, ask: &Ask, marker: u64) -> RequestBytes {
    let number = marker.to_string();
    let operation = format!("drill-{:x}-{marker}", order.seed);
    let mut fields: Vec<(&str, &str)> =
        ask.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    fields.push((MARKER, &number));
    if let Some(unique) = &ask.unique {
        fields.push((unique, &operation));
    }
    RequestBytes::new(&order.target.to_string(), &ask.method, &ask.target, &fields, ask.body.as_bytes())
}

struct One {
    target: SocketAddr,
    bytes: RequestBytes,
    method: String,
    sample: Sample,
    began: Instant,
    patience: Duration,
}

impl One {
    async fn send(mut self, shelf: Shelf) -> Sample {
        self.sample.sent = self.began.elapsed();
        let answered = self.exchange(&shelf).await;
        self.sample.done = self.began.elapsed();
        match answered {
            Ok((response, connection)) => {
                describe(&response, &mut self.sample);
                if response.keeps_alive() {
                    shelf.put(connection);
                }
            }
            Err(error) => self.sample.failure = Some(Failure::of_error(&error)),
        }
        self.sample
    }

    async fn exchange(&mut self, shelf: &Shelf) -> Result<(Response, Connection), ClientError> {
        let mut connection = match shelf.take() {
            Some(connection) => connection,
            None => Connection::open_within(self.target, self.patience).await?,
        };
        // What opening a connection took is the client's own.
        self.sample.sent = self.began.elapsed();
        connection.send(&self.bytes.0).await?;
        let response = connection.read_response_to(&self.method).await?;
        Ok((response, connection))
    }
}

fn describe(response: &Response, sample: &mut Sample) {
    sample.status = Some(response.status());
    sample.failure = Failure::of_body(response.completeness);
    match response.mark() {
        Ok(mark) => sample.mark = mark,
        Err(_) => sample.mark = Some(Mark { outcome: "unreadable".to_owned(), ..Mark::default() }),
    }
    if sample.failure.is_none() {
        sample.content = Some(content_hash(&response.body));
    }
}

/// Connections that are kept.
#[derive(Clone, Debug, Default)]
struct Shelf(Arc<Mutex<Vec<Connection>>>);

impl Shelf {
    fn take(&self) -> Option<Connection> {
        let mut kept = self.lock();
        while let Some(mut connection) = kept.pop() {
            if !connection.has_ended() && connection.leftover().is_empty() {
                return Some(connection);
            }
        }
        None
    }

    fn put(&self, connection: Connection) {
        self.lock().push(connection);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When this thread was late, and by how much.
#[derive(Clone, Debug, Default)]
struct Lags(Arc<Mutex<Vec<(Duration, Duration)>>>);

/// How often it is looked at.
const BEAT: Duration = Duration::from_millis(2);
/// A timer's own coarseness.
const USUAL: Duration = Duration::from_millis(3);

impl Lags {
    async fn watch(self, began: Instant) {
        loop {
            let before = Instant::now();
            time::sleep(BEAT).await;
            let late = before.elapsed().saturating_sub(BEAT);
            if late > USUAL {
                self.lock().push((began.elapsed(), late));
            }
        }
    }

    /// How late it was in all between two moments.
    fn between(&self, from: Duration, to: Duration) -> Duration {
        let slack = Duration::from_millis(5);
        let within = |(at, _): &&(Duration, Duration)| *at + slack >= from && *at <= to + slack;
        self.lock().iter().filter(within).map(|(_, late)| *late).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Duration, Duration)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
