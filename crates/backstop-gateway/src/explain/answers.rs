//! What a dependency answers: right by the rules of the route that asks, or wrong by them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use backstop::authorize::Principal;
use backstop::request::{PathParameters, part_text};
use backstop_engine::policy::effect::{AnswerRule, Literal};
use backstop_engine::policy::{Correct, KeyPart, Route, RouteClass, RouteId, StatusSet};
use backstop_policy::{AuthorizerKind, AuthorizerSettings, Loaded};
use http::header::ACCEPT_LANGUAGE;
use http::{HeaderMap, Method, Request};
use serde_json::{Map, Value, json};

use super::question::Happens;

/// Who every caller is that an authorizer lets in.
pub(crate) const PRINCIPAL: &str = "explain";

/// A request, as a dependency gets it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) fields: HeaderMap,
}

/// Which route asks for a target.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) target: String,
    pub(crate) route: RouteId,
    pub(crate) parameters: PathParameters,
}

/// What dependencies answer.
#[derive(Debug)]
pub(crate) struct Answers {
    routes: Vec<Route>,
    authorizers: Vec<AuthorizerSettings>,
    plans: Mutex<Vec<Plan>>,
    calls: AtomicU64,
}

/// One answer.
struct Answer {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answers {
    pub(crate) fn new(loaded: &Loaded) -> Self {
        let (routes, authorizers) = (loaded.policy.routes.clone(), loaded.authorizers.clone());
        Self { routes, authorizers, plans: Mutex::default(), calls: AtomicU64::new(0) }
    }

    /// The number of a call that begins, over all dependencies.
    pub(crate) fn next_number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// From now on these routes ask.
    pub(crate) fn plan(&self, plans: Vec<Plan>) {
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = plans;
    }

    /// The bytes of an answer; those of one that is not `whole` end before its length.
    pub(crate) fn answer(&self, dependency: &str, happens: Happens, asked: &Asked, whole: bool) -> Vec<u8> {
        let authorizer = self.authorizers.iter().find(|authorizer| *authorizer.name == *dependency);
        let answer = match authorizer {
            Some(authorizer) => of_authorizer(authorizer, happens),
            None => self.of_dependency(happens, asked),
        };
        answer.encode(asked.method == Method::HEAD, whole)
    }

    fn of_dependency(&self, happens: Happens, asked: &Asked) -> Answer {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plans.iter().find(|plan| plan.target == asked.target).or_else(|| plans.first());
        let route = plan.and_then(|plan| self.routes.get(usize::from(plan.route.0)));
        match (happens, plan, route) {
            (Happens::Denied, _, Some(route)) => refusal(route),
            (Happens::Ok | Happens::Status(200..=299), Some(plan), Some(route)) => {
                let mut answer = right(route, plan, asked);
                if let Happens::Status(status) = happens {
                    answer.status = status;
                }
                answer
            }
            (Happens::Incorrect, _, Some(route)) => wrong(route),
            (Happens::Status(status), ..) => Answer::json(status, &json!({ "status": status })),
            _ => Answer::json(200, &json!({ "explained": true })),
        }
    }
}

impl Answer {
    fn json(status: u16, value: &Value) -> Self {
        let fields = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self { status, fields, body: value.to_string().into_bytes() }
    }

    fn text(media_type: &str, text: &str) -> Self {
        let fields = vec![("Content-Type".to_owned(), media_type.to_owned())];
        Self { status: 200, fields, body: text.as_bytes().to_vec() }
    }

    fn encode(mut self, is_head: bool, is_whole: bool) -> Vec<u8> {
        let has_no_content = matches!(self.status, 204 | 205 | 304);
        if has_no_content {
            self.body.clear();
        }
        let mut text = format!("HTTP/1.1 {} explained\r\nConnection: close\r\n", self.status);
        for (name, value) in &self.fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !has_no_content || !is_whole {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len() + usize::from(!is_whole)));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        if !is_head {
            bytes.extend(self.body);
        }
        bytes
    }
}

/// The first status of a set, or another one.
fn first(set: &StatusSet, otherwise: u16) -> u16 {
    (200..600).find(|status| set.contains(*status)).unwrap_or(otherwise)
}

