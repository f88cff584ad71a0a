//! The steps of an HTTP exchange.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backstop_engine::failure::NotAsked;
use backstop_engine::flow::{
    Attempt, AttemptId, Authorization, BodyFacts, Cached, Came, Consulted, Event, Filled, HeadFacts, Method,
    Recorded,
};
use backstop_engine::policy::{KeyPart, PublicRead};
use backstop_engine::snapshot::{CopyFacts, CopyRules, ObservedAt, judge};
use backstop_engine::time::{Mono, Now};
use backstop_store::ledger::checkpoint::{Checkpoint, pass};
use backstop_store::{CopyKey, LoadError, Loaded, ReadTicket, StoredCopy};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, RANGE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, response};
use http_body::Body;

use crate::authorize::Verdict;
use crate::body::{Collected, Prefix, collect};
use crate::budget::{Budget, Held};
use crate::concern::Concern;
use crate::correct::Form;
use crate::driver::Hands;
use crate::fields::{BACKSTOP_ATTEMPT, degraded};
use crate::fill::{Brought, Fill};
use crate::flights::{Lead, Watch};
use crate::json::shows_its_end;
use crate::keep;
use crate::protected::ProtectedRoute;
use crate::request::{Read, method, part_text};
use crate::signals::{database_wait, retry_after};
use crate::storable::{received_age, storable, unasked};
use crate::unsettled::UnsettledWrite;
use crate::upload::UploadWatch;
use crate::upstream::{BrokenOff, CacheAnswer, CallError, Framing, Progress, Upstream};

use super::operation::{Answered, Operation};

/// One exchange under way.
pub(crate) struct Http<'a, U: Upstream<B>, B> {
    pub(crate) route: &'a ProtectedRoute,
    upstream: &'a U,
    /// The request as it was sent on.
    pub(crate) parts: Parts,
    body: Option<B>,
    pub(crate) read: Option<Read>,
    begun: Now,
    pub(super) ticket: Option<ReadTicket>,
    pub(crate) answer: Answer<U::Body, U::Error>,
    pub(super) copy: Option<Arc<StoredCopy>>,
    /// Memory of an answer that was read for many, and whether it was this request that had it read.
    pub(super) shared: Option<(Option<Held>, bool)>,
    /// How far the read has come that it waits for.
    watch: Watch,
    /// Where this is the read for many: those who wait are told here that it is sent.
    pub(crate) lead: Option<&'a Lead>,
    /// Who knows how long the client keeps us waiting for its content.
    pub(crate) upload: Option<Arc<UploadWatch>>,
    /// The authorizer's no.
    pub(super) denial: Option<Response<Bytes>>,
    /// A write that was handed to the dependency and whose end is not known.
    pub(super) write: Option<UnsettledWrite>,
    /// The operation that it asks for, on a route that has them.
    pub(super) operation: Option<Operation>,
    /// Whether content follows the head of the answer that came.
    has_content_to_come: bool,
    /// Whether nobody waits for the answer: it is held in memory of its own.
    pub(crate) is_apart: bool,
}

/// What came from the dependency.
pub(crate) enum Answer<B, E> {
    None,
    Streaming { head: response::Parts, prefix: Prefix, body: B },
    Whole { head: response::Parts, body: Bytes, trailers: Option<HeaderMap>, held: Held },
    Unclassified(E),
}

