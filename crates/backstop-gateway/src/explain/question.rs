//! What is asked: a request, and what is supposed to be the case meanwhile.

use std::time::Duration;

use backstop_engine::failure::FailureKind;
use backstop_policy::{Loaded, closest, duration};

/// A request, and what is supposed to be the case.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The host; that of the first address to listen on unless said.
    pub host: Option<String>,
    /// Further fields, in order.
    pub fields: Vec<(String, String)>,
    /// Its content.
    pub content: Option<Vec<u8>>,
    /// Whether it comes from a peer that the policy trusts.
    pub is_trusted: bool,
    /// What happens to the calls of a dependency, one after the other; the last goes on for ever.
    pub when: Vec<(String, Vec<Happens>)>,
    /// How old the copy is; `None` is no copy.
    pub copy_age: Option<Duration>,
    /// What the shared cache does.
    pub cache: CacheDoes,
    /// Places that others have taken: at the `process`, at the `route`, at a dependency, of a resource.
    pub in_flight: Vec<(String, u32)>,
    /// What breakers are in.
    pub breakers: Vec<(String, BreakerIs)>,
    /// What the route's authorizer says.
    pub authorizer: Option<Happens>,
    /// What became of an earlier request for the same operation.
    pub operation: Option<Earlier>,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happens {
    /// A correct answer; of an authorizer, a yes.
    Ok,
    /// A whole answer that breaks the route's `correct` rules; of an authorizer, one that is neither yes nor no.
    Incorrect,
    /// An authorizer's no.
    Denied,
    /// An answer with this status.
    Status(u16),
    /// A failure.
    Fails(FailureKind),
}

/// What the shared cache does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheDoes {
    /// It has nothing.
    #[default]
    Misses,
    /// It does not answer.
    Fails,
    /// It has an answer of this age.
    Hits(Duration),
}

/// What a breaker is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerIs {
    /// Open.
    Open,
    /// Half open: the next read is a probe.
    HalfOpen,
    /// In the ramp, and what may be asked now is used up.
    Ramping,
}

/// What became of an earlier request with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It is under way.
    Running,
    /// Its answer was lost.
    Unknown,
    /// It succeeded.
    Succeeded,
    /// It was refused, without effect.
    Refused,
    /// It could not be sent.
    NotExecuted,
}

/// A word that means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotUnderstood {
    message: String,
    hint: Option<String>,
}

