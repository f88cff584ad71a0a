//! What clients ask, and which requests may share a copy.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use backstop::{canonical, language};
use backstop_engine::policy::effect::KeySource;
use backstop_policy::{HostPattern, MatchRule, Method, RouteSettings, Segment};
use http::{HeaderMap, HeaderValue, header::ACCEPT_LANGUAGE};

use crate::proxy::Writes;

use super::{Facts, facts::key_headers};

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which route it is for, by place in the policy.
    pub route: usize,
    /// The method.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// Its fields.
    pub fields: Vec<(String, String)>,
    /// Its body.
    pub body: String,
    /// Requests with the same key may share a copy; no others.
    pub key: u64,
    /// A field whose value is another one for each request: the key of an operation.
    pub unique: Option<String>,
}

impl Ask {
    /// A request for this route.
    #[must_use]
    pub fn new(
        facts: &Facts,
        route: usize,
        method: &str,
        target: &str,
        fields: Vec<(String, String)>,
    ) -> Self {
        let key = key(facts, route, target, &fields);
        let effect = facts.rules(route).and_then(|rules| rules.class.effect());
        let unique = effect.and_then(|effect| match &effect.key {
            KeySource::Header(name) => Some(name.to_string()),
            KeySource::Body(_) => None,
        });
        Self {
            route,
            method: method.to_owned(),
            target: target.to_owned(),
            fields,
            body: String::new(),
            key,
            unique,
        }
    }

    /// Whether it may write.
    #[must_use]
    pub fn is_write(&self) -> bool {
        Writes::is_write(&self.method)
    }
}

fn key(facts: &Facts, route: usize, target: &str, fields: &[(String, String)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    // As the gateway tells copies apart: by the spelling of path and query, and of the host.
    (route, &*canonical::escapes(target), canonical::host(host(fields))).hash(&mut hasher);
    let value = |name: &str| {
        fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    let Some(rules) = facts.rules(route) else { return hasher.finish() };
    for name in key_headers(rules) {
        (name, value(name)).hash(&mut hasher);
    }
    let languages = rules.class.read().map_or(&[][..], |read| &read.languages);
    // Without languages one copy is everybody's.
    if !languages.is_empty() {
        language::negotiate(languages, &accepted(fields)).hash(&mut hasher);
    }
    value("authorization").hash(&mut hasher);
    hasher.finish()
}

/// What a client says of languages, as the gateway reads it.
fn accepted(fields: &[(String, String)]) -> HeaderMap {
    let own = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("accept-language"));
    let values = own.filter_map(|(_, value)| HeaderValue::from_str(value).ok());
    values.map(|value| (ACCEPT_LANGUAGE, value)).collect()
}

/// The host that a request is for. One that names none goes to the gateway's own address, which is of loopback.
pub(crate) fn host(fields: &[(String, String)]) -> &str {
    let named = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    named.map_or("127.0.0.1", |(_, value)| value.as_str())
}

/// Hosts that a route answers for: `None` stands for whatever the request has anyway.
fn hosts(settings: &RouteSettings) -> Vec<Option<String>> {
    if settings.hosts.is_empty() {
        return vec![None];
    }
    let of = |pattern: &HostPattern| match pattern {
        HostPattern::Exact(name) => name.to_string(),
        HostPattern::Suffix(suffix) => format!("drill{suffix}"),
    };
    settings.hosts.iter().map(|pattern| Some(of(pattern))).collect()
}

/// What stands for the parameters of paths, and the fields that every request carries.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Values by the parameter's name. One that has none is `1`, and a rest is `drill`.
    pub values: BTreeMap<String, Vec<String>>,
    /// Fields of every request.
    pub fields: Vec<(String, String)>,
    /// Requests of a drill file, used for their routes instead of what would be guessed.
    pub asks: Vec<Ask>,
}

/// Most requests that differ by one thing.
const VARIANTS: usize = 2;

