//! The steps of a request, in words: for `backstop explain`, and for a trusted caller who asks with `Backstop-Explain: ?1`.
//!
//! A trusted caller gets them in one field, a Structured Field List (RFC 9651 section 3.1) of tokens with parameters, beside
//! the `Backstop` field. It is bounded; what does not fit is counted. To anybody else it is never told: which dependency was
//! asked, what is full and how old copies are is the operator's own business.

mod step;

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use backstop::fields;
use backstop::walk::{Recorder, Role, Walk};
use backstop_engine::engine::Engine;
use backstop_engine::policy::{DependencyId, Origin};
use backstop_policy::{DependencySettings, IpRange, SourceMap};
use http::header::FORWARDED;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};

use crate::stack::Shared;

pub use step::{Step, Told};

/// The field that tells the steps.
pub(crate) const BACKSTOP_STEPS: HeaderName = HeaderName::from_static("backstop-steps");

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The longest that it may be. Many parsers refuse a line that is longer than twice this, and all fields of an answer together
/// that are longer than four times this.
const STEPS_BYTES: usize = 4096;
/// What is kept of it for the number of those that did not fit.
const LEFT_OUT_BYTES: usize = 40;

/// What steps are called after.
#[derive(Debug)]
pub(crate) struct Words {
    /// Where each dependency was written.
    dependencies: Box<[Origin]>,
    sources: SourceMap,
}

impl Words {
    pub(crate) fn new(dependencies: &[DependencySettings], sources: &SourceMap) -> Self {
        let dependencies = dependencies.iter().map(|dependency| dependency.origin).collect();
        Self { dependencies, sources: sources.clone() }
    }

    /// Where a rule was written.
    pub(crate) fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The steps of a walk. `begun`: when the request began that it is of.
    pub(crate) fn steps(
        &self,
        engine: &Engine,
        walk: &Walk,
        begun: backstop_engine::time::Mono,
    ) -> Vec<Step> {
        let mut asked = None;
        let steps = walk.entries.iter().map(|entry| {
            let mut step = Step::of(entry, engine, begun);
            asked = step.dependency.or(asked);
            if step.rule == Origin::NONE
                && step.is_of_a_call
                && let Some(id) = asked
            {
                step.rule = self.written(id);
            }
            step
        });
        steps.collect()
    }

    fn written(&self, id: DependencyId) -> Origin {
        self.dependencies.get(usize::from(id.0)).copied().unwrap_or(Origin::NONE)
    }
}

/// Has the steps of a request recorded if its caller may see them and asks for them.
pub(crate) fn wanted<B>(shared: &Shared, peer: SocketAddr, request: &mut Request<B>) -> Option<Recorder> {
    let headers = request.headers();
    if !fields::asks_to_explain(headers) || !is_trusted(&shared.trusted, peer.ip(), headers) {
        return None;
    }
    // Whoever explains has brought one.
    let recorder = request.extensions().get::<Recorder>().cloned().unwrap_or_default();
    request.extensions_mut().insert(recorder.clone());
    Some(recorder)
}

/// Whether everybody on the request's way here is trusted. A proxy in front may be, and pass on what anybody asks.
fn is_trusted(trusted: &[IpRange], peer: IpAddr, headers: &HeaderMap) -> bool {
    let is_known = |address: IpAddr| trusted.iter().any(|range| range.contains(address));
    let came_for = headers.get_all(X_FORWARDED_FOR).iter();
    let all_known = |line: &HeaderValue| {
        let mut callers = line.to_str().unwrap_or_default().split(',');
        callers.all(|caller| caller.trim().parse().is_ok_and(is_known))
    };
    // What this one says (RFC 7239) need not be an address.
    is_known(peer) && !headers.contains_key(FORWARDED) && came_for.into_iter().all(all_known)
}

/// Tells them. Nothing is told of a request that came to no route.
pub(crate) fn tell<B>(shared: &Shared, recorder: &Recorder, response: &mut Response<B>) {
    let text = field(&shared.words, &shared.engine, &recorder.walks());
    if let Ok(value) = HeaderValue::try_from(text)
        && !value.is_empty()
    {
        response.headers_mut().insert(BACKSTOP_STEPS, value);
    }
}

/// The field's value.
fn field(words: &Words, engine: &Engine, walks: &[Walk]) -> String {
    let begun = walks.first().map(|walk| walk.begun).unwrap_or_default();
    let is_alone = walks.len() < 2;
    let mut steps: Vec<(&Walk, Step)> = walks
        .iter()
        .flat_map(|walk| words.steps(engine, walk, begun).into_iter().map(move |step| (walk, step)))
        .collect();
    // Parts go side by side. What a whole makes of them comes after what they came to, also in the same moment.
    let makes_of_them = |walk: &Walk, step: &Step| {
        !is_alone && walk.role == Role::Request && matches!(step.name, "part" | "decided")
    };
    steps.sort_by_key(|(walk, step)| (step.at, makes_of_them(walk, step)));
    let mut text = String::new();
    let mut left_out = 0_usize;
    for (walk, step) in steps {
        let item = item(words, engine, walk, &step, is_alone);
        if left_out > 0 || text.len() + item.len() + LEFT_OUT_BYTES > STEPS_BYTES {
            left_out += 1;
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&item);
    }
    if left_out > 0 {
        let _infallible = write!(text, ", left_out;steps={left_out}");
    }
    text
}

