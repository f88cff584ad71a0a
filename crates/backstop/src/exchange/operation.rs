//! The operation of one exchange: written down before it is forwarded, and what came of it before it is answered.
//!
//! The intent is awaited in a task of its own. Whoever waits here may be cut off by the deadline at any moment, and an intent
//! that became durable for nobody has to be recorded as never sent, not left to be verified.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::failure;
use backstop_engine::flow::{Attempt, Came, Consulted, Event, Known, Recorded, Telling};
use backstop_engine::operation::{
    self, Doubt, DurableIntent, Forwarding, IntentError, LEASE_GRACE, NotExecuted, OperationId, Record,
    Report, Schedule, State,
};
use backstop_engine::policy::effect::{EffectRules, StoredBody};
use backstop_store::ledger::checkpoint::{Checkpoint, pass};
use backstop_store::ledger::redact::Keep;
use backstop_store::ledger::{self, Begun, LedgerError};
use http::header::{CONTENT_ENCODING, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::operation::document::date;
use crate::operation::matching::{Proof, proof};
use crate::operation::{Asked, Operations, Wants};

/// One operation under way.
#[derive(Debug)]
pub(super) struct Operation {
    asked: Asked,
    hold: Hold,
    /// The name of the operation that this request began.
    pub(super) id: Option<OperationId>,
    /// What the ledger says, once it was asked.
    pub(super) record: Option<Box<Record>>,
    /// Until its status is asked for next, if it is followed.
    pub(super) next_query: Option<Duration>,
    /// Whether what came of it is durable, as far as it was to be written down.
    pub(super) is_durable: bool,
    /// What was to be said, if the disk does not confirm it in time.
    pub(super) meant: Telling,
}

/// What this request may still do or has to report.
#[derive(Debug)]
enum Hold {
    Nothing,
    Writing(oneshot::Receiver<Result<Result<Begun, IntentError>, LedgerError>>),
    Intent(DurableIntent),
    Forwarding(Forwarding),
    Report(Report),
}

/// An answer, for what it proves to be written down.
#[derive(Clone, Copy)]
pub(super) struct Answered<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a HeaderMap,
    /// All of it, if it came whole.
    pub(super) content: Option<&'a [u8]>,
}

impl Operation {
    pub(super) const fn new(asked: Asked) -> Self {
        let meant = Telling::Unknown(Doubt::Reset);
        Self { asked, hold: Hold::Nothing, id: None, record: None, next_query: None, is_durable: true, meant }
    }

    fn operations(&self) -> &Arc<Operations> {
        &self.asked.operations
    }

    /// Writes the intent down, and prepares the request for its one forward. An event, if there is nothing to forward.
    pub(super) async fn begin(
        &mut self,
        rules: &EffectRules,
        route: &str,
        head: &mut Parts,
        attempt: &Attempt,
        clock: &Clock,
    ) -> Result<(), Event> {
        let not_written = |reason| Event::NotAsked { attempt: attempt.id, reason };
        let unwritable = || not_written(failure::NotAsked::Ledger);
        pass(Checkpoint::Admitted);
        let operations = Arc::clone(self.operations());
        let Wants::Done(request) = self.asked.wants.clone() else { return Err(unwritable()) };
        let scope = self.asked.scope(rules, route, head).ok_or_else(unwritable)?;
        let told = request.told(rules, &scope, &operations.secret);
        let now = clock.now();
        let deadline = now.mono.until(attempt.end);
        let intent = request.intent(rules, route, scope, &told, &operations.secret, deadline);
        let lease_end = now.wall.after(intent.deadline).after(LEASE_GRACE);
        self.hold = Hold::Writing(write(operations, intent, clock));
        let Hold::Writing(writing) = &mut self.hold else { return Err(unwritable()) };
        let begun = writing.await;
        self.hold = Hold::Nothing;
        match begun {
            Ok(Ok(Ok(Begun::New(intent)))) => {
                pass(Checkpoint::IntentAcknowledged);
                self.id = Some(intent.id());
                self.hold = Hold::Intent(intent);
            }
            Ok(Ok(Ok(Begun::Again(record)))) => {
                let known = self.known(record, rules, clock);
                return Err(Event::Again { attempt: attempt.id, known });
            }
            Ok(Ok(Ok(Begun::OtherRequest))) => {
                let known = Known { telling: Telling::OtherRequest, next_query: None };
                return Err(Event::Again { attempt: attempt.id, known });
            }
            Ok(Ok(Err(_)) | Err(_)) | Err(_) => return Err(unwritable()),
        }
        self.tell(rules, head, told, lease_end);
        if !self.starts(clock) {
            return Err(not_written(failure::NotAsked::TooLate));
        }
        Ok(())
    }

