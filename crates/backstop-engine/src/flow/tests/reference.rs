//! The contract once more, as one naive function that shares no code with the engine.
//!
//! It is read from the prose of the contract, slowly and without any order of steps: given all that happened, what must
//! the answer be? Words are strings here on purpose, so that a mix-up of names in the engine shows.

use crate::flow::{CopyAction, CopyUse, Method, RequestFacts};
use crate::policy::{Incorrect, Otherwise, PublicRead, Route, RouteClass, UnavailableStatus};

use super::support::FIXED_STATUS;

/// All that happened to one admitted request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) route: &'a Route,
    pub(super) facts: RequestFacts,
    pub(super) happened: Happened,
    pub(super) copy: Copy,
    /// If another dependency was asked in its place: the word for why.
    pub(super) stood_in_for: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Happened {
    /// What the last call of the route's own dependency, or the lack of one, came to.
    Ended(Trouble),
    /// The call failed. Only a time-out is a 504; `reached`: the dependency may have got the request.
    Failed { word: &'static str, reached: bool },
    /// It was not made.
    NotAsked { word: &'static str },
    /// It was answered.
    Answered { status: u16, degraded_ns: Option<u128>, content: Content },
    /// Its code returned an error that nobody classified.
    Erred,
}

/// The content of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    None,
    Whole { correct: bool, storable: bool },
    TooLarge,
    Broken,
}

/// The copy at the moment at which it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Copy {
    Missing,
    Unreadable,
    /// From an earlier boot, under a clock that nobody vouches for.
    Undated,
    Aged {
        ns: i128,
        forbidden: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) words: (&'static str, &'static str, &'static str),
    pub(super) status: u16,
    pub(super) copy: CopyAction,
    pub(super) age_ns: Option<u128>,
}

impl Expected {
    pub(super) const fn new(words: (&'static str, &'static str, &'static str), status: u16) -> Self {
        Self { words, status, copy: CopyAction::Keep, age_ns: None }
    }
}

/// A failure of the closed lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) word: &'static str,
    /// The status of a route without an alternative.
    own_status: u16,
    /// The dependency's own answer, which passes through where there is no alternative.
    pub(super) said: Option<u16>,
    asked: bool,
    reached: bool,
}

impl Trouble {
    pub(super) const fn not_asked(word: &'static str) -> Self {
        Self { word, own_status: 503, said: None, asked: false, reached: false }
    }

    /// Its answer is not passed on.
    pub(super) const fn kept_back(self) -> Self {
        Self { said: None, ..self }
    }

    /// A call that failed otherwise than by an answer.
    pub(super) fn failed(word: &'static str, reached: bool) -> Self {
        let own_status = if word.ends_with("timeout") { 504 } else { 502 };
        Self { word, own_status, said: None, asked: true, reached }
    }
}

pub(super) fn reads(facts: RequestFacts) -> bool {
    facts.method == Method::Get || facts.method == Method::Head
}

/// Whether an alternative may stand in for this request's answer.
pub(super) fn may_be_replaced(route: &Route, facts: RequestFacts) -> bool {
    match route.class {
        RouteClass::Direct(_) | RouteClass::Composed(_) | RouteClass::Guarded => false,
        RouteClass::CachedRead(_) => unreachable!("no route of the reference has a cache"),
        RouteClass::Effect(_) => unreachable!("no route of the reference has operations"),
        RouteClass::Optional(_) => reads(facts),
        RouteClass::PublicRead(_) => reads(facts) && facts.copies != CopyUse::Never,
    }
}

/// Whether the answer is held back until it is complete.
pub(super) fn held_back(route: &Route, facts: RequestFacts, status: u16, content: Content) -> bool {
    may_be_replaced(route, facts) && (200..=299).contains(&status) && content != Content::None
}

/// Another gateway's alternative for a read, older than this route accepts. An error is no alternative.
pub(super) fn is_too_old(
    read: &PublicRead,
    facts: RequestFacts,
    status: u16,
    degraded_ns: Option<u128>,
) -> bool {
    reads(facts) && status < 400 && degraded_ns.is_some_and(|ns| ns > read.max_age.as_nanos())
}

pub(super) fn trouble(case: &Case<'_>) -> Option<Trouble> {
    let Case { route, facts, .. } = *case;
    match case.happened {
        Happened::Erred => None,
        Happened::Ended(trouble) => Some(trouble),
        Happened::NotAsked { word } => Some(Trouble::not_asked(word)),
        Happened::Failed { word, reached } => Some(Trouble::failed(word, reached)),
        Happened::Answered { status, degraded_ns, content } => {
            let of_answer = |word, own_status| {
                Some(Trouble { word, own_status, said: Some(status), asked: true, reached: true })
            };
            if [502, 503, 504].contains(&status) {
                return of_answer("unavailable", status);
            }
            let about_the_request = status < 500 && status != 429;
            if route.declared.contains(status) && !about_the_request {
                return of_answer("declared", 502);
            }
            let is_held_back = held_back(route, facts, status, content);
            let is_incorrect = is_held_back && matches!(content, Content::Whole { correct: false, .. });
            if is_incorrect && case.stood_in_for.is_some() {
                // Of somebody who stands in nothing is passed that the route does not accept.
                return of_answer("declared", 502);
            }
            let RouteClass::PublicRead(read) = &route.class else {
                let broken = is_held_back && content == Content::Broken;
                return if broken { of_answer("incomplete", 502) } else { None };
            };
            if is_too_old(read, facts, status, degraded_ns) {
                // Whoever asks: it is not said to anybody, so `said` is none.
                return Some(Trouble {
                    word: "unavailable",
                    own_status: 502,
                    said: None,
                    asked: true,
                    reached: true,
                });
            }
            if !is_held_back {
                return None;
            }
            match content {
                Content::Broken => of_answer("incomplete", 502),
                Content::Whole { correct: false, .. } if read.incorrect == Incorrect::Fallback => {
                    of_answer("declared", 502)
                }
                _ => None,
            }
        }
    }
}

pub(super) fn expected(case: &Case<'_>) -> Expected {
    match trouble(case) {
        Some(trouble) => after_trouble(case, trouble),
        None => answered(case),
    }
}

fn after_trouble(case: &Case<'_>, trouble: Trouble) -> Expected {
    let Case { route, facts, .. } = *case;
    let unavailable = match route.unavailable_status {
        UnavailableStatus::Contract => 503,
        UnavailableStatus::Cause => trouble.own_status,
    };
    if !may_be_replaced(route, facts) {
        if let Some(status) = trouble.said {
            let words = ("failed", "primary", trouble.word);
            return Expected { copy: after_answer(case, status), ..Expected::new(words, status) };
        }
        if matches!(route.class, RouteClass::PublicRead(_)) && reads(facts) {
            return Expected::new(("rejected", "none", "missing"), unavailable);
        }
        let outcome = if trouble.asked { "failed" } else { "rejected" };
        let unknown_write = facts.method == Method::Unsafe && trouble.reached;
        let copy = if unknown_write { CopyAction::WithdrawUnsettled } else { CopyAction::Keep };
        return Expected { copy, ..Expected::new((outcome, "none", trouble.word), trouble.own_status) };
    }
    match &route.class {
        RouteClass::Optional(optional) => {
            let source = match optional.otherwise {
                Otherwise::Omit(_) => "omitted",
                Otherwise::Prepared(_) => "prepared",
            };
            Expected::new(("fallback", source, trouble.word), FIXED_STATUS)
        }
        RouteClass::PublicRead(_) => match usable(case.copy, route) {
            Ok(age_ns) => {
                let words = ("fallback", "snapshot", trouble.word);
                Expected { age_ns: Some(age_ns), ..Expected::new(words, 200) }
            }
            Err(word) => Expected::new(("rejected", "none", word), unavailable),
        },
        RouteClass::Direct(_)
        | RouteClass::CachedRead(_)
        | RouteClass::Composed(_)
        | RouteClass::Guarded
        | RouteClass::Effect(_) => {
            unreachable!("never replaced here")
        }
    }
}

/// The copy's age, or the word for why it may not be served.
pub(super) fn usable(copy: Copy, route: &Route) -> Result<u128, &'static str> {
    let RouteClass::PublicRead(read) = &route.class else { return Err("missing") };
    match copy {
        Copy::Missing => Err("missing"),
        Copy::Unreadable => Err("unreadable"),
        Copy::Undated => Err("clock"),
        Copy::Aged { ns, .. } if ns < 0 || ns > read.max_age.as_nanos() as i128 => Err("age"),
        Copy::Aged { forbidden: true, .. } if !read.override_origin => Err("forbidden"),
        Copy::Aged { ns, .. } => Ok(ns as u128),
    }
}

