//! A request on a composed route: one request for each part, each on its own route's whole way.
//!
//! A part is a GET with the client's own fields, made ready as if the client had asked its route. What is about the whole
//! does not go with it: conditions and ranges (a part's validators are not the whole's), and content, which no GET has a
//! meaning for (RFC 9110 section 9.3.1).

use std::net::SocketAddr;
use std::rc::Rc;

use backstop::request::{PartOf, PathParameters};
use backstop::upstream::Progress;
use backstop::{Asked, Incoming as ToAnswer, ReplyBody, compose, respond};
use http::header::{
    ACCEPT_ENCODING, CONNECTION, EXPECT, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE, TRAILER, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version, request};
use http_body_util::Either;

use crate::client_body::RequestContent;
use crate::forward::{Answer, Forward};
use crate::stack::{ReplyContent, RouteStack, Thread, dress, make_ready, refuse};
use crate::strict::Fault;
use crate::target::origin_form;

const OF_THE_WHOLE: [HeaderName; 9] = [
    EXPECT,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
    TRAILER,
    TRANSFER_ENCODING,
];

/// A request on its way, as far as it is known before the parts.
pub(crate) struct Whole<'a> {
    pub(crate) route: &'a RouteStack,
    pub(crate) head: request::Parts,
    pub(crate) parameters: PathParameters,
    /// Whether the request has content. It is not read.
    pub(crate) has_content: bool,
    /// A number that no other request of this thread has.
    pub(crate) number: u64,
    pub(crate) peer: SocketAddr,
}

/// One part's request.
struct PartRequest<'a> {
    route: &'a RouteStack,
    upstream: Forward<'a>,
    head: request::Parts,
    parameters: PathParameters,
    entropy: u64,
    peer: SocketAddr,
}

/// Answers it.
pub(crate) async fn answer(thread: &Rc<Thread>, mut whole: Whole<'_>) -> Response<ReplyContent> {
    let asked = Asked::of(&whole.head);
    let (method, version) = (whole.head.method.clone(), whole.head.version);
    leave_out_what_is_of_the_whole(&mut whole.head.headers);
    whole.head.method = Method::GET;
    let Some(parts) = parts(thread, &whole) else {
        return refuse(&thread.shared, &method, Fault::Path, whole.has_content);
    };
    let ask = |until| parts.into_iter().map(|part| ask(thread, part, PartOf { until })).collect();
    let entropy = thread.entropy(whole.number, 0);
    // As the client's own request, not as its parts': asked about once, for the whole.
    let mut own = whole.head.clone();
    own.method = method.clone();
    let _named =
        make_ready(&thread.shared, whole.route, &mut own, whole.peer, false, PathParameters::default());
    let authorize =
        async |attempt, progress: &Progress| thread.authorize(whole.route.id, attempt, &own, progress).await;
    let mut response = compose(&whole.route.protected, asked, &own.extensions, entropy, authorize, ask).await;
    dress(&thread.shared, whole.route, &mut response);
    if whole.has_content && version < Version::HTTP_2 {
        // What is left of the request is not read: the connection cannot be used for another one.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(Either::Left)
}

fn leave_out_what_is_of_the_whole(headers: &mut HeaderMap) {
    OF_THE_WHOLE.iter().for_each(|name| drop(headers.remove(name)));
    let of_content: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("content-")).cloned().collect();
    of_content.iter().for_each(|name| drop(headers.remove(name)));
    // A coded value could not stand in the whole.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// The requests of all parts, or `None` if one of them cannot be made.
fn parts<'a>(thread: &'a Rc<Thread>, whole: &Whole<'_>) -> Option<Vec<PartRequest<'a>>> {
    let part = |(index, rules): (u64, &crate::parts::PartRules)| {
        let route = thread.shared.routes.get(usize::from(rules.route.0))?;
        let (uri, parameters): (Uri, PathParameters) = rules.target(&whole.head.uri, &whole.parameters)?;
        let target = origin_form(&uri, route.forward.strip_prefix.as_ref())?;
        let mut head = whole.head.clone();
        head.uri = uri;
        Some(PartRequest {
            route,
            upstream: Forward::of(thread, route.id, target)?,
            head,
            parameters,
            entropy: thread.entropy(whole.number, index),
            peer: whole.peer,
        })
    };
    (1..).zip(&whole.route.parts).map(part).collect()
}

/// Asks for one part, and dresses the answer as its route does.
async fn ask(thread: &Rc<Thread>, part: PartRequest<'_>, part_of: PartOf) -> Response<ReplyBody<Answer>> {
    let PartRequest { route, upstream, mut head, parameters, entropy, peer } = part;
    let _no_content = make_ready(&thread.shared, route, &mut head, peer, false, parameters);
    head.extensions.insert(part_of);
    let request = Request::from_parts(head, RequestContent::none());
    let Ok(mut response) =
        respond(&route.protected, ToAnswer { request, upload: None, entropy }, &upstream).await;
    dress(&thread.shared, route, &mut response);
    response
}