    /// Tells the upstream which operation it is, and until when it may execute it.
    fn tell(
        &self,
        rules: &EffectRules,
        head: &mut Parts,
        told: HeaderValue,
        lease_end: backstop_engine::time::Wall,
    ) {
        if let Ok(name) = HeaderName::try_from(&*rules.send.header) {
            head.headers.insert(name, told);
        }
        let absence = rules.verification.as_ref().and_then(|verification| verification.absence.as_ref());
        if let Some(name) =
            absence.and_then(|absence| HeaderName::try_from(&**absence.not_after.as_ref()?).ok())
            && let Ok(moment) = HeaderValue::try_from(date(lease_end))
        {
            head.headers.insert(name, moment);
        }
    }

    /// Uses up the right to forward it. `false`: too little of the lease is left.
    fn starts(&mut self, clock: &Clock) -> bool {
        let Hold::Intent(intent) = std::mem::replace(&mut self.hold, Hold::Nothing) else { return false };
        match intent.forward(clock.mono()) {
            Ok(forwarding) => {
                self.hold = Hold::Forwarding(forwarding);
                true
            }
            Err(late) => {
                self.hold = Hold::Report(late.report());
                false
            }
        }
    }

    /// Writes down what came of it.
    pub(super) async fn record(
        &mut self,
        came: Came,
        answered: Option<Answered<'_>>,
        rules: &EffectRules,
        clock: &Clock,
    ) -> Recorded {
        let Some(report) = self.report(came, answered, rules) else { return Recorded::Nothing };
        pass(Checkpoint::AnswerRead);
        self.is_durable = false;
        let recorded = self.operations().ledger.record(report, clock.now()).await;
        match recorded {
            Ok(ledger::Recorded::Changed { record, .. } | ledger::Recorded::Refused { record, .. }) => {
                pass(Checkpoint::OutcomeCommitted);
                self.is_durable = true;
                self.tell_of_success(&record, clock);
                Recorded::Durable(self.known(record, rules, clock))
            }
            Ok(ledger::Recorded::Unheard) | Err(_) => self.not_recorded(),
        }
    }

    /// A success by the upstream's own answer is one that its status query has to show.
    fn tell_of_success(&self, record: &Record, clock: &Clock) {
        let is_direct = matches!(self.meant, Telling::Answered(_))
            && matches!(record.progress.state(), State::Succeeded(_));
        if let Some(upstream_id) = record.identity.upstream_id.as_ref().filter(|_| is_direct) {
            self.operations().successes.told(&record.identity.route, upstream_id, clock.now());
        }
    }

    /// It was not written down in time.
    pub(super) const fn not_recorded(&self) -> Recorded {
        Recorded::NotDurable(self.meant)
    }

    fn report(&mut self, came: Came, answered: Option<Answered<'_>>, rules: &EffectRules) -> Option<Report> {
        let forwarding = match std::mem::replace(&mut self.hold, Hold::Nothing) {
            Hold::Nothing => return None,
            Hold::Report(report) => {
                self.meant = Telling::NotExecuted(NotExecuted::TooLate);
                return Some(report);
            }
            // It came while nobody looked any more. Whoever writes it records the rest.
            Hold::Writing(mut writing) => match writing.try_recv() {
                Ok(Ok(Ok(Begun::New(intent)))) => return Some(self.never_sent(intent, NotExecuted::TooLate)),
                _ => return None,
            },
            Hold::Intent(intent) => return Some(self.never_sent(intent, NotExecuted::TooLate)),
            Hold::Forwarding(forwarding) => forwarding,
        };
        let first = Schedule::from(rules).draw(entropy(forwarding.id()));
        let doubt = match came {
            Came::NeverSent(why) => {
                self.meant = Telling::NotExecuted(why);
                return Some(forwarding.never_sent(why));
            }
            Came::Unknown(doubt) => doubt,
            Came::Answered(_) => {
                let Some(Answered { status, headers, content }) = answered else {
                    self.meant = Telling::Unknown(Doubt::Incomplete);
                    return Some(forwarding.unknown(Doubt::Incomplete, first));
                };
                // Without the field that says how it is coded it would be another answer.
                let is_plain = !headers.contains_key(CONTENT_ENCODING);
                let keep = || keep(rules).of(status, headers, content.filter(|_| is_plain));
                match proof(&rules.outcome, status, content) {
                    Proof::Succeeded => {
                        self.meant = Telling::Answered(status);
                        return Some(forwarding.succeeded(keep()));
                    }
                    Proof::Refused(refusal) => {
                        self.meant = Telling::Answered(status);
                        return Some(forwarding.refused(refusal, keep()));
                    }
                    Proof::Pending => Doubt::Pending,
                    Proof::Nothing if status >= 500 => Doubt::ServerError,
                    Proof::Nothing => Doubt::Unmatched,
                }
            }
        };
        self.meant = Telling::Unknown(doubt);
        Some(forwarding.unknown(doubt, first))
    }

