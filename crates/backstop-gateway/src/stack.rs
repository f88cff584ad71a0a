//! The whole way of a request through the gateway, from top to bottom.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use backstop::authorize::Verdict;
use backstop::canonical;
use backstop::request::{AlsoKey, Examined, PathParameters, Personal};
use backstop::upstream::Progress;
use backstop::{Incoming as ToAnswer, ProtectedRoute, ReplyBody, problem, respond};
use backstop_engine::admission::Limit;
use backstop_engine::flow::{Account, Attempt};
use backstop_engine::outcome::{Outcome, Source};
use backstop_engine::policy::RouteId;
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version, request};
use http_body::Body;
use http_body_util::{Either, Full};
use hyper::body::Incoming;

use crate::authorizer::Authorizer;
use crate::caches::Lanes;
use crate::client_body::RequestContent;
use crate::composed;
use crate::cors::Cors;
use crate::edits::Edits;
use crate::forward::{self, Answer, Forward};
use crate::interim;
use crate::log::Decisions;
use crate::max_forwards::{self, Reach};
use crate::observe::{self, Observed, Passed};
use crate::operations::{self, Operations};
use crate::parts::PartRules;
use crate::router::{Found, Router};
use crate::steps;
use crate::strict::{self, Fault, passes_for};
use crate::tallies::Tallies;
use crate::target::origin_form;
use crate::telemetry::{self, Calling, Telemetry};
use crate::trailers;
use crate::upstream::Lane;

/// The body of every answer: one that was decided about, a few words of our own, or one that was only observed.
pub(crate) type ReplyContent = Either<ReplyBody<Answer>, Either<Full<Bytes>, Passed>>;

/// What all threads share.
pub(crate) struct Shared {
    pub(crate) name: Box<str>,
    /// The largest head of a request.
    pub(crate) head_bytes: usize,
    /// Its name in `Via`.
    pub(crate) via: Box<str>,
    pub(crate) clock: backstop::clock::Clock,
    pub(crate) engine: Arc<backstop_engine::engine::Engine>,
    pub(crate) router: Router,
    pub(crate) routes: Vec<RouteStack>,
    /// What each dependency is sent as `Host` when it stands in for another.
    pub(crate) hosts: Vec<forward::Rules>,
    /// Who says whether callers may.
    pub(crate) authorizers: Vec<Authorizer>,
    /// The ledger of operations, where a route has any.
    pub(crate) operations: Option<Arc<Operations>>,
    /// Who may ask the ledger at once whose an operation is, before it is known who asks.
    pub(crate) looks: Arc<Limit>,
    pub(crate) trusted: Vec<backstop_policy::IpRange>,
    pub(crate) tallies: Tallies,
    pub(crate) decisions: Decisions,
    /// What really came of requests that were only observed.
    pub(crate) observed: observe::Counts,
    /// What the steps of requests are called after.
    pub(crate) words: steps::Words,
    /// Who is told of requests.
    pub(crate) telemetry: Telemetry,
    /// What each dependency is called and where it listens, for whoever is told.
    #[cfg_attr(all(not(feature = "otlp"), not(test)), expect(dead_code, reason = "only spans name them"))]
    pub(crate) addresses: Vec<(Box<str>, u16)>,
}

/// One route, ready to forward.
pub(crate) struct RouteStack {
    pub(crate) id: backstop_engine::policy::RouteId,
    pub(crate) protected: ProtectedRoute,
    pub(crate) dependency: usize,
    /// Where it is only observed.
    pub(crate) observed: Option<observe::ObservedRoute>,
    pub(crate) limits: backstop_policy::RouteLimits,
    pub(crate) forward: forward::Rules,
    pub(crate) request_edits: Arc<Edits>,
    /// The fields that are in the keys of its copies.
    pub(crate) keyed: Arc<[HeaderName]>,
    /// Whether the key of its copies holds whom the authorizer verified.
    pub(crate) is_principals: bool,
    pub(crate) ignore_cookie: bool,
    /// Who of [`Shared::authorizers`] says whether its callers may.
    pub(crate) authorizer: Option<usize>,
    pub(crate) cors: Option<Cors>,
    /// Whether its reads are kept: it is a `public_read` or a `cached_read`.
    pub(crate) is_read: bool,
    pub(crate) response_edits: Arc<Edits>,
    /// Of a composed route.
    pub(crate) parts: Box<[PartRules]>,
    /// The path template of its requests, if it has only one.
    pub(crate) template: Option<Box<str>>,
}

/// What one thread has of its own.
pub(crate) struct Thread {
    pub(crate) shared: Arc<Shared>,
    /// One way to each dependency, and after those one to each for requests that are only observed, if there are any.
    pub(crate) lanes: Vec<Lane<RequestContent>>,
    /// And to each cache.
    pub(crate) caches: Lanes,
    pub(crate) draws: Draws,
    /// Requests and fills begun.
    pub(crate) begun: Cell<u64>,
}

