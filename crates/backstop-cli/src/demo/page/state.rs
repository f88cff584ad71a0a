//! The one model that the page, its JSON and the account at the end show: nothing but counts.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::button::Button;
use super::judge::Verdict;
use super::record::{Book, Counted, Got, Kind, REMEMBERED, Side};
use super::wallet::{Payment, Standing};
use super::world::{Column, World};

/// Shares and latencies are of this time.
const RECENT: Duration = Duration::from_secs(10);
/// What is "now" is what most answers of this time were; where there were none, the last one.
const NOW: Duration = Duration::from_secs(1);
/// Answers in a strip.
const STRIP: usize = 60;

#[derive(Debug, Serialize)]
pub(super) struct State {
    pub(super) running_s: f64,
    /// The oldest copy of a product that the policy accepts.
    pub(super) max_age_s: f64,
    pub(super) faults: Vec<Fault>,
    /// The button that was pressed last.
    pub(super) last: Option<&'static str>,
    pub(super) plain: SideState,
    pub(super) backstop: SideState,
}

#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) is_broken: bool,
    pub(super) since_s: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct SideState {
    pub(super) name: &'static str,
    pub(super) last_10_s: Percents,
    pub(super) in_all: Percents,
    pub(super) rows: Vec<Row>,
    pub(super) database: DatabaseState,
    pub(super) account: AccountState,
    pub(super) payments: PaymentsState,
    /// How many answers of each verdict came in each of the last seconds, the oldest first.
    pub(super) seconds: Vec<Second>,
}

