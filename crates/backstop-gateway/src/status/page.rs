//! The page: HTML that is whole by itself, its style, and the few lines that renew it in place.
//!
//! Whatever comes from the policy or from requests is escaped by the template. Nothing is loaded from elsewhere, and the browser is
//! told to refuse it: [`POLICY`].

use std::sync::LazyLock;

use askama::Template;
use backstop_chart::COLOURS;

use super::curves::Curves;
use super::sentence::{time, why};
use super::view::{DependencyStanding, DependencyView, IncidentView, Outcomes, Overall, RouteView, View};
use super::words::{lasts, seconds};

/// What a browser may do with the page.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// What renews the page in place.
pub(crate) const SCRIPT: &str = include_str!("../../templates/status.js");
/// How it looks.
pub(crate) static STYLE: LazyLock<String> =
    LazyLock::new(|| format!("{COLOURS}\n{}", include_str!("../../templates/status.css")));

/// Routes in order that are listed without a fold.
const OPEN_ROUTES: usize = 12;

#[derive(Template)]
#[template(path = "status.html")]
struct Page<'a> {
    view: &'a View,
    curves: &'a Curves,
    /// Routes that somebody should look at.
    worst: Vec<Card<'a>>,
    /// All others.
    others: Vec<Card<'a>>,
    is_folded: bool,
    /// Whether what caused the state comes back, where the state's own word does not say so.
    is_coming_back: bool,
    dependencies: Vec<Called<'a>>,
    /// Whether one of them needs attention, or did a moment ago.
    has_cause: bool,
    incidents: Vec<Line<'a>>,
}

struct Card<'a> {
    route: &'a RouteView,
    why: Option<String>,
    since: Option<String>,
    lasts: Option<String>,
    ages: Option<String>,
    coverage: Option<String>,
    shares: String,
}

struct Called<'a> {
    one: &'a DependencyView,
    phase: String,
    /// Its state as the style knows it.
    tone: String,
    /// The same of the card around it.
    edge: &'static str,
    since: String,
    lasts: String,
    receives: String,
    failures: String,
    picture: Option<&'a backstop_chart::Svg>,
    shares: Option<String>,
}

struct Line<'a> {
    one: &'a IncidentView,
    began: String,
    ended: Option<String>,
    lasts: String,
}

pub(super) fn render(view: &View, curves: &Curves) -> Result<String, askama::Error> {
    let cards = |attention: bool| -> Vec<Card<'_>> {
        let own =
            view.routes.iter().enumerate().filter(|(_, route)| route.state.needs_attention() == attention);
        own.map(|(index, route)| card(view, index, route)).collect()
    };
    let mut worst = cards(true);
    worst.sort_by_key(|card| std::cmp::Reverse(card.route.state));
    let others = cards(false);
    let is_folded = others.len() > OPEN_ROUTES;
    let dependencies: Vec<_> = view.dependencies.iter().map(|one| called(one, curves)).collect();
    let has_cause = dependencies.iter().any(|one| one.one.state.needs_attention() || one.picture.is_some());
    let incidents = view.incidents.iter().map(|one| Line {
        one,
        began: one.began.replace('T', " ").split('.').next().unwrap_or_default().to_owned(),
        ended: one.ended.as_deref().map(time),
        lasts: lasts(one.seconds),
    });
    let is_coming_back = view.state != Overall::Recovering
        && view.dependencies.iter().any(|one| one.state == DependencyStanding::Recovering);
    Page {
        view,
        curves,
        worst,
        others,
        is_folded,
        is_coming_back,
        dependencies,
        has_cause,
        incidents: incidents.collect(),
    }
    .render()
}

fn card<'a>(view: &View, index: usize, route: &'a RouteView) -> Card<'a> {
    Card {
        route,
        why: why(view, route),
        since: route.since.as_deref().map(time),
        lasts: route.since_seconds.map(lasts),
        ages: route.copy_ages.map(|ages| {
            format!(
                "half at most {}, the oldest {}",
                seconds(ages.median_at_most_seconds),
                seconds(ages.oldest_seconds)
            )
        }),
        coverage: route.coverage.map(|ratio| format!("{} %", (ratio * 100.0).round())),
        // Only a card shows it.
        shares: if route.state.needs_attention() {
            bar(&format!("r{index}"), &route.last_minute)
        } else {
            String::new()
        },
    }
}