impl Thread {
    /// A number that no other request of this thread has, and no fill.
    pub(crate) fn next_number(&self) -> u64 {
        self.begun.set(self.begun.get().wrapping_add(1));
        self.begun.get()
    }

    /// Whether the caller of a request on this route may.
    pub(crate) async fn authorize(
        &self,
        route: RouteId,
        attempt: Option<Attempt>,
        head: &request::Parts,
        progress: &Progress,
    ) -> Verdict {
        let index = self.shared.routes.get(usize::from(route.0)).and_then(|route| route.authorizer);
        let authorizer = index.and_then(|index| self.shared.authorizers.get(index));
        match authorizer {
            Some(authorizer) => {
                let asking = Calling::begin_asking(self, attempt.as_ref(), head);
                let head = asking.as_ref().map_or(head, |(_, told)| told);
                let verdict = authorizer.find_out(&self.lanes, attempt, head, progress).await;
                if let Some((calling, _)) = asking {
                    calling.was_told(&verdict);
                }
                verdict
            }
            // Nobody who could say so is there.
            None => Verdict::Unclear,
        }
    }

    /// 64 bits for one call of the engine: of a request or a fill, by its number, or of one of its parts.
    pub(crate) fn entropy(&self, number: u64, part: u64) -> u64 {
        self.draws.bits(number, part)
    }
}

/// Where a thread's random bits come from.
#[derive(Debug)]
pub(crate) enum Draws {
    /// From a secret that the thread drew when it started.
    Secret(std::hash::RandomState),
    /// From the numbers alone: what is explained twice is explained alike.
    Known,
}

impl Draws {
    fn bits(&self, number: u64, part: u64) -> u64 {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        match self {
            Self::Secret(secret) => secret.hash_one((number, part)),
            Self::Known => BuildHasherDefault::<DefaultHasher>::default().hash_one((number, part)),
        }
    }
}

/// Answers one request, and tells a trusted caller how if asked. `routed` is told where it leads.
pub(crate) async fn handle(
    thread: &Rc<Thread>,
    peer: SocketAddr,
    client: Option<&interim::Writer>,
    mut request: Request<Incoming>,
    routed: &Cell<Option<RouteId>>,
) -> Response<ReplyContent> {
    let recorder = steps::wanted(&thread.shared, peer, &mut request);
    let mut response = answer(thread, peer, client, request, routed).await;
    if let Some(recorder) = &recorder {
        steps::tell(&thread.shared, recorder, &mut response);
    }
    response
}

