//! One HTTP request, from its complete head to its decided answer.

mod hands;
mod operation;
mod reply;
mod told;

use std::sync::Arc;

use backstop_engine::flow::{CopyUse, Flow};
use backstop_engine::policy::RouteClass;
use http::{Method, Request, Response};
use http_body::Body;

use crate::body::ReplyBody;
use crate::driver::drive;
use crate::fields::{asks_to_explain, prefers_async};
use crate::operation::Asked;
use crate::protected::ProtectedRoute;
use crate::request::{PartOf, Read, announces_content, ask_for_language, facts, inbound_attempt};
use crate::upload::UploadWatch;
use crate::upstream::Upstream;
use crate::walk::{Role, Walking};

use operation::Operation;

pub(crate) use hands::{Answer, Http};

/// A request on its way to a route.
#[derive(Debug)]
pub struct Incoming<'a, B> {
    /// The request, as it may be sent on. A [`PathParameters`](crate::request::PathParameters) extension names what its
    /// path matched.
    pub request: Request<B>,
    /// Who knows how long the client keeps us waiting for its content.
    pub upload: Option<&'a Arc<UploadWatch>>,
    /// 64 random bits that no other request got.
    pub entropy: u64,
}

/// Answers a request: with the dependency's answer, with the alternative that the route accepts, or with a refusal.
///
/// Dropping the future, or the body before its end, means that the client left: every permit is returned and the request
/// is counted as abandoned. The extensions of an answer that is not normal hold its
/// [`Account`](backstop_engine::flow::Account).
///
/// # Errors
/// Only what the upstream itself did not classify; it passes unchanged.
pub async fn respond<U, B>(
    route: &ProtectedRoute,
    incoming: Incoming<'_, B>,
    upstream: &U,
) -> Result<Response<ReplyBody<U::Body>>, U::Error>
where
    U: Upstream<B>,
    U::Body: Unpin,
    B: Body,
{
    let shared = &route.inner.shared;
    let rules = &route.state().rules;
    let (mut parts, body) = incoming.request.into_parts();
    let explain = asks_to_explain(&parts.headers);
    // Only the content itself tells: within a service no field need announce it, nor in HTTP/2.
    let has_content = announces_content(&parts.headers) || !body.is_end_stream();
    let (mut facts, read) = match rules.class.read() {
        Some(class) => {
            let mut read = Read::prepare(class, &rules.name, &route.inner.fingerprint, &mut parts);
            if has_content {
                read.facts.copies = CopyUse::Never;
            }
            (read.facts, Some(read))
        }
        None => {
            if let RouteClass::Optional(class) = &rules.class {
                ask_for_language(&class.languages, &mut parts);
            }
            (facts(&parts), None)
        }
    };
    facts.part_until = parts.extensions.get().map(|part: &PartOf| part.until);
    facts.elsewhere = upstream.reaches_others();
    facts.is_open = parts.method == Method::OPTIONS;
    facts.has_content = incoming.upload.is_some() || has_content;
    facts.repeatable = incoming.upload.is_none() && !has_content && upstream.no_content().is_some();
    facts.attempt = inbound_attempt(&parts.headers);
    let asked: Option<Asked> = parts.extensions.remove();
    facts.accepts_later = prefers_async(&parts.headers);
    facts.looks = asked.as_ref().is_some_and(Asked::looks);
    let (id, now) = (route.inner.id, shared.clock.now());
    let role = if facts.part_until.is_some() { Role::Part } else { Role::Request };
    let mut walking = Walking::begin(&parts.extensions, id, role, |trace| {
        Flow::begin(&shared.engine, id, facts, now, incoming.entropy, trace)
    });
    let mut hands = Http::new(route, upstream, parts, body, read, walking.flow.begun());
    hands.operation = asked.map(Operation::new);
    let upload = incoming.upload;
    let watch = upload.map(Arc::as_ref);
    let mut decision = drive(&mut walking.flow, &mut hands, &shared.clock, &shared.waiters, watch).await;
    walking.decided(&mut decision);
    hands.upload = upload.cloned();
    let is_exercised = rules.exercise.share_per_mille > 0;
    // Before the answer takes the place of the copy that would have been served.
    let trial = if is_exercised { hands.draw(facts, &decision, walking.flow.draw()) } else { None };
    let answered = hands.answer(decision, explain).await;
    if let Some(trial) = trial {
        upstream.exercise(trial);
    }
    answered
}