    fn never_sent(&mut self, intent: DurableIntent, why: NotExecuted) -> Report {
        self.meant = Telling::NotExecuted(why);
        intent.never_sent(why)
    }

    /// What the ledger has for the request's key, or for the name that it looks for.
    pub(super) async fn consult(
        &mut self,
        rules: &EffectRules,
        route: &str,
        head: &Parts,
        clock: &Clock,
    ) -> Consulted {
        // Nobody verified who asks, so there is nothing for them.
        let Some(scope) = self.asked.scope(rules, route, head) else { return Consulted::Nothing };
        let operations = Arc::clone(self.operations());
        let found = match &self.asked.wants {
            Wants::Done(request) => {
                operations.ledger.find(scope, request.key(&operations.secret), clock.now())
            }
            Wants::Known { id, .. } => operations.ledger.look(scope, *id, clock.now()),
        };
        let record = match found.await {
            Ok(Some(record)) => record,
            Ok(None) => return Consulted::Nothing,
            Err(_) => return Consulted::Unreadable,
        };
        if let Wants::Done(request) = &self.asked.wants
            && request.fingerprint() != record.identity.fingerprint
        {
            return Consulted::Known(Known { telling: Telling::OtherRequest, next_query: None });
        }
        Consulted::Known(self.known(record, rules, clock))
    }

    fn known(&mut self, record: Box<Record>, rules: &EffectRules, clock: &Clock) -> Known {
        let operations = &self.asked.operations;
        let follower = operations.following.of_route(&record.identity.route, rules.verification.is_some());
        let (now, route) = (clock.now(), &record.identity.route);
        let tracked = operation::tracked(&record, &follower, operations.ledger.epoch(), &now).ok();
        let next_query = tracked.map(|due| operations.following.until_asked(route, due, now.mono));
        let known = Known { telling: operation::answer(&record).into(), next_query };
        self.next_query = known.next_query;
        self.record = Some(record);
        known
    }
}

/// Writes an intent where nobody's leaving ends it.
fn write(
    operations: Arc<Operations>,
    intent: operation::Intent,
    clock: &Clock,
) -> oneshot::Receiver<Result<Result<Begun, IntentError>, LedgerError>> {
    let (sender, receiver) = oneshot::channel();
    let clock = clock.clone();
    tokio::spawn(async move {
        let begun = operations.ledger.begin(intent, clock.now());
        pass(Checkpoint::IntentQueued);
        let begun = begun.await;
        if let Err(Ok(Ok(Begun::New(intent)))) = sender.send(begun) {
            let report = intent.never_sent(NotExecuted::TooLate);
            let _nobody_waits_for_it = operations.ledger.record(report, clock.now()).await;
        }
    });
    receiver
}

/// What of a route's answers may lie on a disk.
fn keep(rules: &EffectRules) -> Keep {
    match &rules.stored_body {
        StoredBody::Nothing => Keep::status(),
        // The policy was checked for it; should one be no pointer all the same, nothing is kept.
        StoredBody::Redacted(pointers) => {
            Keep::without(pointers.iter().map(|pointer| &**pointer)).unwrap_or_else(|_| Keep::status())
        }
    }
}

/// 64 of the random bits that name an operation.
fn entropy(id: operation::OperationId) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *id.as_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}
