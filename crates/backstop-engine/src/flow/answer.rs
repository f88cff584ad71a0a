//! What an answer, or the lack of one, comes to.

use std::time::Duration;

use crate::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use crate::health::{PerMille, Signal};
use crate::outcome::{Outcome, Reason, Source};
use crate::policy::{Incorrect, Origin, Otherwise, RouteClass};
use crate::snapshot::CopyRefusal;
use crate::status::refusal;
use crate::time::Mono;

use super::{
    Account, Answer, AttemptId, BodyFacts, ClientFault, CopyAction, CopyUse, Flow, HeadFacts, Method, Reply,
    State, Why,
};

impl Flow {
    /// The head of an answer: a failure, an answer to hold back, or one to pass on.
    pub(super) fn head(&mut self, attempt: AttemptId, head: HeadFacts, now: Mono) -> State {
        self.listen(head, now);
        let declared = Failure::of_status(head.status, &self.route().rules);
        // A failure replaces an answer only where there is an alternative; too old an answer is none anywhere.
        if declared.is_none() && self.is_degraded_beyond_limit(head) {
            let kind = FailureKind::Unavailable { status: head.status };
            return self.failed(Failure::new(kind, Phase::Head, Sent::Maybe), Some(head), now);
        }
        // A retry, or somebody who stands in, replaces a failure before the class's own alternative does.
        if let Some(failure) = declared
            && (self.has_alternative() || self.may_go_on())
        {
            return self.failed(failure, Some(head), now);
        }
        if self.stood_in && head.status >= 500 {
            let kind = FailureKind::Unavailable { status: head.status };
            return self.failed(Failure::new(kind, Phase::Head, Sent::Maybe), Some(head), now);
        }
        if !self.has_alternative() {
            return State::Answer(self.pass(attempt, head, now));
        }
        if head.has_body && (200..300).contains(&head.status) {
            return State::Collect { attempt, head };
        }
        State::Answer(self.pass(attempt, head, now))
    }

    /// What the dependency says about itself and about what it uses.
    fn listen(&self, head: HeadFacts, now: Mono) {
        let dependency = self.dependency();
        if let Some(wait) = head.database_wait {
            dependency.health.signal(now, Signal::DatabaseWait(wait));
            dependency.watched.iter().for_each(|watched| watched.set(now, wait));
        }
        if let Some(in_use) = dependency.resources.iter().map(|used| used.in_use_per_mille()).max() {
            dependency.health.signal(now, Signal::InUse(PerMille(in_use)));
        }
    }

    /// An answer that a gateway behind this one calls an alternative must keep this route's own limit, whoever asks.
    /// An error is no answer that could be too old.
    fn is_degraded_beyond_limit(&self, head: HeadFacts) -> bool {
        match (&self.route().rules.class, head.degraded) {
            (RouteClass::PublicRead(read), Some(age)) => {
                self.reads() && head.status < 400 && age > read.max_age
            }
            _ => false,
        }
    }