impl Samples {
    /// Requests for a route, of these methods: different paths, languages and values of key headers, so that their copies
    /// must not be mixed up. None if the route cannot be asked for so.
    #[must_use]
    pub fn asks(&self, facts: &Facts, route: usize, wanted: fn(&str) -> bool) -> Vec<Ask> {
        let own = self.asks.iter().filter(|ask| ask.route == route && wanted(&ask.method));
        let own: Vec<Ask> = own.cloned().collect();
        if !own.is_empty() {
            return own;
        }
        let Some(settings) = facts.loaded().routes.get(route) else { return Vec::new() };
        let mut asks = Vec::new();
        for (method, rule) in settings.matches.iter().filter_map(|rule| Some((method(rule, wanted)?, rule))) {
            for target in self.targets(rule) {
                for fields in self.fields(facts, route) {
                    let has_host = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
                    let hosts = if has_host { vec![None] } else { hosts(settings) };
                    // The first of its hosts on which nobody else answers this.
                    let mut with = hosts.into_iter().map(|name| {
                        let mut fields = fields.clone();
                        fields.extend(name.map(|name| ("host".to_owned(), name)));
                        fields
                    });
                    let own = with.find(|fields| facts.find(host(fields), method, &target) == Some(route));
                    asks.extend(own.map(|fields| Ask::new(facts, route, method, &target, fields)));
                }
            }
        }
        asks
    }

    fn targets(&self, rule: &MatchRule) -> Vec<String> {
        let mut targets = vec![String::new()];
        for segment in &rule.template.segments {
            let values = match segment {
                Segment::Literal(text) => vec![text.to_string()],
                Segment::Parameter(name) => self.value(name, "1"),
                Segment::Rest(name) => self.value(name, "drill"),
            };
            let longer =
                |target: &String| values.iter().map(|value| format!("{target}/{value}")).collect::<Vec<_>>();
            targets = targets.iter().flat_map(longer).take(VARIANTS).collect();
        }
        targets.into_iter().map(|target| if target.is_empty() { "/".to_owned() } else { target }).collect()
    }

    fn value(&self, name: &str, otherwise: &str) -> Vec<String> {
        let known = self.values.get(name).filter(|values| !values.is_empty());
        known.cloned().unwrap_or_else(|| vec![otherwise.to_owned()])
    }

    /// The fields of requests that differ in what the route's key distinguishes.
    fn fields(&self, facts: &Facts, route: usize) -> Vec<Vec<(String, String)>> {
        // What carries a credential is kept by nobody: it goes where somebody asks for it.
        let is_asked_for = facts.loaded().routes.get(route).is_some_and(|route| route.authorizer.is_some());
        let own = self.fields.iter().filter(|(name, _)| is_asked_for || !is_credential(name));
        let mut all = vec![own.cloned().collect::<Vec<_>>()];
        let Some(rules) = facts.rules(route) else { return all };
        let given = |name: &str| self.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
        let mut vary = |name: &str, values: Vec<String>| {
            let with = |fields: &Vec<(String, String)>| {
                let one = |value: &String| {
                    let mut fields = fields.clone();
                    fields.push((name.to_owned(), value.clone()));
                    fields
                };
                values.iter().map(one).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        };
        let languages = rules.class.read().map_or(&[][..], |read| &read.languages);
        if !languages.is_empty() && !given("accept-language") {
            vary("accept-language", languages.iter().take(VARIANTS).map(ToString::to_string).collect());
        }
        for name in key_headers(rules).into_iter().filter(|name| !given(name)) {
            vary(name, vec!["drill-a".to_owned(), "drill-b".to_owned()]);
        }
        all
    }
}

/// Whether a field says who asks.
pub(crate) fn is_credential(name: &str) -> bool {
    ["authorization", "cookie"].iter().any(|credential| name.eq_ignore_ascii_case(credential))
}

/// The method by which this rule is asked for, if it may be.
fn method(rule: &MatchRule, wanted: fn(&str) -> bool) -> Option<&str> {
    match &rule.method {
        Method::Named(name) => wanted(name).then_some(&**name),
        Method::Any => ["GET", "POST"].into_iter().find(|method| wanted(method)),
    }
}
