//! The whole in one word, and in one sentence: what is the matter, since when and why.

use super::minute::NOW;
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
        // Whoever is refused is not helped by what comes back for others.
        RouteState::Refusing => Overall::Refusing,
        _ if is_on_the_way_back => Overall::Recovering,
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
    parts.extend(routes(view));
    // What no route has shown yet is said of the dependency itself.
    let is_told = view.routes.iter().any(|route| route.state.needs_attention());
    parts.extend(view.dependencies.iter().filter_map(|one| standing(one, is_told)).take(3));
    if parts.is_empty() {
        let asked = view.routes.iter().filter(|route| route.state != RouteState::Quiet).count();
        parts.push(match (view.routes.len(), asked) {
            (_, 0) => "No request came in the last minute, and nothing is known to be wrong".to_owned(),
            (1, 1) => "The one route answers normally".to_owned(),
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

/// "Route order refuses requests and route description answers from copies since 14:03:12 because catalog refuses connections
/// (connect)". Of routes that are only observed it says what they would do.
fn routes(view: &View) -> Vec<String> {
    [false, true].into_iter().flat_map(|observed| routes_of(view, observed)).collect()
}

fn routes_of(view: &View, observed: bool) -> Vec<String> {
    let told = |state| {
        let is_one = |route: &&RouteView| route.state == state && (route.mode == "observe") == observed;
        let own: Vec<&RouteView> = view.routes.iter().filter(is_one).collect();
        let first = own.iter().min_by_key(|route| route.since.as_deref())?;
        let since = first.since.as_deref().map(time).unwrap_or_default();
        // One that is on its way back has a part of the sentence to itself.
        let is_back = called(view, first).is_some_and(|one| one.state == DependencyStanding::Recovering);
        let why = why(view, first).filter(|_| !is_back);
        let why = why.map(|why| format!(" because {why}")).unwrap_or_default();
        let does = format!("{} {}", who(view, &own), does(state, &own, observed));
        Some((does, format!("since {since}{why}")))
    };
    match (told(RouteState::Refusing), told(RouteState::Degraded)) {
        (Some((refuse, why)), Some((answer, same))) if why == same => {
            vec![format!("{refuse} and {answer} {why}")]
        }
        (refusing, degraded) => {
            refusing.into_iter().chain(degraded).map(|(does, why)| format!("{does} {why}")).collect()
        }
    }
}

/// By their names, as long as they are few.
fn who(view: &View, own: &[&RouteView]) -> String {
    match own {
        [one] => format!("route {}", one.name),
        [one, other] => format!("routes {} and {}", one.name, other.name),
        all => format!("{} of {}", all.len(), number(view.routes.len())),
    }
}

/// What they do.
fn does(state: RouteState, own: &[&RouteView], observed: bool) -> String {
    let mut kinds: Vec<RungKind> = own.iter().filter_map(|route| route.rung).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let words: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
    let words = format!("{}{}", words.join(" or "), ages(own));
    // What was answered before it began says nothing of now.
    let answers = |route: &&RouteView| {
        let answered = route.last_ten_seconds.normal + route.last_ten_seconds.fallback;
        answered > 0 && route.since_seconds.is_some_and(|seconds| seconds >= NOW.as_secs())
    };
    let requests = if own.iter().any(answers) { "some requests" } else { "requests" };
    match (state, own.len()) {
        (RouteState::Refusing, _) if observed => format!("would refuse {requests}, only observed,"),
        _ if observed => format!("would answer from {words}, only observed,"),
        (RouteState::Refusing, 1) => format!("refuses {requests}"),
        (RouteState::Refusing, _) => format!("refuse {requests}"),
        (_, 1) => format!("answers from {words}"),
        (..) => format!("answer from {words}"),
    }
}

/// How old the copies are that they serve, and for one alone how old they may become.
fn ages(own: &[&RouteView]) -> String {
    let served = own.iter().filter(|route| route.rung == Some(RungKind::Copy));
    let oldest = served.filter_map(|route| Some(route.copy_ages?.oldest_seconds)).reduce(f64::max);
    let Some(oldest) = oldest else { return String::new() };
    let limit = match own {
        [one] => one.ladder.iter().find(|rung| rung.kind == RungKind::Copy).map(|rung| rung.detail.as_str()),
        _ => None,
    };
    let limit = limit.map(|limit| format!(", accepted {limit}")).unwrap_or_default();
    format!(" (the oldest {}{limit})", words::seconds(oldest))
}

/// The dependency that a route asks first.
fn called<'a>(view: &'a View, route: &RouteView) -> Option<&'a DependencyView> {
    view.dependencies.iter().find(|one| Some(&one.name) == route.dependency.as_ref())
}

/// Why a route is as it is, in words.
pub(super) fn why(view: &View, route: &RouteView) -> Option<String> {
    let reason = route.reason.as_deref()?;
    let dependency = called(view, route);
    let name = dependency.map(|one| one.name.as_str());
    let cause = dependency.and_then(|one| one.cause.as_deref());
    let failing = |name: &str, cause: &str| format!("{name} {} ({cause})", words::failure(cause));
    let failed = |name: &str, cause: &str| {
        format!("{name}, when it was last asked, {} ({cause})", words::failed(cause))
    };
    if let Some(back) = dependency.filter(|one| one.state == DependencyStanding::Recovering) {
        let failed = cause.map(|cause| format!(" after it failed ({cause})")).unwrap_or_default();
        return Some(format!("{} is given its load back in steps{failed}", back.name));
    }
    // It is asked again, and what was refused before that is not over by a few seconds.
    let is_asked_again =
        |one: &&DependencyView| matches!(one.state, DependencyStanding::Normal | DependencyStanding::Watched);
    if matches!(reason, "breaker_open" | "ramping")
        && let Some(back) = dependency.filter(is_asked_again)
    {
        return Some(format!("{} was not given all of its load until a moment ago ({reason})", back.name));
    }
    match (name, words::reason(reason), cause) {
        (Some(name), None, _) => Some(failing(name, reason)),
        (Some(name), Some(text), Some(cause)) if matches!(reason, "breaker_open" | "ramping") => {
            Some(format!("{}, and {text} ({reason})", failed(name, cause)))
        }
        (Some(name), Some(text), cause) if words::stands_alone(reason) => {
            let is_open = dependency.is_some_and(|one| one.state == DependencyStanding::Open);
            let now = |cause| if is_open { failed(name, cause) } else { failing(name, cause) };
            let behind = cause.map(|cause| format!(", and {}", now(cause)));
            Some(format!("{text} ({reason}){}", behind.unwrap_or_default()))
        }
        (Some(name), Some(text), _) => Some(format!("{name} {text} ({reason})")),
        (None, text, _) => Some(text.unwrap_or(reason).to_owned()),
    }
}

fn standing(one: &DependencyView, is_told: bool) -> Option<String> {
    let since = time(&one.since);
    match one.state {
        DependencyStanding::Recovering if one.phase == "ramp" => {
            let percent = (one.share * 100.0).round();
            Some(format!(
                "{} has been recovering since {since}: it is given {percent} % of its usual load",
                one.name
            ))
        }
        DependencyStanding::Recovering => {
            Some(format!("{} has been tried with single calls since {since}", one.name))
        }
        DependencyStanding::Watched => {
            Some(format!("{} has had all of its load again since {since}", one.name))
        }
        DependencyStanding::Held => {
            let how = if one.phase == "forced_open" { "open" } else { "closed" };
            Some(format!("{} has been held {how} by an order since {since}", one.name))
        }
        DependencyStanding::Failing | DependencyStanding::Open if !is_told => {
            let is_asked = one.state == DependencyStanding::Failing;
            Some(match one.cause.as_deref() {
                Some(cause) if is_asked => {
                    format!(
                        "calls of {} have failed since {since}: it {} ({cause})",
                        one.name,
                        words::failure(cause)
                    )
                }
                Some(cause) => {
                    format!(
                        "{} {} ({cause}), and has not been asked since {since}",
                        one.name,
                        words::failed(cause)
                    )
                }
                None => format!("{} has not been asked since {since}", one.name),
            })
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
