//! One screen: the sentence first, then what needs attention, then the rest as far as there is room.

use backstop_gateway::status::{DependencyView, Overall, RouteState, RouteView, RungKind, View};

use crate::harmless::harmless;

/// How much a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

impl Size {
    /// That of the terminal, or the usual 80 by 24 where there is none that says.
    pub(super) fn of_terminal() -> Self {
        let found = terminal_size::terminal_size();
        let (columns, lines) = found.map_or((80, 24), |(width, height)| (width.0, height.0));
        Self { columns: usize::from(columns).max(40), lines: usize::from(lines).max(10) }
    }
}

/// The narrowest that a cell becomes.
const NARROW: usize = 6;

/// What a line says to the eye beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Bold,
    Soft,
    Good,
    Fair,
    Bad,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Bold => "\u{1b}[1m",
            Tone::Soft => "\u{1b}[2m",
            Tone::Good => "\u{1b}[32m",
            Tone::Fair => "\u{1b}[33m",
            Tone::Bad => "\u{1b}[31m",
        }
    }
}

type Line = (Tone, String);

/// The whole screen.
pub(super) fn screen(view: &View, size: Size, colour: bool) -> String {
    let mut lines = head(view, size);
    let mut routes: Vec<&RouteView> = view.routes.iter().collect();
    routes.sort_by_key(|route| std::cmp::Reverse(route.state));
    let mut dependencies: Vec<&DependencyView> = view.dependencies.iter().collect();
    dependencies.sort_by_key(|one| !one.state.needs_attention());
    let tail = tail(view, size);
    // Two headings and two blank lines between the three parts; dependencies first, because they are the cause.
    let room = size.lines.saturating_sub(lines.len() + tail.len() + 5);
    let least = room.saturating_sub(dependencies.len()).max(room / 2);
    let shown_routes = routes.len().min(least.max(1));
    let shown_dependencies = dependencies.len().min(room.saturating_sub(shown_routes).max(1));
    lines.push((Tone::Plain, String::new()));
    lines.extend(of_routes(view, &routes, shown_routes, size));
    lines.push((Tone::Plain, String::new()));
    lines.extend(of_dependencies(&dependencies, shown_dependencies, size));
    if !tail.is_empty() {
        lines.push((Tone::Plain, String::new()));
        lines.extend(tail);
    }
    written(&lines, size, colour)
}

/// What stands above a screen that is from before.
pub(super) fn gone(view: &View, why: &str, size: Size) -> String {
    let text = format!("{why}. Since {} UTC nothing was heard; what follows is from then.", time(&view.at));
    written(&[(Tone::Bold, text)], size, false)
}

fn head(view: &View, size: Size) -> Vec<Line> {
    let tone = match view.state {
        Overall::Normal => Tone::Good,
        Overall::Watched | Overall::Recovering | Overall::Degraded => Tone::Fair,
        Overall::Refusing | Overall::Draining => Tone::Bad,
    };
    let gateway = &view.gateway;
    let observed = if gateway.mode == "observe" { "  observing only" } else { "" };
    let first = format!(
        "{}  {}  {} UTC  up {}  in flight {}/{}{observed}",
        view.state.word().to_uppercase(),
        gateway.name,
        time(&view.at),
        lasts(gateway.uptime_seconds),
        gateway.in_flight.now,
        gateway.in_flight.limit,
    );
    let mut lines = vec![(tone, first)];
    lines.extend(wrapped(&view.sentence, size.columns).into_iter().map(|line| (Tone::Bold, line)));
    for warning in &gateway.warnings {
        lines.push((Tone::Fair, format!("warning: {warning}")));
    }
    for one in &view.functions {
        let last = one.last_ten_seconds;
        let line = if last.requests() == 0 {
            format!("{:<16} no request in the last 10 s", one.name)
        } else {
            format!(
                "{:<16} {:>3} % completed  {:>3} % reduced  {:>3} % not completed (10 s)",
                one.name,
                last.percent(last.normal),
                last.percent(last.fallback),
                last.percent(last.not_completed()),
            )
        };
        lines.push((tone_of(one.state), line));
    }
    lines
}

