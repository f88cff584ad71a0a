//! Whether a caller may: what whoever is asked says, and what becomes of it.

use backstop_engine::failure::{Failure, NotAsked};
use backstop_engine::flow::{Authorization, Settlement};
use bytes::Bytes;
use http::header::{
    AGE, CACHE_CONTROL, CONTENT_LENGTH, ETAG, EXPIRES, HeaderName, LAST_MODIFIED, PRAGMA, TRAILER,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};

use crate::body::ReplyBody;
use crate::own::unless_head;

/// What whoever says who may says of one request.
#[derive(Debug)]
pub enum Verdict {
    /// An explicit yes, and who it is.
    Allowed(Caller),
    /// An explicit no, whole: it goes to the client as it is.
    Denied(Response<Bytes>),
    /// Whole, and neither.
    Unclear,
    /// It failed.
    Failed(Failure),
    /// It was not asked: nothing was begun.
    NotAsked(NotAsked),
}

/// Who a caller is, by the word of whoever said that they may.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The verified principal, if the authorizer names one.
    pub principal: Option<Principal>,
    /// Fields that tell the dependency who asks. The client's own of these names are gone by then.
    pub fields: HeaderMap,
}

/// Whose request it is, verified, as an extension of the request: what copies' keys and the scopes of operations use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal(pub Box<[u8]>);

impl Verdict {
    /// As the engine counts it.
    pub(crate) fn came(&self) -> Authorization {
        match self {
            Verdict::Allowed(_) => Authorization::Allowed,
            Verdict::Denied(_) => Authorization::Denied,
            Verdict::Unclear => Authorization::Unclear,
            Verdict::Failed(failure) => Authorization::Failed(*failure),
            Verdict::NotAsked(reason) => Authorization::NotAsked(*reason),
        }
    }
}

impl Caller {
    /// Tells whoever gets the request who asks.
    pub(crate) fn introduce(self, parts: &mut Parts) {
        for name in self.fields.keys() {
            parts.headers.remove(name);
        }
        parts.headers.extend(self.fields);
        if let Some(principal) = self.principal {
            parts.extensions.insert(principal);
        }
    }
}

/// Whether a field says how long an answer may be kept, or lets it be compared with one that is; or announces what cannot
/// follow a content with its length.
fn lets_keep(name: &HeaderName) -> bool {
    const ALL: [HeaderName; 6] = [AGE, ETAG, EXPIRES, LAST_MODIFIED, PRAGMA, TRAILER];
    ALL.contains(name) || name.as_str().ends_with("-cache-control") || *name == "surrogate-control"
}

/// The authorizer's no, as it goes to the client.
pub(crate) fn denied<B>(
    denial: Response<Bytes>,
    is_head: bool,
    settlement: Settlement,
) -> Response<ReplyBody<B>> {
    let (mut head, content) = denial.into_parts();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    // It is about this caller, whatever it says of itself, and to whomever it says so (RFC 9213 section 2.2).
    let keeps: Vec<HeaderName> = head.headers.keys().filter(|name| lets_keep(name)).cloned().collect();
    for name in keeps {
        head.headers.remove(name);
    }
    head.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Response::from_parts(head, ReplyBody::whole(unless_head(content, is_head), settlement))
}
