//! What a request asks of the ledger, as far as it is known before its caller is.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstop_engine::operation::{ClientKey, Fingerprint, Intent, OperationId, Scope, VERIFY_FOR};
use backstop_engine::policy::effect::{self, EffectRules, KeyForm};
use backstop_engine::time::Now;
use backstop_store::ledger::Ledger;
use http::HeaderValue;
use http::request::Parts;

use super::echo;
use super::fingerprint::{self, SaidTwice};
use super::following::Following;
use super::key::{Key, NoKey};
use super::member::Json;
use super::secret::{Secret, hexadecimal};
use crate::authorize::Principal;

/// The operations of one process: where they are written down, and who follows what is unknown.
#[derive(Debug)]
pub struct Operations {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// What digests are made with.
    pub secret: Secret,
    /// Whether whoever asks for statuses is at work.
    pub following: Following,
    /// Whom every known success is told, so that it can be seen whether status queries show it.
    pub successes: Successes,
}

/// Whom known successes are told: the route, and what the upstream was told as operation id.
#[derive(Default)]
pub struct Successes(OnceLock<Box<ToldOfSuccess>>);

type ToldOfSuccess = dyn Fn(&str, &[u8], Now) + Send + Sync;

impl Successes {
    /// From now on they are told to this, which must not block. Said once; later ones change nothing.
    pub fn tell(&self, told: impl Fn(&str, &[u8], Now) + Send + Sync + 'static) {
        let _said_before = self.0.set(Box::new(told));
    }

    pub(crate) fn told(&self, route: &str, upstream_id: &[u8], now: Now) {
        if let Some(told) = self.0.get() {
            told(route, upstream_id, now);
        }
    }
}

impl fmt::Debug for Successes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Successes")
    }
}

/// What a request on an `effect` route wants, as an extension of the request. Without it nothing is forwarded there.
#[derive(Clone, Debug)]
pub struct Asked {
    pub(crate) operations: Arc<Operations>,
    pub(crate) wants: Wants,
}

#[derive(Clone, Debug)]
pub(crate) enum Wants {
    /// That it is done once.
    Done(Arc<Request>),
    /// To know what came of it.
    Known {
        id: OperationId,
        /// Who asks, where a field of the request says so.
        named: Option<Box<[u8]>>,
    },
}

/// What is to be done once.
#[derive(Debug)]
pub(crate) struct Request {
    id: OperationId,
    key: Key,
    fingerprint: Fingerprint,
    /// Who asks, where a field of the request says so.
    named: Option<Box<[u8]>>,
    captured: Vec<(Box<str>, Box<str>)>,
}

/// Why a request asks for no operation. It is the client's fault, and nothing was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// It has no key.
    NoKey,
    /// What it has is no key.
    MalformedKey,
    /// Its JSON content says something twice.
    SaidTwice,
    /// The field that says who asks is missing or empty, or there is more than one.
    NoCaller,
}

impl From<NoKey> for NotAsked {
    fn from(no_key: NoKey) -> Self {
        match no_key {
            NoKey::Missing => NotAsked::NoKey,
            NoKey::Malformed => NotAsked::MalformedKey,
        }
    }
}

impl From<SaidTwice> for NotAsked {
    fn from(_: SaidTwice) -> Self {
        NotAsked::SaidTwice
    }
}

