//! What was counted over time, in a fixed amount of memory: a quarter of an hour by the second, and an hour by ten seconds.

use std::collections::{BTreeMap, VecDeque};

use backstop_engine::incident::Counts;
use backstop_engine::time::Mono;

use super::view::{DependencyHistory, FunctionHistory, HistoryView};

/// Seconds that are kept one by one.
pub(super) const FINE: u64 = 900;
/// The longer steps, in seconds.
pub(super) const STEP: u64 = 10;
/// How many of them are kept: an hour.
const STEPS: u64 = 360;

/// What was counted in one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Slice {
    /// The number of the stretch, counted from boot.
    pub(super) number: u64,
    /// In the order of the functions.
    pub(super) functions: Vec<Counts>,
    /// In the order of the dependencies.
    pub(super) dependencies: Vec<Calls>,
}

/// One dependency in a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) calls: u32,
    pub(super) failures: u32,
    /// What it was given at the end, per second; none where it was not held back or that is not known.
    pub(super) allowed: Option<f32>,
}

/// Slices of equal length, the newest last.
#[derive(Debug)]
struct Ring {
    most: u64,
    slices: VecDeque<Slice>,
}

/// Both.
#[derive(Debug)]
pub(super) struct History {
    fine: Ring,
    coarse: Ring,
}

impl History {
    pub(super) fn new() -> Self {
        let ring = |most| Ring { most, slices: VecDeque::new() };
        Self { fine: ring(FINE), coarse: ring(STEPS) }
    }

    /// Adds what was counted until `at`.
    pub(super) fn push(&mut self, at: Mono, functions: &[Counts], dependencies: &[Calls]) {
        // What was counted until the full second belongs to the one before it.
        let second = at.as_ns().saturating_sub(1) / 1_000_000_000;
        self.fine.push(second, functions, dependencies);
        self.coarse.push(second / STEP, functions, dependencies);
    }

    /// The quarter of an hour before `at`: each second's slice with its age in seconds, the oldest first. Seconds in which nothing was
    /// counted are absent.
    pub(super) fn fine(&self, at: Mono) -> impl Iterator<Item = (u64, &Slice)> {
        let now = at.as_ns() / 1_000_000_000;
        self.fine
            .slices
            .iter()
            .filter_map(move |slice| Some((now.checked_sub(slice.number)?, slice)))
            .filter(|(age, _)| *age <= FINE)
    }

    /// The hour before `at`.
    pub(super) fn view(
        &self,
        at: Mono,
        until: String,
        functions: &[Box<str>],
        dependencies: &[Box<str>],
    ) -> HistoryView {
        let last = at.as_ns().saturating_sub(1) / 1_000_000_000 / STEP;
        let first = (last + 1).saturating_sub(STEPS);
        let length = usize::try_from(last + 1 - first).unwrap_or_default();
        let mut view = HistoryView {
            step_seconds: STEP,
            until,
            functions: named(functions, || FunctionHistory::of_length(length)),
            dependencies: named(dependencies, || DependencyHistory::of_length(length)),
        };
        for slice in &self.coarse.slices {
            let Some(place) = slice.number.checked_sub(first).and_then(|place| usize::try_from(place).ok())
            else {
                continue;
            };
            for (name, counts) in functions.iter().zip(&slice.functions) {
                if let Some(history) = view.functions.get_mut(&**name) {
                    set(&mut history.completed, place, counts.completed());
                    set(&mut history.reduced, place, counts.reduced());
                    set(&mut history.not_completed, place, counts.not_completed());
                }
            }
            for (name, calls) in dependencies.iter().zip(&slice.dependencies) {
                if let Some(history) = view.dependencies.get_mut(&**name) {
                    set(&mut history.calls, place, u64::from(calls.calls));
                    set(&mut history.failures, place, u64::from(calls.failures));
                    set(&mut history.allowed_per_second, place, calls.allowed.map(f64::from));
                }
            }
        }
        view
    }
}

