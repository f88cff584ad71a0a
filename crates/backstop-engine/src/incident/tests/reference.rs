//! The same rules once more, naively: everything is kept, and every tick looks at all of it again.

use crate::incident::{Counts, DependencyState, Latency, Phase, Sample, Signal};

const MS: u64 = 1_000_000;

/// One second that was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) at_ns: u64,
    pub(super) sample: Sample,
}

/// One incident that goes on.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    pub(super) began_ns: u64,
    pub(super) phase: Phase,
    pub(super) counts: Counts,
    pub(super) first_green_ns: Option<u64>,
    pub(super) full_ns: Option<u64>,
    /// Every tick since it began or since the last break: when, and what was not green.
    ticks: Vec<(u64, Vec<Signal>)>,
    /// For the same ticks: whether the last three seconds were within bounds, and whether they had enough requests.
    within: Vec<(u64, bool, bool)>,
    /// The share of the last ten seconds, where they had enough requests.
    shares: Vec<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Reference {
    told: Vec<Told>,
    /// What was told before this is no evidence any more.
    evidence_from: usize,
    /// What was told before this is in the baseline already, or will never be.
    usual_from: usize,
    usual: (f64, f64),
    /// Nothing was told since a restart.
    is_fresh: bool,
    pub(super) current: Option<Naive>,
    pub(super) ended: usize,
}

impl Reference {
    /// Nobody counted for a while; after a restart even the worst share is forgotten.
    pub(super) fn interrupt(&mut self, is_restart: bool) {
        self.evidence_from = self.told.len();
        self.usual_from = self.told.len();
        self.is_fresh = is_restart;
        if let Some(naive) = &mut self.current {
            naive.ticks.clear();
            naive.within.clear();
            if is_restart {
                naive.shares.clear();
            }
        }
    }

    pub(super) fn tick(&mut self, at_ns: u64, sample: &Sample) {
        let last = if self.is_fresh { None } else { self.told.last() };
        if last.is_some_and(|last| at_ns - last.at_ns > 5000 * MS) {
            self.interrupt(false);
        }
        self.is_fresh = false;
        self.told.push(Told { at_ns, sample: sample.clone() });
        self.learn();
        match self.current.take() {
            None => self.begin(),
            Some(naive) => self.go_on(naive),
        }
    }

    /// Seconds older than a minute become usual while there is no incident, and vanish while there is one.
    fn learn(&mut self) {
        let newest = self.told.len() - 1;
        let left = |told: &Told, place: usize| {
            self.told[newest].at_ns - told.at_ns >= 60_000 * MS || newest - place >= 60
        };
        while self.usual_from < newest && left(&self.told[self.usual_from], self.usual_from) {
            let counts = &self.told[self.usual_from].sample.counts;
            if self.current.is_none() {
                let kept = 1.0 - 1.0 / 3600.0;
                self.usual.0 = self.usual.0 * kept + counts.fallback as f64;
                self.usual.1 = self.usual.1 * kept + counts.requests() as f64;
            }
            self.usual_from += 1;
        }
    }

    fn minute(&self) -> &[Told] {
        &self.told[self.evidence_from.max(self.usual_from)..]
    }

    fn is_out(&self, signal: Signal, counts: &Counts) -> bool {
        let all = counts.requests() as f64;
        let usual = if self.usual.1 > 0.0 { self.usual.0 / self.usual.1 } else { 0.0 };
        bad(signal, counts) as f64
            > match signal {
                Signal::Fallback => (all / 200.0).max((usual + 0.001) * all),
                Signal::Refusals => all / 1000.0,
                _ => all / 100.0,
            }
    }

    fn ratios(&self, told: &[Told]) -> Vec<Signal> {
        let counts = total(told);
        let judged = [Signal::Quality, Signal::Fallback, Signal::Refusals, Signal::Errors];
        judged
            .into_iter()
            .filter(|&signal| bad(signal, &counts) >= 5 && self.is_out(signal, &counts))
            .collect()
    }

    /// The first second of an incident that begins now, if one does, and the ratios that speak for it.
    fn evidence(&self) -> Option<(u64, Vec<Signal>)> {
        let minute = self.minute();
        let asked: Vec<Told> =
            minute.iter().filter(|told| told.sample.counts.requests() > 0).cloned().collect();
        let run_of = |signal| {
            let good = asked.iter().rposition(|told| !self.is_out(signal, &told.sample.counts));
            asked.get(good.map_or(0, |place| place + 1)).map(|told| told.at_ns)
        };
        let newest = minute.last()?;
        let mut firsts = Vec::new();
        let mut signals = Vec::new();
        if newest.sample.dependencies.iter().any(|calls| calls.state != DependencyState::Closed) {
            firsts.push(run_of(Signal::Quality).unwrap_or(newest.at_ns));
        }
        for signal in [Signal::Quality, Signal::Fallback, Signal::Refusals, Signal::Errors] {
            let three = &asked[asked.len().saturating_sub(3)..];
            let counts = total(three);
            let held = three.len() == 3
                && three.iter().all(|told| self.is_out(signal, &told.sample.counts))
                && counts.requests() >= 20
                && bad(signal, &counts) >= 5;
            let mut sorted = minute.to_vec();
            sorted.sort_by_key(|told| {
                (bad(signal, &told.sample.counts), u64::MAX - told.sample.counts.requests())
            });
            sorted.truncate(sorted.len().saturating_sub(2));
            let is_low = total(&minute[minute.len().saturating_sub(3)..]).requests() < 20;
            let gathered =
                self.ratios(minute).contains(&signal) && (is_low || self.is_out(signal, &total(&sorted)));
            if held || gathered {
                signals.push(signal);
            }
            if held {
                firsts.extend(run_of(signal));
            } else if gathered {
                let first = minute.iter().find(|told| self.is_out(signal, &told.sample.counts));
                firsts.extend(first.map(|told| told.at_ns));
            }
        }
        Some((firsts.into_iter().min()?, signals))
    }

