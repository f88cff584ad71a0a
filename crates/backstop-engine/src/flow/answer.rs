//! What an answer, or the lack of one, comes to.

use std::time::Duration;

use crate::failure::{Cause, Failure, Sent};
use crate::health::{PerMille, Signal, Ticket};
use crate::outcome::{Outcome, Reason, Source};
use crate::policy::{Incorrect, KeyPart, Origin, Otherwise, RouteClass};
use crate::snapshot::CopyRefusal;
use crate::status::refusal;
use crate::time::Mono;

use super::{
    Account, Answer, AttemptId, BodyFacts, ClientFault, CopyAction, CopyUse, Flow, HeadFacts, Method, Reply,
    Role, State, Streaming, Why,
};

/// The place of the call whose answer is looked at.
const OWN_PLACE: u32 = 1;

impl Flow {
    /// The head of an answer: a failure, an answer to hold back, or one to pass on.
    pub(super) fn head(&mut self, attempt: AttemptId, head: HeadFacts, now: Mono) -> State {
        self.listen(head, now);
        if self.is_operation() {
            return self.operation_head(attempt, head, now);
        }
        let declared = Failure::of_status(head.status, &self.route().rules);
        if self.stood_in {
            if let Some(failure) = declared {
                return self.failed(failure, Some(head), now);
            }
            if head.status >= 500 {
                return self.unfit(head, now);
            }
        }
        // A failure replaces an answer only where there is an alternative; too old an answer is none anywhere.
        if declared.is_none() && self.is_degraded_beyond_limit(head) {
            return self.failed(Failure::of_old_answer(head.status), Some(head), now);
        }
        // A retry, or somebody who stands in, replaces a failure before the class's own alternative does.
        if let Some(failure) = declared {
            if self.has_alternative() || self.role == Role::Fill {
                return self.failed(failure, Some(head), now);
            }
            if self.may_go_on(now) {
                // Whether one of them really will is known only when it is tried: until then the answer is kept.
                self.held = Some((attempt, head));
                return self.failed(failure, Some(head), now);
            }
        }
        // What many may get is held back whatever it is.
        if self.role == Role::Fill {
            return State::Collect { attempt, head };
        }
        // A probe proves something with its whole answer, and must not wait for its client to take that.
        let is_probe = self.ticket.as_ref().is_some_and(Ticket::is_probe) && !self.may_have_no_end();
        if head.has_body && (self.demands_form(head) || (is_probe && declared.is_none())) {
            return State::Collect { attempt, head };
        }
        State::Answer(self.pass(attempt, head, now))
    }

    /// Whether an answer is examined that is held back.
    fn demands_form(&self, head: HeadFacts) -> bool {
        let has_rules =
            self.has_alternative() || self.copy_may_answer() && self.route().rules.class.read().is_some();
        self.role == Role::Fill || (has_rules && (200..300).contains(&head.status))
    }

    /// Whether its answers may go on without end.
    fn may_have_no_end(&self) -> bool {
        matches!(&self.route().rules.class, RouteClass::Direct(direct) if direct.idle.is_some())
    }

    /// What the dependency says about itself and about what it uses.
    fn listen(&self, head: HeadFacts, now: Mono) {
        let dependency = self.dependency();
        if let Some(wait) = head.database_wait {
            dependency.health.signal(now, Signal::DatabaseWait(wait));
            match &*dependency.watched {
                [alone] => alone.set(self.called, now, wait),
                several => several.iter().for_each(|watched| watched.suspect(now, wait)),
            }
        }
        // Without this very call: who has a resource of one place to itself must not find it full because of itself.
        let in_use = dependency.resources.iter().map(|used| used.in_use_per_mille_besides(OWN_PLACE));
        if let Some(in_use) = in_use.max() {
            dependency.health.signal(now, Signal::InUse(PerMille(in_use)));
        }
    }

    /// An answer that a gateway behind this one calls an alternative must keep this route's own limit, whoever asks.
    /// An error is no answer that could be too old.
    fn is_degraded_beyond_limit(&self, head: HeadFacts) -> bool {
        match (self.route().rules.class.read(), head.degraded) {
            (Some(read), Some(age)) => self.reads() && head.status < 400 && age > read.max_age,
            _ => false,
        }
    }

