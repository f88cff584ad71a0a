//! Fields behind the content (RFC 9110 section 6.5), which follow the rules of those before it.
//!
//! Whoever receives them may put them into the head. So nothing goes on behind the content that would not go on before it:
//! what belongs to the connection or is named by `Connection`, what the operator removes or sets, and what says whom a request
//! comes from, of which even a proxy that is trusted may only pass on its own client's word. Nor does what means nothing there,
//! because it is needed before the content is read (section 6.5.1). An announcement names what comes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{self, HeaderName, TRAILER};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};

use crate::edits::Edits;
use crate::hop;
use crate::strict::{is_disguised, is_forwarding, passes_for};

/// What frames, routes, authenticates or changes a message, says which answer is wanted, or what may be done with it.
const NEEDED_BEFORE: [HeaderName; 32] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::AGE,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::EXPECT,
    header::EXPIRES,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LOCATION,
    header::MAX_FORWARDS,
    header::PRAGMA,
    header::PROXY_AUTHENTICATE,
    header::RANGE,
    header::RETRY_AFTER,
    header::SET_COOKIE,
    TRAILER,
    header::VARY,
    header::VIA,
    header::WWW_AUTHENTICATE,
];

/// Which fields of one message go on behind its content.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// By `Connection`.
    named: Vec<HeaderName>,
    edits: Arc<Edits>,
    /// By which copies are told apart.
    keyed: Arc<[HeaderName]>,
}

impl Rules {
    /// Of a message whose `Connection` named these, on a route with these edits.
    pub(crate) fn new(named: Vec<HeaderName>, edits: &Arc<Edits>) -> Self {
        Self { named, edits: Arc::clone(edits), keyed: Arc::default() }
    }

    /// Nor do these go on: whoever is asked might answer by them for those who did not send them.
    pub(crate) fn without(self, keyed: &Arc<[HeaderName]>) -> Self {
        Self { keyed: Arc::clone(keyed), ..self }
    }

    fn goes_on(&self, name: &HeaderName) -> bool {
        !NEEDED_BEFORE.contains(name)
            && !name.as_str().starts_with("backstop")
            && !is_forwarding(name)
            && !is_disguised(name, is_forwarding)
            && !self.edits.touch_what_passes_for(name)
            && !self.keyed.iter().any(|keyed| name == keyed || passes_for(name, keyed))
            && !hop::is_of_the_connection(name)
            && !self.named.contains(name)
            && !self.edits.touch(name)
    }

    /// Leaves in the head's announcement only what goes on.
    pub(crate) fn announce(&self, head: &mut HeaderMap) {
        if !head.contains_key(TRAILER) {
            return;
        }
        let lines = head.get_all(TRAILER).iter().filter_map(|line| line.to_str().ok());
        let names = lines.flat_map(|line| line.split(',')).map(str::trim);
        let left: Vec<&str> =
            names.filter(|name| HeaderName::try_from(*name).is_ok_and(|name| self.goes_on(&name))).collect();
        match HeaderValue::try_from(left.join(", ")) {
            Ok(line) if !line.is_empty() => drop(head.insert(TRAILER, line)),
            _ => drop(head.remove(TRAILER)),
        }
    }

    /// Leaves what goes on.
    pub(crate) fn apply(&self, trailers: &mut HeaderMap) {
        let gone: Vec<HeaderName> = trailers.keys().filter(|name| !self.goes_on(name)).cloned().collect();
        for name in gone {
            trailers.remove(name);
        }
    }
}

/// An answer's body, with the trailers that go on.
#[derive(Debug)]
pub(crate) struct Ruled<B> {
    body: B,
    /// `None` where no trailers can come.
    rules: Option<Rules>,
}

impl<B> Ruled<B> {
    pub(crate) const fn new(body: B, rules: Option<Rules>) -> Self {
        Self { body, rules }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Ruled<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &mut frame
            && let (Some(trailers), Some(rules)) = (frame.trailers_mut(), &self.rules)
        {
            rules.apply(trailers);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(named: &[&'static str]) -> Rules {
        let named = named.iter().map(|name| HeaderName::from_static(name)).collect();
        Rules::new(named, &Arc::default())
    }

    fn announced(lines: &[&'static str]) -> Vec<String> {
        let mut head = HeaderMap::new();
        for line in lines {
            head.append(TRAILER, HeaderValue::from_static(line));
        }
        rules(&["x-mine"]).announce(&mut head);
        head.get_all(TRAILER).iter().map(|line| line.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_does_not_come_is_not_announced() {
        assert_eq!(announced(&["X-Sum, x-mine", "Server-Timing"]), ["X-Sum, Server-Timing"]);
        assert_eq!(announced(&["X-Mine, , Host", "a b"]), [""; 0]);
        assert_eq!(announced(&[]), [""; 0]);
    }

    /// RFC 9530 section 4 and RFC 9110 section 8.8.3 let a digest and a validator come behind the content.
    #[test]
    fn what_may_come_behind_the_content_goes_on() {
        let mut trailers = HeaderMap::new();
        let stay = ["content-digest", "etag", "grpc-status", "server-timing", "x-sum"];
        for name in stay.into_iter().chain(["x-forwarded-for", "x-mine", "connection", "cookie", "backstop"])
        {
            trailers.append(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        rules(&["x-mine"]).apply(&mut trailers);
        let mut left: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, stay);
    }
}
