//! Trying what stands behind a route while nobody needs it.
//!
//! The engine draws the request and says what may be tried ([`backstop_engine::exercise`]); here it is done. What needs no
//! waiting is done where the request was decided: the copy is looked up *before* the answer takes its place, so that it is the
//! one that would have been served. What has to be waited for, the disk and the other dependency, is a [`Trial`], which the
//! [`Upstream`] runs apart from the request. An upstream that cannot do that runs none.

use backstop_engine::exercise::{Came, Drawn, Exercise, Skipped, Tried, Turned, Wrong};
use backstop_engine::failure::Cause;
use backstop_engine::flow::{Attempt, Decision, Event, Reply, RequestFacts};
use backstop_engine::snapshot::CopyRefusal;
use backstop_engine::time::Mono;
use backstop_store::{LoadError, Loaded, PendingLoad};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http::request::Parts;

use crate::correct::Form;
use crate::driver::{Hands, within};
use crate::exchange::{Answer, Http};
use crate::fill::for_anybody;
use crate::protected::ProtectedRoute;
use crate::request::Read;
use crate::upstream::{Framing, Progress, Upstream};

/// What is still to be tried beside a request that was answered.
#[derive(Debug)]
pub struct Trial {
    route: ProtectedRoute,
    exercise: Exercise,
    until: Mono,
    /// The copy, on its way from the disk.
    copy: Option<PendingLoad>,
    call: Option<Call>,
    turned: Vec<Turned>,
}

#[derive(Debug)]
struct Call {
    attempt: Attempt,
    parts: Parts,
    read: Option<Read>,
}

impl Trial {
    /// Tries it, wherever it is awaited. What turned is to be told to whoever operates this.
    pub async fn run<U, B>(mut self, upstream: &U, content: B) -> Vec<Turned>
    where
        U: Upstream<B>,
        U::Body: Unpin,
    {
        // First, because it holds places.
        if let Some(call) = self.call.take() {
            let came = self.call(call, upstream, content).await;
            self.turned.extend(self.exercise.record(Tried::Call, came));
        }
        if let Some(pending) = self.copy.take() {
            let loaded = within(pending, &self.route.inner.shared.clock, self.until).await;
            let came = match loaded {
                Some(Ok(copy)) => self.exercise.judge_copy(Some(&copy.facts)),
                Some(Err(LoadError::Gone)) => Came::Skipped(Skipped::Replaced),
                Some(Err(LoadError::Unreadable)) | None => Came::Copy(CopyRefusal::Unreadable),
            };
            self.turned.extend(self.exercise.record(Tried::Copy, came));
        }
        self.turned
    }

    async fn call<U, B>(&self, call: Call, upstream: &U, content: B) -> Came
    where
        U: Upstream<B>,
        U::Body: Unpin,
    {
        let Call { attempt, parts, read } = call;
        let (clock, until, progress) = (&self.route.inner.shared.clock, attempt.until, Progress::new());
        let mut hands = Http::new(&self.route, upstream, parts, content, read, clock.now());
        hands.is_apart = true;
        let id = attempt.id;
        let head = match within(hands.call(attempt, &progress), clock, until).await {
            Some(Event::Head { head, .. }) => head,
            event => return of_event(event, &progress),
        };
        match self.exercise.head(head) {
            Ok(limit_bytes) => match within(hands.collect(id, limit_bytes), clock, until).await {
                Some(Event::Body { body, .. }) => self.exercise.body(body),
                event => of_event(event, &progress),
            },
            Err(came) => {
                let _else_it_goes_on_occupying = within(hands.let_go(), clock, until).await;
                came
            }
        }
    }
}

/// What a call that gave no answer comes to.
fn of_event(event: Option<Event>, progress: &Progress) -> Came {
    match event {
        Some(Event::Failed { failure, .. }) => Came::Failed(failure),
        None => match progress.time_up() {
            Cause::Failed(failure) => Came::Failed(failure),
            Cause::NotAsked(_) => Came::Skipped(Skipped::Busy),
        },
        Some(_) => Came::Skipped(Skipped::Busy),
    }
}

impl<U, B> Http<'_, U, B>
where
    U: Upstream<B>,
    U::Body: Unpin,
{
    /// What is tried beside this request, before it is answered. What needs no waiting is done now; `None` if nothing is left
    /// to be done or told.
    pub(crate) fn draw(&self, facts: RequestFacts, decision: &Decision, entropy: u64) -> Option<Trial> {
        let shared = &self.route.inner.shared;
        let request = Drawn {
            route: self.route.inner.id,
            facts,
            account: decision.account,
            status: self.status_of(decision.reply),
        };
        let now = shared.clock.now();
        let mut exercise = Exercise::draw(&shared.engine, &request, now, entropy)?;
        let (mut copy, mut turned) = (None, Vec::new());
        let came = match exercise.own() {
            Some(Tried::Copy) => match &self.read {
                Some(read) => match shared.copies.examine(&read.key, &self.parts.headers) {
                    Loaded::Missing => Some(exercise.judge_copy(None)),
                    Loaded::Ready(copy) => Some(exercise.judge_copy(Some(&copy.facts))),
                    Loaded::Disk(pending) => {
                        copy = Some(pending);
                        None
                    }
                    _ => Some(Came::Copy(CopyRefusal::Unreadable)),
                },
                None => None,
            },
            Some(Tried::Fixed) => Some(self.fixed_came()),
            Some(Tried::Call) | None => None,
        };
        if let (Some(tried), Some(came)) = (exercise.own(), came) {
            turned.extend(exercise.record(tried, came));
        }
        let (attempt, not_called) = exercise.call();
        turned.extend(not_called);
        let call =
            attempt.map(|attempt| Call { attempt, parts: for_anybody(&self.parts), read: self.read.clone() });
        if copy.is_none() && call.is_none() && turned.is_empty() {
            return None;
        }
        let until = now.mono.after(self.route.state().rules.deadline);
        Some(Trial { route: self.route.clone(), exercise, until, copy, call, turned })
    }

    /// What was prepared, as it would be chosen for this request.
    fn fixed_came(&self) -> Came {
        let Some(fixed) = &self.route.inner.fixed else { return Came::Wrong(Wrong::Malformed) };
        let (answer, _language) = fixed.for_request(&self.parts.headers);
        if answer.body.is_empty() {
            return Came::Good;
        }
        let headers: HeaderMap = [(CONTENT_TYPE, answer.media_type.clone())].into_iter().collect();
        let form = self.route.inner.correct.examine(&headers, &answer.body, Framing::Delimited, |_| None);
        if matches!(form, Form::Broken) { Came::Wrong(Wrong::Malformed) } else { Came::Good }
    }

    /// The status that the request is answered with. What is kept has always been a success.
    fn status_of(&self, reply: Reply) -> u16 {
        match (reply, &self.answer) {
            (Reply::Cached { .. } | Reply::Shared { .. }, _) => 200,
            (_, Answer::Whole { head, .. } | Answer::Streaming { head, .. }) => head.status.as_u16(),
            (_, Answer::None | Answer::Unclassified(_)) => 0,
        }
    }
}
