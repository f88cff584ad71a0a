//! Renewing a copy after the origin said that it is still the answer (304).
//!
//! The origin's word renews the date, and the fields that came with it replace those stored (RFC 9111 sections 3.2 and
//! 4.3.4). The content is never touched: the body is shared with the copy before, and what describes the body
//! (`Content-Length`, `Content-Encoding`, `Content-Type`, `Content-Range`, `Transfer-Encoding`) stays as stored.
//!
//! A copy that lies on disk only is read back first, in the background; until then it keeps its old date.

use std::sync::Arc;

use backstop_engine::snapshot::CopyFacts;
use backstop_engine::time::Now;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Copies, Inner};
use crate::copy::{StoredCopy, fields_bytes};
use crate::index::Shard;
use crate::key::CopyKey;
use crate::marks::ReadTicket;
use crate::queue::{Fetch, Purpose, Put};

/// Fields that describe the stored body and are never updated, and those that belong to the connection.
const KEPT: [HeaderName; 6] =
    [CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, TRANSFER_ENCODING];

/// The origin's word that a copy is still the answer.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    /// The validators that the origin confirmed: the fields of its 304 (`ETag`, else `Last-Modified`). Without
    /// either, what the conditional request asked with.
    pub validators: &'a HeaderMap,
    /// The fields that replace stored ones.
    pub headers: &'a HeaderMap,
    /// The new date and what the origin now says about old copies.
    pub facts: CopyFacts,
}

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The copy has its new date.
    Renewed,
    /// There is none for this key and request.
    Missing,
    /// The copy is another one than the origin spoke of.
    OtherContent,
    /// A read that began later has already stored its answer.
    OlderThanStored,
    /// Something that touches it was withdrawn after the read began, or may have been.
    Withdrawn,
    /// It lies on disk only: it is read back and renewed in the background.
    Pending,
    /// It lies on disk only, and too many reads, or too many bytes of fields, wait: it keeps its date.
    Unreadable,
}

impl Copies {
    /// Renews the copy for this request: its date and its fields, never its content. Never waits.
    pub fn renew(
        &self,
        key: &CopyKey,
        request: &HeaderMap,
        renewal: Renewal<'_>,
        ticket: ReadTicket,
        now: Now,
    ) -> RenewOutcome {
        let inner = &*self.inner;
        inner.note_mono(now);
        let located = inner.index.locate(key);
        let number = located.shard();
        let mut shard = inner.index.write(number);
        shard.marks.prune(inner.mark_horizon(now));
        let Some((place, variant)) = shard.select(located, key, request) else {
            return RenewOutcome::Missing;
        };
        if inner.withdrawn(&shard, key, ticket) {
            return RenewOutcome::Withdrawn;
        }
        if variant.facts.observed_at.began_after(&renewal.facts.observed_at) {
            return RenewOutcome::OlderThanStored;
        }
        let put = Put { id: variant.id, shard: number, place };
        let held =
            inner.bodies.get(put.id).or_else(|| variant.queued.as_ref().map(|queued| queued.copy.clone()));
        let Some(copy) = held.filter(|copy| copy.facts == variant.facts) else {
            drop(shard);
            return inner.renew_from_disk(put, renewal, ticket);
        };
        let Some(copy) = renewed(&copy, renewal) else { return RenewOutcome::OtherContent };
        let evicted = inner.replace(&mut shard, number, place, put.id, Arc::new(copy), ticket.generation);
        drop(shard);
        inner.evicted(&evicted);
        RenewOutcome::Renewed
    }
}

/// A renewal that waits for its copy to be read back.
#[derive(Debug)]
pub(crate) struct OwnedRenewal {
    validators: HeaderMap,
    headers: HeaderMap,
    facts: CopyFacts,
    ticket: ReadTicket,
}

impl OwnedRenewal {
    pub(crate) fn new(
        validators: &HeaderMap,
        headers: &HeaderMap,
        facts: CopyFacts,
        ticket: ReadTicket,
    ) -> Self {
        Self { validators: owned(validators), headers: owned(headers), facts, ticket }
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + fields_bytes(&self.validators) + fields_bytes(&self.headers)
    }
}

impl Inner {
    /// Whether an answer read under `ticket` may no longer be stored.
    fn withdrawn(&self, shard: &Shard, key: &CopyKey, ticket: ReadTicket) -> bool {
        self.holds.refuse(key, ticket.began.mono)
            || self.routes.refuse(ticket.generation)
            || shard.marks.refuse(&key.target, ticket.generation)
            || self.routes.get(&key.route).is_none_or(|route| route.refuse(ticket.generation))
    }

    fn renew_from_disk(&self, put: Put, renewal: Renewal<'_>, ticket: ReadTicket) -> RenewOutcome {
        let renewal = OwnedRenewal::new(renewal.validators, renewal.headers, renewal.facts, ticket);
        let purpose = Purpose::Renew(Box::new(renewal));
        match self.queue.as_ref().map(|queue| queue.fetch(Fetch { put, purpose })) {
            Some(Ok(())) => RenewOutcome::Pending,
            Some(Err(_)) | None => RenewOutcome::Unreadable,
        }
    }

