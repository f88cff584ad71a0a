//! Reads for what a shared cache does not have.
//!
//! A *fill* is a request of nobody's own: the read that many asked for, without what only one of them said (its
//! preconditions, its ranges, its marks). [`Fill::join`] seats a request: the first for its key has the read made, with
//! [`Leading::run`], where it goes on also when that request is gone; all others wait for what it brings.
//!
//! What it brings is given to everybody only where HTTP lets one answer satisfy several requests (RFC 9111 section 4): it
//! may be kept, it does not vary by what was not asked for, and it may be used at least now without asking again.

use std::sync::Arc;

use backstop_engine::failure::Cause;
use backstop_engine::fills::Joined;
use backstop_engine::flow::{Account, CopyAction, Decision, Flow, HandedOver, Reply};
use backstop_engine::outcome::Outcome;
use backstop_store::{CopyKey, StoredCopy};
use bytes::Bytes;
use http::header::{
    CONTENT_LENGTH, EXPECT, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, response};

use crate::authorize::Principal;
use crate::body::Prefix;
use crate::budget::Held;
use crate::concern::Concern;
use crate::driver::drive;
use crate::exchange::Http;
use crate::fields::{BACKSTOP_ATTEMPT, BACKSTOP_EXPLAIN};
use crate::flights::{Follow, LOST, Landed, Lead, Seat, Watch};
use crate::protected::ProtectedRoute;
use crate::request::{Examined, PathParameters, Read, inbound_attempt};
use crate::upstream::Upstream;
use crate::walk::{Recorder, Role, Walking};

/// What one request alone said.
const OWN: [http::HeaderName; 9] = [
    IF_MATCH,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    IF_UNMODIFIED_SINCE,
    IF_RANGE,
    RANGE,
    EXPECT,
    BACKSTOP_ATTEMPT,
    BACKSTOP_EXPLAIN,
];

/// A read on behalf of everybody who asks for the same.
#[derive(Debug)]
pub struct Fill {
    route: ProtectedRoute,
    parts: Parts,
    read: Read,
    attempt: u32,
    waiters: u32,
    watch: Watch,
}

/// The part that a request has in a fill.
#[derive(Debug)]
#[non_exhaustive]
pub enum Place {
    /// It has the read made.
    Lead(Box<Leading>),
    /// It waits for it.
    Follow(Following),
    /// None: it makes a call of its own ([`Landing::apart`]).
    Apart,
    /// None: as many wait as may ([`Landing::full`]).
    Full,
}

/// What a fill brought, for one of those who asked for it.
#[derive(Debug)]
pub struct Landing<B>(pub(crate) Brought<B>);

#[derive(Debug)]
pub(crate) enum Brought<B> {
    /// `led` is whether this is the request that had it read.
    Shared {
        copy: Arc<StoredCopy>,
        account: Account,
        held: Option<Held>,
        led: bool,
    },
    Whole {
        head: response::Parts,
        body: Bytes,
        trailers: Option<HeaderMap>,
        held: Held,
        account: Account,
    },
    Streamed {
        head: response::Parts,
        prefix: Prefix,
        body: B,
        account: Account,
        from: HandedOver,
    },
    Failed(Cause),
    Apart,
    /// To be asked for anew: what came was about the request of whoever led.
    Again,
    Full,
}

impl<B> Landing<B> {
    /// The read ended without a word.
    pub fn lost() -> Self {
        Self(Brought::Failed(LOST))
    }

    /// Nothing is read for many here: everybody makes a call of its own.
    pub fn apart() -> Self {
        Self(Brought::Apart)
    }

    /// As many wait as may.
    pub fn full() -> Self {
        Self(Brought::Full)
    }

    fn of(landed: Landed) -> Self {
        Self(match landed {
            Landed::Shared(copy, account) => Brought::Shared { copy, account, held: None, led: false },
            Landed::Failed(cause) => Brought::Failed(cause),
            Landed::Apart => Brought::Apart,
            Landed::Again => Brought::Again,
        })
    }
}

/// What becomes of a cache's value after a fill.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ForCache {
    /// Nothing.
    Keep,
    /// This one takes its place.
    Put(CopyKey, Arc<StoredCopy>),
    /// It goes.
    Remove(CopyKey),
}

impl Fill {
    pub(crate) fn of(route: &ProtectedRoute, parts: &Parts, read: &Read, waiters: u32) -> Self {
        let attempt = inbound_attempt(&parts.headers);
        let recorder = parts.extensions.get::<Recorder>().cloned();
        let mut parts = for_anybody(parts);
        if let Some(recorder) = recorder {
            parts.extensions.insert(recorder);
        }
        let watch = Watch::default();
        Self { route: route.clone(), parts, read: read.clone(), attempt, waiters, watch }
    }

    /// Shows how far the read has come.
    pub(crate) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// A part in the read.
    pub fn join(self) -> Place {
        let shared = &self.route.inner.shared;
        let key = &self.read.key;
        let is_outdated = |began| shared.copies.changed_since(key, began);
        let seat = shared.flights.join(key, shared.clock.mono(), self.waiters, is_outdated);
        self.watch.look_at(&seat);
        match seat {
            Seat::Lead(lead) => Place::Lead(Box::new(Leading { fill: self, lead })),
            Seat::Follow(follow) => {
                let joined = self.route.state().fills.as_ref().map(|fills| fills.join());
                Place::Follow(Following { follow, _joined: joined })
            }
            Seat::Apart => Place::Apart,
            Seat::Full => {
                if let Some(fills) = &self.route.state().fills {
                    fills.refuse_to_join();
                }
                Place::Full
            }
        }
    }
}

