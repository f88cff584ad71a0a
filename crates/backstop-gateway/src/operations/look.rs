//! `GET /.backstop/operations/{op_id}`: what became of an operation, for whoever sent it.
//!
//! Who looks is asked who they are anew, by the route's own authorizer: knowing a name is no permission. An operation of another
//! caller is not there.
//!
//! Which route a name is of only the ledger knows, so it is asked for that before anybody has said who they are. There is one
//! queue to it, and intents stand in it too: few may ask at once, and none waits longer than a moment. What is not found out so is
//! said to be unreadable, never to be missing.
//!
//! A page of another origin asks beforehand whether it may (the Fetch standard, section 4.8). That is answered by what all routes
//! with operations declare together, without a look into the ledger: it says nothing of an operation.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use backstop::operation::{Asked, Operations, document};
use backstop::request::PathParameters;
use backstop::{Incoming as ToAnswer, respond};
use backstop_engine::admission::{Excess, Turn};
use backstop_engine::operation::OperationId;
use backstop_engine::policy::effect::Scope;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CONTENT_LENGTH,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, request};
use http_body_util::Either;

use crate::client_body::RequestContent;
use crate::cors::{self, Cors};
use crate::forward::Forward;
use crate::stack::{ReplyContent, Shared, Thread, answer_here, dress, make_ready, refuse};
use crate::strict::Fault;

/// What a path names, if it is below the address of operations.
pub(crate) fn named(path: &str) -> Option<Result<OperationId, Fault>> {
    let name = path.strip_prefix(document::ADDRESS)?;
    Some(name.parse().map_err(|_| Fault::NoOperation))
}

/// What may be done at the address of an operation.
const ALLOWED: &str = "GET, HEAD, OPTIONS";
/// How long the ledger is waited for before it is known who looks.
const PATIENCE: Duration = Duration::from_secs(1);

/// The ledger did not say in time, or too many ask.
struct Unreadable;

/// Answers whoever looks.
pub(crate) async fn answer(
    thread: &Rc<Thread>,
    id: Result<OperationId, Fault>,
    mut head: request::Parts,
    peer: SocketAddr,
    unread: bool,
    number: u64,
) -> Response<ReplyContent> {
    let shared = &*thread.shared;
    let method = head.method.clone();
    let refused = |request: &HeaderMap, fault| {
        let mut response = refuse(shared, &method, fault, unread);
        cors::apply_any(every_cors(shared), request, response.headers_mut());
        response
    };
    if method == Method::OPTIONS {
        return may_a_page_look(shared, &head.headers, unread);
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        let mut response = refused(&head.headers, Fault::Method);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(ALLOWED));
        return response;
    }
    let (Ok(id), Some(operations)) = (id, &shared.operations) else {
        return refused(&head.headers, Fault::NoOperation);
    };
    // Who guesses a name learns no more here than that there is one.
    let name = match route_of(shared, operations, id).await {
        Ok(Some(name)) => name,
        Ok(None) => return refused(&head.headers, Fault::NoOperation),
        Err(Unreadable) => return refused(&head.headers, Fault::NoLedger),
    };
    let route = shared.routes.iter().find(|route| {
        let rules = &route.protected.state().rules;
        rules.class.effect().is_some() && rules.name == name
    });
    // A policy that no longer has the route shows its operations to operators alone.
    let Some(route) = route else { return refused(&head.headers, Fault::NoOperation) };
    let trusted = shared.trusted.iter().any(|range| range.contains(peer.ip()));
    if let Some(Scope::Header(name)) = route.protected.state().rules.class.effect().map(|rules| &rules.scope)
        && !trusted
    {
        head.headers.remove(&**name);
    }
    let Some(rules) = route.protected.state().rules.class.effect() else {
        return refused(&head.headers, Fault::NoOperation);
    };
    let page = route.cors.as_ref().map(|cors| cors.page(&head.headers));
    let Some(upstream) = Forward::of(thread, route.id, Uri::from_static("/")) else {
        return refused(&head.headers, Fault::NoRoute);
    };
    let asked = Asked::to_know(operations, rules, &head, id);
    make_ready(shared, route, &mut head, peer, false, PathParameters::default());
    head.extensions.insert(asked);
    let request = ToAnswer {
        request: Request::from_parts(head, RequestContent::none()),
        upload: None,
        entropy: thread.entropy(number, 0),
    };
    let Ok(mut response) = respond(&route.protected, request, &upstream).await;
    dress(shared, route, &mut response);
    if let Some(page) = page {
        page.may_read(&mut response);
    }
    response.map(Either::Left)
}

/// The route of an operation, by its name; `None` if there is no such operation.
async fn route_of(
    shared: &Shared,
    operations: &Operations,
    id: OperationId,
) -> Result<Option<Box<str>>, Unreadable> {
    let _place = shared.looks.try_acquire(Turn::Newcomer, Excess::Refuse).ok_or(Unreadable)?;
    let end = shared.clock.mono().after(PATIENCE);
    tokio::select! {
        biased;
        shown = operations.ledger.show(id) => {
            shown.map(|shown| shown.map(|shown| shown.record.identity.route)).map_err(|_| Unreadable)
        }
        () = shared.clock.sleep_until(end) => Err(Unreadable),
    }
}

/// What routes with operations declare about pages of other origins.
fn every_cors(shared: &Shared) -> impl Iterator<Item = &Cors> {
    let with_operations =
        shared.routes.iter().filter(|route| route.protected.state().rules.class.effect().is_some());
    with_operations.filter_map(|route| route.cors.as_ref())
}

/// To a page that asks whether it may look (the Fetch standard, section 4.8). What fields it sends along makes no difference here.
fn may_a_page_look(shared: &Shared, request: &HeaderMap, unread: bool) -> Response<ReplyContent> {
    let mut response = answer_here(HeaderValue::from_static(ALLOWED), unread);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    cors::apply_any(every_cors(shared), request, headers);
    if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
        if let Some(wanted) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
    }
    response
}
