//! Synthetic reads that try a dependency whose breaker is open.
//!
//! Only a safe request may be a probe, so a dependency that serves nothing safe names a path for it. It is asked only while
//! its breaker is open or half open, and then once per interval: in good times no call is made that nobody asked for.
//!
//! A probe is a call like any other: it takes a place at the dependency and its part of the resources, as a read does, and is
//! left out where there is none. It has succeeded once the whole answer is there and has the expected status.

use std::sync::Arc;

use backstop::clock::Clock;
use backstop::upstream::{CallError, Progress, Upstream};
use backstop_engine::admission::{Excess, Turn};
use backstop_engine::engine::DependencyState;
use backstop_engine::failure::Cause;
use backstop_engine::flow::{Attempt, AttemptId, Places};
use backstop_engine::health::{Phase, Ticket};
use backstop_engine::policy::{DependencyId, StatusSet};
use backstop_engine::resource::{ClassShare, acquire_all};
use backstop_policy::ProbeSettings;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt;

use crate::client_body::RequestContent;
use crate::upstream::Lane;

/// What one dependency is probed with.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) id: DependencyId,
    pub(crate) path: Uri,
    pub(crate) host: HeaderValue,
    pub(crate) interval: std::time::Duration,
    pub(crate) timeout: std::time::Duration,
    pub(crate) expect: StatusSet,
}

/// What a policy says of a probe cannot be sent. Never passed over: a dependency of writes whose breaker is open would
/// stay shut off for good.
#[derive(Debug, thiserror::Error)]
#[error("a probe cannot be sent: its {part} `{text}` is none")]
pub struct CannotProbe {
    part: &'static str,
    text: String,
}

impl Probe {
    /// A probe as the policy has it, sent to this host.
    pub(crate) fn new(id: DependencyId, settings: &ProbeSettings, host: &str) -> Result<Self, CannotProbe> {
        let cannot = |part, text: &str| CannotProbe { part, text: text.to_owned() };
        Ok(Self {
            id,
            path: settings.path.parse().map_err(|_| cannot("path", &settings.path))?,
            host: HeaderValue::try_from(host).map_err(|_| cannot("host", host))?,
            interval: settings.interval,
            timeout: settings.timeout,
            expect: settings.expect,
        })
    }
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
    let now = clock.mono();
    let Ok(resources) = acquire_all(&dependency.resources, now, ClassShare::Read, Excess::Refuse) else {
        return ticket.unused();
    };
    let mut request = Request::new(RequestContent::none());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = probe.path.clone();
    request.headers_mut().insert(HOST, probe.host.clone());
    let until = now.after(probe.timeout);
    let attempt = Attempt {
        is_once: false,
        id: AttemptId(1),
        dependency: probe.id,
        number: 1,
        places: Places::of_a_probe(permit, resources),
        until,
        end: until,
        // It goes on working on a probe that nobody waits for as it does on anything else.
        abandon_hold: Some(probe.timeout),
    };
    let progress = Progress::new();
    let ended = tokio::select! {
        biased;
        ended = asked(probe, lane, attempt, request, &progress) => ended,
        () = clock.sleep_until(until) => match progress.time_up() {
            Cause::Failed(_) => End::Bad,
            Cause::NotAsked(_) => End::NotAsked,
        },
    };
    let now = clock.mono();
    match ended {
        End::Good => ticket.answered(now),
        End::Bad => ticket.failed(now, now.as_ns()),
        End::NotAsked => ticket.unused(),
    }
}

/// What came of a probe.
enum End {
    Good,
    Bad,
    /// Nothing was begun.
    NotAsked,
}

/// More than any answer to a probe needs; what is larger does not come to its end.
const ANSWER_BYTES: usize = 1 << 20;

async fn asked(
    probe: &Probe,
    lane: &Lane<RequestContent>,
    attempt: Attempt,
    request: Request<RequestContent>,
    progress: &Progress,
) -> End {
    let answer = match lane.call(attempt, request, progress).await {
        Ok(answer) => answer,
        Err(CallError::NotAsked(_)) => return End::NotAsked,
        Err(_) => return End::Bad,
    };
    let (head, mut body) = answer.into_parts();
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return End::Bad };
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > ANSWER_BYTES {
            return End::Bad;
        }
    }
    if probe.expect.contains(head.status.as_u16()) { End::Good } else { End::Bad }
}

#[cfg(test)]
mod tests {
    use backstop_engine::policy::Origin;

    use super::*;

    fn probe(path: &str, host: &str) -> Result<Probe, CannotProbe> {
        let second = std::time::Duration::from_secs(1);
        let settings = ProbeSettings {
            path: path.into(),
            interval: second,
            timeout: second,
            expect: StatusSet::of(&[200]),
            origin: Origin::NONE,
        };
        Probe::new(DependencyId(0), &settings, host)
    }

    /// A dependency of writes would never be tried again, and nobody would know.
    #[test]
    fn a_probe_that_cannot_be_sent_is_an_error_and_never_left_out() {
        let good = probe("/healthz?deep=1", "catalog:80").unwrap();
        assert_eq!(good.path.to_string(), "/healthz?deep=1");
        assert_eq!(good.host, "catalog:80");
        let said = |path: &str, host: &str| probe(path, host).unwrap_err().to_string();
        assert_eq!(said("/`", "catalog:80"), "a probe cannot be sent: its path `/`` is none");
        assert!(said(&format!("/{}", "a".repeat(70_000)), "catalog:80").contains("its path"));
        assert_eq!(said("/", "a\nb"), "a probe cannot be sent: its host `a\nb` is none");
    }
}
