//! Renewing a copy after the origin said that it is still the answer (304).
//!
//! The origin's word renews the date, and the fields that came with it replace those stored (RFC 9111 sections 3.2 and
//! 4.3.4). The content is never touched: the body is shared with the copy before, and what describes the body
//! (`Content-Length`, `Content-Encoding`, `Content-Type`, `Content-Range`, `Transfer-Encoding`) stays as stored.
//!
//! What the origin says about old copies is read from the fields as they then are: a 304 need not repeat what it has said
//! before. If it names other fields in `Vary` than the stored answer did, the copy is one of another variant from then on
//! (section 4.1): the request's own, selected by those fields; by `*` nothing is selected, and the copy is dropped.
//!
//! A copy that lies on disk only is read back first, in the background; until then it keeps its old date.

use std::sync::{Arc, RwLockWriteGuard};

use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::Now;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED,
    TRANSFER_ENCODING, VARY,
};
use http::{HeaderMap, HeaderName};

use super::{Copies, Inner};
use crate::copy::{StoredCopy, fields_bytes, owned_fields};
use crate::index::Shard;
use crate::key::CopyKey;
use crate::marks::ReadTicket;
use crate::queue::{Fetch, Purpose, Put};
use crate::vary::VaryField;

/// Fields that describe the stored body and are never updated, and those that belong to the connection.
const KEPT: [HeaderName; 6] =
    [CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, TRANSFER_ENCODING];

/// Reads what the origin says about old copies from an answer's fields; `None` if it may not be kept.
pub type Judge = fn(&HeaderMap) -> Option<OriginLimit>;

/// The origin's word that a copy is still the answer.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    /// The validators that the origin confirmed: the fields of its 304 (`ETag`, else `Last-Modified`). Without
    /// either, what the conditional request asked with.
    pub validators: &'a HeaderMap,
    /// The fields that replace stored ones.
    pub headers: &'a HeaderMap,
    /// The new date.
    pub observed_at: ObservedAt,
    /// Judges the copy's fields as they then are.
    pub judge: Judge,
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
    /// The origin says that it may not be kept any more: it was dropped.
    NotKept,
    /// It varies on everything now (`Vary: *`), so no request could select it: it was dropped.
    Unselectable,
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
        if variant.began_after_read(&renewal.observed_at) {
            return RenewOutcome::OlderThanStored;
        }
        let terms = Terms::of(renewal, request, ticket);
        let put = Put { id: variant.id, shard: number, place };
        let held =
            inner.bodies.get(put.id).or_else(|| variant.queued.as_ref().map(|queued| queued.copy.clone()));
        let Some(copy) = held.filter(|copy| copy.facts == variant.facts) else {
            drop(shard);
            return inner.renew_from_disk(put, renewal, terms);
        };
        inner.apply_renewal(shard, key, put, &copy, renewal, terms)
    }
}

/// What a renewal rests on beside the fields that came with it.
#[derive(Clone, Debug)]
struct Terms {
    /// By what the request selects the copy, if the fields that came name it.
    vary: Option<Selected>,
    ticket: ReadTicket,
}

/// The request's fields that `Vary` names; `None` if it varies on everything.
type Selected = Option<Vec<VaryField>>;

impl Terms {
    fn of(renewal: Renewal<'_>, request: &HeaderMap, ticket: ReadTicket) -> Self {
        let names_fields = renewal.headers.contains_key(VARY);
        Self { vary: names_fields.then(|| VaryField::select(renewal.headers, request)), ticket }
    }
}

/// A renewal that waits for its copy to be read back.
#[derive(Debug)]
pub(crate) struct OwnedRenewal {
    validators: HeaderMap,
    headers: HeaderMap,
    observed_at: ObservedAt,
    judge: Judge,
    terms: Terms,
}

impl OwnedRenewal {
    fn new(renewal: Renewal<'_>, terms: Terms) -> Self {
        let Renewal { validators, headers, observed_at, judge } = renewal;
        let (validators, headers) = (owned_fields(validators), owned_fields(headers));
        Self { validators, headers, observed_at, judge, terms }
    }

    /// One with these validators.
    #[cfg(test)]
    pub(crate) fn sample(validators: &HeaderMap) -> Self {
        let ticket = Copies::memory(0).begin_read(Now::default());
        let observed_at = ticket.observed_at(std::time::Duration::ZERO);
        let judge: Judge = |_| Some(OriginLimit::Unlimited);
        let headers = &HeaderMap::new();
        let renewal = Renewal { validators, headers, observed_at, judge };
        Self::new(renewal, Terms::of(renewal, headers, ticket))
    }

