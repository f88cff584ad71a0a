//! The whole in one word, and in one sentence: what is the matter, since when and why.

use super::view::{DependencyStanding, DependencyView, Overall, RouteState, RouteView, RungKind, View};
use super::words;

/// The whole in one word.
pub(super) fn overall(view: &View) -> Overall {
    let has = |standing| view.dependencies.iter().any(|one| one.state == standing);
    let worst = view.routes.iter().map(|route| route.state).max().unwrap_or(RouteState::Quiet);
    let is_on_the_way_back = has(DependencyStanding::Recovering)
        && !has(DependencyStanding::Open)
        && !has(DependencyStanding::Failing)
        && !has(DependencyStanding::Held);
    let is_all_asked = view.dependencies.iter().all(|one| one.state == DependencyStanding::Normal);
    match worst {
        _ if view.gateway.is_draining => Overall::Draining,
        _ if is_on_the_way_back => Overall::Recovering,
        RouteState::Refusing => Overall::Refusing,
        RouteState::Degraded => Overall::Degraded,
        RouteState::Quiet | RouteState::Normal if is_all_asked => Overall::Normal,
        RouteState::Quiet | RouteState::Normal => Overall::Watched,
    }
}

/// The whole in one sentence.
pub(super) fn sentence(view: &View) -> String {
    let mut parts = Vec::new();
    if view.gateway.is_draining {
        parts.push("The gateway is stopping: new requests are refused".to_owned());
    }
    parts.extend(routes(view, RouteState::Refusing));
    parts.extend(routes(view, RouteState::Degraded));
    parts.extend(view.dependencies.iter().filter_map(way_back).take(3));
    if parts.is_empty() {
        let asked = view.routes.iter().filter(|route| route.state != RouteState::Quiet).count();
        parts.push(match (view.routes.len(), asked) {
            (all, 0) => {
                format!("No request came in the last minute; {} would be answered normally", number(all))
            }
            (all, asked) if asked == all => format!("{} answer normally", number(all)),
            (all, asked) => {
                format!("{asked} of {} answer normally, the others are not asked for", number(all))
            }
        });
    }
    let mut text = parts.join("; ");
    text.push('.');
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// "2 of 5 routes answer from copies since 14:03:12 because catalog: it refuses connections".
fn routes(view: &View, state: RouteState) -> Option<String> {
    let own: Vec<&RouteView> = view.routes.iter().filter(|route| route.state == state).collect();
    let first = own.iter().min_by_key(|route| route.since.as_deref())?;
    let all = number(view.routes.len());
    let mut kinds: Vec<RungKind> = own.iter().filter_map(|route| route.rung).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let verb = match (state, own.len()) {
        (RouteState::Refusing, 1) => "refuses requests".to_owned(),
        (RouteState::Refusing, _) => "refuse requests".to_owned(),
        (_, count) => {
            let words: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
            format!("{} from {}", if count == 1 { "answers" } else { "answer" }, words.join(" or "))
        }
    };
    let since = first.since.as_deref().map(time).unwrap_or_default();
    let why = why(view, first).map(|why| format!(" because {why}")).unwrap_or_default();
    Some(format!("{} of {all} {verb} since {since}{why}", own.len()))
}

/// Why a route is as it is, in words.
pub(super) fn why(view: &View, route: &RouteView) -> Option<String> {
    let reason = route.reason.as_deref()?;
    let dependency = view.dependencies.iter().find(|one| Some(&one.name) == route.dependency.as_ref());
    let name = dependency.map(|one| one.name.as_str());
    let cause = dependency.and_then(|one| one.cause.as_deref());
    match (name, words::reason(reason), cause) {
        (Some(name), None, _) => Some(format!("{name}: {} ({reason})", words::failure(reason))),
        (Some(name), Some(_), Some(cause)) if matches!(reason, "breaker_open") => {
            Some(format!("{name}: {} ({cause}), and is not asked at present", words::failure(cause)))
        }
        (Some(name), Some(text), _)
            if matches!(reason, "capacity" | "missing" | "age" | "authorizer" | "draining") =>
        {
            let behind = cause.map(|cause| format!(", and {name}: {} ({cause})", words::failure(cause)));
            Some(format!("{text}{}", behind.unwrap_or_default()))
        }
        (Some(name), Some(text), _) => Some(format!("{name}: {text} ({reason})")),
        (None, text, _) => Some(text.unwrap_or(reason).to_owned()),
    }
}

fn way_back(one: &DependencyView) -> Option<String> {
    let since = time(&one.since);
    match one.state {
        DependencyStanding::Recovering if one.phase == "ramp" => {
            let percent = (one.share * 100.0).round();
            Some(format!(
                "{} is recovering since {since}: it is given {percent} % of its usual load",
                one.name
            ))
        }
        DependencyStanding::Recovering => {
            Some(format!("{} is being tried with single calls since {since}", one.name))
        }
        DependencyStanding::Watched => Some(format!("{} has all of its load again since {since}", one.name)),
        DependencyStanding::Held => {
            let how = if one.phase == "forced_open" { "open" } else { "closed" };
            Some(format!("{} is held {how} by an order since {since}", one.name))
        }
        DependencyStanding::Normal | DependencyStanding::Failing | DependencyStanding::Open => None,
    }
}

fn number(routes: usize) -> String {
    if routes == 1 { "1 route".to_owned() } else { format!("{routes} routes") }
}

/// The time of day of a date.
pub(super) fn time(date: &str) -> String {
    let time = date.split_once('T').map_or(date, |(_, time)| time);
    time.split_once('.').map_or(time, |(seconds, _)| seconds).to_owned()
}