fn of_authorizer(authorizer: &AuthorizerSettings, happens: Happens) -> Answer {
    let AuthorizerKind::Asked(asked) = &authorizer.kind else { return Answer::json(200, &json!({})) };
    let bare = |status| Answer { status, fields: Vec::new(), body: Vec::new() };
    match happens {
        Happens::Ok => {
            let sign = asked.sign_value.as_deref().unwrap_or("yes");
            let mut fields = vec![(asked.sign.to_string(), sign.to_owned())];
            if let Some(principal) = &authorizer.principal {
                fields.push((principal.to_string(), PRINCIPAL.to_owned()));
            }
            Answer { fields, ..bare(first(&asked.allow, 200)) }
        }
        Happens::Denied => bare(first(&asked.deny, 401)),
        Happens::Status(status) => bare(status),
        Happens::Incorrect | Happens::Fails(_) => bare(first(&asked.allow, 200)),
    }
}

/// What the contract of an operation calls a refusal; elsewhere a no about the request.
fn refusal(route: &Route) -> Answer {
    match route.class.effect().and_then(|rules| rules.outcome.refused.first()) {
        Some(rule) => by_contract(rule, 422),
        None => Answer::json(403, &json!({ "status": 403 })),
    }
}

fn by_contract(rule: &AnswerRule, otherwise: u16) -> Answer {
    let mut value = json!({});
    for (pointer, literals) in &rule.json {
        let literal = match literals.first() {
            Some(Literal::Text(text)) => json!(text),
            Some(Literal::Boolean(boolean)) => json!(boolean),
            Some(Literal::Integer(integer)) => json!(integer),
            None => Value::Null,
        };
        put(&mut value, pointer, literal);
    }
    Answer::json(first(&rule.status, otherwise), &value)
}

fn right(route: &Route, plan: &Plan, asked: &Asked) -> Answer {
    if let Some(rule) = route.class.effect().and_then(|rules| rules.outcome.succeeded.first()) {
        return by_contract(rule, 200);
    }
    let correct = match &route.class {
        RouteClass::PublicRead(read) => &read.correct,
        RouteClass::CachedRead(cached) => &cached.read.correct,
        _ => return Answer::json(200, &json!({ "explained": true })),
    };
    let media_type = correct.media_type.as_deref().unwrap_or("application/json");
    let is_json = media_type.ends_with("/json") || media_type.ends_with("+json");
    if !is_json && !correct.reads_body() {
        return Answer::text(media_type, "explained");
    }
    let mut value = json!({});
    for pointer in &correct.has {
        put(&mut value, pointer, json!("explained"));
    }
    for (pointer, part) in &correct.echo {
        put(&mut value, pointer, json!(said(part, plan, asked)));
    }
    Answer::text(media_type, &value.to_string())
}

/// What a part of the key holds, as whoever is asked reads it.
fn said(part: &KeyPart, plan: &Plan, asked: &Asked) -> String {
    let mut request = Request::new(());
    *request.headers_mut() = asked.fields.clone();
    if let Ok(uri) = asked.target.parse() {
        *request.uri_mut() = uri;
    }
    request.extensions_mut().insert(plan.parameters.clone());
    request.extensions_mut().insert(Principal(PRINCIPAL.as_bytes().into()));
    let (parts, ()) = request.into_parts();
    let language = parts.headers.get(ACCEPT_LANGUAGE).and_then(|language| language.to_str().ok());
    part_text(part, &parts, language).unwrap_or_default().into_owned()
}

/// An answer that breaks the rules; where there are none, none does.
fn wrong(route: &Route) -> Answer {
    let none = Correct::default();
    let correct = route.class.read().map_or(&none, |read| &read.correct);
    match &correct.media_type {
        // What is usual: the type is right, and what is in it is not.
        Some(media_type) if !(correct.has.is_empty() && correct.echo.is_empty()) => {
            Answer::text(media_type, "{}")
        }
        Some(_) => Answer::text("text/x-explained", "explained"),
        None => Answer::json(200, &json!({})),
    }
}

/// Sets what a JSON Pointer (RFC 6901) leads to, and makes the way there.
fn put(value: &mut Value, pointer: &str, set: Value) {
    let mut place = value;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(object) = place else { return };
        place = object.entry(token).or_insert(Value::Null);
    }
    // What stands for a whole below it stays.
    if !(place.is_object() && set.is_string()) {
        *place = set;
    }
}