    fn begin(&mut self) {
        let Some((began_ns, mut signals)) = self.evidence() else { return };
        let its: Vec<Told> = self.minute().iter().filter(|told| told.at_ns >= began_ns).cloned().collect();
        let mut naive = Naive {
            began_ns,
            phase: Phase::Degraded,
            counts: total(&its),
            first_green_ns: None,
            full_ns: None,
            ticks: Vec::new(),
            within: Vec::new(),
            shares: Vec::new(),
        };
        signals.extend(self.judge(&mut naive));
        note(&mut naive, self.told.last().unwrap().at_ns, &signals);
        naive.ticks.clear();
        self.current = Some(naive);
    }

    fn go_on(&mut self, mut naive: Naive) {
        let newest = self.told.last().unwrap();
        naive.counts.merge(&newest.sample.counts);
        let signals = self.judge(&mut naive);
        note(&mut naive, newest.at_ns, &signals);
        naive.ticks.push((newest.at_ns, signals.clone()));
        naive.phase = self.next(&mut naive, &signals);
        if naive.phase == Phase::Ended {
            self.ended += 1;
            self.evidence_from = self.told.len();
            self.usual_from = self.told.len();
        } else {
            self.current = Some(naive);
        }
    }

    fn judge(&self, naive: &mut Naive) -> Vec<Signal> {
        let minute = self.minute();
        let newest = minute.last().unwrap();
        let three = &minute[minute.len().saturating_sub(3)..];
        let mut signals = Vec::new();
        for calls in &newest.sample.dependencies {
            match calls.state {
                DependencyState::Closed => {}
                DependencyState::Open => signals.push(Signal::BreakerOpen),
                DependencyState::Forced => signals.push(Signal::Forced),
                DependencyState::HalfOpen | DependencyState::Ramp { .. } => signals.push(Signal::Returning),
            }
        }
        let short = self.ratios(three);
        let is_within = signals.is_empty() && short.is_empty();
        naive.within.push((newest.at_ns, is_within, total(three).requests() >= 20));
        let run = naive.within.rsplit(|&(_, is_within, _)| !is_within).next().unwrap();
        let came_back = run.len() < naive.within.len();
        let back = run.iter().find(|&&(_, _, enough)| came_back && enough);
        let since = back.map_or(0, |&(at_ns, ..)| at_ns);
        let lately: Vec<Told> = minute.iter().filter(|told| told.at_ns >= since).cloned().collect();
        signals.extend(short);
        signals.extend(self.ratios(&lately));
        if newest.sample.dependencies.iter().any(|calls| calls.latency != Latency::Green) {
            signals.push(Signal::Latency);
        }
        signals
    }

    fn next(&self, naive: &mut Naive, signals: &[Signal]) -> Phase {
        let minute = self.minute();
        let ten = total(&minute[minute.len().saturating_sub(10)..]);
        let enough = ten.requests() >= 20;
        let share = (ten.fallback + ten.rejected + ten.failed) as f64 / ten.requests().max(1) as f64;
        if enough {
            naive.shares.push(share);
        }
        let worst = naive.shares.iter().copied().fold(0.0, f64::max);
        let has = |wanted: &[Signal]| signals.iter().any(|signal| wanted.contains(signal));
        let phase = naive.phase;
        let recovers = if has(&[Signal::BreakerOpen, Signal::Forced]) {
            false
        } else if has(&[Signal::Returning])
            || !has(&[Signal::Quality, Signal::Fallback, Signal::Refusals, Signal::Errors])
        {
            true
        } else if !enough {
            phase != Phase::Degraded
        } else {
            share <= worst * if phase == Phase::Degraded { 0.5 } else { 0.75 }
        };
        let back = if recovers { Phase::Recovering } else { Phase::Degraded };
        let now_ns = naive.ticks.last().unwrap().0;
        let lasted = |green: bool| {
            let run = naive.ticks.rsplit(|(_, signals)| signals.is_empty() != green).next().unwrap();
            run.first().map_or(0, |&(first_ns, _)| now_ns - first_ns)
        };
        match phase {
            Phase::Recovering if signals.is_empty() => Phase::Observing,
            Phase::Degraded | Phase::Recovering => back,
            _ if signals.is_empty() && lasted(true) >= 300_000 * MS => Phase::Ended,
            _ if has(&[Signal::BreakerOpen, Signal::Forced, Signal::Returning]) => back,
            _ if lasted(false) > 10_000 * MS => back,
            _ => Phase::Observing,
        }
    }
}

fn note(naive: &mut Naive, at_ns: u64, signals: &[Signal]) {
    if signals.is_empty() {
        naive.first_green_ns.get_or_insert(at_ns);
    }
    let broken = [Signal::BreakerOpen, Signal::Returning, Signal::Forced, Signal::Quality];
    if signals.iter().any(|signal| broken.contains(signal)) {
        naive.full_ns = None;
    } else {
        naive.full_ns.get_or_insert(at_ns);
    }
}

fn bad(signal: Signal, counts: &Counts) -> u64 {
    match signal {
        Signal::Fallback => counts.fallback,
        Signal::Refusals => counts.rejected,
        Signal::Errors => counts.failed,
        _ => counts.fallback + counts.rejected + counts.failed,
    }
}

fn total(told: &[Told]) -> Counts {
    let mut total = Counts::default();
    told.iter().for_each(|told| total.merge(&told.sample.counts));
    total
}