    fn renewal(&self) -> Renewal<'_> {
        let Self { validators, headers, observed_at, judge, terms: _ } = self;
        Renewal { validators, headers, observed_at: *observed_at, judge: *judge }
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let vary = self.terms.vary.iter().flatten().flatten().map(VaryField::bytes).sum::<usize>();
        size_of::<Self>() + fields_bytes(&self.validators) + fields_bytes(&self.headers) + vary
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

    fn renew_from_disk(&self, put: Put, renewal: Renewal<'_>, terms: Terms) -> RenewOutcome {
        let purpose = Purpose::Renew(Box::new(OwnedRenewal::new(renewal, terms)));
        match self.queue.as_ref().map(|queue| queue.fetch(Fetch { put, purpose })) {
            Some(Ok(())) => RenewOutcome::Pending,
            Some(Err(_)) | None => RenewOutcome::Unreadable,
        }
    }

    /// Renews a copy that was read back, unless something newer happened meanwhile.
    pub(crate) fn renew_read(&self, put: Put, copy: &StoredCopy, renewal: &OwnedRenewal) {
        let shard = self.index.write(put.shard);
        let Some((key, variant)) = shard.live(put.place, put.id) else { return };
        let Some(key) = key.unpack() else { return };
        if variant.facts != copy.facts
            || variant.began_after_read(&renewal.observed_at)
            || self.withdrawn(&shard, &key, renewal.terms.ticket)
        {
            return;
        }
        let _nobody_asks =
            self.apply_renewal(shard, &key, put, copy, renewal.renewal(), renewal.terms.clone());
    }

    /// Puts the renewed copy in the place of the stored one.
    fn apply_renewal(
        &self,
        mut shard: RwLockWriteGuard<'_, Shard>,
        key: &CopyKey,
        put: Put,
        copy: &StoredCopy,
        renewal: Renewal<'_>,
        Terms { vary, ticket }: Terms,
    ) -> RenewOutcome {
        if !same_content(&copy.headers, renewal.validators) {
            return RenewOutcome::OtherContent;
        }
        let headers = updated(&copy.headers, renewal.headers);
        let Some(origin_limit) = (renewal.judge)(&headers) else {
            self.drop_variant(&mut shard, put);
            return RenewOutcome::NotKept;
        };
        let facts = CopyFacts { observed_at: renewal.observed_at, origin_limit };
        let Some(vary) = vary.unwrap_or_else(|| Some(copy.vary.clone())) else {
            self.drop_variant(&mut shard, put);
            return RenewOutcome::Unselectable;
        };
        let is_another_variant = vary != copy.vary;
        let body = copy.body.clone();
        let copy = Arc::new(StoredCopy { facts, vary, status: copy.status, headers, body });
        let Some(route) = self.routes.get(&key.route) else { return RenewOutcome::Withdrawn };
        let (mut place, mut id) = (put.place, Some(put.id));
        if is_another_variant {
            // The entry goes with its last variant, and is then made anew.
            self.drop_variant(&mut shard, put);
            let before = (shard.bytes(), shard.len());
            let mut removed = Vec::new();
            place = shard.place_or_insert(self.index.locate(key), key, &route);
            id = self.variant_for(&mut shard, place, &route, &copy, ticket, &mut removed);
            self.forget(&removed);
            self.account(before, (shard.bytes(), shard.len()));
        }
        let Some(id) = id else { return RenewOutcome::OlderThanStored };
        let evicted = self.replace(&mut shard, put.shard, place, id, copy, ticket.generation);
        route.about_to_store();
        drop(shard);
        self.evicted(&evicted);
        RenewOutcome::Renewed
    }

    /// Drops a variant that requests would be answered from for which it is not the answer any more, or from which nobody may
    /// be answered: as a withdrawal does, so that a crash does not bring it back.
    fn drop_variant(&self, shard: &mut Shard, put: Put) {
        let before = (shard.bytes(), shard.len());
        let mut removed = Vec::new();
        shard.remove_variant(put.place, put.id, &mut removed);
        let gone = self.release(&removed);
        if let Some(queue) = self.queue.as_ref().filter(|_| !gone.is_empty()) {
            drop(queue.erase(&gone));
        }
        self.account(before, (shard.bytes(), shard.len()));
    }
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
    let sent = owned_fields(sent);
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
    use http::HeaderValue;
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
        let kept = updated(&HeaderMap::new(), &sent);
        assert_eq!(kept, sent);
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