    /// An answer that is complete, or too large to be held back.
    pub(super) fn body(&mut self, attempt: AttemptId, head: HeadFacts, body: BodyFacts, now: Mono) -> State {
        let (correct, storable) = match body {
            BodyFacts::TooLarge => return State::Answer(self.pass(attempt, head, now)),
            BodyFacts::Broken => {
                return self.failed(
                    Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe),
                    None,
                    now,
                );
            }
            BodyFacts::Whole { correct, storable } => (correct, storable),
        };
        if !correct {
            let incorrect = match &self.route().rules.class {
                RouteClass::PublicRead(read) => read.incorrect,
                RouteClass::Direct(_) | RouteClass::Optional(_) => Incorrect::Propagate,
            };
            if incorrect == Incorrect::Fallback {
                let kind = FailureKind::Declared { status: head.status };
                return self.failed(Failure::new(kind, Phase::Body, Sent::Maybe), None, now);
            }
            self.dependency().tally.answer();
            self.ended(false, now);
            let rule = self.route().rules.origins.correct;
            let account = account(Outcome::Failed, Source::Primary, Reason::Incorrect, rule);
            return State::Answer(collected(attempt, account, CopyAction::Keep));
        }
        self.dependency().tally.answer();
        self.ended(true, now);
        let account = self.account_of(head);
        let keep = storable
            && head.status == 200
            && head.degraded.is_none()
            && !self.stood_in
            && self.facts.method == Method::Get
            && self.facts.copies == CopyUse::Full
            && matches!(self.route().rules.class, RouteClass::PublicRead(_));
        let copy = if keep { CopyAction::Store } else { CopyAction::Keep };
        State::Answer(collected(attempt, account, copy))
    }

    /// The answer goes to the client as it comes.
    fn pass(&mut self, attempt: AttemptId, head: HeadFacts, now: Mono) -> Answer {
        let account = self.account_of(head);
        // By the answer, not by the account's reason: a stand-in answers well for the failure of another.
        let failure = Failure::of_status(head.status, &self.route().rules);
        if let Some(failure) = failure {
            self.dependency().tally.failure(failure.kind);
            let entropy = self.draw();
            if let Some(ticket) = self.ticket.take() {
                ticket.failed(now, entropy);
            }
        } else {
            // 401, 404 and their like are answers about the request, and a 500 is no sign of health.
            self.ended(head.status < 400, now);
        }
        Answer {
            reply: Reply::Streamed(attempt),
            copy: self.copy_after(head),
            account,
            streams: failure.is_none(),
        }
    }

    /// The call was answered. `well`: as one who is in order answers.
    fn ended(&mut self, well: bool, now: Mono) {
        self.retry = None;
        self.dependency().retries.deposit();
        match self.ticket.take() {
            Some(ticket) if well => ticket.answered(now),
            Some(ticket) => ticket.neutral(now),
            None => {}
        }
    }

    fn account_of(&self, head: HeadFacts) -> Account {
        let rules = &self.route().rules;
        if let Some(failure) = Failure::of_status(head.status, rules) {
            let cause = Cause::Failed(failure);
            let account =
                account(Outcome::Failed, Source::Primary, Reason::Cause(cause), rules.origins.declared);
            return Account { cause: Some(cause), ..account };
        }
        if self.stood_in {
            let reason = self.cause.map_or(Reason::UpstreamDegraded, Reason::Cause);
            let rule = rules.alternative.map_or(rules.origins.route, |alternative| alternative.origin);
            let account = account(Outcome::Fallback, Source::Alternative, reason, rule);
            return Account { cause: self.cause, age: head.degraded, ..account };
        }
        match (head.status, head.degraded) {
            (500.., _) => account(Outcome::Failed, Source::Primary, Reason::ServerError, rules.origins.route),
            (_, Some(age)) => {
                let reason = Reason::UpstreamDegraded;
                let account = account(Outcome::Fallback, Source::Alternative, reason, rules.origins.route);
                Account { age: Some(age), ..account }
            }
            _ => account(Outcome::Normal, Source::Primary, Reason::None, rules.origins.route),
        }
    }

    /// What an answer with this status means for the copy (RFC 9111 section 4.4; `gone`).
    fn copy_after(&self, head: HeadFacts) -> CopyAction {
        let status = head.status;
        if self.facts.method == Method::Unsafe {
            // Whatever a server error left behind is unknown.
            return match status {
                // Accepted, to be carried out later (RFC 9110 section 15.3.3), or nobody knows.
                202 | 500.. => CopyAction::WithdrawUnsettled,
                200..=399 => CopyAction::Withdraw,
                _ => CopyAction::Keep,
            };
        }
        let RouteClass::PublicRead(read) = &self.route().rules.class else { return CopyAction::Keep };
        if !self.reads() || self.stood_in {
            return CopyAction::Keep;
        }
        let refused = matches!(status, 401 | 403) && !self.facts.credential;
        if read.gone.contains(status) || refused {
            CopyAction::Withdraw
        } else if self.confirms_copy(head) {
            CopyAction::Renew
        } else {
            CopyAction::Keep
        }
    }

    /// Only the origin's own 304 does: a gateway behind this one may say it of an old copy.
    fn confirms_copy(&self, head: HeadFacts) -> bool {
        head.status == 304
            && head.degraded.is_none()
            && self.facts.copies == CopyUse::Full
            && self.facts.method == Method::Get
    }

    /// An error that nobody classified goes to the caller unchanged.
    pub(super) fn propagate(&mut self, attempt: AttemptId, now: Mono) -> Answer {
        self.dependency().tally.answer();
        self.ended(false, now);
        let account = account(Outcome::Failed, Source::Primary, Reason::Unclassified, Origin::NONE);
        Answer { reply: Reply::Propagated(attempt), copy: self.copy_if_unknown(), account, streams: false }
    }

    /// The copy, as it was judged.
    pub(super) fn with_copy(&self, why: Why, verdict: Result<Duration, CopyRefusal>) -> Answer {
        let rule = self.route().rules.origins.alternative;
        match verdict {
            Ok(age) => {
                let account = account(Outcome::Fallback, Source::Snapshot, why.reason(), rule);
                Answer {
                    reply: Reply::Copy { age },
                    copy: CopyAction::Keep,
                    account: Account { age: Some(age), cause: why.cause(), ..account },
                    streams: false,
                }
            }
            Err(refused) => match why {
                Why::Cause(cause) => self.refuse(Reason::Copy(refused), Some(cause), rule),
                Why::Capacity(_) => self.refuse(why.reason(), None, self.route().rules.origins.in_flight),
            },
        }
    }

    /// The stand-in of an optional part.
    pub(super) fn fixed(&self, why: Why, otherwise: &Otherwise) -> Answer {
        let source = match otherwise {
            Otherwise::Omit(_) => Source::Omitted,
            Otherwise::Prepared(_) => Source::Prepared,
        };
        let account =
            account(Outcome::Fallback, source, why.reason(), self.route().rules.origins.alternative);
        let account = Account { cause: why.cause(), ..account };
        Answer { reply: Reply::Fixed, copy: CopyAction::Keep, account, streams: false }
    }

    /// The client's own request is at fault.
    pub(super) fn client_fault(&self, fault: ClientFault, asked: bool) -> Answer {
        let reason = match fault {
            ClientFault::Slow => Reason::ClientSlow,
            ClientFault::TooLarge => Reason::ClientTooLarge,
            ClientFault::Broken => Reason::ClientLeft,
        };
        let mut answer = self.refuse(reason, None, self.route().rules.origins.route);
        if asked {
            answer.copy = self.copy_if_unknown();
        }
        answer
    }

    /// No answer but Backstop's own.
    pub(super) fn refuse(&self, reason: Reason, cause: Option<Cause>, rule: Origin) -> Answer {
        let outcome = match reason {
            Reason::Cause(Cause::Failed(_)) | Reason::Unclassified => Outcome::Failed,
            Reason::ClientLeft => Outcome::Abandoned,
            _ => Outcome::Rejected,
        };
        let reached = matches!(cause, Some(Cause::Failed(failure)) if failure.sent == Sent::Maybe);
        let mut refusal = refusal(reason, cause, self.route().rules.unavailable_status);
        refusal.retry_after_s = self.time_to_come_back(cause);
        Answer {
            reply: Reply::Refusal(refusal),
            copy: if reached { self.copy_if_unknown() } else { CopyAction::Keep },
            account: Account { cause, ..account(outcome, Source::None, reason, rule) },
            streams: false,
        }
    }

    /// When who is refused may come back, where that is known: the dependency's probe or ramp, or its resource, is what
    /// refuses, and how much it has to spare is known.
    fn time_to_come_back(&self, cause: Option<Cause>) -> Option<u32> {
        let Some(Cause::NotAsked(NotAsked::BreakerOpen | NotAsked::Ramping | NotAsked::ResourceFull)) = cause
        else {
            return None;
        };
        let dependency = self.dependency();
        let known_up = dependency.health.known_up(self.seen).unwrap_or(self.seen);
        let instances = self.engine.instances();
        let spare =
            dependency.resources.iter().filter_map(|used| used.spare_per_second(self.seen, instances));
        let usual = dependency.health.usual_rate().unwrap_or(0.0);
        let spare = spare.fold(f64::INFINITY, f64::min) - usual;
        dependency.come_back.assign(self.seen, known_up, spare)
    }

    /// An unsafe request whose end is unknown may have changed the resource.
    fn copy_if_unknown(&self) -> CopyAction {
        if self.facts.method == Method::Unsafe { CopyAction::WithdrawUnsettled } else { CopyAction::Keep }
    }
}

const fn account(outcome: Outcome, source: Source, reason: Reason, rule: Origin) -> Account {
    Account { outcome, source, reason, cause: None, age: None, rule }
}

const fn collected(attempt: AttemptId, account: Account, copy: CopyAction) -> Answer {
    Answer { reply: Reply::Collected(attempt), copy, account, streams: false }
}
