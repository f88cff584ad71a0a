//! Asking whether a caller may, and reading the answer.
//!
//! - It is asked with a GET, without content, with what the client itself sent: before the operator's edits, because a
//!   credential that the operator sets for the dependency would let everybody in.
//! - A yes is a status and a field that were agreed on, and the principal where one was. Nothing else is one: not a page that
//!   is sent with 200, not an answer of which the end is missing, not one that another gateway gave in its place.
//! - A no is 401 or 403, and goes to the client as it came, with its challenge (RFC 9110 section 11.6.1).
//! - Who the caller is the dependency hears from the authorizer alone: a client's own fields of these names are gone by
//!   then, on every route, disguised ones and those behind the content too.

use std::convert::Infallible;

use backstop::authorize::{Caller, Principal, Verdict};
use backstop::upstream::{BrokenOff, CallError, Progress, Upstream};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Attempt;
use backstop_engine::policy::StatusSet;
use backstop_policy::{AskedSettings, AuthorizerSettings};
use bytes::{Bytes, BytesMut};
use http::header::{HOST, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version, request};
use http_body::Body;
use http_body_util::BodyExt;

use crate::client_body::RequestContent;
use crate::hop;
use crate::steps::BACKSTOP_STEPS;
use crate::telemetry::{TRACEPARENT, Told};
use crate::upstream::Lane;

use super::{CannotAsk, Credentials, only};

/// An authorizer that is asked, ready for it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Its dependency: the number of its lane.
    pub(crate) dependency: usize,
    path: Uri,
    host: HeaderValue,
    allow: StatusSet,
    sign: HeaderName,
    sign_value: Option<HeaderValue>,
    deny: StatusSet,
    principal: Option<HeaderName>,
    tells: Vec<HeaderName>,
    send: Vec<HeaderName>,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// More than any decision needs. A longer answer is none.
const ANSWER_BYTES: usize = 64 * 1024;

impl Asked {
    /// An authorizer as the policy has it, sent this host. Fields of `identities` are never asked with: no client has them to
    /// send.
    pub(crate) fn new(
        settings: &AuthorizerSettings,
        asked: &AskedSettings,
        host: &str,
        identities: &[HeaderName],
    ) -> Result<Self, CannotAsk> {
        let cannot =
            |part, text: &str| CannotAsk { name: settings.name.clone(), part, text: text.to_owned() };
        let name = |part, text: &str| HeaderName::try_from(text).map_err(|_| cannot(part, text));
        let names = |part, texts: &[Box<str>]| {
            texts.iter().map(|text| name(part, text)).collect::<Result<Vec<_>, _>>()
        };
        let value = |text: &str| HeaderValue::try_from(text).map_err(|_| cannot("sign", text));
        Ok(Self {
            dependency: usize::from(settings.dependency.0),
            path: asked.path.parse().map_err(|_| cannot("path", &asked.path))?,
            host: HeaderValue::try_from(host).map_err(|_| cannot("host", host))?,
            allow: asked.allow,
            sign: name("sign", &asked.sign)?,
            sign_value: asked.sign_value.as_deref().map(value).transpose()?,
            deny: asked.deny,
            principal: settings.principal.as_deref().map(|text| name("principal", text)).transpose()?,
            tells: names("field", &asked.tells)?,
            send: names("field", &asked.send)?
                .into_iter()
                .filter(|name| !identities.contains(name))
                .collect(),
        })
    }

    /// The fields of a request that it gets.
    pub(crate) fn send(&self) -> &[HeaderName] {
        &self.send
    }

    /// Asks, with this one call.
    pub(crate) async fn ask(
        &self,
        lane: &Lane<RequestContent>,
        attempt: Attempt,
        head: &request::Parts,
        progress: &Progress,
    ) -> Verdict {
        let answer: Result<_, CallError<Infallible>> = lane.call(attempt, self.request(head), progress).await;
        let (head, body) = match answer {
            Ok(answer) => answer.into_parts(),
            Err(CallError::Failed(failure)) => return Verdict::Failed(failure),
            Err(CallError::NotAsked(reason)) => return Verdict::NotAsked(reason),
            Err(CallError::Client(_) | CallError::Unclassified(_)) => return Verdict::Unclear,
        };
        match whole(body, ANSWER_BYTES).await {
            Ok(Some(content)) => self.read(Response::from_parts(head, content)),
            Ok(None) => Verdict::Unclear,
            Err(failure) => Verdict::Failed(failure),
        }
    }

