//! What comes of a call, and how a request ends, in the same plain counters.

use crate::flow::Method;
use crate::health::tests::{Admitted, Fate, Reference};

use super::reference::{
    Content, Copy, Expected, Happened, Trouble, expected, held_back, may_be_replaced, trouble, usable,
};
use super::request::{Answer, End, Failing, Model, Phase, Request, Said, Words, answer, refused};
use super::support::{MS, SECOND};

impl Model {
    pub(super) fn listen(&mut self, request: &Request, said: Said, now: u64) {
        // Without this very call.
        let in_use = self.fullest(request.asked, 1);
        let calls = &mut self.dependencies[request.asked];
        let in_use = (!calls.uses.is_empty()).then_some(in_use);
        if let Some(wait) = said.database_wait_ns {
            for &used in &calls.uses {
                let shared = &mut self.resources[used];
                shared.waits.push((now, wait));
                shared.told = shared.told.max(request.called);
            }
            if let Some(health) = &mut calls.health {
                health.database_waits(now / MS, wait / MS);
            }
        }
        if let (Some(health), Some(in_use)) = (&mut calls.health, in_use) {
            health.signal(now / MS, in_use);
        }
    }

    /// `paused`: until when the engine waits before another call, if it does. How long that is, chance decides.
    pub(super) fn head(&mut self, request: &mut Request, said: Said, paused: Option<u64>, now: u64) {
        self.listen(request, said, now);
        let Said { status, has_body, degraded_ns, retry_after_ns, .. } = said;
        let content = if has_body { Content::TooLarge } else { Content::None };
        let happened = Happened::Answered { status, degraded_ns, content };
        let case = self.case(request, happened, Copy::Missing);
        let (troubled, is_replaced) = (trouble(&case), may_be_replaced(case.route, case.facts));
        let is_probe = request.ticket.is_some_and(|ticket| ticket.is_probe);
        let is_kept = held_back(case.route, case.facts, status, content) || (is_probe && has_body);
        let failing = |trouble: Trouble| Failing {
            trouble,
            of_a_moment: matches!(status, 502 | 503),
            is_late: status == 504,
            is_answer: true,
            retry_after_ns,
        };
        match troubled {
            Some(trouble) if trouble.said.is_none() || is_replaced || request.has_stood_in => {
                return self.failed(request, failing(trouble.kept_back()), paused, now);
            }
            None if request.has_stood_in && status >= 500 => self.unfit(request, now),
            // Better than none: it is passed on if nobody is asked after all.
            Some(trouble) if self.may_go_on(request, now) => {
                return self.failed(request, failing(trouble), paused, now);
            }
            Some(trouble) => {
                self.count_failure(request, failing(trouble), now);
                request.phase = answer(expected(&self.case(request, happened, Copy::Missing)), false);
            }
            None if is_kept => request.phase = Phase::Body { status, degraded_ns },
            None => {
                self.began(request, status < 400, has_body, now);
                request.phase = answer(expected(&self.case(request, happened, Copy::Missing)), true);
            }
        }
        assert_eq!(paused, None);
    }

    pub(super) fn body(&mut self, request: &mut Request, content: Content, paused: Option<u64>, now: u64) {
        let Phase::Body { status, degraded_ns } = request.phase else { unreachable!("no body asked for") };
        let happened = Happened::Answered { status, degraded_ns, content };
        let case = self.case(request, happened, Copy::Missing);
        let demands_form = held_back(case.route, case.facts, status, content);
        let is_incorrect = demands_form && matches!(content, Content::Whole { correct: false, .. });
        if request.has_stood_in && is_incorrect {
            return self.unfit(request, now);
        }
        let troubled = trouble(&self.case(request, happened, Copy::Missing));
        if let Some(trouble) = troubled {
            let failing = Failing {
                trouble: trouble.kept_back(),
                of_a_moment: false,
                is_late: false,
                is_answer: false,
                retry_after_ns: None,
            };
            return self.failed(request, failing, paused, now);
        }
        assert_eq!(paused, None);
        match content {
            Content::TooLarge => self.began(request, status < 400, true, now),
            _ => {
                self.dependency(request).answers += 1;
                let pays = !is_incorrect && status < 500 && status != 429;
                self.ended_as(request, !is_incorrect && status < 400, pays, now);
            }
        }
        let streams = content == Content::TooLarge;
        request.phase = answer(expected(&self.case(request, happened, Copy::Missing)), streams);
    }

