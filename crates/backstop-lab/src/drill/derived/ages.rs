//! How old copies are in truth, and whose they are.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::drill::{Finding, Sample, View};
use crate::proxy::{Call, Ended};

/// A copy is never older than its route's `max_age`, whatever it says of itself.
pub(super) fn age(view: &View<'_>) -> Finding {
    let mut finding =
        Finding::new("age", "no copy is older than its route's `max_age`, in truth and as it says itself");
    let dated = Dated::new(view);
    for sample in view.samples.iter().filter(|sample| sample.is_copy()) {
        let Some(route) = view.route(sample).filter(|route| route.class != "composed") else { continue };
        let Some(max_age) = route.max_age else { continue };
        let told = sample.mark.as_ref().and_then(|mark| mark.age_s);
        let is_told =
            told.is_some_and(|told| u64::try_from(told).is_ok_and(|told| told <= max_age.as_secs()));
        finding
            .hold(is_told, || format!("`{}` says {told:?} s of {max_age:?}: {}", route.name, sample.words()));
        match dated.age(view, sample) {
            Some(real) => finding.hold(real <= max_age, || {
                format!("`{}` is at least {real:?} old, of {max_age:?}: {}", route.name, sample.words())
            }),
            None => finding.look(Some(format!("`{}`: nobody ever read it: {}", route.name, sample.words()))),
        }
    }
    finding
}

/// How old the copy in this answer is at least; `None` if it was never read.
#[must_use]
pub fn oldest(view: &View<'_>, sample: &Sample) -> Option<Duration> {
    Dated::new(view).age(view, sample)
}

/// When what is kept under each key was read, with the age that it came with taken off, in nanoseconds from the beginning.
struct Dated(HashMap<u64, Vec<(Duration, i128)>>);

impl Dated {
    fn new(view: &View<'_>) -> Self {
        let mut dates: HashMap<u64, Vec<(Duration, i128)>> = HashMap::new();
        for call in view.calls.iter().filter(|call| is_read(call)) {
            let Some(key) = view.key(call) else { continue };
            let date = nanoseconds(call.began) - nanoseconds(call.age);
            dates.entry(key).or_default().push((call.began, date));
        }
        Self(dates)
    }

    /// From the latest read that can have been kept before the answer, until the request was sent: an answer's age is judged
    /// later than that, and its read began earlier than its call came.
    fn age(&self, view: &View<'_>, sample: &Sample) -> Option<Duration> {
        let dates = self.0.get(&view.ask(sample)?.key)?;
        let latest = dates.iter().filter(|(began, _)| *began <= sample.done).map(|(_, date)| *date).max()?;
        let age = nanoseconds(sample.sent) - latest;
        Some(Duration::from_nanos(u64::try_from(age.max(0)).unwrap_or(u64::MAX)))
    }
}

fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

/// Whether it may have been kept: a whole 2xx, or a 304 that renews.
fn is_read(call: &Call) -> bool {
    call.ended == Ended::Whole
        && call.status.is_some_and(|status| (200..300).contains(&status) || status == 304)
}

/// The requests that the dependency answered at least twice, and every time with the same content.
fn steady(view: &View<'_>) -> HashMap<usize, u64> {
    let mut answers: HashMap<usize, (u64, u32, bool)> = HashMap::new();
    for call in view.calls.iter().filter(|call| is_read(call)) {
        let (Some(cause), Some(content)) = (view.cause(call), call.content) else { continue };
        let (first, count, is_steady) = answers.entry(cause.ask).or_insert((content, 0, true));
        *count += 1;
        *is_steady &= *first == content;
    }
    let steady = answers.into_iter().filter(|(_, (_, count, is_steady))| *is_steady && *count > 1);
    steady.map(|(ask, (content, ..))| (ask, content)).collect()
}

/// A copy is one of the very key that was asked for.
pub(super) fn keys(view: &View<'_>) -> Finding {
    let promise = "a copy is what the dependency answered for the same path, language, tenant and caller";
    let mut finding = Finding::new("keys", promise);
    let mut contents: HashMap<u64, HashSet<u64>> = HashMap::new();
    for call in view.calls.iter().filter(|call| is_read(call)) {
        if let (Some(key), Some(content)) = (view.key(call), call.content) {
            contents.entry(key).or_default().insert(content);
        }
    }
    let different: HashSet<&u64> = contents.values().flatten().collect();
    if different.len() < 2 {
        // Where every key has the same body, a mix-up would not be seen.
        return finding;
    }
    let steady = steady(view);
    for sample in view.samples.iter().filter(|sample| sample.is_copy()) {
        let is_get = view.ask(sample).is_some_and(|ask| ask.method == "GET");
        let Some(route) = view.route(sample).filter(|route| route.class != "composed" && is_get) else {
            continue;
        };
        let (Some(ask), Some(content)) = (view.ask(sample), sample.content) else { continue };
        let is_own = contents.get(&ask.key).is_some_and(|own| own.contains(&content));
        // A key that lacks what the dependency distinguishes is wrong although the gateway keeps to it.
        let is_others = steady.get(&sample.ask).is_some_and(|own| {
            *own != content && steady.iter().any(|(other, theirs)| *other != sample.ask && *theirs == content)
        });
        finding.hold(is_own && !is_others, || {
            let whose = contents.iter().find(|(_, own)| own.contains(&content));
            let whose = if whose.is_some() { "another key's" } else { "nobody's" };
            format!("`{}` {} {:?} got {whose} answer: {}", route.name, ask.target, ask.fields, sample.words())
        });
    }
    finding
}