fn item(words: &Words, engine: &Engine, walk: &Walk, step: &Step, is_alone: bool) -> String {
    let mut text = format!("{};at={}", step.name, micros(step.at));
    for (name, told) in &step.told {
        let _infallible = match told {
            Told::Word(word) => write!(text, ";{name}={word}"),
            Told::Number(number) => write!(text, ";{name}={number}"),
            Told::Age(age) => write!(text, ";{name}={}", age.as_secs()),
            Told::At(at) => write!(text, ";{name}={}", micros(*at)),
        };
    }
    if let Some(source) = words.sources.get(step.rule) {
        let _infallible = write!(text, ";line={}", source.place.start.line);
    }
    if !is_alone {
        let _infallible = write!(text, ";route={}", engine.route(walk.route).rules.name);
        if walk.role == Role::Fill {
            text.push_str(";fill");
        }
    }
    text
}

/// No number may have more than fifteen digits (RFC 9651 section 3.3.1).
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(999_999_999_999_999)
}

#[cfg(test)]
mod tests {
    use backstop_engine::flow::{Note, TraceEntry};
    use backstop_engine::policy::RouteId;
    use backstop_engine::time::Mono;

    use super::*;

    const POLICY: &str = r#"
[gateway]
listen = "127.0.0.1:0"
in_flight = 10
[dependency.catalog]
url = "http://127.0.0.1:1"
[route.all.direct]
match = "*"
dependency = "catalog"
deadline = "1s"
in_flight = 10
"#;

    fn told(steps: u64) -> String {
        let loaded = backstop_policy::parse(POLICY, "policy.toml", &backstop_policy::NoFiles).unwrap();
        let words = Words::new(&loaded.dependencies, &loaded.sources);
        let rule = loaded.policy.routes[0].origins.in_flight;
        let engine = Engine::new(loaded.policy).unwrap();
        let entry = |number| TraceEntry { at: Mono::from_ns(number * 1_500), note: Note::Admitted, rule };
        let entries = (0..steps).map(entry).collect();
        let begun = Mono::from_ns(0);
        let walk = Walk { route: RouteId(0), role: Role::Request, begun, entries, has_decided: true };
        field(&words, &engine, &[walk])
    }

    /// By hand: the line of `in_flight` above, and 1.5 and 3 µs.
    #[test]
    fn a_step_says_its_moment_and_the_policys_line() {
        assert_eq!(told(3), "admitted;at=0;line=11, admitted;at=1;line=11, admitted;at=3;line=11");
    }

    /// Addresses of documentation (RFC 5737).
    #[test]
    fn whoever_comes_through_a_trusted_proxy_need_not_be_trusted() {
        let text =
            POLICY.replace("in_flight = 10\n[dep", "in_flight = 10\ntrusted = [\"192.0.2.0/24\"]\n[dep");
        let loaded = backstop_policy::parse(&text, "policy.toml", &backstop_policy::NoFiles).unwrap();
        let peer = |text: &str| text.parse::<IpAddr>().unwrap();
        let asks = |peer, fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            is_trusted(&loaded.gateway.trusted, peer, &headers)
        };
        let (known, stranger) = (peer("192.0.2.7"), peer("203.0.113.9"));
        assert!(asks(known, &[]) && !asks(stranger, &[]));
        for (fields, expected) in [
            (&[("x-forwarded-for", "192.0.2.1, 192.0.2.2")][..], true),
            (&[("x-forwarded-for", "203.0.113.9")], false),
            (&[("x-forwarded-for", "203.0.113.9, 192.0.2.2")], false),
            (&[("x-forwarded-for", "192.0.2.2"), ("x-forwarded-for", "203.0.113.9")], false),
            (&[("x-forwarded-for", "unknown")], false),
            (&[("x-forwarded-for", "")], false),
            (&[("forwarded", "for=192.0.2.1")], false),
        ] {
            assert_eq!(asks(known, fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn steps_are_bounded_and_say_what_is_left_out() {
        let whole = told(100);
        assert!(!whole.contains("left_out") && whole.matches("admitted").count() == 100, "{whole}");
        let text = told(1_000);
        assert!(text.len() <= STEPS_BYTES, "{}", text.len());
        let (_, left_out) = text.rsplit_once(", left_out;steps=").unwrap();
        let left_out: usize = left_out.parse().unwrap();
        assert_eq!(text.matches("admitted").count() + left_out, 1_000);
        assert!(left_out > 0);
    }
}