impl<'a, U, B> Http<'a, U, B>
where
    U: Upstream<B>,
    U::Body: Unpin,
{
    pub(crate) fn new(
        route: &'a ProtectedRoute,
        upstream: &'a U,
        parts: Parts,
        body: B,
        read: Option<Read>,
        begun: Now,
    ) -> Self {
        Self {
            route,
            upstream,
            parts,
            body: Some(body),
            read,
            begun,
            ticket: None,
            answer: Answer::None,
            copy: None,
            shared: None,
            watch: Watch::default(),
            lead: None,
            upload: None,
            denial: None,
            write: None,
            operation: None,
            has_content_to_come: false,
            is_apart: false,
        }
    }

    pub(super) fn class(&self) -> Option<&'a PublicRead> {
        self.route.state().rules.class.read()
    }

    /// The date and the origin's limit of what an answer with these fields becomes.
    pub(super) fn copy_facts(&self, headers: &HeaderMap, override_origin: bool) -> CopyFacts {
        CopyFacts {
            observed_at: ObservedAt::new(self.begun, received_age(headers)),
            origin_limit: storable(headers, override_origin).limit,
        }
    }

    fn head_facts(&self, head: &response::Parts) -> HeadFacts {
        let without_content = self.parts.method == http::Method::HEAD
            || head.status.is_informational()
            || matches!(
                head.status,
                StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
            );
        HeadFacts {
            status: head.status.as_u16(),
            has_body: !without_content,
            degraded: degraded(&head.headers),
            retry_after: retry_after(&head.headers, self.route.inner.shared.clock.now().wall),
            database_wait: database_wait(&head.headers),
        }
    }

    /// What an answer becomes for everybody who asked for it, if they may all have it.
    pub(crate) fn shareable(&self, head: &response::Parts, body: &Bytes) -> Option<StoredCopy> {
        let rules = self.route.state().rules.class.cached()?;
        if Concern::of(head.status) != Concern::Everybody {
            return None;
        }
        let override_origin = rules.read.override_origin;
        if !storable(&head.headers, override_origin).keep {
            return None;
        }
        let facts = self.copy_facts(&head.headers, override_origin);
        let now = self.route.inner.shared.clock.now();
        let copy = self.kept(head, body, facts, now)?;
        let max_age = rules.ttl.max(rules.fill.deadline);
        let rules = CopyRules { max_age, after_restart: rules.read.after_restart, override_origin };
        judge(Some(&unasked_facts(&copy)), &rules, &now).is_ok().then_some(copy)
    }

    /// Writes down what is about to be forwarded, on a route whose requests have to be.
    async fn begin_operation(&mut self, attempt: &Attempt) -> Result<(), Event> {
        let route = self.route.state();
        let Some(rules) = route.rules.class.effect().filter(|_| self.parts.method != http::Method::OPTIONS)
        else {
            return Ok(());
        };
        let Some(operation) = &mut self.operation else {
            return Err(Event::NotAsked { attempt: attempt.id, reason: NotAsked::Ledger });
        };
        let clock = &self.route.inner.shared.clock;
        operation.begin(rules, &route.rules.name, &mut self.parts, attempt, clock).await
    }

    /// The copy that an answer becomes.
    pub(super) fn kept(
        &self,
        head: &response::Parts,
        body: &Bytes,
        facts: CopyFacts,
        now: Now,
    ) -> Option<StoredCopy> {
        let fills = self.upstream.fills_its_buffers();
        keep::copy(head, body, fills, facts, &self.parts.headers, now.wall)
    }

    /// Has the read made for everybody who asks for the same.
    async fn fill(&mut self, waiters: u32) -> Brought<U::Body> {
        let Some(read) = &self.read else { return Brought::Apart };
        let fill = Fill::of(self.route, &self.parts, read, waiters);
        self.watch = fill.watch();
        self.upstream.fill(fill).await.0
    }

    /// Whether what this read brings was withdrawn since it began.
    pub(crate) fn was_withdrawn(&self, key: &CopyKey) -> bool {
        self.was_withdrawn_from(key, &ObservedAt::new(self.begun, Duration::ZERO))
    }

    fn was_withdrawn_from(&self, key: &CopyKey, observed_at: &ObservedAt) -> bool {
        let shared = &self.route.inner.shared;
        // What says that it was read in the future is refused by its date.
        began(observed_at, &shared.clock.now()).is_some_and(|began| shared.copies.withdrawn_since(key, began))
    }

    fn body_facts(&self, head: &response::Parts, body: &Bytes) -> BodyFacts {
        let language = self.read.as_ref().and_then(|read| read.language.as_deref());
        let part = |part: &KeyPart| part_text(part, &self.parts, language);
        if announced(&head.headers).is_some_and(|length| length != body.len() as u64) {
            return BodyFacts::Broken;
        }
        // A part that was asked for has not the form of the whole (RFC 9110 section 15.3.7).
        if head.status == StatusCode::PARTIAL_CONTENT && self.parts.headers.contains_key(RANGE) {
            return BodyFacts::Whole { correct: true, storable: false };
        }
        // Only a fill holds these back. They are answers about the request, whatever they look like.
        if !head.status.is_success() || !self.head_facts(head).has_body {
            return BodyFacts::Whole { correct: true, storable: false };
        }
        let framing = head.extensions.get().copied().unwrap_or(Framing::Delimited);
        match self.route.inner.correct.examine(&head.headers, body, framing, part) {
            Form::Broken => BodyFacts::Broken,
            Form::Whole { correct, certain } => {
                let keeps = |class: &PublicRead| storable(&head.headers, class.override_origin).keep;
                BodyFacts::Whole { correct, storable: certain && self.class().is_some_and(keeps) }
            }
        }
    }
}

/// The facts of a copy that is given without the dependency being asked at all.
fn unasked_facts(copy: &StoredCopy) -> CopyFacts {
    CopyFacts { observed_at: copy.facts.observed_at, origin_limit: unasked(&copy.headers) }
}