fn of_routes(view: &View, routes: &[&RouteView], shown: usize, size: Size) -> Vec<Line> {
    const HEAD: [&str; 7] = ["ROUTE", "STATE", "FROM", "SINCE", "REASON", "BUSY", "OLDEST"];
    let rows = routes.iter().take(shown).map(|route| {
        let used = route
            .ladder
            .iter()
            .find(|rung| rung.is_in_use)
            .map_or("-", |rung| if rung.kind == RungKind::Refusal { "a status" } else { &rung.name });
        let oldest = route.copy_ages.map_or("-".to_owned(), |ages| format!("{:.1} s", ages.oldest_seconds));
        let cells = [
            route.name.clone(),
            route.state.word().to_owned(),
            used.to_owned(),
            route.since.as_deref().map_or("-".into(), time),
            route.reason.clone().unwrap_or_else(|| "-".into()),
            format!("{}/{}", route.in_flight.now, route.in_flight.limit),
            oldest,
        ];
        (tone_of(route.state), cells)
    });
    let rows: Vec<_> = rows.collect();
    let mut lines = table(&HEAD, &rows, size);
    let rest = view.routes.len().saturating_sub(shown);
    if rest > 0 {
        lines.push((Tone::Soft, format!("and {rest} more")));
    }
    lines
}

fn of_dependencies(all: &[&DependencyView], shown: usize, size: Size) -> Vec<Line> {
    const HEAD: [&str; 7] = ["DEPENDENCY", "STATE", "BREAKER", "SINCE", "RECEIVES", "GIVEN", "FAILURES/MIN"];
    let rows = all.iter().take(shown).map(|one| {
        let usual = one.usual_per_second.map(|usual| format!(" of {usual:.0}")).unwrap_or_default();
        let kinds: Vec<_> = one.failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let cells = [
            one.name.clone(),
            one.state.word().to_owned(),
            one.phase.replace('_', " "),
            time(&one.since),
            format!("{:.1}/s{usual}", one.per_second),
            format!("{:.0} %", one.share * 100.0),
            if kinds.is_empty() { "-".to_owned() } else { kinds.join(", ") },
        ];
        (if one.state.needs_attention() { Tone::Fair } else { Tone::Plain }, cells)
    });
    let rows: Vec<_> = rows.collect();
    let mut lines = table(&HEAD, &rows, size);
    if all.len() > shown {
        lines.push((Tone::Soft, format!("and {} more", all.len() - shown)));
    }
    lines
}

fn tail(view: &View, size: Size) -> Vec<Line> {
    let mut lines = Vec::new();
    if !view.resources.is_empty() {
        let one = |one: &backstop_gateway::status::ResourceView| {
            let limit = one.limit.map(|limit| format!("/{limit}")).unwrap_or_default();
            format!("{} {}{limit}", one.name, one.in_use)
        };
        lines.push(format!("resources   {}", joined(view.resources.iter().map(one))));
    }
    if let Some(operations) = &view.operations {
        let states = operations.states.iter().filter(|(_, count)| **count > 0);
        let states = joined(states.map(|(state, count)| format!("{count} {}", state.replace('_', " "))));
        lines.push(format!("operations  {}", if states.is_empty() { "none".into() } else { states }));
    }
    for one in view.incidents.iter().take(2) {
        let cause = one.cause.as_ref().map(|cause| format!(", {cause}")).unwrap_or_default();
        let lost =
            format!("{} reduced, {} not completed", one.requests.fallback, one.requests.not_completed());
        let lasted = lasts(one.seconds);
        lines.push(format!("incident    {} {} for {lasted}{cause}; {lost}", one.id, one.phase));
    }
    lines.into_iter().map(|line| (Tone::Plain, cut(&line, size.columns))).collect()
}

const fn tone_of(state: RouteState) -> Tone {
    match state {
        RouteState::Quiet => Tone::Soft,
        RouteState::Normal => Tone::Plain,
        RouteState::Degraded => Tone::Fair,
        RouteState::Refusing => Tone::Bad,
    }
}

/// Columns as wide as their cells; where that is too wide, the widest one gives way.
fn table<const N: usize>(head: &[&str; N], rows: &[(Tone, [String; N])], size: Size) -> Vec<Line> {
    let mut widths = head.map(|name| name.chars().count());
    for (_, cells) in rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    while widths.iter().sum::<usize>() + 2 * N > size.columns + 2 {
        match widths.iter_mut().max().filter(|widest| **widest > NARROW) {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{:<width$}", cut(cell, width)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let first = (Tone::Soft, line(&head.map(str::to_owned)));
    std::iter::once(first).chain(rows.iter().map(|(tone, cells)| (*tone, line(cells)))).collect()
}

fn written(lines: &[Line], size: Size, colour: bool) -> String {
    let mut out = String::new();
    for (tone, line) in lines.iter().take(size.lines.saturating_sub(1)) {
        // Names come from a policy and from another process: nothing of them steers the terminal.
        let line = cut(&harmless(line), size.columns);
        if colour && *tone != Tone::Plain {
            out.push_str(&format!("{}{line}\u{1b}[0m\n", tone.code()));
        } else {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= columns) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// The time of day of a date.
fn time(date: &str) -> String {
    let time = date.split_once('T').map_or(date, |(_, time)| time);
    time.split_once('.').map_or(time, |(seconds, _)| seconds).to_owned()
}

fn lasts(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
