//! The message that goes to the dependency and the one that comes back, without what belongs to one connection only.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use backstop::authorize::Verdict;
use backstop::canonical;
use backstop::exercise::Trial;
use backstop::fill::{Fill, Landing, Leading, Place};
use backstop::upstream::{CacheAnswer, CallError, Progress, Upstream};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Attempt;
use backstop_engine::policy::{CacheId, RouteId};
use backstop_engine::time::Mono;
use backstop_policy::{DependencySettings, HostHeader};
use backstop_store::CopyKey;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version, request};
use http_body::Body;
use tokio::sync::oneshot;

use crate::client_body::RequestContent;
use crate::exercise;
use crate::hop;
use crate::stack::Thread;
use crate::steps::BACKSTOP_STEPS;
use crate::strict::{is_disguised, is_forwarding};
use crate::target::Prefix;
use crate::telemetry::Calling;
use crate::trailers::{self, Ruled};
use crate::upstream::{AnswerBody, Lane};
use crate::via;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// How requests of a route are forwarded.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) strip_prefix: Option<Prefix>,
    pub(crate) host: Option<HeaderValue>,
    /// For a client that names no host, as HTTP/1.0 allows; HTTP/1.1 does not (RFC 9112 section 3.2).
    pub(crate) default_host: Option<HeaderValue>,
}

impl Rules {
    pub(crate) fn new(strip_prefix: Option<&str>, host: &HostHeader, default_host: &str) -> Self {
        let host = match host {
            HostHeader::Client => None,
            HostHeader::Fixed(host) => HeaderValue::from_str(host).ok(),
        };
        let strip_prefix = strip_prefix.map(Prefix::new);
        Self { strip_prefix, host, default_host: HeaderValue::from_str(default_host).ok() }
    }
}

/// Makes a request ready to be sent on, before anything is decided about it: copies and their keys see what the
/// dependency will see. What `Connection` named.
pub(crate) fn prepare(
    head: &mut request::Parts,
    peer: SocketAddr,
    trusted: bool,
    via: &str,
) -> Vec<HeaderName> {
    let received = head.version;
    let named = hop::strip(&mut head.headers);
    if let Some(host) = host(head) {
        head.headers.insert(HOST, host);
    }
    join_cookies(&mut head.headers);
    forwarded(&mut head.headers, peer.ip(), trusted);
    via::sign(&mut head.headers, received, via);
    named
}

/// What a trusted peer says of how it was asked, if it does: the dependency may answer by it. A scheme that stands in the
/// target alone is made a field, by which the dependency sees it too.
pub(crate) fn told_by_the_trusted(head: &mut request::Parts) -> Option<Vec<u8>> {
    if let Some(scheme) = head.uri.scheme_str()
        && !scheme.eq_ignore_ascii_case("http")
        && !head.headers.contains_key(X_FORWARDED_PROTO)
        && let Ok(scheme) = HeaderValue::from_str(scheme)
    {
        head.headers.insert(X_FORWARDED_PROTO, scheme);
    }
    // Whom the request comes from is not among them: it would make every client's copy its own.
    let is_told = |name: &&HeaderName| is_forwarding(name) && **name != X_FORWARDED_FOR;
    let mut names: Vec<&HeaderName> = head.headers.keys().filter(is_told).collect();
    // The order in which they came says nothing.
    names.sort_unstable_by_key(|name| name.as_str());
    let mut told = Vec::new();
    for name in names {
        for value in head.headers.get_all(name) {
            told.extend_from_slice(name.as_str().as_bytes());
            told.push(0);
            told.extend_from_slice(value.as_bytes());
            told.push(0);
        }
    }
    (!told.is_empty()).then_some(told)
}

/// The host is the target's, where that names one (RFC 9112 section 3.2.2, RFC 9113 section 8.3.1), in the spelling that is in
/// the copy's key: of an origin that told spellings apart, one host's answer would become another's copy.
fn host(head: &request::Parts) -> Option<HeaderValue> {
    let named = || head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = head.uri.authority().map(Authority::as_str).or_else(named)?;
    HeaderValue::try_from(canonical::host(authority)).ok()
}