    fn request(&self, head: &request::Parts) -> Request<RequestContent> {
        let mut request = Request::new(RequestContent::none());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        if let Some(Credentials(credentials)) = head.extensions.get() {
            headers.extend(credentials.clone());
        }
        headers.insert(HOST, self.host.clone());
        for name in [X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, VIA] {
            for value in head.headers.get_all(&name) {
                headers.append(&name, value.clone());
            }
        }
        if let Some(Told(context)) = head.extensions.get() {
            headers.insert(TRACEPARENT, context.value());
        }
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        for (name, text) in [(X_FORWARDED_METHOD, head.method.as_str()), (X_FORWARDED_URI, target)] {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        }
        request
    }

    fn read(&self, mut answer: Response<Bytes>) -> Verdict {
        let status = answer.status().as_u16();
        if matches!(status, 502..=504) {
            let kind = FailureKind::Unavailable { status };
            return Verdict::Failed(Failure::new(kind, Phase::Head, Sent::Maybe));
        }
        // What `Connection` names is of the connection: no sign, and no principal.
        hop::strip(answer.headers_mut());
        answer.headers_mut().remove(BACKSTOP_STEPS);
        *answer.version_mut() = Version::HTTP_11;
        // A cache's answer in the authorizer's place, or another gateway's: an old yes is none, and an old no is not about this
        // request.
        if backstop::fields::is_earlier(answer.headers()) {
            return Verdict::Unclear;
        }
        if self.deny.contains(status) {
            self.keeps_to_itself(answer.headers_mut());
            return Verdict::Denied(answer);
        }
        let is_yes = self.allow.contains(status) && self.has_sign(answer.headers());
        match self.caller(answer.headers()) {
            Some(caller) if is_yes => Verdict::Allowed(caller),
            Some(_) | None => Verdict::Unclear,
        }
    }

    fn has_sign(&self, headers: &HeaderMap) -> bool {
        only(headers, &self.sign).is_some_and(|given| match &self.sign_value {
            Some(expected) => given == expected,
            None => !given.is_empty(),
        })
    }

    /// Who it is; `None` if the principal that it should name is missing, empty, or more than one.
    fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let mut fields = HeaderMap::new();
        for name in &self.tells {
            for value in headers.get_all(name) {
                fields.append(name, value.clone());
            }
        }
        let Some(name) = &self.principal else { return Some(Caller { principal: None, fields }) };
        let value = only(headers, name).filter(|value| !value.is_empty())?;
        fields.insert(name, value.clone());
        Some(Caller { principal: Some(Principal(value.as_bytes().into())), fields })
    }

    /// What it tells the gateway is not the client's to know.
    fn keeps_to_itself(&self, headers: &mut HeaderMap) {
        for name in self.tells.iter().chain(&self.principal).chain([&self.sign]) {
            headers.remove(name);
        }
    }
}

/// The content, to its end; `None` if it is longer than this.
pub(super) async fn whole<B>(body: B, limit_bytes: usize) -> Result<Option<Bytes>, Failure>
where
    B: Body<Data = Bytes, Error = BrokenOff> + Unpin,
{
    let mut body = body;
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                if let Some(piece) = frame.data_ref() {
                    if content.len() + piece.len() > limit_bytes {
                        return Ok(None);
                    }
                    content.extend_from_slice(piece);
                }
            }
            Err(BrokenOff::Dependency(failure, _)) => return Err(failure),
            Err(BrokenOff::Client(_)) => {
                return Err(Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe));
            }
        }
    }
    Ok(Some(content.freeze()))
}

#[cfg(test)]
#[path = "asked_tests.rs"]
mod tests;