/// When a read began, on the clock of this boot; across boots as far as the dates tell. `None` lies in the future.
fn began(observed_at: &ObservedAt, now: &Now) -> Option<Mono> {
    if observed_at.boot == now.boot {
        return Some(observed_at.mono);
    }
    now.wall.since(observed_at.wall).map(|ago| now.mono.before(ago))
}

/// The length that an answer gives itself.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl<U, B> Hands for Http<'_, U, B>
where
    U: Upstream<B>,
    U::Body: Unpin,
{
    async fn authorize(&mut self, attempt: Option<Attempt>, progress: &Progress) -> Authorization {
        let verdict = self.upstream.authorize(attempt, &self.parts, progress).await;
        let came = verdict.came();
        match verdict {
            Verdict::Allowed(caller) => {
                caller.introduce(&mut self.parts);
                // Only now it is known whose copies these are.
                if let (Some(read), Some(class)) = (&mut self.read, self.route.state().rules.class.read()) {
                    let (name, fingerprint) = (&self.route.state().rules.name, &self.route.inner.fingerprint);
                    read.key = Read::key(class, name, fingerprint, &self.parts, read.language.as_deref());
                }
            }
            Verdict::Denied(denial) => self.denial = Some(denial),
            Verdict::Unclear | Verdict::Failed(_) | Verdict::NotAsked(_) => {}
        }
        came
    }

    fn peek(&mut self) -> Option<CopyFacts> {
        let read = self.read.as_ref()?;
        self.route.inner.shared.copies.peek(&read.key, &self.parts.headers)
    }

    async fn lookup(&mut self, until: Mono) -> Event {
        let (Some(read), Some(rules)) = (&self.read, self.route.state().rules.class.cached()) else {
            return Event::Cached(Cached::NotAsked);
        };
        let answer = self.upstream.cached(rules.cache, &read.key, &self.parts.headers, until).await;
        Event::Cached(match answer {
            CacheAnswer::Copy(copy) => {
                let facts = unasked_facts(&copy);
                if self.was_withdrawn_from(&read.key, &facts.observed_at) {
                    Cached::Miss
                } else {
                    self.copy = Some(Arc::new(*copy));
                    Cached::Hit(facts)
                }
            }
            CacheAnswer::Miss => Cached::Miss,
            CacheAnswer::Failed => Cached::Failed,
            CacheAnswer::NotAsked => Cached::NotAsked,
        })
    }

    async fn join(&mut self, waiters: u32) -> Event {
        let mut brought = self.fill(waiters).await;
        // One of those who waited leads in its place. Should its request have the fault too, each asks for itself.
        if matches!(brought, Brought::Again) {
            brought = self.fill(waiters).await;
        }
        let filled = match brought {
            // What many may have may still vary by what this one sent.
            Brought::Shared { copy, .. }
                if copy.vary.iter().any(|field| !field.matches(&self.parts.headers)) =>
            {
                Filled::Apart
            }
            Brought::Shared { copy, account, held, led } => {
                let facts = unasked_facts(&copy);
                self.copy = Some(copy);
                self.shared = Some((held, led));
                Filled::Shared(account, facts)
            }
            Brought::Whole { head, body, trailers, held, account } => {
                self.answer = Answer::Whole { head, body, trailers, held };
                Filled::Whole(account)
            }
            Brought::Streamed { head, prefix, body, account, from } => {
                self.answer = Answer::Streaming { head, prefix, body };
                Filled::Streamed(account, from.take())
            }
            Brought::Failed(cause) => Filled::Failed(cause),
            Brought::Full => Filled::Full,
            Brought::Apart | Brought::Again => Filled::Apart,
        };
        Event::Filled(filled)
    }

    fn was_sent(&self) -> bool {
        self.watch.was_sent()
    }

    async fn let_go(&mut self) {
        /// What is longer is not worth it.
        const REST_BYTES: usize = 64 * 1024;
        let Answer::Streaming { mut body, .. } = std::mem::replace(&mut self.answer, Answer::None) else {
            return;
        };
        let mut read = 0;
        while read <= REST_BYTES {
            match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                Some(Ok(frame)) => read += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) | None => return,
            }
        }
    }

    async fn call(&mut self, attempt: Attempt, progress: &Progress) -> Event {
        let id = attempt.id;
        self.answer = Answer::None;
        if let Err(event) = self.begin_operation(&attempt).await {
            return event;
        }
        // Content is gone with the first attempt; the flow repeats only what has none.
        let Some(body) = self.body.take().or_else(|| self.upstream.no_content()) else {
            return Event::Propagated { attempt: id };
        };
        if let Some(lead) = self.lead {
            lead.sent();
        }
        if self.read.is_some() {
            self.ticket = Some(self.route.inner.shared.copies.begin_read(self.begun));
        }
        if method(&self.parts.method) == Method::Unsafe {
            self.write = Some(UnsettledWrite::begun(self.route, &self.parts));
        }
        let mut request = Request::from_parts(self.parts.clone(), body);
        if attempt.number > 1 {
            request.headers_mut().insert(BACKSTOP_ATTEMPT, HeaderValue::from(attempt.number));
        }
        match self.upstream.call(attempt, request, progress).await {
            Ok(response) => {
                let (head, body) = Response::into_parts(response);
                if self.operation.is_some() {
                    pass(Checkpoint::AnswerBegun);
                }
                let facts = self.head_facts(&head);
                self.has_content_to_come = facts.has_body;
                self.answer = Answer::Streaming { head, prefix: Prefix::default(), body };
                Event::Head { attempt: id, head: facts }
            }
            Err(CallError::Failed(failure)) => Event::Failed { attempt: id, failure },
            Err(CallError::NotAsked(reason)) => Event::NotAsked { attempt: id, reason },
            Err(CallError::Client(fault)) => Event::ClientFault(fault),
            Err(CallError::Unclassified(error)) => {
                self.answer = Answer::Unclassified(error);
                Event::Propagated { attempt: id }
            }
        }
    }

    async fn collect(&mut self, attempt: AttemptId, limit_bytes: u64) -> Event {
        let answer = std::mem::replace(&mut self.answer, Answer::None);
        let Answer::Streaming { head, body, .. } = answer else { return Event::TimeUp(None) };
        // The answer to what was forwarded is read whatever else is held, and one that nobody waits for takes no memory that
        // somebody could need: how many of either there are is bounded by their places.
        let (shared, own) = (&self.route.inner.shared.budget, Budget::default());
        let budget = if self.operation.is_some() || self.is_apart { &own } else { shared };
        match collect(body, limit_bytes, budget).await {
            Ok(Collected::Whole { body, trailers, held }) => {
                let facts = self.body_facts(&head, &body);
                self.answer = Answer::Whole { head, body, trailers, held };
                Event::Body { attempt, body: facts }
            }
            Ok(Collected::TooLarge { prefix, rest }) => {
                self.answer = Answer::Streaming { head, prefix, body: rest };
                Event::Body { attempt, body: BodyFacts::TooLarge }
            }
            Err(BrokenOff::Dependency(failure, _)) => Event::Failed { attempt, failure },
            Err(BrokenOff::Client(fault)) => Event::ClientFault(fault),
        }
    }

    async fn consult(&mut self) -> Consulted {
        let route = self.route.state();
        let (Some(operation), Some(rules)) = (&mut self.operation, route.rules.class.effect()) else {
            return Consulted::Nothing;
        };
        operation.consult(rules, &route.rules.name, &self.parts, &self.route.inner.shared.clock).await
    }

    async fn record(&mut self, came: Came) -> Recorded {
        let (Some(operation), Some(rules)) = (&mut self.operation, self.route.state().rules.class.effect())
        else {
            return Recorded::Nothing;
        };
        let answered = match &self.answer {
            Answer::Whole { head, body, .. } => {
                // Where the end of the connection is its end, only its form tells whether it is whole.
                let framing = head.extensions.get().copied().unwrap_or(Framing::Delimited);
                let is_whole = framing == Framing::Delimited || shows_its_end(body);
                let content = is_whole.then_some(&body[..]);
                Some(Answered { status: head.status.as_u16(), headers: &head.headers, content })
            }
            Answer::Streaming { head, .. } => {
                // Without content its head is all of it.
                let content = (!self.has_content_to_come).then_some(&b""[..]);
                Some(Answered { status: head.status.as_u16(), headers: &head.headers, content })
            }
            Answer::None | Answer::Unclassified(_) => None,
        };
        operation.record(came, answered, rules, &self.route.inner.shared.clock).await
    }

    fn not_recorded(&self) -> Recorded {
        self.operation.as_ref().map_or(Recorded::Nothing, Operation::not_recorded)
    }

    async fn load(&mut self) -> Event {
        let Some(read) = &self.read else { return Event::Copy(Ok(None)) };
        let copy = match self.route.inner.shared.copies.load(&read.key, &self.parts.headers) {
            Loaded::Missing => Ok(None),
            Loaded::Ready(copy) => Ok(Some(copy)),
            Loaded::Disk(pending) => match pending.await {
                Ok(copy) => Ok(Some(copy)),
                Err(LoadError::Gone) => Ok(None),
                Err(LoadError::Unreadable) => Err(()),
            },
            _ => Err(()),
        };
        self.copy = copy.clone().ok().flatten();
        Event::Copy(copy.map(|copy| copy.map(|copy| copy.facts)))
    }
}
