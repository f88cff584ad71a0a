//! A process with its ledger, and an upstream that executes late and shows late.

use std::collections::BTreeMap;

use super::super::super::{apply, begin, claim, lease_ended, overdue, recover, resolve};
use super::super::support::{at, draw, intent, rule, seconds};
use super::truth::Truth;
use crate::operation::{
    Begin, Change, Claim, ClientKey, Decision, Doubt, DurableIntent, Epoch, Forwarding, Intent, KeptAnswer,
    NotExecuted, OperationId, PendingClaim, PendingIntent, Record, Refusal, Report, Standing, answer,
};
use crate::time::Now;

/// The upstream executes what arrives at most so long after it was sent, and shows it at most so long after that: together
/// less than `settle`, 600 s.
const LATEST_S: u64 = 300;
const SHOWN_S: u64 = 200;

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Submit(u8),
    Sync,
    /// So many of the writes that were not synced survive.
    Crash(usize),
    Wait(u64),
    Forward(usize),
    /// A request arrives: executed and answered, executed and 5xx, executed and lost, refused, lost.
    Upstream(usize, u8),
    GiveUp(usize),
    NotSent(usize),
    Sweep,
    Claim(u8),
    Query(usize, bool),
    Person(u8),
}

/// What is acknowledged with the next sync.
enum Ack {
    Intent(u8, PendingIntent),
    Claim(u8, PendingClaim),
    Told(u8, Record),
}

struct Request {
    key: u8,
    sent_s: u64,
    /// Who waits for the answer; nobody after a crash or a timeout.
    waiting: Option<Forwarding>,
}

pub(super) struct World {
    pub(super) truth: Truth,
    /// Acknowledges before it syncs.
    is_early: bool,
    now_s: u64,
    epoch: Epoch,
    durable: BTreeMap<u8, Record>,
    memory: BTreeMap<u8, Record>,
    writes: Vec<(u8, Record)>,
    acks: Vec<Ack>,
    intents: Vec<(u8, DurableIntent)>,
    requests: Vec<Request>,
    claims: Vec<(u8, Claim)>,
    /// When each effect took place.
    effects_s: BTreeMap<u8, u64>,
}

impl World {
    pub(super) fn new(is_early: bool) -> Self {
        Self {
            truth: Truth::default(),
            is_early,
            now_s: 0,
            epoch: Epoch::new(1),
            durable: BTreeMap::new(),
            memory: BTreeMap::new(),
            writes: Vec::new(),
            acks: Vec::new(),
            intents: Vec::new(),
            requests: Vec::new(),
            claims: Vec::new(),
            effects_s: BTreeMap::new(),
        }
    }

    fn now(&self) -> Now {
        at(self.now_s)
    }

    fn write(&mut self, key: u8, record: Record) {
        self.memory.insert(key, record.clone());
        self.writes.push((key, record));
    }

    fn changed(&mut self, key: u8, change: &Change, kept: Option<KeptAnswer>) {
        let Some(mut record) = self.memory.get(&key).cloned() else { return };
        record.progress = change.progress;
        record.answer = kept.or(record.answer);
        self.write(key, record);
    }

    fn report(&mut self, key: u8, report: &Report) {
        let Some(record) = self.memory.get(&key) else { return };
        if let Ok(change) = apply(record, report, self.epoch, &self.now()) {
            self.changed(key, &change, report.answer().cloned());
        }
        self.acks.push(Ack::Told(key, self.memory[&key].clone()));
    }

    pub(super) fn act(&mut self, op: Op) {
        match op {
            Op::Submit(key) => self.submit(key),
            Op::Sync => self.sync(),
            Op::Crash(kept) => self.crash(kept),
            Op::Wait(seconds) => self.wait(seconds),
            Op::Forward(which) => self.forward(which),
            Op::Upstream(which, what) => self.upstream(which, what),
            Op::GiveUp(which) => self.give_up(which),
            Op::NotSent(which) => self.not_sent(which),
            Op::Sweep => self.sweep(),
            Op::Claim(key) => self.claim(key),
            Op::Query(which, is_heard) => self.query(which, is_heard),
            Op::Person(key) => self.person(key),
        }
        if self.is_early {
            self.acknowledge();
        }
    }

    fn submit(&mut self, key: u8) {
        let intent = Intent {
            id: OperationId::from_bytes([key; 16]),
            key: ClientKey::from_bytes([key; 32]),
            ..intent()
        };
        match begin(self.memory.get(&key), intent, self.epoch, &self.now()).unwrap() {
            Begin::New(pending) => {
                self.write(key, pending.record().clone());
                self.acks.push(Ack::Intent(key, pending));
            }
            Begin::Again => self.acks.push(Ack::Told(key, self.memory[&key].clone())),
            Begin::OtherRequest => unreachable!("each key has one request"),
        }
    }

    fn sync(&mut self) {
        self.durable.extend(self.writes.drain(..));
        self.acknowledge();
    }

    fn acknowledge(&mut self) {
        for ack in std::mem::take(&mut self.acks) {
            match ack {
                Ack::Intent(key, pending) => self.intents.push((key, pending.committed())),
                Ack::Claim(key, pending) => self.claims.push((key, pending.committed())),
                Ack::Told(key, record) => self.truth.told(key, &answer(&record)),
            }
        }
    }