fn called<'a>(one: &'a DependencyView, curves: &'a Curves) -> Called<'a> {
    let usual = one.usual_per_second.map(|usual| format!(", usually {usual:.1}")).unwrap_or_default();
    let kinds: Vec<_> = one.failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    Called {
        one,
        phase: one.phase.replace('_', " "),
        tone: one.state.word().replace(' ', "-"),
        edge: match one.state {
            DependencyStanding::Normal | DependencyStanding::Watched => "normal",
            DependencyStanding::Open => "refusing",
            DependencyStanding::Failing | DependencyStanding::Recovering | DependencyStanding::Held => {
                "degraded"
            }
        },
        since: time(&one.since),
        lasts: lasts(one.since_seconds),
        receives: format!("{:.1} calls/s{usual}", one.per_second),
        failures: if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") },
        picture: curves.dependencies.iter().find(|(name, _)| *name == one.name).map(|(_, picture)| picture),
        shares: (one.phase == "ramp" || one.phase == "half_open" || one.phase == "open")
            .then(|| format!("{} %", (one.share * 100.0).round())),
    }
}

/// The last minute's outcomes as one bar, and what its parts are: textures and words, not colours alone, tell them apart.
fn bar(id: &str, outcomes: &Outcomes) -> String {
    let all = outcomes.requests().max(1) as f64;
    let parts = [
        ("normal", "normal", outcomes.normal, ""),
        (
            "fallback",
            "from an alternative",
            outcomes.fallback,
            "<path d=\"M-1 5L5 -1\" stroke=\"var(--chart-ground)\"/>",
        ),
        (
            "rejected",
            "refused",
            outcomes.rejected,
            "<circle cx=\"2\" cy=\"2\" r=\"1\" fill=\"var(--chart-ground)\"/>",
        ),
        ("failed", "failed", outcomes.failed, "<path d=\"M0 2H4\" stroke=\"var(--chart-ground)\"/>"),
    ];
    let mut svg = String::from(
        "<svg class=\"bar\" viewBox=\"0 0 200 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
    );
    let mut key = String::from("<p class=\"key\"><span class=\"quiet-text\">Last minute</span>");
    let mut left = 0.0;
    for (name, word, count, mark) in parts {
        let width = count as f64 / all * 200.0;
        svg.push_str(&format!(
            "<pattern id=\"{id}{name}\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"4\" height=\"4\" fill=\"var(--chart-{name})\"/>{mark}</pattern>\
             <rect x=\"{left:.1}\" width=\"{width:.1}\" height=\"10\" fill=\"url(#{id}{name})\"/>"
        ));
        key.push_str(&format!(
            " <span class=\"part\"><svg width=\"12\" height=\"12\" aria-hidden=\"true\">\
             <rect width=\"12\" height=\"12\" fill=\"url(#{id}{name})\"/></svg>{count} {word}</span>"
        ));
        left += width;
    }
    svg.push_str("</svg>");
    key.push_str("</p>");
    svg + &key
}

/// Seconds from one date of this gateway to a later one. Dates have one form: `2026-01-31T23:59:59.999Z`.
pub(super) fn ago(earlier: &str, later: &str) -> Option<u64> {
    let seconds = |date: &str| -> Option<i64> {
        let number = |from: usize, to: usize| date.get(from..to)?.parse::<i64>().ok();
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let time = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
        // Days from March of year 0, so that the leap day is a year's last.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
        Some(days * 86_400 + time)
    };
    u64::try_from(seconds(later)? - seconds(earlier)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `date -u -d`: 2026-02-28T23:59:50Z to 2026-03-01T00:00:05Z, and a leap day.
    #[test]
    fn dates_are_told_apart_over_the_end_of_a_month() {
        assert_eq!(ago("2026-02-28T23:59:50.000Z", "2026-03-01T00:00:05.999Z"), Some(15));
        assert_eq!(ago("2024-02-28T00:00:00.000Z", "2024-03-01T00:00:00.000Z"), Some(2 * 86_400));
        assert_eq!(ago("2026-03-01T00:00:05.000Z", "2026-03-01T00:00:00.000Z"), None);
        assert_eq!(ago("yesterday", "2026-03-01T00:00:00.000Z"), None);
    }

    #[test]
    fn the_script_is_small_and_asks_nobody_else() {
        assert!(SCRIPT.len() <= 3 * 1024, "{}", SCRIPT.len());
        for text in [SCRIPT, &STYLE] {
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"));
        }
    }
}
