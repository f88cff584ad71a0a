//! What the page says.

use super::super::button::Button;
use super::super::judge::Verdict;
use super::super::state::{Lost, Row, SideState, State};
use super::super::wallet::Standing;
use super::super::{judge, traffic};
use super::{Cell, Gauge};

/// What a row says first.
pub(super) struct Now {
    pub(super) tone: &'static str,
    pub(super) headline: String,
    pub(super) detail: String,
    /// Of a copy.
    pub(super) age_s: Option<f64>,
}

/// The title of a row, and what is asked for.
pub(super) fn row(kind: &str) -> (&'static str, String) {
    let each = |rate: u32, what: &str| format!("{rate} a second, {what}");
    match kind {
        "products" => (
            "Products",
            each(traffic::PRODUCTS_PER_SECOND, "in two languages, from the catalog\u{2019}s database"),
        ),
        "reviews" => (
            "Reviews",
            each(traffic::REVIEWS_PER_SECOND, "from a shared cache in front of the same database"),
        ),
        "recommendations" => {
            ("Recommendations", each(traffic::RECOMMENDATIONS_PER_SECOND, "from a service of their own"))
        }
        "account" => (
            "Account",
            each(traffic::ACCOUNT_PER_SECOND, "a protected operation: another service says who may"),
        ),
        _ => (
            "Payments",
            format!(
                "one in {} s; clients repeat once, with the same key, where they hear nothing or an error",
                traffic::PAYMENT_EVERY.as_secs_f64()
            ),
        ),
    }
}

/// What is broken, for people and for screen readers: nothing in it counts.
pub(super) fn broken(state: &State) -> String {
    let broken = state.faults.iter().filter(|fault| fault.is_broken);
    let names: Vec<&str> = broken.filter_map(|fault| Button::of(fault.name)).map(Button::short).collect();
    if names.is_empty() {
        "Nothing is broken.".to_owned()
    } else {
        format!("Broken now: {}.", names.join(", "))
    }
}

pub(super) fn tone(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Normal => "normal",
        Verdict::Copy => "copy",
        Verdict::Prepared => "prepared",
        Verdict::Slow => "slow",
        Verdict::Refused => "refused",
        Verdict::Error => "error",
        Verdict::Nothing => "nothing",
    }
}

pub(super) fn now(row: &Row, max_age_s: f64) -> Now {
    let Some(now) = row.now else {
        let headline = "\u{2026}".to_owned();
        return Now { tone: "quiet", headline, detail: "nothing was asked for yet".to_owned(), age_s: None };
    };
    let status = now.status.map_or(String::new(), |status| format!(" {status}"));
    let (headline, detail) = match now.verdict {
        Verdict::Normal => ("Normal".to_owned(), String::new()),
        Verdict::Copy => (
            format!("Old copy, {} s", seconds(now.age_s.unwrap_or_default())),
            format!("at most {max_age_s} s"),
        ),
        Verdict::Prepared => ("General answer".to_owned(), "prepared beforehand".to_owned()),
        Verdict::Slow => ("Slow".to_owned(), format!("over {} s", judge::SLOW.as_secs())),
        Verdict::Refused => (format!("Refused:{status}"), "at once".to_owned()),
        Verdict::Error => (format!("Error:{status}"), String::new()),
        Verdict::Nothing => {
            (format!("No answer in {} s", judge::PATIENCE.as_secs()), "the client gave up".to_owned())
        }
    };
    Now {
        tone: tone(now.verdict),
        headline,
        detail,
        age_s: now.age_s.filter(|_| now.verdict == Verdict::Copy),
    }
}

pub(super) fn shares(row: &Row) -> String {
    let shares: Vec<String> =
        row.shares.iter().map(|share| format!("{} % {}", share.percent, share.verdict.word())).collect();
    match (row.median_ms, row.slowest_ms) {
        (Some(median), Some(slowest)) => {
            format!("{}. Median {median} ms, slowest {slowest} ms.", shares.join(", "))
        }
        _ => "Nothing in the last 10 s.".to_owned(),
    }
}

/// What services themselves counted.
pub(super) fn further(side: &SideState, row: &Row) -> Vec<String> {
    match row.kind {
        "account" => {
            let account = &side.account;
            let mut said = vec![format!("Executed without a yes: {}", account.without_a_yes)];
            if let Some(executed) = account.executed_while_broken {
                said.insert(0, format!("Operations executed since login broke: {executed}"));
            }
            said
        }
        "payments" => {
            let payments = &side.payments;
            let mut said = vec![format!(
                "Wanted {}, made {}, charged twice: {}",
                payments.wanted, payments.made, payments.charged_twice
            )];
            said.extend(payments.lost.as_ref().map(lost));
            said
        }
        _ => Vec::new(),
    }
}

fn lost(lost: &Lost) -> String {
    let heard: Vec<String> = lost
        .heard
        .iter()
        .map(|status| status.map_or_else(|| "nothing".to_owned(), |status| status.to_string()))
        .collect();
    let knew: Vec<&str> =
        lost.states.iter().filter(|state| **state != Standing::Asked).map(|state| state.word()).collect();
    format!(
        "Lost answer ({}): heard {}; {}; made {}",
        lost.key,
        heard.join(", then "),
        knew.join(" \u{2192} "),
        match lost.made {
            0 => "not yet".to_owned(),
            1 => "once".to_owned(),
            times => format!("{times} times"),
        }
    )
}

pub(super) fn database(side: &SideState, is_down: bool) -> Cell {
    let database = &side.database;
    let is_over = database.under_way > database.capacity;
    let mut further = Vec::new();
    if database.cold_percent > 0 {
        further.push(format!("Its memory is {} % cold", database.cold_percent));
    }
    if database.refused > 0 {
        further.push(format!("It refused {} queries: no connection left", database.refused));
    }
    Cell {
        side: side.name,
        tone: match (is_down, is_over) {
            (true, _) => "quiet",
            (false, true) => "error",
            (false, false) => "normal",
        },
        headline: format!("{:.0} queries/s", database.queries_per_second),
        detail: match (is_down, is_over) {
            (true, _) => "it is down".to_owned(),
            (false, true) => {
                format!("{} at once, {} are borne: overloaded", database.under_way, database.capacity)
            }
            (false, false) => format!("{} at once, {} are borne", database.under_way, database.capacity),
        },
        gauge: Some(Gauge {
            label: format!("queries at once; the database bears {}", database.capacity),
            value: f64::from(database.under_way),
            most: f64::from(database.connections),
            high: f64::from(database.capacity),
        }),
        strip: String::new(),
        shares: String::new(),
        further,
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1}")
}