impl NotUnderstood {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// `word` is none of the known ones.
    pub(crate) fn unknown<'a>(
        kind: &str,
        word: &str,
        known: &(impl IntoIterator<Item = &'a str> + Clone),
    ) -> Self {
        let listed =
            || known.clone().into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let hint = match closest(word, known.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.clone().into_iter().next().is_none() => format!("the policy has no {kind}"),
            None => format!("there is {}", listed()),
        };
        Self { message: format!("`{word}` is no {kind}"), hint: Some(hint) }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Words and what they mean.
type Words<T> = [(&'static str, T)];

const HAPPENS: &Words<Happens> = &[
    ("ok", Happens::Ok),
    ("allow", Happens::Ok),
    ("deny", Happens::Denied),
    ("incorrect", Happens::Incorrect),
    ("unclear", Happens::Incorrect),
    ("dns", Happens::Fails(FailureKind::Dns)),
    ("connect", Happens::Fails(FailureKind::Connect)),
    ("connect_timeout", Happens::Fails(FailureKind::ConnectTimeout)),
    ("tls", Happens::Fails(FailureKind::Tls)),
    ("write", Happens::Fails(FailureKind::Write)),
    ("reset", Happens::Fails(FailureKind::Reset)),
    ("read_timeout", Happens::Fails(FailureKind::ReadTimeout)),
    ("incomplete", Happens::Fails(FailureKind::Incomplete)),
    ("protocol", Happens::Fails(FailureKind::Protocol)),
    ("unavailable", Happens::Status(503)),
];
const BREAKER: &Words<BreakerIs> =
    &[("open", BreakerIs::Open), ("half_open", BreakerIs::HalfOpen), ("ramping", BreakerIs::Ramping)];
const CACHE: &Words<CacheDoes> =
    &[("hit", CacheDoes::Hits(Duration::ZERO)), ("miss", CacheDoes::Misses), ("failed", CacheDoes::Fails)];
const OPERATION: &Words<Option<Earlier>> = &[
    ("none", None),
    ("running", Some(Earlier::Running)),
    ("unknown", Some(Earlier::Unknown)),
    ("succeeded", Some(Earlier::Succeeded)),
    ("refused", Some(Earlier::Refused)),
    ("not_executed", Some(Earlier::NotExecuted)),
];

fn meaning<T: Copy>(kind: &str, text: &str, words: &Words<T>) -> Result<T, NotUnderstood> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
    found.ok_or_else(|| NotUnderstood::unknown(kind, text, &words.iter().map(|(word, _)| *word)))
}

fn happens(text: &str) -> Result<Happens, NotUnderstood> {
    match text.parse() {
        Ok(status @ 200..=599) => Ok(Happens::Status(status)),
        Ok(_) => Err(NotUnderstood::new(format!("`{text}` is no status from 200 to 599"))),
        Err(_) => meaning("failure", text, HAPPENS),
    }
}

fn pair<'a>(text: &'a str, example: &str) -> Result<(&'a str, &'a str), NotUnderstood> {
    text.split_once('=').ok_or_else(|| NotUnderstood {
        message: format!("`{text}` has no `=`"),
        hint: Some(format!("write it as `{example}`")),
    })
}

impl Question {
    /// A question about a request such as `GET /products/42`.
    ///
    /// # Errors
    /// If it is no method and a path.
    pub fn about(request: &str) -> Result<Self, NotUnderstood> {
        let (method, target) = match request.split_once(' ') {
            Some((method, target)) => (method, target.trim()),
            None => ("", request),
        };
        let is_method =
            !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        if !is_method || !target.starts_with('/') {
            let hint = Some("write it as `GET /products/42`".to_owned());
            return Err(NotUnderstood { message: format!("`{request}` is no method and a path"), hint });
        }
        Ok(Self { method: method.into(), target: target.into(), ..Self::default() })
    }

    /// With a field such as `X-Tenant: a`.
    ///
    /// # Errors
    /// If it has no colon.
    pub fn field(&mut self, text: &str) -> Result<(), NotUnderstood> {
        let Some((name, value)) = text.split_once(':') else {
            let hint = Some("write it as `Name: value`".to_owned());
            return Err(NotUnderstood { message: format!("`{text}` is no field"), hint });
        };
        self.fields.push((name.trim().into(), value.trim().into()));
        Ok(())
    }

    /// With what happens to the calls of a dependency, such as `catalog=reset,ok`.
    ///
    /// # Errors
    /// If it is no failure.
    pub fn when(&mut self, text: &str) -> Result<(), NotUnderstood> {
        let (name, what) = pair(text, "catalog=connect_timeout")?;
        let what = what.split(',').map(happens).collect::<Result<_, _>>()?;
        self.when.push((name.into(), what));
        Ok(())
    }

    /// With a copy of an age such as `61s`, or `none`.
    ///
    /// # Errors
    /// If it is no duration.
    pub fn copy_age(&mut self, text: &str) -> Result<(), NotUnderstood> {
        self.copy_age = if text == "none" { None } else { Some(age(text)?) };
        Ok(())
    }

    /// With places that others have taken, such as `route=200`.
    ///
    /// # Errors
    /// If it is no number.
    pub fn in_flight(&mut self, text: &str) -> Result<(), NotUnderstood> {
        let (name, number) = pair(text, "route=200")?;
        let number =
            number.parse().map_err(|_| NotUnderstood::new(format!("`{number}` is no number of requests")))?;
        self.in_flight.push((name.into(), number));
        Ok(())
    }

    /// With what the cache does: `hit`, `miss`, `failed`, or the age of what it has.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn cache(&mut self, text: &str) -> Result<(), NotUnderstood> {
        let by_word = meaning("state of a cache", text, CACHE);
        self.cache = by_word.or_else(|unknown| age(text).map(CacheDoes::Hits).map_err(|_| unknown))?;
        Ok(())
    }

    /// With what a breaker is in, such as `catalog=open`.
    ///
    /// # Errors
    /// If it is no state of a breaker.
    pub fn breaker(&mut self, text: &str) -> Result<(), NotUnderstood> {
        let (name, state) = pair(text, "catalog=open")?;
        self.breakers.push((name.into(), meaning("state of a breaker", state, BREAKER)?));
        Ok(())
    }

    /// With what the authorizer says: `allow`, `deny`, `unclear`, or how it fails.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn authorizer(&mut self, text: &str) -> Result<(), NotUnderstood> {
        self.authorizer = Some(happens(text)?);
        Ok(())
    }

    /// With what became of an earlier request for the same operation.
    ///
    /// # Errors
    /// If it is no state of an operation.
    pub fn operation(&mut self, text: &str) -> Result<(), NotUnderstood> {
        self.operation = meaning("state of an operation", text, OPERATION)?;
        Ok(())
    }

    /// Every name in it is one of the policy.
    pub(crate) fn check(&self, loaded: &Loaded) -> Result<(), NotUnderstood> {
        let dependencies = || loaded.dependencies.iter().map(|dependency| &*dependency.name);
        let named = self.when.iter().map(|(name, _)| name).chain(self.breakers.iter().map(|(name, _)| name));
        for name in named {
            if !dependencies().any(|known| known == name) {
                return Err(NotUnderstood::unknown("dependency", name, &dependencies()));
            }
        }
        let resources = loaded.policy.resources.iter().map(|resource| &*resource.name);
        let places = ["process", "route"].into_iter().chain(dependencies()).chain(resources);
        for (name, _) in &self.in_flight {
            if !places.clone().any(|known| known == name) {
                return Err(NotUnderstood::unknown("limit", name, &places));
            }
        }
        Ok(())
    }
}

fn age(text: &str) -> Result<Duration, NotUnderstood> {
    duration(text).ok_or_else(|| NotUnderstood {
        message: format!("`{text}` is no age"),
        hint: Some("write it as `61s` or `250ms`; `none` is no copy".to_owned()),
    })
}