    /// An answer that is complete, or too large to be held back.
    pub(super) fn body(&mut self, attempt: AttemptId, head: HeadFacts, body: BodyFacts, now: Mono) -> State {
        if self.is_operation() {
            return self.operation_body(attempt, head, body, now);
        }
        let (correct, storable) = match body {
            BodyFacts::TooLarge => return State::Answer(self.pass(attempt, head, now)),
            // Held back for another reason than its content, it goes on as it would have gone.
            BodyFacts::Broken | BodyFacts::Whole { .. } if !self.demands_form(head) => (true, false),
            BodyFacts::Broken => return self.failed(Failure::of_broken_body(), None, now),
            BodyFacts::Whole { correct, storable } => (correct, storable),
        };
        if !correct {
            let incorrect =
                self.route().rules.class.read().map_or(Incorrect::Propagate, |read| read.incorrect);
            if self.stood_in {
                return self.unfit(head, now);
            }
            if incorrect == Incorrect::Fallback {
                return self.failed(Failure::of_incorrect(head.status), None, now);
            }
            self.dependency().tally.answer();
            self.ended(false, false, now);
            let rule = self.route().rules.origins.correct;
            let account = account(Outcome::Failed, Source::Primary, Reason::Incorrect, rule);
            return State::Answer(collected(attempt, account, CopyAction::Keep));
        }
        self.dependency().tally.answer();
        self.ended(is_well(head.status), pays(head.status), now);
        let account = self.account_of(head);
        let keep = storable
            && head.status == 200
            && head.degraded.is_none()
            && !self.stood_in
            && self.facts.method == Method::Get
            && self.facts.copies == CopyUse::Full
            && self.route().rules.class.read().is_some();
        // A fill holds back answers of every kind.
        let copy = if keep { CopyAction::Store } else { self.copy_after(head) };
        State::Answer(collected(attempt, account, copy))
    }

    /// What somebody who stands in answered is none that this route may pass on. That is no failure of theirs: to those who
    /// ask them for their own sake it is an answer like any other, and must not close the way to it.
    fn unfit(&mut self, head: HeadFacts, now: Mono) -> State {
        self.dependency().tally.answer();
        self.ended(false, false, now);
        self.cut = None;
        let cause = Cause::Failed(Failure::of_incorrect(head.status));
        State::Alternative { cause: self.cause.unwrap_or(cause) }
    }

    /// The answer goes to the client as it comes.
    fn pass(&mut self, attempt: AttemptId, head: HeadFacts, now: Mono) -> Answer {
        if let Some(failure) = Failure::of_status(head.status, &self.route().rules) {
            self.count_failure(failure, Some(head), now);
            return self.as_it_is(attempt, head, None);
        }
        self.end_retry();
        let (well, has_no_end) = (is_well(head.status), self.may_have_no_end());
        let began = self.ticket.take().and_then(|ticket| {
            // Without content its head is all of it.
            let counts_now = has_no_end || ticket.is_probe() || !head.has_body;
            let began = if counts_now { ticket.counts_now(now, well) } else { ticket.began(now, well) };
            head.has_body.then_some(began)
        });
        let streams = Streaming { from: self.asked, called: self.called, began, pays: pays(head.status) };
        self.as_it_is(attempt, head, Some(streams))
    }

    /// The answer that came, whatever it is. `streams` is what is still to be said of it, if anything.
    pub(super) fn as_it_is(&self, attempt: AttemptId, head: HeadFacts, streams: Option<Streaming>) -> Answer {
        let (copy, account) = (self.copy_after(head), self.account_of(head));
        Answer { reply: Reply::Streamed(attempt), copy, account, streams }
    }

    /// The call was answered. `well`: as one who is in order answers; `pays`: so that it pays for retries.
    pub(super) fn ended(&mut self, well: bool, pays: bool, now: Mono) {
        self.end_retry();
        if pays {
            self.dependency().retries.deposit();
        }
        match self.ticket.take() {
            Some(ticket) if well => ticket.answered(now),
            Some(ticket) => ticket.neutral(now),
            None => {}
        }
    }