    /// Somebody who stands in answered what the route does not pass on: an answer of theirs, and none here.
    fn unfit(&mut self, request: &mut Request, now: u64) {
        self.dependency(request).answers += 1;
        self.ended(request, false, now);
        request.cut = None;
        let cause = request.cause.expect("somebody stands in for a reason");
        request.phase = Phase::Elsewhere { cause };
    }

    /// The call was answered: well, and then it pays for retries, or not.
    pub(super) fn ended(&mut self, request: &mut Request, well: bool, now: u64) {
        self.ended_as(request, well, well, now);
    }

    fn ended_as(&mut self, request: &mut Request, well: bool, pays: bool, now: u64) {
        self.release_retry(request);
        let ticket = request.ticket.take();
        let calls = self.dependency(request);
        if pays {
            calls.pay_in();
        }
        calls.end(ticket, if well { Fate::Answered } else { Fate::Neutral }, now);
    }

    /// Its answer goes to the client as it comes. It counts now, and pays when it is through.
    fn began(&mut self, request: &mut Request, well: bool, has_body: bool, now: u64) {
        self.release_retry(request);
        let ticket = request.ticket.take();
        request.streaming = self.dependency(request).began(ticket, well, has_body, now);
    }

    /// Whatever the dependency uses may be what kept it waiting.
    fn was_late(&mut self, request: &Request) {
        for &used in &self.dependencies[request.asked].uses {
            let shared = &mut self.resources[used];
            shared.late = shared.late.max(request.called);
        }
    }

    fn count_failure(&mut self, request: &mut Request, failing: Failing, now: u64) {
        if failing.is_late {
            self.was_late(request);
        }
        let ticket = request.ticket.take();
        let calls = self.dependency(request);
        calls.fail(failing.trouble.word);
        if let (Some(health), Some(after)) = (&mut calls.health, failing.retry_after_ns) {
            health.ask(now / MS, after / MS);
        }
        calls.end(ticket, Fate::Failed, now);
        self.release_retry(request);
    }

    /// The call failed: another one, or what comes after the last.
    pub(super) fn failed(&mut self, request: &mut Request, failing: Failing, paused: Option<u64>, now: u64) {
        self.count_failure(request, failing, now);
        request.cut = None;
        if request.has_stood_in {
            assert_eq!(paused, None, "a stand-in is asked once");
            let cause = request.cause.unwrap_or(failing.trouble);
            request.phase = Phase::Elsewhere { cause };
            return;
        }
        request.cause = Some(failing.trouble);
        let Some(until) = self.again(request, failing, paused, now) else {
            request.phase = Phase::Elsewhere { cause: failing.trouble };
            return;
        };
        // The answer that failed is let go while it is waited.
        request.cause = Some(failing.trouble.kept_back());
        let calls = self.dependency(request);
        calls.saved -= 10;
        calls.retries += 1;
        calls.retries_made += 1;
        (request.holds_retry, request.retry_is_made) = (true, false);
        request.retries += 1;
        request.phase = Phase::Paused { until };
    }