/// HTTP/2 may split `Cookie` into lines; HTTP/1.1 may not (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    use http::header::COOKIE;
    if headers.get_all(COOKIE).iter().nth(1).is_some() {
        let lines: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
            headers.insert(COOKIE, joined);
        }
    }
}

/// Whom the request comes from, as far as that can be believed.
fn forwarded(headers: &mut HeaderMap, peer: IpAddr, trusted: bool) {
    if !trusted {
        let is_claim = |name: &&HeaderName| is_forwarding(name) || is_disguised(name, is_forwarding);
        let claims: Vec<HeaderName> = headers.keys().filter(is_claim).cloned().collect();
        for name in claims {
            headers.remove(name);
        }
    }
    if let Ok(peer) = HeaderValue::from_str(&peer.to_string()) {
        headers.append(X_FORWARDED_FOR, peer);
    }
    if !headers.contains_key(X_FORWARDED_HOST)
        && let Some(host) = headers.get(HOST).cloned()
    {
        headers.insert(X_FORWARDED_HOST, host);
    }
    if !headers.contains_key(X_FORWARDED_PROTO) {
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
}

/// A dependency as the engine's driver calls it.
pub(crate) struct Forward<'a> {
    pub(crate) lane: &'a Lane<RequestContent>,
    pub(crate) rules: &'a Rules,
    /// The route's own dependency, which `lane` leads to.
    pub(crate) own: usize,
    /// The way to each dependency, and what it is sent as `Host`, for those that stand in.
    pub(crate) lanes: &'a [Lane<RequestContent>],
    pub(crate) all_rules: &'a [Rules],
    /// What it is asked for.
    pub(crate) target: Uri,
    /// Where all of this comes from, for a read that outlives the request.
    pub(crate) thread: &'a Rc<Thread>,
    /// The route, among the thread's.
    pub(crate) route: RouteId,
}

impl<'a> Forward<'a> {
    /// The way of a route's requests for a target, or `None` if there is no such route.
    pub(crate) fn of(thread: &'a Rc<Thread>, route: RouteId, target: Uri) -> Option<Self> {
        let stack = thread.shared.routes.get(usize::from(route.0))?;
        Some(Self {
            lane: thread.lanes.get(stack.observed.as_ref().map_or(stack.dependency, |own| own.lane))?,
            rules: &stack.forward,
            own: stack.dependency,
            lanes: &thread.lanes,
            all_rules: &thread.shared.hosts,
            target,
            thread,
            route,
        })
    }
}

/// Has a read made on this thread, whether or not anybody still waits for it, and then the cache told.
async fn fill(thread: Rc<Thread>, route: RouteId, target: Uri, leading: Leading, tell: Tell) {
    let Some(forward) = Forward::of(&thread, route, target) else { return };
    let entropy = thread.entropy(thread.next_number(), 0);
    let (landing, for_cache) = leading.run(&forward, RequestContent::none(), entropy).await;
    let _nobody_waits_any_more = tell.send(landing);
    let shared = &thread.shared;
    thread.caches.keep(&shared.engine, route, for_cache, shared.clock.mono()).await;
}

/// An answer's body on its way to the client.
pub(crate) type Answer = Ruled<AnswerBody<RequestContent>>;

type Tell = oneshot::Sender<Landing<Answer>>;