    /// Renews a copy that was read back, unless something newer happened meanwhile.
    pub(crate) fn renew_read(&self, put: Put, copy: &StoredCopy, renewal: &OwnedRenewal) {
        let mut shard = self.index.write(put.shard);
        let Some((key, variant)) = shard.live(put.place, put.id) else { return };
        let Some(key) = key.unpack() else { return };
        if variant.facts != copy.facts
            || variant.facts.observed_at.began_after(&renewal.facts.observed_at)
            || self.withdrawn(&shard, &key, renewal.ticket)
        {
            return;
        }
        let asked =
            Renewal { validators: &renewal.validators, headers: &renewal.headers, facts: renewal.facts };
        let Some(copy) = renewed(copy, asked) else { return };
        let generation = renewal.ticket.generation;
        let evicted = self.replace(&mut shard, put.shard, put.place, put.id, Arc::new(copy), generation);
        drop(shard);
        self.evicted(&evicted);
    }
}

/// Fields in memory of their own: a value that arrived is a slice of a connection's read buffer, and would keep all of
/// it, counted by nobody, for as long as it is kept itself.
fn owned(fields: &HeaderMap) -> HeaderMap {
    let copy = |value: &HeaderValue| {
        let mut copy = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
        copy.set_sensitive(value.is_sensitive());
        copy
    };
    let mut owned = HeaderMap::with_capacity(fields.keys_len());
    for (name, value) in fields {
        owned.append(name.clone(), copy(value));
    }
    owned
}

/// The copy with its new date and fields, sharing the body; `None` if the origin spoke of another content.
fn renewed(copy: &StoredCopy, renewal: Renewal<'_>) -> Option<StoredCopy> {
    same_content(&copy.headers, renewal.validators).then(|| StoredCopy {
        facts: renewal.facts,
        vary: copy.vary.clone(),
        status: copy.status,
        headers: updated(&copy.headers, renewal.headers),
        body: copy.body.clone(),
    })
}

/// Whether the validators name the stored content: the entity tag if there is one (a weak comparison, as for `GET`),
/// else the date of last modification. No validator names nothing.
fn same_content(stored: &HeaderMap, confirmed: &HeaderMap) -> bool {
    let opaque = |headers: &'_ HeaderMap| {
        headers.get(ETAG).map(|tag| {
            let tag = tag.as_bytes();
            tag.strip_prefix(b"W/").unwrap_or(tag).to_vec()
        })
    };
    match (opaque(stored), opaque(confirmed)) {
        (stored, Some(confirmed)) => stored == Some(confirmed),
        (_, None) => {
            confirmed.contains_key(LAST_MODIFIED) && stored.get(LAST_MODIFIED) == confirmed.get(LAST_MODIFIED)
        }
    }
}

/// The stored fields, those replaced that the origin sent again.
fn updated(stored: &HeaderMap, sent: &HeaderMap) -> HeaderMap {
    let mut headers = stored.clone();
    let sent = owned(sent);
    for name in sent.keys().filter(|name| !KEPT.contains(name)) {
        headers.remove(name);
        for value in sent.get_all(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::header::{CACHE_CONTROL, SET_COOKIE};

    use super::*;

    fn fields(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(name.clone(), HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn an_entity_tag_decides_before_a_date() {
        let stored = fields(&[(ETAG, "\"a\""), (LAST_MODIFIED, "yesterday")]);
        assert!(same_content(&stored, &fields(&[(ETAG, "W/\"a\"")])));
        assert!(!same_content(&stored, &fields(&[(ETAG, "\"b\""), (LAST_MODIFIED, "yesterday")])));
        assert!(same_content(&stored, &fields(&[(LAST_MODIFIED, "yesterday")])));
        assert!(!same_content(&stored, &fields(&[])));
        assert!(!same_content(&fields(&[]), &fields(&[(ETAG, "\"a\"")])));
    }

    #[test]
    fn fields_of_a_renewal_keep_no_buffer_alive() {
        let buffer = Bytes::from(vec![b'x'; 30_000]);
        let mut sent = HeaderMap::new();
        sent.append(CACHE_CONTROL, HeaderValue::from_maybe_shared(buffer.slice(..10)).unwrap());
        assert!(!buffer.is_unique());
        let kept = (owned(&sent), updated(&HeaderMap::new(), &sent));
        assert_eq!(kept.0, sent);
        assert_eq!(kept.1, sent);
        drop(sent);
        assert!(buffer.is_unique());
    }

    #[test]
    fn what_describes_the_body_stays() {
        let stored =
            fields(&[(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "max-age=1"), (SET_COOKIE, "a")]);
        let sent =
            fields(&[(CONTENT_TYPE, "text/html"), (CACHE_CONTROL, "max-age=2"), (CACHE_CONTROL, "public")]);
        let new = updated(&stored, &sent);
        assert_eq!(new[CONTENT_TYPE], "application/json");
        assert_eq!(new.get_all(CACHE_CONTROL).iter().collect::<Vec<_>>(), ["max-age=2", "public"]);
        assert_eq!(new[SET_COOKIE], "a");
    }
}
