//! What a drill expects beside the policy's own promises.

use std::time::Duration;

use super::{
    Finding, Sample, View,
    view::{most_within_a_second, peak, under_way},
};

/// Which answers are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Of these routes; empty is every route.
    pub routes: Vec<usize>,
    /// Of these requests; empty is every request.
    pub asks: Vec<usize>,
    /// Of requests that were sent from then on.
    pub from: Duration,
    /// Of requests that were sent before then.
    pub to: Option<Duration>,
    /// Of requests to the gateway that was started anew.
    pub after_restart: bool,
}

impl Selector {
    /// Of these routes, sent within this time.
    #[must_use]
    pub fn within(routes: &[usize], from: Duration, to: Duration) -> Self {
        Self { routes: routes.to_vec(), from, to: Some(to), ..Self::default() }
    }

    /// Of these requests alone.
    #[must_use]
    pub fn of(mut self, asks: &[usize]) -> Self {
        self.asks = asks.to_vec();
        self
    }

    fn means(&self, sample: &Sample) -> bool {
        (self.routes.is_empty() || self.routes.contains(&sample.route))
            && (self.asks.is_empty() || self.asks.contains(&sample.ask))
            && sample.after_restart == self.after_restart
            && (sample.after_restart
                || (self.from <= sample.sent && self.to.is_none_or(|to| sample.sent < to)))
    }
}

/// What an answer may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// One of these statuses; empty is any.
    pub status: Vec<u16>,
    /// One of these outcomes; empty is any.
    pub outcome: Vec<String>,
    /// One of these sources; empty is any.
    pub source: Vec<String>,
    /// One of these reasons or causes; empty is any.
    pub reason: Vec<String>,
}

impl Kind {
    /// With this outcome.
    #[must_use]
    pub fn outcome(outcome: &str) -> Self {
        Self { outcome: vec![outcome.to_owned()], ..Self::default() }
    }

    /// With one of these statuses.
    #[must_use]
    pub fn status(status: &[u16]) -> Self {
        Self { status: status.to_vec(), ..Self::default() }
    }

    /// From this source.
    #[must_use]
    pub fn source(source: &str) -> Self {
        Self { source: vec![source.to_owned()], ..Self::default() }
    }

    /// For one of these reasons.
    #[must_use]
    pub fn reason(reasons: &[&str]) -> Self {
        Self { reason: reasons.iter().map(|&reason| reason.to_owned()).collect(), ..Self::default() }
    }

    fn is(&self, sample: &Sample) -> bool {
        let one_of = |wanted: &[String], word: Option<&str>| {
            wanted.is_empty() || word.is_some_and(|word| wanted.iter().any(|wanted| wanted == word))
        };
        (self.status.is_empty() || sample.status.is_some_and(|status| self.status.contains(&status)))
            && one_of(&self.outcome, Some(sample.outcome()))
            && one_of(&self.source, sample.source())
            && (one_of(&self.reason, sample.reason()) || one_of(&self.reason, sample.cause()))
    }
}

/// What has to hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The share of answers that are so lies within bounds, in per mille.
    Share {
        /// Its name.
        name: String,
        /// What had to hold, in words.
        promise: String,
        /// Which answers.
        of: Selector,
        /// What they are.
        kind: Kind,
        /// At least so many of a thousand.
        at_least: u16,
        /// At most so many of a thousand.
        at_most: u16,
    },
    /// At least one answer is so: the drill reached what it rehearses.
    Seen {
        /// Its name.
        name: String,
        /// What had to hold, in words.
        promise: String,
        /// Which answers.
        of: Selector,
        /// What one of them is.
        kind: Kind,
    },
    /// No copy says that it is older.
    MaxAge {
        /// Which answers.
        of: Selector,
        /// The oldest.
        age: Duration,
    },
    /// Answers are there in time.
    Latency {
        /// Which answers.
        of: Selector,
        /// How long at most.
        within: Duration,
        /// Of so many of a thousand.
        per_mille: u16,
    },
    /// An upstream gets no more calls.
    Calls {
        /// Which.
        upstream: usize,
        /// From when on.
        from: Duration,
        /// Until when.
        to: Option<Duration>,
        /// In any second.
        per_second: Option<u64>,
        /// In all.
        in_all: Option<u64>,
        /// At once.
        at_once: Option<u64>,
    },
}

impl Expect {
    /// Every answer is so.
    #[must_use]
    pub fn all(name: &str, promise: &str, of: Selector, kind: Kind) -> Self {
        Self::Share {
            name: name.to_owned(),
            promise: promise.to_owned(),
            of,
            kind,
            at_least: 1000,
            at_most: 1000,
        }
    }

    /// No answer is so.
    #[must_use]
    pub fn none(name: &str, promise: &str, of: Selector, kind: Kind) -> Self {
        Self::Share { name: name.to_owned(), promise: promise.to_owned(), of, kind, at_least: 0, at_most: 0 }
    }

    /// At least one answer is so.
    #[must_use]
    pub fn seen(name: &str, promise: &str, of: Selector, kind: Kind) -> Self {
        Self::Seen { name: name.to_owned(), promise: promise.to_owned(), of, kind }
    }