impl Upstream<RequestContent> for Forward<'_> {
    type Body = Answer;
    type Error = Infallible;

    async fn call(
        &self,
        attempt: Attempt,
        mut request: Request<RequestContent>,
        progress: &Progress,
    ) -> Result<Response<Self::Body>, CallError<Infallible>> {
        let asked = usize::from(attempt.dependency.0);
        let another = self.lanes.get(asked).zip(self.all_rules.get(asked)).filter(|_| asked != self.own);
        let (lane, rules) = another.unwrap_or((self.lane, self.rules));
        *request.version_mut() = Version::HTTP_11;
        *request.uri_mut() = self.target.clone();
        if let Some(host) = &rules.host {
            request.headers_mut().insert(HOST, host.clone());
        } else if !request.headers().contains_key(HOST)
            && let Some(host) = &rules.default_host
        {
            request.headers_mut().insert(HOST, host.clone());
        }
        // Said here, because of content that comes with a GET hyper would send nothing unless it is told how.
        if !request.body().is_end_stream() && !request.headers().contains_key(CONTENT_LENGTH) {
            request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let calling = Calling::begin(self.thread, &attempt, &mut request);
        let came = lane.call(attempt, request, progress).await;
        calling.ended(came.as_ref());
        let mut response = came?;
        // Were such a field dropped at the word of `Connection`, an answer that must not be kept would look like one that may.
        if hop::nominates_part_of_the_answer(response.headers()) {
            let invalid = Failure::new(FailureKind::Protocol, Phase::Head, Sent::Maybe);
            return Err(CallError::Failed(invalid));
        }
        // Ours, whatever the dependency speaks (RFC 9112 section 2.3): by an older one an answer without a length would end with
        // the client's connection, and one that is cut would look whole.
        *response.version_mut() = Version::HTTP_11;
        // Only after content in chunks there can be more fields (RFC 9112 section 7.1.2).
        let is_chunked = response.headers().contains_key(TRANSFER_ENCODING);
        let named = hop::strip(response.headers_mut());
        // To a gateway behind this one we may be a trusted caller; our own caller need not be one.
        response.headers_mut().remove(BACKSTOP_STEPS);
        let edits =
            self.thread.shared.routes.get(usize::from(self.route.0)).map(|route| &route.response_edits);
        let rules = edits.filter(|_| is_chunked).map(|edits| trailers::Rules::new(named, edits));
        if let Some(rules) = &rules {
            rules.announce(response.headers_mut());
        }
        Ok(response.map(|body| Ruled::new(body, rules)))
    }

    async fn authorize(
        &self,
        attempt: Option<Attempt>,
        head: &request::Parts,
        progress: &Progress,
    ) -> Verdict {
        self.thread.authorize(self.route, attempt, head, progress).await
    }

    async fn cached(&self, cache: CacheId, key: &CopyKey, request: &HeaderMap, until: Mono) -> CacheAnswer {
        self.thread.caches.cached(cache, key, request, until).await
    }

    async fn fill(&self, fill: Fill) -> Landing<Self::Body> {
        match fill.join() {
            Place::Lead(leading) => {
                let (tell, told) = oneshot::channel();
                let (thread, target) = (Rc::clone(self.thread), self.target.clone());
                tokio::task::spawn_local(self::fill(thread, self.route, target, *leading, tell));
                told.await.unwrap_or_else(|_| Landing::lost())
            }
            Place::Follow(following) => following.landing().await,
            Place::Full => Landing::full(),
            _ => Landing::apart(),
        }
    }

    fn exercise(&self, trial: Trial) {
        let (thread, route, target) = (Rc::clone(self.thread), self.route, self.target.clone());
        tokio::task::spawn_local(async move {
            let Some(forward) = Forward::of(&thread, route, target) else { return };
            let turned = trial.run(&forward, RequestContent::none()).await;
            exercise::tell(&thread.shared.engine.route(route).rules, &turned);
        });
    }

    fn no_content(&self) -> Option<RequestContent> {
        Some(RequestContent::none())
    }

    fn fills_its_buffers(&self) -> bool {
        true
    }

    fn reaches_others(&self) -> bool {
        true
    }
}

/// What a dependency is called by the first of its addresses, as a `Host` has it (RFC 9112 section 3.2).
pub(crate) fn own_host(dependency: &DependencySettings) -> String {
    dependency.addresses.first().map_or_else(String::new, ToString::to_string)
}

/// The `Host` of a request to a dependency that is no client's.
pub(crate) fn sent_host(dependency: &DependencySettings) -> String {
    match &dependency.host {
        HostHeader::Client => own_host(dependency),
        HostHeader::Fixed(host) => host.to_string(),
    }
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
