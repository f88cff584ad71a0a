//! What the ledger says of an operation, as an answer.

use backstop_engine::flow::Settlement;
use backstop_engine::operation::{EvidenceKind, Told, answer};
use backstop_engine::status::OperationReply;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::body::ReplyBody;
use crate::fields::{IDEMPOTENT_REPLAYED, describe_failure, prefers_async};
use crate::operation::document::{self, Subject, address};
use crate::own::unless_head;
use crate::problem::MEDIA_TYPE;
use crate::upstream::Upstream;

use super::hands::Http;

const BACKSTOP_OUTCOME: HeaderName = HeaderName::from_static("backstop-outcome");
const BACKSTOP_REPLAY: HeaderName = HeaderName::from_static("backstop-replay");
const BACKSTOP_LEDGER: HeaderName = HeaderName::from_static("backstop-ledger");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

impl<U, B> Http<'_, U, B>
where
    U: Upstream<B>,
    U::Body: Unpin,
{
    /// What the ledger says.
    pub(super) fn operation_response(
        &self,
        reply: &OperationReply,
        settlement: Settlement,
    ) -> Response<ReplyBody<U::Body>> {
        let mut headers = HeaderMap::new();
        let mut status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let content = match self.replayed_answer(reply, &mut headers) {
            Some(content) => content,
            None => {
                let content = self.document(reply, &mut headers);
                if content.is_empty() {
                    status = StatusCode::BAD_GATEWAY;
                }
                content
            }
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // RFC 9110 section 8.6.
        if status != StatusCode::NO_CONTENT && !status.is_informational() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
        }
        let body = ReplyBody::whole(unless_head(content, self.is_head()), settlement);
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// The dependency's own answer, as far as it was kept.
    fn replayed_answer(&self, reply: &OperationReply, headers: &mut HeaderMap) -> Option<Bytes> {
        let record = self.operation.as_ref()?.record.as_ref()?;
        if reply.looks || reply.refusal.is_some() {
            return None;
        }
        let kept = match answer(record) {
            Told::Replay(kept) => Some(kept),
            Told::StatusOnly(_) => None,
            _ => return None,
        };
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        let Some(kept) = kept else {
            headers.insert(BACKSTOP_REPLAY, HeaderValue::from_static("status-only"));
            headers.insert(LOCATION, address(record.identity.id));
            return Some(Bytes::new());
        };
        for (name, value) in &kept.fields {
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
            {
                headers.append(name, value);
            }
        }
        Some(kept.body.as_ref().map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body)))
    }

    /// What is known, in Backstop's own words.
    fn document(&self, reply: &OperationReply, headers: &mut HeaderMap) -> Bytes {
        let now = self.route.inner.shared.clock.now();
        let operation = self.operation.as_ref();
        let record = operation.and_then(|operation| operation.record.as_deref());
        let next_query = operation.and_then(|operation| operation.next_query);
        let id = record.map(|record| record.identity.id).or(operation.and_then(|operation| operation.id));
        if let Some(id) = id {
            headers.insert(LOCATION, address(id));
        }
        if let Some(seconds) = reply.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(refusal) = &reply.refusal {
            headers.insert(CONTENT_TYPE, MEDIA_TYPE);
            // What the client did is no failure of a gateway.
            if refusal.status >= 500 {
                describe_failure(headers, refusal, &self.route.inner.shared.speaker);
            }
            let subject =
                match (record, operation.and_then(|operation| Some((operation.id?, operation.meant)))) {
                    (Some(record), _) => Subject::Known(record, next_query, now),
                    (None, Some((id, meant))) => Subject::Begun(id, meant),
                    (None, None) => Subject::Other,
                };
            return document::problem(refusal, subject);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if reply.status == 202 && prefers_async(&self.parts.headers) {
            headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static("respond-async"));
        }
        let Some(record) = record else { return Bytes::new() };
        if matches!(answer(record), Told::Executed(EvidenceKind::Status | EvidenceKind::Person)) {
            headers.insert(BACKSTOP_OUTCOME, HeaderValue::from_static("reconciled"));
        }
        document::document(record, next_query, &now)
    }

    /// What is said of the ledger beside an answer of the dependency.
    pub(super) fn describe_operation(&self, headers: &mut HeaderMap) {
        if self.operation.as_ref().is_some_and(|operation| !operation.is_durable) {
            headers.insert(BACKSTOP_LEDGER, HeaderValue::from_static("not-durable"));
        }
    }
}