impl Ring {
    fn push(&mut self, number: u64, functions: &[Counts], dependencies: &[Calls]) {
        match self.slices.back_mut().filter(|last| last.number == number) {
            Some(last) => last.add(functions, dependencies),
            None => {
                let first = number.saturating_sub(self.most);
                while self.slices.front().is_some_and(|slice| slice.number <= first)
                    || self.slices.len() as u64 >= self.most
                {
                    self.slices.pop_front();
                }
                let (functions, dependencies) = (functions.to_vec(), dependencies.to_vec());
                self.slices.push_back(Slice { number, functions, dependencies });
            }
        }
    }
}

impl Slice {
    fn add(&mut self, functions: &[Counts], dependencies: &[Calls]) {
        self.functions.iter_mut().zip(functions).for_each(|(sum, more)| sum.merge(more));
        for (sum, more) in self.dependencies.iter_mut().zip(dependencies) {
            sum.calls = sum.calls.saturating_add(more.calls);
            sum.failures = sum.failures.saturating_add(more.failures);
            sum.allowed = more.allowed;
        }
    }
}

fn named<T>(names: &[Box<str>], of: impl Fn() -> T) -> BTreeMap<String, T> {
    names.iter().map(|name| (name.to_string(), of())).collect()
}

fn set<T>(list: &mut [T], place: usize, value: T) {
    if let Some(slot) = list.get_mut(place) {
        *slot = value;
    }
}

impl FunctionHistory {
    fn of_length(length: usize) -> Self {
        Self { completed: vec![0; length], reduced: vec![0; length], not_completed: vec![0; length] }
    }
}

impl DependencyHistory {
    fn of_length(length: usize) -> Self {
        Self { calls: vec![0; length], failures: vec![0; length], allowed_per_second: vec![None; length] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn counts(normal: u64) -> Vec<Counts> {
        vec![Counts { normal, ..Counts::default() }]
    }

    fn calls(calls: u32) -> Vec<Calls> {
        vec![Calls { calls, failures: 1, allowed: Some(2.5) }]
    }

    fn view(history: &History, second: u64) -> HistoryView {
        history.view(Mono::from_ns(second * SECOND), String::new(), &["browse".into()], &["catalog".into()])
    }

    /// By hand: what was counted until second 4010 belongs to the step 4000 to 4010, and what came after it to the next one.
    #[test]
    fn a_step_ends_with_its_full_second() {
        let mut history = History::new();
        for (second, count) in [(4001, 1), (4010, 2), (4011, 4)] {
            history.push(Mono::from_ns(second * SECOND), &counts(count), &calls(count as u32));
        }
        let shown = view(&history, 4011);
        let completed = &shown.functions["browse"].completed;
        assert_eq!((completed.len(), &completed[358..]), (360, &[3, 4][..]));
        let catalog = &shown.dependencies["catalog"];
        assert_eq!((&catalog.calls[358..], &catalog.failures[358..]), (&[3, 4][..], &[2, 1][..]));
        assert_eq!(&catalog.allowed_per_second[357..], [None, Some(2.5), Some(2.5)]);
    }

    #[test]
    fn an_hour_is_kept_and_not_a_step_more() {
        let mut history = History::new();
        history.push(Mono::from_ns(4000 * SECOND), &counts(1), &calls(1));
        assert_eq!(view(&history, 7590).functions["browse"].completed.first(), Some(&1));
        assert_eq!(view(&history, 7591).functions["browse"].completed.iter().sum::<u64>(), 0);
    }

    #[test]
    fn memory_is_bounded_however_long_it_runs() {
        let mut history = History::new();
        for second in 1..10_000 {
            history.push(Mono::from_ns(second * SECOND), &counts(1), &calls(1));
        }
        assert_eq!((history.fine.slices.len() as u64, history.coarse.slices.len() as u64), (FINE, STEPS));
        assert_eq!(history.fine(Mono::from_ns(9_999 * SECOND)).count() as u64, FINE);
    }
}
