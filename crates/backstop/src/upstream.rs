//! What a driver needs of whatever really calls a dependency.
//!
//! A tower service is one (see `layer.rs`); the gateway's connection pool is another. The engine decides
//! *whether* to call and until when; an [`Upstream`] only calls, says how far it came, and keeps the place at the
//! dependency occupied for as long as the dependency may still be working.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use backstop_engine::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use backstop_engine::flow::{Attempt, ClientFault};
use backstop_engine::policy::CacheId;
use backstop_engine::time::Mono;
use backstop_store::{CopyKey, StoredCopy};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response};

use crate::authorize::Verdict;
use crate::exercise::Trial;
use crate::fill::{Fill, Landing};

/// Calls a dependency.
pub trait Upstream<B> {
    /// The body of its answers. It holds [`Attempt::places`] until the dependency's work has ended, and it tells an answer
    /// that broke off from one that is complete.
    type Body: http_body::Body<Data = Bytes, Error = BrokenOff>;
    /// An error that nobody classified; it goes to the caller unchanged.
    type Error;

    /// Calls it once. Never again by itself, and no phase is begun at or after [`Attempt::until`].
    ///
    /// Dropping the future abandons the call.
    ///
    /// # Errors
    /// [`CallError::Failed`] for what is in the closed list of failures, [`CallError::NotAsked`] if nothing was begun, else
    /// [`CallError::Unclassified`].
    fn call(
        &self,
        attempt: Attempt,
        request: Request<B>,
        progress: &Progress,
    ) -> impl Future<Output = Result<Response<Self::Body>, CallError<Self::Error>>>;

    /// Whether the caller of a request may: by asking whoever the attempt names, with that one call, or by what the request
    /// itself proves. An upstream that cannot find out lets nobody in.
    fn authorize(
        &self,
        _attempt: Option<Attempt>,
        _request: &Parts,
        _progress: &Progress,
    ) -> impl Future<Output = Verdict> {
        async { Verdict::Unclear }
    }

    /// What a shared cache has for a read. An upstream without caches is not asked for any.
    fn cached(
        &self,
        _cache: CacheId,
        _key: &CopyKey,
        _request: &HeaderMap,
        _until: Mono,
    ) -> impl Future<Output = CacheAnswer> {
        async { CacheAnswer::NotAsked }
    }

    /// Has a read made for everybody who asks for the same ([`Fill::join`]), where it goes on also when this future is
    /// dropped. An upstream that cannot do that lets everybody make a call of its own.
    fn fill(&self, _fill: Fill) -> impl Future<Output = Landing<Self::Body>> {
        async { Landing::apart() }
    }

    /// Has what stands behind a route tried ([`Trial::run`]), apart from the request beside which it was drawn and without
    /// making that one wait. An upstream that cannot do that tries nothing.
    fn exercise(&self, trial: Trial) {
        drop(trial);
    }

    /// The content of a request without any, for sending it once more; `None` if this upstream cannot. Then no request is
    /// repeated and no other dependency is asked.
    fn no_content(&self) -> Option<B> {
        None
    }

    /// Whether a large piece of its bodies fills the memory that it lies in. Where that is not known, what is kept of an answer
    /// is copied into memory of its own: a part of a larger buffer would keep all of it.
    fn fills_its_buffers(&self) -> bool {
        false
    }

    /// Whether it reaches every dependency that an [`Attempt`] may name. One that reaches the route's own alone is asked
    /// for no other: what that one would answer is not what the other was trusted for.
    fn reaches_others(&self) -> bool {
        false
    }
}

/// What a shared cache has for a read.
#[derive(Debug)]
pub enum CacheAnswer {
    /// A copy for it.
    Copy(Box<StoredCopy>),
    /// It answered, and has none.
    Miss,
    /// It gave no answer.
    Failed,
    /// It was not asked, for a reason of one's own.
    NotAsked,
}

/// An answer that broke off in its body. What was passed on stays passed on; the client's connection must end visibly.
#[derive(Clone, Debug)]
pub enum BrokenOff {
    /// The dependency broke it off. Where the body of a service had an error of its own, that is the source.
    Dependency(Failure, Option<Arc<dyn Error + Send + Sync>>),
    /// The client broke off the request that it answers.
    Client(ClientFault),
}

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dependency(failure, _) => {
                write!(f, "the answer of the service behind broke off: {}", Cause::Failed(*failure).token())
            }
            Self::Client(_) => f.write_str("the request broke off while it was answered"),
        }
    }
}

impl Error for BrokenOff {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Dependency(_, source) => source.as_deref().map(|source| source as _),
            Self::Client(_) => None,
        }
    }
}

impl From<Failure> for BrokenOff {
    fn from(failure: Failure) -> Self {
        Self::Dependency(failure, None)
    }
}

/// Why a call gave no answer.
#[derive(Debug)]
pub enum CallError<E> {
    /// The dependency failed.
    Failed(Failure),
    /// It was not asked: nothing was begun at all, for a reason that is our own.
    NotAsked(NotAsked),
    /// The request itself could not be read to its end; that is the client's doing.
    Client(ClientFault),
    /// Something else.
    Unclassified(E),
}

/// How an answer's end is known, as an extension of the [`Response`]. Without it, the body's end is its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By its length or its last chunk: a missing byte is an error.
    Delimited,
    /// By the end of the connection: a missing byte goes unnoticed (RFC 9112 section 6.3).
    UntilClose,
}

/// How far a call has come. Whoever ends it from outside learns here what it was waiting for.
#[derive(Debug)]
pub struct Progress(AtomicU8);

impl Progress {
    /// Nothing has begun.
    pub const fn new() -> Self {
        Self(AtomicU8::new(Phase::Queue as u8))
    }

    /// A phase has begun.
    pub fn enter(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }

    /// The phase under way.
    pub fn phase(&self) -> Phase {
        const PHASES: [Phase; 6] =
            [Phase::Queue, Phase::Resolve, Phase::Connect, Phase::Send, Phase::Head, Phase::Body];
        PHASES.get(usize::from(self.0.load(Ordering::Relaxed))).copied().unwrap_or(Phase::Queue)
    }

    /// What a call comes to if its time ends now. While it waits for a connection, nobody was asked.
    pub fn time_up(&self) -> Cause {
        let phase = self.phase();
        let (kind, sent) = match phase {
            Phase::Queue => return Cause::NotAsked(NotAsked::PoolTimeout),
            Phase::Resolve => (FailureKind::Dns, Sent::No),
            Phase::Connect => (FailureKind::ConnectTimeout, Sent::No),
            Phase::Send | Phase::Head | Phase::Body => (FailureKind::ReadTimeout, Sent::Maybe),
        };
        Cause::Failed(Failure::new(kind, phase, sent))
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