async fn answer(
    thread: &Rc<Thread>,
    peer: SocketAddr,
    client: Option<&interim::Writer>,
    request: Request<Incoming>,
    routed: &Cell<Option<RouteId>>,
) -> Response<ReplyContent> {
    let shared = &*thread.shared;
    let number = thread.next_number();
    let (mut head, incoming) = request.into_parts();
    let unread = head.version < Version::HTTP_2 && !incoming.is_end_stream();
    let method = head.method.clone();
    let refused = |fault| refuse(shared, &method, fault, unread);

    let trusted = shared.trusted.iter().any(|range| range.contains(peer.ip()));
    if strict::is_too_large(&head, shared.head_bytes) {
        return refused(Fault::HeadTooLarge);
    }
    // What two parsers could read differently goes no further. Before routing: the host decides the route.
    let host = match strict::check(&head, &shared.via, trusted) {
        Ok(host) => host,
        Err(fault) => return refused(fault),
    };
    let reach = max_forwards::reach(&mut head);
    // Two spellings of one path lead to one route.
    let path = canonical::escapes(head.uri.path());
    if reach == Reach::Here {
        let has_route = |method: &Method| shared.router.find(&host, method, &path).is_some();
        return answer_here(max_forwards::allow(has_route), unread);
    }
    // Their address is the same on every host, and no route's.
    if shared.operations.is_some()
        && let Some(id) = operations::named(&path)
    {
        return operations::look(thread, id, head, peer, unread, number).await;
    }
    let Some(Found { route, parameters }) = shared.router.find(&host, &head.method, &path) else {
        return refused(Fault::NoRoute);
    };
    routed.set(Some(route));
    let Some(route) = shared.routes.get(usize::from(route.0)) else {
        return refused(Fault::NoRoute);
    };
    let page = route.cors.as_ref().map(|cors| cors.page(&head.headers));
    // An announced length that is too large is refused before it takes a place or a byte.
    if strict::announced_length(&head.headers).is_some_and(|bytes| bytes > route.limits.body_bytes) {
        let mut response = refused(Fault::TooLarge);
        if let Some(page) = &page {
            page.apply(response.headers_mut());
        }
        return response;
    }
    if let Some(client) = client {
        client.set_reply_time(route.limits.reply_time);
    }
    if !route.parts.is_empty() {
        let has_content = !incoming.is_end_stream();
        let whole = composed::Whole { route, head, parameters, has_content, number, peer };
        let mut response = composed::answer(thread, whole).await;
        if let Some(page) = &page {
            page.may_read(&mut response);
        }
        return response;
    }
    // The router has seen the prefix; should it ever not be there, the path as a whole would be another resource.
    let Some(target) = origin_form(&head.uri, route.forward.strip_prefix.as_ref()) else {
        return refused(Fault::Path);
    };

    if let Some(rules) = route.protected.state().rules.class.effect()
        && head.method != Method::OPTIONS
    {
        let arriving =
            operations::Arriving { route, rules, head, incoming, parameters, target, peer, number };
        let mut response = operations::answer(thread, arriving).await;
        match (&page, response.body()) {
            // What is refused before anything was decided is our own word.
            (Some(page), Either::Right(_)) => page.apply(response.headers_mut()),
            (Some(page), Either::Left(_)) => page.may_read(&mut response),
            (None, _) => {}
        }
        return response;
    }

    let named = make_ready(shared, route, &mut head, peer, !incoming.is_end_stream(), parameters);
    // Behind a length of HTTP/1.1 there is nothing.
    let may_have_trailers = head.version == Version::HTTP_2 || incoming.size_hint().exact().is_none();
    let rules =
        may_have_trailers.then(|| trailers::Rules::new(named, &route.request_edits).without(&route.keyed));
    if let Some(rules) = &rules {
        rules.announce(&mut head.headers);
    }
    if let Some(client) = client
        && head.version == Version::HTTP_11
    {
        head.extensions.insert(client.forwarder());
    }
    let version = head.version;
    let (content, upload) = RequestContent::new(
        incoming,
        version,
        route.limits.body_bytes,
        route.limits.body_time,
        rules,
        &shared.clock,
    );

    // From here on the engine decides: admission, deadline, what failed, what is answered instead.
    let Some(upstream) = Forward::of(thread, route.id, target) else {
        return refused(Fault::NoRoute);
    };
    let mut response = if observe::is_observed(route) {
        let observed = Observed { route, head, content, upload: upload.as_ref(), number };
        let answering = observe::answer(thread, &upstream, observed);
        interim::alongside(client, answering, &route.response_edits)
            .await
            .map(Either::Right)
            .map(Either::Right)
    } else {
        let request = ToAnswer {
            request: Request::from_parts(head, content),
            upload: upload.as_ref(),
            entropy: thread.entropy(number, 0),
        };
        let answering = respond(&route.protected, request, &upstream);
        let answered: Result<_, Infallible> =
            interim::alongside(client, answering, &route.response_edits).await;
        let Ok(mut response) = answered;
        dress(shared, route, &mut response);
        response.map(Either::Left)
    };
    if let Some(page) = &page {
        page.may_read(&mut response);
    }
    // The rest of the request may never come or never be read: the connection cannot be used for another one, and whoever
    // waits for `100 Continue` is told so (RFC 9110 section 10.1.1).
    if version < Version::HTTP_2 && upload.is_some_and(|upload| !upload.has_ended()) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Makes a request ready for its route: hop-by-hop fields go and the operator's edits are made before anything is decided, so
/// that a copy's key is made of what the dependency really sees. What `Connection` named.
pub(crate) fn make_ready(
    shared: &Shared,
    route: &RouteStack,
    head: &mut request::Parts,
    peer: SocketAddr,
    has_content: bool,
    parameters: PathParameters,
) -> Vec<HeaderName> {
    let trusted = shared.trusted.iter().any(|range| range.contains(peer.ip()));
    // Whose request it is, by the client's own fields: the operator may remove a credential, or set one for all.
    let authorizer = route.authorizer.and_then(|index| shared.authorizers.get(index));
    let personal = is_credential(route, authorizer, &head.headers)
        // An answer to content of the request's own is nobody else's.
        || (route.is_read && has_content);
    if trusted && let Some(told) = forward::told_by_the_trusted(head) {
        head.extensions.insert(AlsoKey(told));
    }
    let named = forward::prepare(head, peer, trusted, &shared.via);
    telemetry::take_part(head);
    if let Some(authorizer) = authorizer {
        // Before the operator's edits: a credential of the operator's would let everybody in.
        head.extensions.insert(authorizer.credentials(&head.headers));
    }
    leave_out_disguised(route, authorizer, &mut head.headers);
    route.request_edits.apply(&mut head.headers);
    head.extensions.insert(Examined);
    if personal {
        head.extensions.insert(Personal);
    }
    if !parameters.0.is_empty() {
        head.extensions.insert(parameters);
    }
    named
}

/// Whether a request shows a credential that nobody answers for, so that its answer is its caller's own. Where the key holds
/// whom the authorizer verified, the copy is that caller's whatever else they send. Where all who are allowed share it, what
/// the dependency makes its answer from is the credential that was looked at, and no cookie: beside a session it may
/// hold anything.
fn is_credential(route: &RouteStack, authorizer: Option<&Authorizer>, headers: &HeaderMap) -> bool {
    if authorizer.is_some() && route.is_principals {
        return false;
    }
    let is_verified = authorizer.is_some_and(|authorizer| authorizer.looks_at(&AUTHORIZATION));
    (headers.contains_key(AUTHORIZATION) && !is_verified)
        || (headers.contains_key(COOKIE) && !route.ignore_cookie)
}

/// A service that reads `X_Tenant` as `X-Tenant` would answer for one that is neither in the copy's key nor the operator's. And
/// what an answer that is kept varies by only its `Vary` tells: where copies are kept, no field has underscores that the key or
/// the operator does not name.
/// So it is with what the authorizer looks at.
fn leave_out_disguised(route: &RouteStack, authorizer: Option<&Authorizer>, headers: &mut HeaderMap) {
    let is_ruled = |name: &HeaderName| route.request_edits.touch(name) || route.keyed.contains(name);
    let is_disguised = |name: &&HeaderName| {
        let passes = || {
            authorizer.is_some_and(|authorizer| authorizer.is_imitated_by(name))
                || route.request_edits.touch_what_passes_for(name)
                || route.keyed.iter().any(|keyed| passes_for(name, keyed))
        };
        passes() || (route.is_read && name.as_str().contains('_') && !is_ruled(name))
    };
    let gone: Vec<HeaderName> = headers.keys().filter(is_disguised).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// Makes the operator's edits of a decided answer and writes it down if it is not normal.
///
/// After the decision: an edit can neither make a private answer storable nor change what a copy keeps.
pub(crate) fn dress<B>(shared: &Shared, route: &RouteStack, response: &mut Response<B>) {
    let account = response.extensions().get::<Account>().copied();
    match account.as_ref().map(|account| account.source) {
        Some(Source::None | Source::Prepared | Source::Omitted | Source::Ledger) => {
            route.response_edits.apply_to_own(response.headers_mut());
        }
        // What a composed answer says of its lifetime is what its parts say together.
        _ if !route.parts.is_empty() => route.response_edits.apply_to_own(response.headers_mut()),
        _ => route.response_edits.apply(response.headers_mut()),
    }
    if let Some(account) = account.as_ref().filter(|account| account.outcome != Outcome::Normal) {
        shared.decisions.note(route.protected.state(), route.id, account, shared.clock.mono());
    }
}

/// The answer to a request that may go no further (RFC 9110 section 7.6.2).
pub(crate) fn answer_here(allow: HeaderValue, unread: bool) -> Response<ReplyContent> {
    let mut response = Response::new(Either::Right(Either::Left(Full::default())));
    response.headers_mut().insert(ALLOW, allow);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    if unread {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A refusal that needs no decision. With content that is left `unread` no other request follows it on its connection, and
/// whoever waits for `100 Continue` is told so (RFC 9110 section 10.1.1).
pub(crate) fn refuse(shared: &Shared, method: &Method, fault: Fault, unread: bool) -> Response<ReplyContent> {
    shared.tallies.refused(fault);
    shared.decisions.note_refused(fault, shared.clock.mono());
    let text = format!(
        "{{\"type\":\"{}{}\",\"title\":\"{}\",\"status\":{},\"outcome\":\"rejected\",\"reason\":\"{}\"}}\n",
        problem::TYPE_PREFIX,
        fault.problem(),
        fault.title(),
        fault.status().as_u16(),
        fault.token(),
    );
    let length = text.len();
    // To HEAD as to GET, without the content (RFC 9110 section 9.3.2).
    let content = if *method == Method::HEAD { Bytes::new() } else { Bytes::from(text) };
    let mut response = Response::new(Either::Right(Either::Left(Full::new(content))));
    response.extensions_mut().insert(fault);
    *response.status_mut() = fault.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, problem::MEDIA_TYPE);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(field) = HeaderValue::from_str(&format!("outcome=rejected, reason={}", fault.token())) {
        headers.insert(backstop::fields::BACKSTOP, field);
    }
    if fault == Fault::Method {
        // Which methods a path has is the origin's business; none of these two is ever accepted.
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"));
    }
    if fault == Fault::Loop
        && let Ok(status) = HeaderValue::from_str(&format!("{}; error=proxy_loop_detected", shared.name))
    {
        headers.insert(backstop::fields::PROXY_STATUS, status);
    }
    if fault.closes() || unread {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
