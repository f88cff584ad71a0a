//! Whether an incident begins, and when it did: some of it has happened by the time it is certain.

use std::cmp::Reverse;

use crate::time::Mono;

use super::baseline::Baseline;
use super::bounds::{BAD_MIN, Ratio};
use super::judge::breakers;
use super::sample::Counts;
use super::signal::Signals;
use super::window::{Second, Window, sum};

/// Seconds for which a ratio must be out of bounds, counted over those that had requests.
pub(super) const HOLD_SECONDS: usize = 3;
/// Requests in these seconds below which they say nothing, and traffic is called low.
pub(super) const REQUESTS_MIN: u64 = 20;

/// What an incident begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The first second that belongs to it.
    pub(super) from: Mono,
    /// What was seen.
    pub(super) signals: Signals,
}

/// What speaks for an incident in the last minute, if anything does.
pub(super) fn evidence(window: &Window, baseline: &Baseline) -> Option<Evidence> {
    let newest = window.newest()?;
    let mut signals = breakers(&newest.sample);
    let mut from = None;
    if !signals.is_green() {
        // What led to it is the unbroken run of seconds short of quality, if there is one.
        let run = first_of_run(window, Ratio::Quality, baseline);
        from = Some(run.unwrap_or(newest.at.mono));
    }
    for ratio in Ratio::ALL {
        if let Some(first) = held(window, ratio, baseline).or_else(|| gathered(window, ratio, baseline)) {
            signals = signals.with(ratio.signal());
            from = Some(from.map_or(first, |from| first.min(from)));
        }
    }
    from.map(|from| Evidence { from, signals })
}

/// Each of the last three seconds with requests is out of bounds, and together they are enough.
fn held(window: &Window, ratio: Ratio, baseline: &Baseline) -> Option<Mono> {
    let last = || with_requests(window).take(HOLD_SECONDS);
    let counts = sum(last());
    let holds = last().count() == HOLD_SECONDS
        && last().all(|second| ratio.is_out(second.counts(), baseline))
        && counts.requests() >= REQUESTS_MIN
        && ratio.bad(&counts) >= BAD_MIN;
    if holds { first_of_run(window, ratio, baseline) } else { None }
}

/// The last minute as a whole is out of bounds. One bad moment in busy traffic does not make a bad minute: it must be
/// out of bounds without its two worst seconds as well, unless there is too little traffic to tell.
fn gathered(window: &Window, ratio: Ratio, baseline: &Baseline) -> Option<Mono> {
    if !ratio.is_signal(&sum(window.back()), baseline) {
        return None;
    }
    let is_low = sum(window.back().take(HOLD_SECONDS)).requests() < REQUESTS_MIN;
    if !is_low && !ratio.is_out(&without_worst(window, ratio), baseline) {
        return None;
    }
    // It began with the first second that was out of bounds: there is one where they are out of bounds together.
    let out = window.back().filter(|second| ratio.is_out(second.counts(), baseline));
    out.last().map(|second| second.at.mono)
}

/// The minute without as many of its worst seconds as may be out of bounds by themselves.
fn without_worst(window: &Window, ratio: Ratio) -> Counts {
    let mut seconds: Vec<&Counts> = window.back().map(Second::counts).collect();
    seconds.sort_unstable_by_key(|counts| (Reverse(ratio.bad(counts)), counts.requests()));
    let mut rest = Counts::default();
    for counts in seconds.iter().skip(HOLD_SECONDS - 1) {
        rest.merge(counts);
    }
    rest
}

/// The first second of the unbroken run that is out of bounds until now.
fn first_of_run(window: &Window, ratio: Ratio, baseline: &Baseline) -> Option<Mono> {
    let run = with_requests(window).take_while(|second| ratio.is_out(second.counts(), baseline));
    run.last().map(|second| second.at.mono)
}

/// Newest first. A second without requests says nothing: it neither goes on with a run nor ends it.
fn with_requests(window: &Window) -> impl Iterator<Item = &Second> + Clone {
    window.back().filter(|second| second.counts().requests() > 0)
}