fn answered(case: &Case<'_>) -> Expected {
    let Case { route, facts, .. } = *case;
    let Happened::Answered { status, degraded_ns, content } = case.happened else {
        let unknown_write = facts.method == Method::Unsafe;
        let copy = if unknown_write { CopyAction::WithdrawUnsettled } else { CopyAction::Keep };
        let source = if case.stood_in_for.is_some() { "alternative" } else { "primary" };
        return Expected { copy, ..Expected::new(("failed", source, "unclassified"), 0) };
    };
    let whole = held_back(route, facts, status, content);
    if whole && matches!(content, Content::Whole { correct: false, .. }) {
        return Expected::new(("failed", "primary", "incorrect"), status);
    }
    let words = match (case.stood_in_for, status, degraded_ns) {
        (Some(word), _, _) => ("fallback", "alternative", word),
        (None, 500.., _) => ("failed", "primary", "server_error"),
        (None, _, Some(_)) => ("fallback", "alternative", "upstream_degraded"),
        (None, _, None) => ("normal", "primary", "none"),
    };
    let age_ns = if words.0 == "fallback" { degraded_ns } else { None };
    let stored = whole
        && matches!(content, Content::Whole { storable: true, .. })
        && matches!(route.class, RouteClass::PublicRead(_))
        && status == 200
        && degraded_ns.is_none()
        && case.stood_in_for.is_none()
        && facts.method == Method::Get
        && facts.copies == CopyUse::Full;
    let copy = if stored { CopyAction::Store } else { after_answer(case, status) };
    Expected { copy, age_ns, ..Expected::new(words, status) }
}

/// What an answer that passes through does to the copy.
fn after_answer(case: &Case<'_>, status: u16) -> CopyAction {
    let facts = case.facts;
    let degraded = matches!(case.happened, Happened::Answered { degraded_ns: Some(_), .. });
    if facts.method == Method::Unsafe {
        // A 4xx says that nothing was done, a 5xx and 202 say nothing.
        return match status / 100 {
            2 if status == 202 => CopyAction::WithdrawUnsettled,
            4 => CopyAction::Keep,
            5 => CopyAction::WithdrawUnsettled,
            _ => CopyAction::Withdraw,
        };
    }
    match &case.route.class {
        // What another dependency says is not said of the copy.
        _ if case.stood_in_for.is_some() => CopyAction::Keep,
        RouteClass::PublicRead(read) if reads(facts) => {
            let refused_to_all = (status == 401 || status == 403) && !facts.credential;
            let confirmed =
                status == 304 && facts.method == Method::Get && facts.copies == CopyUse::Full && !degraded;
            if (read.gone.contains(status) || refused_to_all) && !degraded {
                CopyAction::Withdraw
            } else if confirmed {
                CopyAction::Renew
            } else {
                CopyAction::Keep
            }
        }
        _ => CopyAction::Keep,
    }
}
