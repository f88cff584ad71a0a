//! The decided answer, as it goes to the client.

use std::time::Duration;

use backstop_engine::flow::{Account, CopyAction, CopyUse, Decision, Method, Reply, Settlement};
use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::policy::RouteClass;
use backstop_engine::status::{Refusal, refusal};
use backstop_engine::time::Mono;
use backstop_store::{Renewal, Withdrawal};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, TRAILER, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, response};

use crate::body::ReplyBody;
use crate::fields::SharedFrom;
use crate::request::{Observed, method, target};
use crate::storable::{forbids_keeping, limit_if_kept, limit_if_overridden, storable};
use crate::stream::{Patience, Stream};
use crate::unsettled::withdraw;
use crate::upstream::Upstream;
use crate::{authorize, fields, keep, own, replay};

use super::hands::{Answer, Http};

impl<U, B> Http<'_, U, B>
where
    U: Upstream<B>,
    U::Body: Unpin,
{
    /// Does what was decided.
    pub(super) async fn answer(
        mut self,
        decision: Decision,
        explain: bool,
    ) -> Result<Response<ReplyBody<U::Body>>, U::Error> {
        let mut write = self.write.take();
        let Decision { reply, copy, account, until, settlement, .. } = decision;
        let copy = self.by_the_origins_word(copy, &account);
        match copy {
            CopyAction::Keep => {}
            CopyAction::Store => self.store(),
            CopyAction::Renew => self.renew(),
            CopyAction::Withdraw => self.withdraw(None).await,
            CopyAction::WithdrawUnsettled => self.withdraw(Some(self.route.settled_at())).await,
        }
        // What a refused write did is known, and one of unknown end was just seen to.
        if copy != CopyAction::Withdraw
            && let Some(write) = write.take()
        {
            write.settle();
        }
        let answer = std::mem::replace(&mut self.answer, Answer::None);
        let mut response = match (reply, answer) {
            (Reply::Collected(_), Answer::Whole { mut head, body, trailers, held }) => {
                // It is sent with its length, and in HTTP/1.1 nothing can follow that.
                let trailers = trailers.filter(|_| self.parts.version == Version::HTTP_2);
                if trailers.is_none() {
                    head.headers.remove(TRAILER);
                }
                Response::from_parts(head, ReplyBody::collected(body, trailers, Some(held), settlement))
            }
            (Reply::Streamed(_), Answer::Streaming { head, prefix, body }) => {
                let clock = self.route.inner.shared.clock.clone();
                let patience = self.patience(until, &settlement);
                let stream = Stream::new(prefix, body, clock, patience).alongside(self.upload.take());
                // Until its answer is whole, a write may be under way whatever its status says.
                Response::from_parts(head, ReplyBody::streamed(stream, settlement, write.take()))
            }
            (Reply::Propagated(_), Answer::Unclassified(error)) => {
                settlement.complete();
                return Err(error);
            }
            (Reply::Cached { age }, _) => self.shared_response(age, SharedFrom::Cache, &account, settlement),
            (Reply::Shared { age }, _) => {
                let led = self.shared.as_ref().is_some_and(|(_, led)| *led);
                let from = if led { SharedFrom::OwnRead } else { SharedFrom::AnothersRead };
                self.shared_response(age, from, &account, settlement)
            }
            (Reply::Copy { age }, _) => self.copy_response(age, &account, settlement),
            (Reply::Fixed, _) => self.fixed_response(&account, settlement),
            (Reply::Denied, _) if self.denial.is_some() => {
                authorize::denied(self.denial.take().unwrap_or_default(), self.is_head(), settlement)
            }
            (Reply::Operation(reply), _) => self.operation_response(&reply, settlement),
            (Reply::Refusal(refusal), _) => self.refusal_response(&refusal, &account, settlement),
            // The engine answers with what it was told of; should it ever not be there, nothing is made up.
            (
                Reply::Collected(_)
                | Reply::Streamed(_)
                | Reply::Propagated(_)
                | Reply::Composed { .. }
                | Reply::Denied
                | Reply::Part { .. },
                _,
            ) => {
                let refusal = refusal(Reason::Unclassified, None, Default::default());
                self.refusal_response(&refusal, &account, settlement)
            }
        };
        if let Some(write) = write {
            write.settle();
        }
        self.describe_operation(response.headers_mut());
        self.describe(&mut response, account, explain);
        Ok(response)
    }

    fn patience(&self, until: Mono, settlement: &Settlement) -> Patience {
        match &self.route.state().rules.class {
            RouteClass::Direct(direct) if direct.idle.is_some() => {
                Patience::Idle(direct.idle.unwrap_or_default())
            }
            _ => Patience::InAll {
                left: self.route.inner.shared.clock.mono().until(until),
                slow_in: settlement.slow_in(),
            },
        }
    }

    /// The `Backstop` field, and what is left for whoever logs.
    fn describe<T>(&self, response: &mut Response<T>, account: Account, explain: bool) {
        let normal = account.outcome == Outcome::Normal;
        // A gateway behind this one tells more of its own alternative than can be told here.
        if account.reason != Reason::UpstreamDegraded {
            if explain || !normal {
                response.headers_mut().insert(fields::BACKSTOP, fields::backstop(&account));
            } else {
                response.headers_mut().remove(fields::BACKSTOP);
            }
        }
        if account.source == Source::Alternative && account.cause.is_some() {
            self.describe_cause(response.headers_mut(), &account);
        }
        // Of a normal answer too that is not the dependency's.
        if !normal
            || matches!(account.source, Source::Authorizer | Source::Ledger)
            || self.parts.extensions.get::<Observed>().is_some()
        {
            response.extensions_mut().insert(account);
        }
    }

    /// What happens to the copy, by what the origin says now. Where its newest answer must not be kept, the one before goes:
    /// what it forbids for the new one it would forbid for the old one too.
    pub(crate) fn by_the_origins_word(&self, copy: CopyAction, account: &Account) -> CopyAction {
        let head = match &self.answer {
            Answer::Whole { head, .. } | Answer::Streaming { head, .. } => head,
            Answer::None | Answer::Unclassified(_) => return copy,
        };
        let is_for_all = self
            .read
            .as_ref()
            .is_some_and(|read| read.facts.copies == CopyUse::Full && read.facts.method == Method::Get);
        let is_its_own = account.outcome == Outcome::Normal && account.source == Source::Primary;
        // What a 304 says is judged together with what the copy knows: there it need not say everything again.
        let is_of_the_whole = head.status == StatusCode::OK;
        let override_origin = self.class().is_some_and(|class| class.override_origin);
        let is_forbidden = copy == CopyAction::Keep
            && is_for_all
            && is_its_own
            && is_of_the_whole
            && forbids_keeping(&head.headers, override_origin);
        if is_forbidden { CopyAction::Withdraw } else { copy }
    }

    pub(crate) fn store(&mut self) {
        if !self.route.state().rules.class.keeps_copies() {
            return;
        }
        let (Some(read), Some(ticket), Answer::Whole { head, body, .. }) =
            (&self.read, self.ticket, &self.answer)
        else {
            return;
        };
        let override_origin = self.class().is_some_and(|class| class.override_origin);
        let facts = self.copy_facts(&head.headers, override_origin);
        let shared = &self.route.inner.shared;
        let now = shared.clock.now();
        if let Some(copy) = self.kept(head, body, facts, now) {
            let _counted_by_the_store = shared.copies.put(&read.key, copy, ticket, now);
        }
    }

    fn renew(&mut self) {
        let (Some(read), Some(ticket), Answer::Streaming { head, .. }) =
            (&self.read, self.ticket, &self.answer)
        else {
            return;
        };
        let override_origin = self.class().is_some_and(|class| class.override_origin);
        let shared = &self.route.inner.shared;
        let now = shared.clock.now();
        let Some(headers) = keep::renewing(&head.headers, now.wall) else { return };
        let validators = keep::validators(&head.headers, &self.parts.headers);
        let observed_at = self.copy_facts(&head.headers, override_origin).observed_at;
        let judge = if override_origin { limit_if_overridden } else { limit_if_kept };
        let renewal = Renewal { validators: &validators, headers: &headers, observed_at, judge };
        let _counted_by_the_store = shared.copies.renew(&read.key, &self.parts.headers, renewal, ticket, now);
    }

    /// With `until`, reads that begin before it are not kept either.
    pub(crate) async fn withdraw(&mut self, until: Option<Mono>) {
        let withdrawals = match method(&self.parts.method) {
            Method::Unsafe => self.route.withdrawn_by_write(&self.parts),
            Method::Get | Method::Head | Method::OtherSafe => vec![Withdrawal::Target(target(&self.parts))],
        };
        withdraw(self.route, withdrawals, until).await;
    }

    /// The copy that was fetched, as an answer to this request, and how long its origin called it fresh.
    fn replayed(&mut self) -> Option<(response::Parts, Bytes, Option<Duration>)> {
        let copy = self.copy.take()?;
        let (head, body) = replay::answer(&copy, &self.parts);
        Some((head, body, storable(&copy.headers, true).lifetime))
    }

    /// The flow decided for a copy that nobody fetched.
    fn without_copy(&mut self, account: &Account, settlement: Settlement) -> Response<ReplyBody<U::Body>> {
        let refusal = refusal(Reason::Unclassified, None, Default::default());
        self.refusal_response(&refusal, account, settlement)
    }

    fn copy_response(
        &mut self,
        age: Duration,
        account: &Account,
        settlement: Settlement,
    ) -> Response<ReplyBody<U::Body>> {
        let Some((mut head, body, lifetime)) = self.replayed() else {
            return self.without_copy(account, settlement);
        };
        let speaker = &self.route.inner.shared.speaker;
        fields::describe_copy(&mut head.headers, account, age, lifetime, speaker);
        self.describe_cause(&mut head.headers, account);
        Response::from_parts(head, ReplyBody::whole(body, settlement))
    }

    fn shared_response(
        &mut self,
        age: Duration,
        from: SharedFrom,
        account: &Account,
        settlement: Settlement,
    ) -> Response<ReplyBody<U::Body>> {
        let Some((mut head, body, lifetime)) = self.replayed() else {
            return self.without_copy(account, settlement);
        };
        fields::describe_shared(&mut head.headers, age, lifetime, from, &self.route.inner.shared.speaker);
        // A copy keeps no marks: what another gateway said of this answer is said again.
        if account.reason == Reason::UpstreamDegraded {
            head.headers.insert(fields::BACKSTOP, fields::backstop(account));
        }
        let held = self.shared.take().and_then(|(held, _)| held);
        Response::from_parts(head, ReplyBody::collected(body, None, held, settlement))
    }

    fn fixed_response(&self, account: &Account, settlement: Settlement) -> Response<ReplyBody<U::Body>> {
        let (mut head, ()) = Response::new(()).into_parts();
        let mut content = Bytes::new();
        if let Some(fixed) = &self.route.inner.fixed {
            let (answer, language) = fixed.for_request(&self.parts.headers);
            head.status = answer.status;
            head.headers.insert(CONTENT_TYPE, answer.media_type.clone());
            content = answer.body.clone();
            if let Some(language) = language {
                head.headers.insert(CONTENT_LANGUAGE, language.clone());
            }
            if fixed.varies() {
                head.headers.insert(VARY, HeaderValue::from_static("accept-language"));
            }
        }
        head.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // RFC 9110 section 8.6.
        if head.status != StatusCode::NO_CONTENT {
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
        }
        self.describe_cause(&mut head.headers, account);
        let content = own::unless_head(content, self.is_head());
        Response::from_parts(head, ReplyBody::whole(content, settlement))
    }

    fn refusal_response(
        &self,
        refused: &Refusal,
        account: &Account,
        settlement: Settlement,
    ) -> Response<ReplyBody<U::Body>> {
        let speaker = &self.route.inner.shared.speaker;
        own::refused(refused, account, speaker, self.is_head(), settlement)
    }

    fn describe_cause(&self, headers: &mut HeaderMap, account: &Account) {
        debug_assert!(account.source != Source::Primary);
        if let Some(cause) = account.cause {
            own::describe_cause(headers, cause, &self.route.inner.shared.speaker);
        }
    }

    pub(super) fn is_head(&self) -> bool {
        self.parts.method == http::Method::HEAD
    }
}