    /// Until when is waited before the same call is made again, if it may be. The wait is drawn from 25 ms: where it
    /// decides whether there is time, the engine's word counts.
    pub(super) fn again(
        &mut self,
        request: &Request,
        failing: Failing,
        paused: Option<u64>,
        now: u64,
    ) -> Option<u64> {
        const MOST: u64 = 25 * MS;
        const USEFUL: u64 = 10 * MS;
        let fullest = self.fullest(request.asked, u32::from(failing.is_answer));
        let may = self.has_retry_left(request) && request.may_repeat();
        let calls = &mut self.dependencies[request.asked];
        let may = may && failing.of_a_moment && calls.is_well(now) && fullest < 700 && calls.may_retry();
        let left = self.calls_end(request).saturating_sub(now);
        let asked = failing.retry_after_ns.unwrap_or(0);
        match paused {
            Some(until) => {
                assert!(may && asked + USEFUL <= left, "made again: {request:?} {failing:?}");
                assert!((now + asked..=now + asked + MOST).contains(&until), "{until} at {now}");
                assert!(until + USEFUL <= now + left, "too late to be useful");
            }
            None => assert!(!may || asked + MOST + USEFUL > left, "not made again: {request:?} {failing:?}"),
        }
        paused
    }

    /// The call was allowed and then not begun: what was taken for it comes back.
    pub(super) fn not_begun(&mut self, request: &mut Request, now: u64) {
        let ticket = request.ticket.take();
        let calls = self.dependency(request);
        calls.not_begun += 1;
        calls.end(ticket, Fate::Unused, now);
        request.cut = None;
        request.retry_is_made = false;
        request.phase = Phase::Elsewhere { cause: Trouble::not_asked("pool_timeout") };
    }

    pub(super) fn erred(&mut self, request: &mut Request, now: u64) {
        self.dependency(request).answers += 1;
        self.ended(request, false, now);
        request.phase = answer(expected(&self.case(request, Happened::Erred, Copy::Missing)), false);
    }

    pub(super) fn copy(&mut self, request: &mut Request, copy: Copy, now: u64) {
        let Phase::Loading { why } = request.phase else { unreachable!("no copy asked for") };
        if why.is_none() {
            let route = &mut self.routes[request.route];
            let is_usable = usable(copy, &route.rules).is_ok();
            route.coverage.push((now / SECOND, is_usable));
        }
        let rules = self.rules(request);
        request.phase = match (why, usable(copy, rules)) {
            (Some(happened), _) => answer(expected(&self.case(request, happened, copy)), false),
            (None, Ok(age_ns)) => {
                let served = Expected::new(("fallback", "snapshot", "capacity"), 200);
                answer(Expected { age_ns: Some(age_ns), ..served }, false)
            }
            (None, Err(_)) => refused("capacity", 503),
        };
    }

    /// The client did not send its request in time.
    pub(super) fn client_slow(&mut self, request: &mut Request, now: u64) {
        let is_asked = matches!(request.phase, Phase::Head | Phase::Body { .. });
        // The client's own fault says nothing of the dependency.
        self.leave(request, Fate::Silent, now);
        let mut slow = Expected::new(("rejected", "none", "client_slow"), 408);
        if is_asked && request.facts.method == Method::Unsafe {
            slow.copy = crate::flow::CopyAction::WithdrawUnsettled;
        }
        request.phase = answer(slow, false);
    }

    /// Whatever the request was waiting for goes on without it.
    fn leave(&mut self, request: &mut Request, fate: Fate, now: u64) {
        let class = self.class(request);
        let ticket = request.ticket.take();
        match request.phase {
            Phase::Queueing { .. } => self.dependency(request).leave_queue(class),
            Phase::Head | Phase::Body { .. } => self.dependency(request).abandoned += 1,
            _ => {}
        }
        if ticket.is_some() {
            self.dependency(request).end(ticket, fate, now);
        }
    }

    /// The client left before there was a decision.
    pub(super) fn abandon(&mut self, request: &mut Request, now: u64) {
        self.leave(request, Fate::GivenUp, now);
        self.count(request, ("abandoned", "none", "client_left"));
        self.give_back(request);
    }

    /// What a call takes up holds its place as a probe too.
    pub(super) fn hold_probe(&mut self, dependency: usize, ticket: Option<Admitted>) {
        if let (Some(health), Some(ticket)) = (&mut self.dependencies[dependency].health, ticket) {
            health.hold(ticket);
        }
    }

