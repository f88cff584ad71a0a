//! `GET /.backstop/operations/{op_id}`: what became of an operation, for whoever sent it.
//!
//! Who looks is asked who they are anew, by the route's own authorizer: knowing a name is no permission. An operation of another
//! caller is not there.

use std::net::SocketAddr;
use std::rc::Rc;

use backstop::operation::{Asked, document};
use backstop::request::PathParameters;
use backstop::{Incoming as ToAnswer, respond};
use backstop_engine::operation::OperationId;
use backstop_engine::policy::effect::Scope;
use http::{Method, Request, Response, Uri, request};
use http_body_util::Either;

use crate::client_body::RequestContent;
use crate::forward::Forward;
use crate::stack::{ReplyContent, Thread, dress, make_ready, refuse};
use crate::strict::Fault;

/// What a path names, if it is below the address of operations.
pub(crate) fn named(path: &str) -> Option<Result<OperationId, Fault>> {
    let name = path.strip_prefix(document::ADDRESS)?;
    Some(name.parse().map_err(|_| Fault::NoOperation))
}

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
    let refused = |fault| refuse(shared, &method, fault, unread);
    if !matches!(method, Method::GET | Method::HEAD) {
        return refused(Fault::Method);
    }
    let (Ok(id), Some(operations)) = (id, &shared.operations) else { return refused(Fault::NoOperation) };
    // Which route it is of, and so whom to ask who looks. Who guesses a name learns nothing else here.
    let name = match operations.ledger.show(id).await {
        Ok(Some(shown)) => shown.record.identity.route,
        Ok(None) => return refused(Fault::NoOperation),
        Err(_) => return refused(Fault::NoLedger),
    };
    let route = shared.routes.iter().find(|route| {
        let rules = &route.protected.state().rules;
        rules.class.effect().is_some() && rules.name == name
    });
    // A policy that no longer has the route shows its operations to operators alone.
    let Some(route) = route else { return refused(Fault::NoOperation) };
    let trusted = shared.trusted.iter().any(|range| range.contains(peer.ip()));
    if let Some(Scope::Header(name)) = route.protected.state().rules.class.effect().map(|rules| &rules.scope)
        && !trusted
    {
        head.headers.remove(&**name);
    }
    let page = route.cors.as_ref().map(|cors| cors.page(&head.headers));
    make_ready(shared, route, &mut head, peer, false, PathParameters::default());
    head.extensions.insert(Asked::to_know(operations, id));
    let Some(upstream) = Forward::of(thread, route.id, Uri::from_static("/")) else {
        return refused(Fault::NoRoute);
    };
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
