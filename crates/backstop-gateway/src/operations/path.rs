//! A request on an `effect` route: read whole, then done once, whoever still waits for it.
//!
//! - Its content is read to its end before anything is decided: a client that leaves in its middle has begun nothing.
//! - From there on the exchange runs in a task of its own. A client that leaves does not end it: what was forwarded is recorded,
//!   and whoever comes with the same key hears it.
//! - The key, the scope and what makes it the same request are read from what the client sent, before any edit of the operator's.

use std::net::SocketAddr;
use std::rc::Rc;

use backstop::operation::{Asked, NotAsked};
use backstop::request::PathParameters;
use backstop::{HeldContent, Incoming as ToAnswer, ReplyBody, respond};
use backstop_engine::flow::ClientFault;
use backstop_engine::policy::effect::{EffectRules, Scope};
use backstop_store::ledger::checkpoint::{Checkpoint, pass};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, TRAILER, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response, Uri, request};
use http_body_util::{BodyExt, Either};
use hyper::body::{Body, Incoming};
use tokio::sync::oneshot;

use crate::client_body::RequestContent;
use crate::forward::{Answer, Forward};
use crate::stack::{ReplyContent, RouteStack, Thread, dress, make_ready, refuse};
use crate::strict::Fault;
use crate::upstream::ClientBody;

/// A request on its way to an operation.
pub(crate) struct Arriving<'a> {
    pub(crate) route: &'a RouteStack,
    pub(crate) rules: &'a EffectRules,
    pub(crate) head: request::Parts,
    pub(crate) incoming: Incoming,
    pub(crate) parameters: PathParameters,
    pub(crate) target: Uri,
    pub(crate) peer: SocketAddr,
    pub(crate) number: u64,
}

/// Answers it.
pub(crate) async fn answer(thread: &Rc<Thread>, arriving: Arriving<'_>) -> Response<ReplyContent> {
    let Arriving { route, rules, mut head, incoming, parameters, target, peer, number } = arriving;
    let shared = &*thread.shared;
    let method = head.method.clone();
    let has_content = !incoming.is_end_stream();
    let (content, held) = match read(route, &head, incoming, shared).await {
        Ok(read) => read,
        Err(fault) => return refuse(shared, &method, fault, true),
    };
    pass(Checkpoint::RequestRead);
    let refused = |fault| refuse(shared, &method, fault, false);
    let Some(operations) = &shared.operations else { return refused(Fault::NoRoute) };
    let trusted = shared.trusted.iter().any(|range| range.contains(peer.ip()));
    if let Scope::Header(name) = &rules.scope
        && !trusted
    {
        head.headers.remove(&**name);
    }
    let Ok(id) = super::draw_id() else { return refused(Fault::NoRandom) };
    let asked = match Asked::to_do(operations, rules, &head, &content, id) {
        Ok(asked) => asked,
        Err(lacks) => return refused(fault_of(lacks)),
    };
    make_ready(shared, route, &mut head, peer, has_content, parameters);
    // It is sent with its length, and nothing can follow that.
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.remove(TRAILER);
    // It has been met: all of the content is here.
    head.headers.remove(EXPECT);
    // A coded answer could not be looked into.
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if has_content {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    }
    head.extensions.insert(asked);

    let (tell, told) = oneshot::channel();
    let request = Request::from_parts(head, RequestContent::whole(content));
    tokio::task::spawn_local(run(Rc::clone(thread), route.id, target, request, number, held, tell));
    let Ok(mut response) = told.await else { return refused(Fault::Lost) };
    dress(shared, route, &mut response);
    response.map(Either::Left)
}

/// The exchange, to its end.
async fn run(
    thread: Rc<Thread>,
    route: backstop_engine::policy::RouteId,
    target: Uri,
    request: Request<RequestContent>,
    number: u64,
    held: HeldContent,
    tell: oneshot::Sender<Response<ReplyBody<Answer>>>,
) {
    let shared = &*thread.shared;
    let Some(stack) = shared.routes.get(usize::from(route.0)) else { return };
    let Some(upstream) = Forward::of(&thread, route, target) else { return };
    let request = ToAnswer { request, upload: None, entropy: thread.entropy(number, 0) };
    let Ok(response) = respond(&stack.protected, request, &upstream).await;
    drop(held);
    let _the_client_has_left = tell.send(response);
}

/// All of its content, and the memory that it takes.
async fn read(
    route: &RouteStack,
    head: &request::Parts,
    incoming: Incoming,
    shared: &crate::stack::Shared,
) -> Result<(Bytes, HeldContent), Fault> {
    let mut held = route.protected.hold();
    let limits = route.limits;
    let (mut content, _watch) =
        RequestContent::new(incoming, head.version, limits.body_bytes, limits.body_time, None, &shared.clock);
    let mut whole = BytesMut::new();
    while let Some(frame) = content.frame().await {
        let frame = frame.map_err(|ClientBody(fault)| match fault {
            ClientFault::Slow => Fault::Slow,
            ClientFault::TooLarge => Fault::TooLarge,
            ClientFault::Broken => Fault::Broken,
        })?;
        if let Ok(data) = frame.into_data() {
            if !held.grow(data.len() as u64) {
                return Err(Fault::NoMemory);
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok((whole.freeze(), held))
}

const fn fault_of(lacks: NotAsked) -> Fault {
    match lacks {
        NotAsked::NoKey => Fault::NoKey,
        NotAsked::MalformedKey => Fault::MalformedKey,
        NotAsked::SaidTwice => Fault::SaidTwice,
        NotAsked::NoCaller => Fault::NoCaller,
    }
}