/// A GET for the same as this request, without what it alone said.
pub(crate) fn for_anybody(parts: &Parts) -> Parts {
    let mut request = http::Request::new(());
    *request.uri_mut() = parts.uri.clone();
    *request.headers_mut() = parts.headers.clone();
    for name in OWN.iter().chain([&CONTENT_LENGTH]) {
        request.headers_mut().remove(name);
    }
    if let Some(parameters) = parts.extensions.get::<PathParameters>() {
        request.extensions_mut().insert(parameters.clone());
    }
    if let Some(principal) = parts.extensions.get::<Principal>() {
        request.extensions_mut().insert(principal.clone());
    }
    request.extensions_mut().insert(Examined);
    request.into_parts().0
}

/// A request that waits for a fill.
#[derive(Debug)]
pub struct Following {
    follow: Follow,
    _joined: Option<Joined>,
}

impl Following {
    /// What the fill brings. Dropping the future ends the wait, not the fill.
    pub async fn landing<B>(self) -> Landing<B> {
        Landing::of(self.follow.landed().await)
    }
}

/// A fill that is to be made.
#[derive(Debug)]
pub struct Leading {
    fill: Fill,
    lead: Lead,
}

impl Leading {
    /// Makes the read, wherever it is awaited: whoever asked for it may be gone meanwhile. Tells those who wait, keeps the
    /// copy, and says what becomes of the cache's value. `entropy` is 64 random bits that nobody else got.
    pub async fn run<U, B>(self, upstream: &U, content: B, entropy: u64) -> (Landing<U::Body>, ForCache)
    where
        U: Upstream<B>,
        U::Body: Unpin,
    {
        let Leading { fill: Fill { route, parts, read, attempt, .. }, lead } = self;
        let shared = &route.inner.shared;
        let (id, now) = (route.inner.id, shared.clock.now());
        let mut walking = Walking::begin(&parts.extensions, id, Role::Fill, |trace| {
            Flow::begin_fill(&shared.engine, id, attempt, now, entropy, trace)
        });
        let mut hands = Http::new(&route, upstream, parts, content, Some(read), walking.flow.begun());
        hands.lead = Some(&lead);
        let mut decision = drive(&mut walking.flow, &mut hands, &shared.clock, &shared.waiters, None).await;
        walking.decided(&mut decision);
        let (landed, landing, for_cache) = hands.land(decision, &lead).await;
        lead.land(landed, shared.clock.mono());
        (landing, for_cache)
    }
}

impl<U, B> Http<'_, U, B>
where
    U: Upstream<B>,
    U::Body: Unpin,
{
    /// Does what was decided about a fill, and divides what it brought.
    async fn land(mut self, decision: Decision, lead: &Lead) -> (Landed, Landing<U::Body>, ForCache) {
        use crate::exchange::Answer;
        let Decision { reply, copy, account, settlement, .. } = decision;
        let copy = self.by_the_origins_word(copy, &account);
        match copy {
            CopyAction::Store => self.store(),
            CopyAction::Withdraw | CopyAction::WithdrawUnsettled => self.withdraw(None).await,
            CopyAction::Keep | CopyAction::Renew => {}
        }
        let answer = std::mem::replace(&mut self.answer, Answer::None);
        match (reply, answer) {
            (Reply::Collected(_), Answer::Whole { head, body, trailers, held }) => {
                settlement.complete();
                let shared = self.shareable(&head, &body).map(Arc::new);
                let for_cache = match (copy, &shared) {
                    (CopyAction::Store, Some(shared)) if !self.was_withdrawn(lead.key()) => {
                        ForCache::Put(lead.key().clone(), Arc::clone(shared))
                    }
                    (CopyAction::Withdraw, _) => ForCache::Remove(lead.key().clone()),
                    _ => ForCache::Keep,
                };
                let landed = match &shared {
                    Some(shared) => Landed::Shared(Arc::clone(shared), account),
                    None if Concern::of(head.status) == Concern::Request => Landed::Again,
                    None => Landed::Apart,
                };
                let brought = match shared {
                    // Trailers are left behind, as in every copy (RFC 9110 section 6.5.1).
                    Some(copy) => Brought::Shared { copy, account, held: Some(held), led: true },
                    None => Brought::Whole { head, body, trailers, held, account },
                };
                (landed, Landing(brought), for_cache)
            }
            (Reply::Streamed(_), Answer::Streaming { head, prefix, body }) => {
                let from = settlement.hand_over();
                let brought = Brought::Streamed { head, prefix, body, account, from };
                (Landed::Apart, Landing(brought), ForCache::Keep)
            }
            _ => {
                settlement.complete();
                let cause = account.cause.unwrap_or(LOST);
                debug_assert!(account.outcome != Outcome::Normal, "an answer that is not there");
                (Landed::Failed(cause), Landing(Brought::Failed(cause)), ForCache::Keep)
            }
        }
    }
}