    /// Judges what came.
    #[must_use]
    pub fn judge(&self, view: &View<'_>) -> Finding {
        match self {
            Self::Share { name, promise, of, kind, at_least, at_most } => {
                share(Finding::new(name, promise), view, of, kind, *at_least, *at_most)
            }
            Self::Seen { name, promise, of, kind } => {
                let mut finding = Finding::new(name, promise);
                let meant: Vec<&Sample> = view.samples.iter().filter(|sample| of.means(sample)).collect();
                if !meant.is_empty() {
                    let first = meant.first().map_or_else(String::new, |sample| sample.words());
                    finding.hold(meant.iter().any(|sample| kind.is(sample)), || {
                        format!("none of {} answers was so; the first: {first}", meant.len())
                    });
                }
                finding
            }
            Self::MaxAge { of, age } => max_age(view, of, *age),
            Self::Latency { of, within, per_mille } => latency(view, of, *within, *per_mille),
            Self::Calls { upstream, from, to, per_second, in_all, at_once } => {
                let to = to.unwrap_or(Duration::MAX);
                calls(view, *upstream, (*from, to), *per_second, *in_all, *at_once)
            }
        }
    }
}

fn share(
    mut finding: Finding,
    view: &View<'_>,
    of: &Selector,
    kind: &Kind,
    at_least: u16,
    at_most: u16,
) -> Finding {
    let meant: Vec<&Sample> = view.samples.iter().filter(|sample| of.means(sample)).collect();
    if at_least >= 1000 || at_most == 0 {
        // Each answer counts by itself, so each that is wrong can be shown.
        for sample in meant {
            finding.hold(kind.is(sample) == (at_least >= 1000), || sample.words());
        }
        return finding;
    }
    if meant.is_empty() {
        return finding;
    }
    let so = meant.iter().filter(|sample| kind.is(sample)).count();
    let per_mille = so * 1000 / meant.len();
    let holds = (usize::from(at_least)..=usize::from(at_most)).contains(&per_mille);
    finding.hold(holds, || {
        let percent = per_mille as f64 / 10.0;
        format!(
            "{percent} % of {} answers, and not {} % to {} %",
            meant.len(),
            f64::from(at_least) / 10.0,
            f64::from(at_most) / 10.0
        )
    });
    finding
}

fn max_age(view: &View<'_>, of: &Selector, age: Duration) -> Finding {
    let mut finding = Finding::new("max-age", format!("no copy is older than {age:?}"));
    for sample in view.samples.iter().filter(|sample| of.means(sample)) {
        let Some(told) = sample.mark.as_ref().and_then(|mark| mark.age_s) else { continue };
        let holds = u64::try_from(told).is_ok_and(|told| told <= age.as_secs());
        finding.hold(holds, || format!("{told} s: {}", sample.words()));
        let older = super::derived::oldest(view, sample).filter(|real| *real > age);
        finding.hold(older.is_none(), || {
            format!("in truth {:?}: {}", older.unwrap_or_default(), sample.words())
        });
    }
    finding
}

fn latency(view: &View<'_>, of: &Selector, within: Duration, per_mille: u16) -> Finding {
    let percent = f64::from(per_mille) / 10.0;
    let mut finding = Finding::new("latency", format!("{percent} % of answers are there within {within:?}"));
    let took = |sample: &Sample| sample.took().saturating_sub(sample.lag);
    let mut all: Vec<Duration> = view.samples.iter().filter(|sample| of.means(sample)).map(took).collect();
    all.sort_unstable();
    // The nearest rank: the smallest that so many are at most.
    let rank = (all.len() * usize::from(per_mille)).div_ceil(1000);
    if let Some(value) = rank.checked_sub(1).and_then(|index| all.get(index)) {
        finding.hold(*value <= within, || format!("{percent} % of {} within {value:?}", all.len()));
    }
    finding
}

fn calls(
    view: &View<'_>,
    upstream: usize,
    (from, to): (Duration, Duration),
    per_second: Option<u64>,
    in_all: Option<u64>,
    at_once: Option<u64>,
) -> Finding {
    let name = view.facts.upstream_name(upstream);
    let bounds = [
        per_second.map(|most| format!("{most} calls in a second")),
        in_all.map(|most| format!("{most} calls in all")),
        at_once.map(|most| format!("{most} calls at once")),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    let mut finding = Finding::new("calls", format!("`{name}` gets at most {}", bounds.join(" and ")));
    let is_cache = view.facts.upstreams().get(upstream).is_some_and(|upstream| upstream.is_cache);
    let own =
        view.calls.iter().filter(|call| call.upstream == upstream && (is_cache || call.marker.is_some()));
    // Where no request was under way, none could have called.
    if !view.samples.iter().any(|sample| sample.sent < to && sample.done >= from) {
        return finding;
    }
    let own: Vec<_> = own.filter(|call| from <= call.began && call.began < to).collect();
    let moments: Vec<Duration> = own.iter().map(|call| call.began).collect();
    if let Some(most) = per_second {
        let (count, when) = most_within_a_second(&moments);
        finding.hold(count <= most, || format!("{count} from {:.3} s on", when.as_secs_f64()));
    }
    if let Some(most) = in_all {
        finding.hold(own.len() as u64 <= most, || format!("{} in all", own.len()));
    }
    if let Some(most) = at_once {
        let (count, when) = peak(own.iter().map(|call| under_way(call)));
        finding.hold(count <= most, || format!("{count} at {:.3} s", when.as_secs_f64()));
    }
    finding
}
