//! A ledger in memory, a clock that a test moves, and a reconciler between them and upstreams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use backstop::clock::{Clock, ManualClock};
use backstop::operation::secret::Secret;
use backstop_engine::health::PerMille;
use backstop_engine::operation::{
    ClientKey, Doubt, Fingerprint, Intent, OperationId, Record, Schedule, Scope, State,
};
use backstop_engine::policy::effect::{
    AnswerRule, EchoSource, EffectRules, Fingerprint as FingerprintRules, KeyForm, KeySource, Literal,
    OutcomeRules, RetentionRules, ScheduleRules, Scope as ScopeRules, SendRules, StatusQueryRules,
    StoredBody, UnknownAnswer, VerificationRules,
};
use backstop_engine::policy::{Origin, StatusSet};
use backstop_engine::time::{Mono, Now, Wall};
use backstop_policy::HeaderEdits;
use backstop_store::ledger::{Begun, Ledger, LedgerOptions, MemoryRows, ThreadLedger};
use http::HeaderValue;

use super::super::counts::RouteCounts;
use super::super::{Followed, Handle, Reconciler, Settings, Webhook};
use super::faulty::Faulty;
use super::upstream::{BOUND, Upstream};
use crate::edits::Edits;
use crate::operations::Operations;
use backstop::operation::following::Following;

pub(crate) const SECRET: Secret = Secret::from_bytes([7; 32]);

/// 2026-01-01T00:00:00Z, 1000 s after boot.
pub(crate) fn start() -> Now {
    Now {
        mono: Mono::from_ns(1_000_000_000_000),
        wall: Wall::from_unix_ns(1_767_225_600_000_000_000),
        ..Now::default()
    }
}

/// One reconciler's world.
pub(crate) struct World {
    pub(crate) rows: MemoryRows,
    pub(crate) operations: Arc<Operations>,
    pub(crate) clock: Clock,
    pub(crate) hand: ManualClock,
    pub(crate) settings: Settings,
    pub(crate) handle: Option<Handle>,
}

impl World {
    /// With these routes, not yet at work.
    pub(crate) fn new(routes: Vec<Followed>) -> Self {
        let (clock, hand) = Clock::manual(start());
        Self::again(MemoryRows::default(), routes, clock, hand)
    }

    /// A new life of these rows.
    pub(crate) fn again(rows: MemoryRows, routes: Vec<Followed>, clock: Clock, hand: ManualClock) -> Self {
        let ledger = open(&rows, &clock);
        Self::on(ledger, rows, routes, clock, hand)
    }

    /// With these routes and a ledger that may have faults.
    pub(crate) fn faulty(routes: Vec<Followed>) -> (Self, Arc<Faulty>) {
        let (clock, hand) = Clock::manual(start());
        let rows = MemoryRows::default();
        let faulty = Arc::new(Faulty::new(open(&rows, &clock), rows.clone()));
        (Self::on(Arc::clone(&faulty) as Arc<dyn Ledger>, rows, routes, clock, hand), faulty)
    }

    fn on(
        ledger: Arc<dyn Ledger>,
        rows: MemoryRows,
        routes: Vec<Followed>,
        clock: Clock,
        hand: ManualClock,
    ) -> Self {
        let operations = Arc::new(Operations {
            successes: Default::default(),
            ledger,
            secret: SECRET,
            following: Following::default(),
        });
        let settings = Settings::new(Arc::clone(&operations), routes, None, &clock).unwrap();
        Self { rows, operations, clock, hand, settings, handle: None }
    }

    pub(crate) fn start(&mut self) {
        self.handle = Some(Reconciler::start(self.settings.clone()).unwrap());
    }

    pub(crate) fn with_webhook(mut self, upstream: &Upstream) -> Self {
        let host = HeaderValue::try_from(upstream.address.to_string()).unwrap();
        let path = "/hooks/pay".parse().unwrap();
        self.settings.webhook = Some(Webhook { address: upstream.address.into(), path, host });
        self
    }