/// Whole percents, rounded down: 100 is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Percents {
    pub(super) answers: u64,
    pub(super) status_200_percent: u64,
    pub(super) normal_percent: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) now: Option<Answer>,
    /// The last answers, the oldest first.
    pub(super) strip: Vec<Answer>,
    /// Of the last ten seconds, those that there were.
    pub(super) shares: Vec<Share>,
    pub(super) oldest_copy_s: Option<f64>,
    pub(super) median_ms: Option<u64>,
    pub(super) slowest_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    pub(super) status: Option<u16>,
    pub(super) age_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Share {
    pub(super) verdict: Verdict,
    pub(super) answers: u64,
    pub(super) percent: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct DatabaseState {
    pub(super) queries_per_second: f64,
    pub(super) under_way: u32,
    pub(super) capacity: u32,
    /// What a query takes that nothing slows down.
    pub(super) query_ms: u64,
    pub(super) connections: u32,
    pub(super) refused: u64,
    pub(super) cold_percent: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct AccountState {
    pub(super) executed: u64,
    pub(super) without_a_yes: u64,
    /// Asked for since the login broke.
    pub(super) executed_while_broken: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct PaymentsState {
    pub(super) wanted: u64,
    /// What the payment service executed.
    pub(super) made: u64,
    pub(super) charged_twice: u64,
    /// The last one whose answer was lost.
    pub(super) lost: Option<Lost>,
}

#[derive(Debug, Serialize)]
pub(super) struct Lost {
    pub(super) key: String,
    /// Statuses, in order; `null` where there was no answer.
    pub(super) heard: Vec<Option<u16>>,
    /// What the client knew, in order; the last is what it knows.
    pub(super) states: Vec<Standing>,
    pub(super) made: u64,
}

/// When it began, in seconds before now, and how many of each verdict.
#[derive(Debug, Serialize)]
pub(super) struct Second {
    pub(super) at_s: f64,
    pub(super) answers: [u32; Verdict::ALL.len()],
}

/// What stands at a moment.
pub(super) fn of(world: &World, now: Instant) -> State {
    let broken = world.broken();
    let fault = |button: Button| {
        let since = broken.iter().find(|(one, _)| *one == button).map(|(_, since)| *since);
        Fault {
            name: button.slug(),
            is_broken: since.is_some(),
            since_s: since.map(|since| tenths(now.saturating_duration_since(since))),
        }
    };
    State {
        running_s: tenths(now.saturating_duration_since(world.begun)),
        max_age_s: world.max_age.as_secs_f64(),
        faults: Button::ALL.into_iter().filter(|button| button.stays()).map(fault).collect(),
        last: world.presses().last().map(|press| press.button.slug()),
        plain: side(world, Side::Plain, now),
        backstop: side(world, Side::Backstop, now),
    }
}

fn side(world: &World, side: Side, now: Instant) -> SideState {
    let column = world.column(side);
    let executed = column.services.executed();
    let (in_all, recent, rows, seconds) = column.record.look(|book| {
        let mut recent = Counted::default();
        book.within(now, RECENT).for_each(|got| recent.add(&got.judged));
        let rows = Kind::ALL.into_iter().map(|kind| row(book, kind, now)).collect();
        (book.in_all, recent, rows, seconds(book, world.begun, now))
    });
    SideState {
        name: match side {
            Side::Plain => "Plain proxy",
            Side::Backstop => "Backstop",
        },
        last_10_s: percents(&recent),
        in_all: percents(&in_all),
        rows,
        database: database(column),
        account: AccountState {
            executed: executed.in_all,
            without_a_yes: executed.without_a_yes,
            executed_while_broken: executed.while_broken,
        },
        payments: payments(column),
        seconds,
    }
}

fn row(book: &Book, kind: Kind, now: Instant) -> Row {
    let answer = |got: &Got| Answer {
        verdict: got.judged.verdict,
        status: got.judged.status,
        age_s: got.judged.age.map(tenths),
    };
    let since = |time| move |got: &&Got| now.saturating_duration_since(got.at) <= time;
    let recent: Vec<&Got> = book.of(kind).rev().take_while(since(RECENT)).collect();
    let count = |verdict| recent.iter().filter(|got| got.judged.verdict == verdict).count() as u64;
    let shares = Verdict::ALL.into_iter().map(|verdict| Share {
        verdict,
        answers: count(verdict),
        percent: count(verdict) * 100 / (recent.len() as u64).max(1),
    });
    let mut took: Vec<u64> = recent.iter().map(|got| millis(got.took)).collect();
    took.sort_unstable();
    let oldest = recent
        .iter()
        .filter(|got| got.judged.verdict == Verdict::Copy)
        .filter_map(|got| got.judged.age)
        .max();
    let mut strip: Vec<Answer> = book.of(kind).rev().take(STRIP).map(answer).collect();
    strip.reverse();
    Row {
        kind: kind.slug(),
        now: most(book.of(kind).rev().take_while(since(NOW))).or(book.of(kind).next_back()).map(answer),
        strip,
        shares: shares.filter(|share| share.answers > 0).collect(),
        oldest_copy_s: oldest.map(tenths),
        median_ms: took.get(took.len() / 2).copied(),
        slowest_ms: took.last().copied(),
    }
}

/// The newest answer of the verdict that most of them had; of two with as many, the worse one.
fn most<'a>(newest_first: impl Iterator<Item = &'a Got>) -> Option<&'a Got> {
    let all: Vec<&Got> = newest_first.collect();
    let count = |verdict| all.iter().filter(|got| got.judged.verdict == verdict).count();
    let verdict = Verdict::ALL.into_iter().max_by_key(|verdict| (count(*verdict), *verdict))?;
    all.iter().find(|got| got.judged.verdict == verdict).copied()
}

/// Whole seconds since the demo began, so that one that is over does not change any more.
fn seconds(book: &Book, begun: Instant, now: Instant) -> Vec<Second> {
    let running = now.saturating_duration_since(begun);
    let (last, kept) = (running.as_secs(), REMEMBERED.as_secs());
    let first = last.saturating_sub(kept.saturating_sub(1));
    let at_s = |second: u64| second as f64 - running.as_secs_f64();
    let mut seconds: Vec<Second> =
        (first..=last).map(|second| Second { at_s: at_s(second), answers: Default::default() }).collect();
    for got in book.within(now, REMEMBERED) {
        let second = got.at.saturating_duration_since(begun).as_secs().checked_sub(first);
        let second = second.and_then(|at| seconds.get_mut(usize::try_from(at).ok()?));
        if let Some(count) = second.and_then(|second| second.answers.get_mut(got.judged.verdict as usize)) {
            *count += 1;
        }
    }
    seconds
}

fn database(column: &Column) -> DatabaseState {
    let database = column.services.database();
    let (load, settings) = (database.load(), database.settings());
    DatabaseState {
        queries_per_second: (column.queries_per_second() * 10.0).round() / 10.0,
        under_way: load.under_way,
        capacity: settings.capacity,
        query_ms: millis(settings.query),
        connections: settings.connections,
        refused: load.refused,
        cold_percent: (load.cold * 100.0).round() as u64,
    }
}

fn payments(column: &Column) -> PaymentsState {
    let counts = column.services.payments().counts();
    let lost = |payment: Payment| Lost {
        made: counts.effects.get(&payment.key).copied().unwrap_or_default(),
        key: payment.key,
        heard: payment.heard,
        states: payment.states,
    };
    PaymentsState {
        wanted: column.wallet.wanted(),
        made: counts.effects_in_all(),
        charged_twice: counts.effects.values().filter(|made| **made > 1).count() as u64,
        lost: column.wallet.last_lost().map(lost),
    }
}

fn percents(counted: &Counted) -> Percents {
    let of = |part: u64| part * 100 / counted.answers.max(1);
    Percents {
        answers: counted.answers,
        status_200_percent: of(counted.status_200),
        normal_percent: of(counted.normal),
    }
}

fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).floor() / 10.0
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::judge::Judged;
    use super::super::record::Record;
    use super::*;

    fn got(at: Instant, verdict: Verdict, status: u16) -> Got {
        let judged = Judged { verdict, status: Some(status), age: Some(Duration::from_millis(4290)) };
        Got { at, judged, took: Duration::from_millis(7) }
    }

    #[test]
    fn shares_are_of_ten_seconds_and_now_is_what_most_got() {
        let now = Instant::now();
        let ago = |seconds| now - Duration::from_secs_f64(seconds);
        let record = Record::default();
        for (seconds, verdict, status) in [
            (11.0, Verdict::Normal, 200),
            (9.0, Verdict::Normal, 200),
            (0.9, Verdict::Error, 502),
            (0.5, Verdict::Copy, 200),
            (0.1, Verdict::Copy, 200),
        ] {
            record.count(Kind::Products, got(ago(seconds), verdict, status));
        }
        let row = record.look(|book| row(book, Kind::Products, now));
        assert_eq!(row.now, Some(Answer { verdict: Verdict::Copy, status: Some(200), age_s: Some(4.2) }));
        let shares: Vec<_> =
            row.shares.iter().map(|share| (share.verdict, share.answers, share.percent)).collect();
        assert_eq!(shares, [(Verdict::Normal, 1, 25), (Verdict::Copy, 2, 50), (Verdict::Error, 1, 25)]);
        assert_eq!((row.strip.len(), row.oldest_copy_s, row.median_ms), (5, Some(4.2), Some(7)));
        // Of five answers four had 200, and two were normal.
        let in_all = record.look(|book| percents(&book.in_all));
        assert_eq!(in_all, Percents { answers: 5, status_200_percent: 80, normal_percent: 40 });
    }

    #[test]
    fn a_second_that_is_over_does_not_change_any_more() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs_f64(seconds);
        let record = Record::default();
        for seconds in [0.2, 0.9, 1.1, 3.0] {
            record.count(Kind::Account, got(at(seconds), Verdict::Normal, 200));
        }
        for now in [3.1, 3.9] {
            let seconds = record.look(|book| seconds(book, begun, at(now)));
            let normal: Vec<u32> = seconds.iter().map(|second| second.answers[0]).collect();
            assert_eq!(normal, [2, 1, 0, 1], "at {now} s");
            assert!((seconds[0].at_s + now).abs() < 1e-6, "the first began with the demo");
        }
    }
}