    /// Whoever waits for anything is gone. Requests go on.
    fn crash(&mut self, kept: usize) {
        let kept = kept.min(self.writes.len());
        self.durable.extend(self.writes.drain(..kept));
        self.writes.clear();
        self.acks.clear();
        self.intents.clear();
        self.claims.clear();
        self.requests.iter_mut().for_each(|request| request.waiting = None);
        self.epoch = self.epoch.next();
        for record in self.durable.values_mut() {
            if let Some(change) = recover(record, 1 << 60, self.epoch, &at(self.now_s)) {
                record.progress = change.progress;
            }
        }
        self.memory = self.durable.clone();
    }

    fn wait(&mut self, seconds: u64) {
        self.now_s += seconds;
        // What did not arrive by now never does.
        self.requests.retain(|request| self.now_s - request.sent_s <= LATEST_S);
    }

    fn forward(&mut self, which: usize) {
        let Some((key, intent)) = pick(&mut self.intents, which) else { return };
        match intent.forward(self.now().mono) {
            Ok(forwarding) => {
                self.truth.forwarded(key);
                self.requests.push(Request { key, sent_s: self.now_s, waiting: Some(forwarding) });
            }
            Err(late) => self.report(key, &late.report()),
        }
    }

    fn upstream(&mut self, which: usize, what: u8) {
        let Some(Request { key, waiting, .. }) = pick(&mut self.requests, which) else { return };
        if what < 3 {
            self.truth.executed(key);
            self.effects_s.insert(key, self.now_s);
        }
        let Some(forwarding) = waiting else { return };
        let kept = |status| KeptAnswer { body: Some(Box::default()), ..KeptAnswer::of_status(status) };
        let report = match what {
            0 => forwarding.succeeded(kept(201)),
            1 => forwarding.unknown(Doubt::ServerError, draw()),
            3 => forwarding.refused(Refusal::of_status(402, false).unwrap(), kept(402)),
            _ => forwarding.unknown(Doubt::Reset, draw()),
        };
        self.report(key, &report);
    }

    /// Whoever waits for an answer does so no longer; the request goes on.
    fn give_up(&mut self, which: usize) {
        let now_s = self.now_s;
        let waiting: Vec<&mut Request> =
            self.requests.iter_mut().filter(|request| request.waiting.is_some()).collect();
        let count = waiting.len();
        let Some(request) = waiting.into_iter().nth(which.checked_rem(count).unwrap_or(0)) else { return };
        assert!(request.sent_s <= now_s);
        let key = request.key;
        if let Some(forwarding) = request.waiting.take() {
            self.report(key, &forwarding.unknown(Doubt::Timeout, draw()));
        }
    }

    fn not_sent(&mut self, which: usize) {
        if let Some((key, intent)) = pick(&mut self.intents, which) {
            self.report(key, &intent.never_sent(NotExecuted::Connect));
        }
    }

    fn sweep(&mut self) {
        for key in 0..3 {
            let Some(record) = self.memory.get(&key) else { continue };
            let (epoch, now) = (self.epoch, self.now());
            let change =
                lease_ended(record, draw(), epoch, &now).or_else(|_| overdue(record, draw(), epoch, &now));
            if let Ok(change) = change {
                self.changed(key, &change, None);
            }
        }
    }

    fn claim(&mut self, key: u8) {
        let Some(record) = self.memory.get(&key) else { return };
        if let Ok(pending) = claim(record.clone(), seconds(2), self.epoch, &self.now()) {
            self.write(key, pending.record().clone());
            self.acks.push(Ack::Claim(key, pending));
        }
    }

    /// The status shows an effect some time after it took place.
    fn query(&mut self, which: usize, is_heard: bool) {
        let Some((key, claim)) = pick(&mut self.claims, which) else { return };
        let asked = claim.ask(self.now().mono);
        let is_shown = self.effects_s.get(&key).is_some_and(|at| self.now_s - at >= SHOWN_S);
        let standing = Standing { has_good_credentials: true, shows_recent: true };
        let report = match (is_heard, is_shown) {
            (false, _) => asked.inconclusive(draw()),
            (true, true) => asked.succeeded(draw()),
            (true, false) => asked.absent(Some(rule()), standing, draw()),
        };
        self.report(key, &report);
    }

    /// A person knows what happened, and decides only when nothing can happen any more.
    fn person(&mut self, key: u8) {
        let Some(record) = self.memory.get(&key) else { return };
        let is_over = !self.requests.iter().any(|request| request.key == key);
        let decision = if self.truth.has_effect(key) { Decision::Succeeded } else { Decision::NotExecuted };
        if let (true, Ok(change)) = (is_over, resolve(record, decision, self.epoch, &self.now())) {
            self.changed(key, &change, None);
        }
    }

    /// Nothing new; everything that waits is done, and all deadlines pass.
    pub(super) fn come_to_rest(&mut self) {
        for seconds in [0, 40, 4000, 1] {
            self.act(Op::Wait(seconds));
            self.act(Op::Sweep);
            self.act(Op::Sync);
        }
        for key in 0..3 {
            self.act(Op::Submit(key));
        }
        // What was claimed and never reported holds nothing up for longer than its lease.
        self.act(Op::Sync);
    }

    /// Decided, or a person is called; except for those that began just now.
    pub(super) fn is_at_rest(&self) -> Result<(), String> {
        let is_new = |record: &Record| record.identity.created == self.now().wall;
        match self.durable.iter().find(|(_, record)| {
            let state = record.progress.state();
            let is_open = !state.is_decided() && state.token() != "attention";
            is_open && !is_new(record)
        }) {
            Some((key, record)) => Err(format!("key {key} stays {:?}", record.progress.state())),
            None => Ok(()),
        }
    }
}

fn pick<T>(from: &mut Vec<T>, which: usize) -> Option<T> {
    let at = which.checked_rem(from.len())?;
    Some(from.swap_remove(at))
}