    pub(crate) fn ledger(&self) -> &dyn Ledger {
        &*self.operations.ledger
    }

    pub(crate) fn counts(&self) -> &super::super::Counts {
        self.handle.as_ref().unwrap().counts()
    }

    /// How many queries of the first route came to this.
    pub(crate) fn queries(&self, word: &str) -> u64 {
        let at = RouteCounts::WORDS.iter().position(|one| *one == word).unwrap();
        count(&self.counts().routes[0].queries[at])
    }

    /// An operation whose answer was lost, due at once.
    pub(crate) fn unknown(&self, route: &str, number: u8) -> OperationId {
        self.unknown_with(route, number, Vec::new())
    }

    pub(crate) fn unknown_with(
        &self,
        route: &str,
        number: u8,
        captured: Vec<(Box<str>, Box<str>)>,
    ) -> OperationId {
        lose_with(self.ledger(), Intent { captured, ..intent(route, number) }, self.clock.now())
    }

    pub(crate) fn record(&self, id: OperationId) -> Record {
        self.ledger().show(id).wait().unwrap().unwrap().record
    }

    pub(crate) fn state(&self, id: OperationId) -> State {
        self.record(id).progress.state()
    }

    /// Moves time by steps of a second at most, and has the reconciler see each.
    pub(crate) fn pass(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(Duration::from_secs(1));
            let before = self.turns();
            self.hand.advance(step);
            left -= step;
            if step == Duration::from_secs(1) {
                eventually(|| self.turns() > before);
            }
        }
    }

    /// Moves time by so little that nothing which is under way runs out of time over it.
    pub(crate) fn step(&self) {
        self.hand.advance(Duration::from_millis(100));
    }

    fn turns(&self) -> u64 {
        self.counts().turns.load(Ordering::Relaxed)
    }

    /// Whether an operation is followed, as its client would hear.
    pub(crate) fn tracked(&self, id: OperationId) -> Result<Duration, backstop_engine::operation::Untracked> {
        let follower = self.operations.following.of_all(true);
        let (record, now) = (self.record(id), self.clock.now());
        backstop_engine::operation::tracked(&record, &follower, self.ledger().epoch(), &now)
    }
}

fn open(rows: &MemoryRows, clock: &Clock) -> Arc<dyn Ledger> {
    let rows = Box::new(rows.clone());
    Arc::new(ThreadLedger::open(rows, LedgerOptions::default(), 1, clock.now()).unwrap())
}

/// Begins an operation and loses its answer.
pub(crate) fn lose(ledger: &dyn Ledger, route: &str, number: u8, now: Now) -> OperationId {
    lose_with(ledger, intent(route, number), now)
}

/// The same with so many operations, whose upstream ids are `k0`, `k1` and so on.
pub(crate) fn lose_many(ledger: &dyn Ledger, route: &str, count: u32, now: Now) {
    for number in 0..count {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        let mut name = [1; 16];
        name[..4].copy_from_slice(&number.to_be_bytes());
        let intent = Intent {
            id: OperationId::from_bytes(name),
            key: ClientKey::from_bytes(bytes),
            upstream_id: Some(format!("k{number}").into_bytes().into()),
            ..intent(route, 1)
        };
        lose_with(ledger, intent, now);
    }
}

fn lose_with(ledger: &dyn Ledger, intent: Intent, now: Now) -> OperationId {
    let id = intent.id;
    let Ok(Ok(Begun::New(durable))) = ledger.begin(intent, now).wait() else { panic!("{id}") };
    let forwarding = durable.forward(now.mono).unwrap();
    let at_once = Schedule { first: Duration::ZERO, ..Schedule::default() };
    let _changed = ledger.record(forwarding.unknown(Doubt::Timeout, at_once.draw(0)), now).wait().unwrap();
    id
}

