//! Synthetic reads that try a dependency whose breaker is open.
//!
//! Only a safe request may be a probe, so a dependency that serves nothing safe names a path for it. It is asked only while
//! its breaker is open or half open, and then once per interval: in good times no call is made that nobody asked for.

use std::sync::Arc;

use backstop::clock::Clock;
use backstop::upstream::{Progress, Upstream};
use backstop_engine::admission::{Excess, Turn};
use backstop_engine::engine::DependencyState;
use backstop_engine::flow::{Attempt, AttemptId};
use backstop_engine::health::{Phase, Ticket};
use backstop_engine::policy::{DependencyId, StatusSet};
use http::header::HOST;
use http::{HeaderValue, Method, Request, Uri};

use crate::client_body::RequestContent;
use crate::upstream::Lane;

/// What one dependency is probed with.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) id: DependencyId,
    pub(crate) path: Uri,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) interval: std::time::Duration,
    pub(crate) timeout: std::time::Duration,
    pub(crate) expect: StatusSet,
}

/// Probes a dependency for as long as the thread lives.
pub(crate) async fn run(
    probe: Probe,
    dependencies: Arc<backstop_engine::engine::Engine>,
    lane: Lane<RequestContent>,
    clock: Clock,
) {
    let mut entropy = 0_u64;
    loop {
        clock.sleep_until(clock.mono().after(probe.interval)).await;
        let dependency = dependencies.dependency(probe.id);
        let now = clock.mono();
        if !matches!(dependency.health.phase(now), Phase::Open { .. } | Phase::HalfOpen) {
            continue;
        }
        entropy = entropy.wrapping_add(0x9e37_79b9_7f4a_7c15);
        if let Ok(ticket) = dependency.health.admit(now, true, entropy) {
            once(&probe, dependency, &lane, &clock, ticket).await;
        }
    }
}

async fn once(
    probe: &Probe,
    dependency: &DependencyState,
    lane: &Lane<RequestContent>,
    clock: &Clock,
    ticket: Ticket,
) {
    let Some(permit) = dependency.in_flight.try_acquire(Turn::Newcomer, Excess::Refuse) else {
        return ticket.unused();
    };
    let mut request = Request::new(RequestContent::none());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = probe.path.clone();
    if let Some(host) = &probe.host {
        request.headers_mut().insert(HOST, host.clone());
    }
    let until = clock.mono().after(probe.timeout);
    let attempt = Attempt {
        id: AttemptId(1),
        dependency: probe.id,
        number: 1,
        places: permit.into(),
        until,
        end: until,
        abandon_hold: None,
    };
    let progress = Progress::new();
    let answer = tokio::select! {
        answer = lane.call(attempt, request, &progress) => answer.ok(),
        () = clock.sleep_until(until) => None,
    };
    let now = clock.mono();
    match answer {
        Some(answer) if probe.expect.contains(answer.status().as_u16()) => ticket.answered(now),
        Some(_) | None => ticket.failed(now, now.as_ns()),
    }
}