    /// The work of a call has ended.
    pub(super) fn end_call(&mut self, dependency: usize, by_evidence: bool, ticket: Option<Admitted>) {
        let calls = &mut self.dependencies[dependency];
        if let (Some(health), Some(ticket)) = (&mut calls.health, ticket) {
            health.let_go(ticket);
        }
        calls.give_back();
        calls.uses.iter().for_each(|&used| self.resources[used].in_use -= 1);
        if let Some(evidence) = calls.evidence.as_mut().filter(|_| by_evidence) {
            evidence.in_flight -= 1;
        }
    }

    /// How long the rest of an answer may keep its reader waiting, if anything is to be said of that.
    pub(super) fn slow_in_ns(&self, request: &Request) -> Option<u64> {
        request.streaming.and_then(Reference::slow_in_ns)
    }

    /// It kept them waiting for another while.
    pub(super) fn dawdle(&mut self, request: &mut Request, ns: u64, now: u64) {
        let Some(mut begun) = request.streaming else { return };
        if let Some(health) = &mut self.dependency(request).health {
            health.waited(&mut begun, ns, now / MS);
        }
        request.streaming = Some(begun);
    }

    /// The answer is through, broke off, or nobody is left to read it.
    pub(super) fn settle(&mut self, request: &mut Request, end: End, failure: &'static str) {
        let Phase::Answering(Answer { expected, streams }) = request.phase else { unreachable!("undecided") };
        let (_, source, _) = expected.words;
        if streams {
            let streaming = request.streaming.take();
            let calls = self.dependency(request);
            match end {
                End::Complete => {
                    calls.answers += 1;
                    if let (Some(health), Some(begun)) = (&mut calls.health, streaming) {
                        health.completed(begun);
                    }
                    // Neither a server error nor the wish to be asked less pays for retries.
                    if expected.status < 500 && expected.status != 429 {
                        calls.pay_in();
                    }
                }
                End::BreakOff => {
                    calls.fail(failure);
                    let is_late = failure == "read_timeout";
                    if let (Some(health), Some(begun)) = (&mut calls.health, streaming) {
                        health.broke_off(begun);
                    }
                    if is_late {
                        self.was_late(request);
                    }
                }
                End::ClientLeaves => calls.abandoned += 1,
                End::Dawdles { .. } => unreachable!("that is no end"),
            }
        }
        match end {
            End::Complete => {
                let served = expected.words.0 == "fallback" && expected.age_ns.is_some();
                self.routes[request.route].ages += u64::from(served);
                self.count(request, expected.words);
            }
            End::BreakOff => self.count(request, ("failed", source, failure)),
            End::ClientLeaves => self.count(request, ("abandoned", source, "client_left")),
            End::Dawdles { .. } => unreachable!("that is no end"),
        }
        self.give_back(request);
    }

    pub(super) fn count(&mut self, request: &Request, words: Words) {
        *self.routes[request.route].counted.entry(words).or_default() += 1;
    }

    pub(super) fn release_retry(&mut self, request: &mut Request) {
        if std::mem::take(&mut request.holds_retry) {
            let own = self.own(request);
            let calls = &mut self.dependencies[own];
            calls.retries -= 1;
            if !request.retry_is_made {
                calls.pay_back();
            }
        }
    }

    pub(super) fn release_evidence(&mut self, request: &mut Request) {
        if let Some(evidence) = self.dependencies[request.asked].evidence.as_mut() {
            evidence.in_flight -= u32::from(request.holds_evidence);
            if request.holds_evidence {
                evidence.pace.put_back(request.evidence_taken);
            }
        }
        request.holds_evidence = false;
    }

    pub(super) fn give_back(&mut self, request: &mut Request) {
        self.release_retry(request);
        self.release_evidence(request);
        let route = &mut self.routes[request.route];
        route.in_flight -= u32::from(request.holds_route);
        route.lane -= u32::from(request.holds_lane);
        self.in_flight -= u32::from(request.holds_process);
        (request.holds_process, request.holds_route, request.holds_lane) = (false, false, false);
        request.phase = Phase::Over;
    }
}