/// Waits for something, within a bound.
#[track_caller]
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) {
    let clock = Clock::system().unwrap();
    let end = clock.mono().after(BOUND);
    while !is_so() {
        assert!(clock.mono() < end, "it did not come to that");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

pub(crate) fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn intent(route: &str, number: u8) -> Intent {
    Intent {
        id: OperationId::from_bytes([number; 16]),
        scope: Scope::from_bytes([1; 32]),
        key: ClientKey::from_bytes([number; 32]),
        fingerprint: Fingerprint::from_bytes([number; 32]),
        route: route.into(),
        upstream_id: Some(format!("k{number}").into_bytes().into()),
        captured: Vec::new(),
        deadline: Duration::from_secs(1),
        verify_for: Duration::from_secs(3600),
    }
}

fn kind(status: &[u16], pointer: &str, text: &str) -> AnswerRule {
    let json = vec![(pointer.into(), vec![Literal::Text(text.into())])];
    AnswerRule { status: StatusSet::of(status), json, origin: Origin::NONE }
}

/// A query that has no limit of its own to speak of.
pub(crate) fn query() -> StatusQueryRules {
    StatusQueryRules {
        before_key: "/payments?key=".into(),
        after_key: "&full=1".into(),
        timeout: Duration::from_secs(2),
        interval: Duration::ZERO,
        concurrency: 4,
        list: None,
        echo: vec![("/key".into(), EchoSource::OperationId)],
        succeeded: vec![kind(&[200], "/status", "paid")],
        failed: vec![kind(&[200], "/status", "declined")],
        pending: vec![kind(&[200], "/status", "processing")],
        absent: vec![kind(&[404], "/code", "no_such_payment")],
    }
}

/// Waits of up to a second, for an hour.
pub(crate) fn verification(query: StatusQueryRules) -> VerificationRules {
    VerificationRules {
        query,
        schedule: ScheduleRules {
            first: Duration::from_secs(1),
            factor: PerMille(1000),
            cap: Duration::from_secs(1),
            deadline: Duration::from_secs(3600),
            attention_poll: Duration::from_secs(900),
        },
        absence: None,
        upstream_retention: Duration::from_secs(86_400),
    }
}

pub(crate) fn route(name: &str, upstream: &Upstream, verification: Option<VerificationRules>) -> Followed {
    let header = |name: &str, value: &str| (name.into(), value.into());
    let edits = HeaderEdits { set: vec![header("authorization", "Bearer ours")], remove: Vec::new() };
    Followed {
        name: name.into(),
        rules: EffectRules {
            key: KeySource::Header("idempotency-key".into()),
            send: SendRules { header: "idempotency-key".into(), form: KeyForm::Client },
            scope: ScopeRules::Route,
            outcome: OutcomeRules::default(),
            verification,
            unknown_answer: UnknownAnswer::Auto,
            fingerprint: FingerprintRules::Whole,
            stored_body: StoredBody::Nothing,
            body_bytes: 1024,
            retention: RetentionRules {
                body: Duration::from_secs(86_400),
                tombstone: Duration::from_secs(30 * 86_400),
            },
            origin: Origin::NONE,
        },
        addresses: vec![upstream.address.into()],
        connect: Duration::from_secs(1),
        host: HeaderValue::from_static("pay.internal"),
        edits: Arc::new(Edits::new(&edits)),
    }
}

/// A route `pay` with that query.
pub(crate) fn pay(upstream: &Upstream) -> Followed {
    route("pay", upstream, Some(verification(query())))
}

/// Lines of the log about operations, of every test in this process.
pub(crate) fn lines(part: &str) -> Vec<String> {
    listen();
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|line| line.contains(part)).cloned().collect()
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Has the log kept from now on.
pub(crate) fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| tracing::subscriber::set_global_default(Kept).unwrap());
}

struct Kept;

impl tracing::Subscriber for Kept {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "backstop::operations" && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        LINES.lock().unwrap().push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