    pub(super) fn account_of(&self, head: HeadFacts) -> Account {
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
    pub(super) fn copy_after(&self, head: HeadFacts) -> CopyAction {
        let status = head.status;
        if self.facts.method == Method::Unsafe {
            return after_write(status);
        }
        let Some(read) = self.route().rules.class.read() else { return CopyAction::Keep };
        if !self.reads() || self.stood_in {
            return CopyAction::Keep;
        }
        // To one of many who share the copy, it says nothing of the others.
        let of_all_who_may =
            self.route().rules.authorizer.is_some() && !read.key.contains(&KeyPart::Principal);
        let refused = matches!(status, 401 | 403) && !self.facts.credential && !of_all_who_may;
        // What a gateway behind this one says in place of the origin is not the origin's word.
        if (read.gone.contains(status) || refused) && head.degraded.is_none() {
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
        self.ended(false, false, now);
        let source = if self.stood_in { Source::Alternative } else { Source::Primary };
        let account = account(Outcome::Failed, source, Reason::Unclassified, Origin::NONE);
        Answer { reply: Reply::Propagated(attempt), copy: self.copy_if_unknown(), account, streams: None }
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
                    streams: None,
                }
            }
            Err(refused) => match why {
                Why::Cause(cause) => self.refuse(Reason::Copy(refused), Some(cause), rule),
                Why::Capacity(scope) => self.refuse(why.reason(), None, self.rule_of(scope)),
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
        Answer { reply: Reply::Fixed, copy: CopyAction::Keep, account, streams: None }
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
            Reason::Cause(Cause::Failed(_)) | Reason::Incorrect | Reason::Unclassified => Outcome::Failed,
            Reason::ClientLeft => Outcome::Abandoned,
            _ => Outcome::Rejected,
        };
        let reached = matches!(cause, Some(Cause::Failed(failure)) if failure.sent == Sent::Maybe);
        let mut refusal = refusal(reason, cause, self.route().rules.unavailable_status);
        // When an authorizer can be asked again is its own matter, and nobody has measured what it can bear then.
        refusal.retry_after_s =
            (reason != Reason::Authorizer).then(|| self.time_to_come_back(cause)).flatten();
        Answer {
            reply: Reply::Refusal(refusal),
            copy: if reached { self.copy_if_unknown() } else { CopyAction::Keep },
            account: Account { cause, ..account(outcome, Source::None, reason, rule) },
            streams: None,
        }
    }

    /// An unsafe request whose end is unknown may have changed the resource.
    pub(super) fn copy_if_unknown(&self) -> CopyAction {
        if self.facts.method == Method::Unsafe { CopyAction::WithdrawUnsettled } else { CopyAction::Keep }
    }
}

/// What an answer with this status to a write means for the copies that it may have changed (RFC 9111 section 4.4). Whatever a
/// server error left behind is unknown.
pub const fn after_write(status: u16) -> CopyAction {
    match status {
        // Accepted, to be carried out later (RFC 9110 section 15.3.3), or nobody knows.
        202 | 500.. => CopyAction::WithdrawUnsettled,
        200..=399 => CopyAction::Withdraw,
        _ => CopyAction::Keep,
    }
}

/// Whether an answer is one that a dependency in order gives: 401, 404 and their like are answers about the request, and
/// a 500 is no sign of health.
pub(super) const fn is_well(status: u16) -> bool {
    status < 400
}

/// Whether an answer pays for retries. An answer about the request does; neither a server error nor the wish to be asked
/// less (429) does, for retries paid by them would feed what they come from.
pub(super) const fn pays(status: u16) -> bool {
    status < 500 && status != 429
}

pub(super) const fn account(outcome: Outcome, source: Source, reason: Reason, rule: Origin) -> Account {
    Account { outcome, source, reason, cause: None, age: None, rule }
}

pub(super) const fn collected(attempt: AttemptId, account: Account, copy: CopyAction) -> Answer {
    Answer { reply: Reply::Collected(attempt), copy, account, streams: None }
}