impl Asked {
    /// A request that wants its operation done. `content`: all of it. `id`: 128 random bits that name it, should it be new.
    ///
    /// # Errors
    /// What the request lacks.
    pub fn to_do(
        operations: &Arc<Operations>,
        rules: &EffectRules,
        head: &Parts,
        content: &[u8],
        id: OperationId,
    ) -> Result<Self, NotAsked> {
        let json = Json::of(content);
        let key = Key::of(&rules.key, &head.headers, json)?;
        let secret = &operations.secret;
        let said = fingerprint::parts(&rules.fingerprint, head, content)?;
        let fingerprint = secret.digest("fingerprint", said.iter().map(|part| &**part));
        let named = named(rules, head);
        if named.is_none() && matches!(rules.scope, effect::Scope::Header(_)) {
            return Err(NotAsked::NoCaller);
        }
        let fingerprint = Fingerprint::from_bytes(fingerprint);
        let query = rules.verification.as_ref().map(|verification| &verification.query);
        let captured = query.map(|query| echo::captured(secret, query, json)).unwrap_or_default();
        let request = Request { id, key, fingerprint, named, captured };
        Ok(Self { operations: Arc::clone(operations), wants: Wants::Done(Arc::new(request)) })
    }

    /// A request that only wants to know what came of an operation. As with one that is to be done, who asks is read from what
    /// the client sent, before any edit of the operator's.
    pub fn to_know(operations: &Arc<Operations>, rules: &EffectRules, head: &Parts, id: OperationId) -> Self {
        let wants = Wants::Known { id, named: named(rules, head) };
        Self { operations: Arc::clone(operations), wants }
    }

    pub(crate) const fn looks(&self) -> bool {
        matches!(self.wants, Wants::Known { .. })
    }

    /// Whose operations a request sees. `None`: nobody verified who asks, so it sees none.
    pub(crate) fn scope(&self, rules: &EffectRules, route: &str, head: &Parts) -> Option<Scope> {
        let (kind, who): (&[u8], &[u8]) = match &rules.scope {
            effect::Scope::Route => (b"route", b""),
            effect::Scope::Principal => (b"principal", &head.extensions.get::<Principal>()?.0),
            effect::Scope::Header(_) => match &self.wants {
                Wants::Done(request) => (b"header", request.named.as_deref()?),
                Wants::Known { named, .. } => (b"header", named.as_deref()?),
            },
        };
        Some(Scope::from_bytes(self.operations.secret.digest("scope", [route.as_bytes(), kind, who])))
    }
}

/// Who asks, where a field says so: once, and not by nothing.
fn named(rules: &EffectRules, head: &Parts) -> Option<Box<[u8]>> {
    let effect::Scope::Header(name) = &rules.scope else { return None };
    let mut values = head.headers.get_all(&**name).into_iter();
    let sole = values.next().filter(|value| values.next().is_none() && !value.is_empty());
    sole.map(|value| value.as_bytes().into())
}

impl Request {
    pub(crate) const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn key(&self, secret: &Secret) -> ClientKey {
        ClientKey::from_bytes(secret.digest("key", [self.key.text().as_bytes()]))
    }

    /// What the upstream is told as the operation's key.
    pub(crate) fn told(&self, rules: &EffectRules, scope: &Scope, secret: &Secret) -> HeaderValue {
        let as_it_came = || self.key.as_it_came().clone();
        match rules.send.form {
            KeyForm::Client => as_it_came(),
            KeyForm::Derived => {
                let parts = [&scope.as_bytes()[..], self.key.text().as_bytes()];
                let derived = hexadecimal(&secret.digest("operation-id", parts));
                // Digits alone are always a value.
                HeaderValue::from_str(&derived).unwrap_or_else(|_| as_it_came())
            }
        }
    }

    /// What is written down. `deadline`: until the end of the whole request.
    pub(crate) fn intent(
        &self,
        rules: &EffectRules,
        route: &str,
        scope: Scope,
        told: &HeaderValue,
        secret: &Secret,
        deadline: Duration,
    ) -> Intent {
        let verification = rules.verification.as_ref();
        Intent {
            id: self.id,
            scope,
            key: self.key(secret),
            fingerprint: self.fingerprint,
            route: route.into(),
            upstream_id: verification.map(|_| told.as_bytes().into()),
            captured: self.captured.clone(),
            deadline,
            verify_for: verification.map_or(VERIFY_FOR, |verification| verification.schedule.deadline),
        }
    }
}
