//! What is supposed is brought about, then the request is played.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backstop::canonical;
use backstop::clock::Clock;
use backstop::walk::Recorder;
use backstop_engine::failure::FailureKind;
use backstop_engine::policy::RouteId;
use backstop_engine::tally::RequestCount;
use backstop_engine::time::{BootId, Mono, Now, Wall, WallTrust};
use backstop_policy::Loaded;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, HOST, RANGE};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::answers::{Answers, Plan};
use super::boundaries::limits;
use super::cache::{Does, Told};
use super::question::{CacheDoes, Earlier, Happens, NotUnderstood, Question};
use super::world::{Received, Time, World, peer};
use super::{Answer, CannotExplain, Explanation, Matched, Way, facts, line};
use crate::router::Found;
use crate::stack::Shared;
use crate::target::origin_form;

/// Since the machine was started, in an explanation: longer than any copy is old, for an age has at most a year, and within what
/// breakers count by.
const UP: Duration = Duration::from_secs(2 * 366 * 24 * 3600);
/// An answer that takes longer than this never comes.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Plays it on a runtime of its own, on which time passes only while everybody waits.
pub(super) fn play(loaded: &Loaded, question: &Question) -> Result<Explanation, CannotExplain> {
    question.check(loaded)?;
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Now {
        mono: Mono::default().after(UP),
        wall: Wall::from_unix_ns(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)),
        boot: BootId::default(),
        wall_trust: WallTrust::Synchronised,
    };
    let (clock, hand) = Clock::manual(now);
    let stuck = Arc::new(Notify::new());
    let passes = {
        let (hand, stuck) = (hand.clone(), Arc::clone(&stuck));
        move || {
            let now = hand.now().mono;
            match hand.next_wake().map(|at| now.until(at)) {
                Some(left) if left < LONGEST => hand.advance(left),
                _ => stuck.notify_one(),
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().on_thread_park(passes).build()?;
    let local = LocalSet::new();
    let time = Time { clock, hand };
    local.block_on(&runtime, async {
        tokio::select! {
            biased;
            explained = rehearse(loaded, question, &time) => explained,
            () = stuck.notified() => Err(CannotExplain::Stuck),
        }
    })
}

async fn rehearse(loaded: &Loaded, question: &Question, time: &Time) -> Result<Explanation, CannotExplain> {
    let answers = Arc::new(Answers::new(loaded));
    let cache = Arc::new(Told::default());
    let world = World::new(loaded, time, &answers, &cache, question.authorizer)?;
    let host = host(loaded, question);
    let found = find(&world.shared, question, &host);
    let route = found.as_ref().map(|found| found.route);
    answers.plan(plans(&world.shared, question, found.as_ref()));
    let mut before = Vec::new();
    copies(loaded, question, time, &answers, &world, &host, &mut before).await?;
    cache.does(match question.cache {
        CacheDoes::Misses => Does::Forgets,
        CacheDoes::Fails => Does::Fails,
        CacheDoes::Hits(_) => Does::Works,
    });
    operation(question, route, &world, &host, &mut before).await?;
    facts::turn(&world.shared.engine, question, time.clock.mono())?;
    let _held = facts::take(&world.shared.engine, route, question, time.clock.mono());
    scripts(loaded, question, route, &world);

    let begun = time.clock.mono();
    let counted = route.map(|route| world.shared.engine.route(route).tally.requests());
    let recorder = Recorder::default();
    let request = request(question, &question.method, &host, true)?;
    let received = world.ask(request, peer(&world.shared, question), recorder.clone()).await?;
    let took = begun.until(time.clock.mono());
    let ways = ways(&world.shared, &recorder);
    let counts = route.map(|route| world.shared.engine.route(route).tally.requests());
    let settled = settled(&counted.unwrap_or_default(), counts.unwrap_or_default());
    let mut calls: Vec<_> =
        world.dependencies.iter().flat_map(|dependency| dependency.calls(begun)).collect();
    calls.sort_by_key(|call| call.number);
    let matched = found.map(|found| matched(loaded, found));
    let of_route = route.map(|route| usize::from(route.0));
    let limits = of_route
        .and_then(|index| Some(limits(loaded, loaded.policy.routes.get(index)?, loaded.routes.get(index)?)));
    let answer = answer(received, settled, took);
    Ok(Explanation { route: matched, limits: limits.unwrap_or_default(), before, ways, answer, calls })
}

/// The same request with an answer, made so long ago, is where copies come from.
async fn copies(
    loaded: &Loaded,
    question: &Question,
    time: &Time,
    answers: &Arc<Answers>,
    world: &World,
    host: &str,
    before: &mut Vec<String>,
) -> Result<(), CannotExplain> {
    let cached = match question.cache {
        CacheDoes::Hits(age) => Some(age),
        CacheDoes::Misses | CacheDoes::Fails => None,
    };
    let oldest = question.copy_age.max(cached).unwrap_or_default();
    let mut passed = Duration::ZERO;
    let mut earlier = [(question.copy_age, true), (cached, false)];
    earlier.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
    for (age, is_own) in earlier {
        let Some(age) = age else { continue };
        let ago = oldest - age;
        time.hand.advance(ago.saturating_sub(passed));
        passed = passed.max(ago);
        // What the cache has came by another gateway, which has copies of its own.
        let other;
        let asked = if is_own {
            world.cache.does(Does::Forgets);
            world
        } else {
            world.cache.does(Does::Works);
            other = World::new(loaded, time, answers, &world.cache, None)?;
            &other
        };
        let recorder = Recorder::default();
        let request = request(question, Method::GET.as_str(), host, false)?;
        let received = asked.ask(request, peer(&asked.shared, question), recorder.clone()).await?;
        let steps = recorder.walks().into_iter().flat_map(|walk| walk.entries);
        let stores = |entry: &backstop_engine::flow::TraceEntry| {
            matches!(entry.note, backstop_engine::flow::Note::Kept(backstop_engine::flow::CopyAction::Store))
        };
        let kept = if steps.into_iter().any(|entry| stores(&entry)) { "kept" } else { "not kept" };
        let whose = if is_own { "a copy" } else { "the shared cache's copy" };
        let status = received.status.as_u16();
        before.push(format!(
            "{} before, the same request got {status}, which was {kept} as {whose}",
            written(age)
        ));
    }
    time.hand.advance(oldest.saturating_sub(passed));
    world.cache.does(Does::Forgets);
    Ok(())
}

/// An earlier request for the same operation.
async fn operation(
    question: &Question,
    route: Option<RouteId>,
    world: &World,
    host: &str,
    before: &mut Vec<String>,
) -> Result<(), CannotExplain> {
    let Some(earlier) = question.operation else { return Ok(()) };
    let engine = &world.shared.engine;
    let is_effect = route.is_some_and(|route| engine.route(route).rules.class.effect().is_some());
    let Some(route) = route.filter(|_| is_effect) else {
        return Err(NotUnderstood::new("the request is on no `effect` route, so it is no operation").into());
    };
    let name = &engine.dependency(engine.route(route).rules.dependency).rules.name;
    let Some(dependency) = world.dependency(name) else { return Ok(()) };
    let (happens, words) = match earlier {
        Earlier::Running => (Happens::Fails(FailureKind::ReadTimeout), "is under way"),
        Earlier::Unknown => (Happens::Fails(FailureKind::ReadTimeout), "was not answered in time"),
        Earlier::Succeeded => (Happens::Ok, "succeeded"),
        Earlier::Refused => (Happens::Denied, "was refused"),
        Earlier::NotExecuted => (Happens::Fails(FailureKind::Connect), "could not be sent"),
    };
    dependency.does([happens]);
    let request = request(question, &question.method, host, true)?;
    let ask = world.ask(request, peer(&world.shared, question), Recorder::default());
    if earlier == Earlier::Running {
        // It goes on when nobody waits for it any more.
        tokio::select! {
            biased;
            came = ask => drop(came?),
            () = dependency.was_asked() => {}
        }
    } else {
        ask.await?;
    }
    before.push(format!("an earlier request with the same key {words}"));
    Ok(())
}

/// What dependencies do from here on.
fn scripts(loaded: &Loaded, question: &Question, route: Option<RouteId>, world: &World) {
    for dependency in world.dependencies.iter() {
        dependency.does([Happens::Ok]);
        dependency.forget();
    }
    let index = route.and_then(|route| loaded.routes.get(usize::from(route.0))?.authorizer);
    let authorizer = index.and_then(|index| loaded.authorizers.get(index));
    if let (Some(authorizer), Some(says)) = (authorizer, question.authorizer)
        && let Some(dependency) = world.dependency(&authorizer.name)
    {
        dependency.does([says]);
    }
    for (name, what) in &question.when {
        if let Some(dependency) = world.dependency(name) {
            dependency.does(what.iter().copied());
        }
    }
}

fn host(loaded: &Loaded, question: &Question) -> String {
    let named = question.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(HOST.as_str()));
    let own = || loaded.gateway.listen.first().map_or_else(|| "localhost".to_owned(), ToString::to_string);
    question.host.clone().or_else(|| named.map(|(_, value)| value.clone())).unwrap_or_else(own)
}

/// The route that the gateway's own router finds.
fn find(shared: &Shared, question: &Question, host: &str) -> Option<Found> {
    let uri: Uri = question.target.parse().ok()?;
    let method = question.method.parse().ok()?;
    let name = canonical::host(host);
    let name = canonical::without_port(&name).0;
    shared.router.find(name.trim_end_matches('.'), &method, &canonical::escapes(uri.path()))
}

/// Which routes ask dependencies for which targets.
fn plans(shared: &Shared, question: &Question, found: Option<&Found>) -> Vec<Plan> {
    let (Some(found), Ok(uri)) = (found, question.target.parse::<Uri>()) else { return Vec::new() };
    let Some(stack) = shared.routes.get(usize::from(found.route.0)) else { return Vec::new() };
    let plan = |route: RouteId, uri: &Uri, parameters| {
        let stack = shared.routes.get(usize::from(route.0))?;
        let target = origin_form(uri, stack.forward.strip_prefix.as_ref())?.to_string();
        Some(Plan { target, route, parameters })
    };
    if stack.parts.is_empty() {
        return plan(found.route, &uri, found.parameters.clone()).into_iter().collect();
    }
    let parts = stack.parts.iter().filter_map(|part| {
        let (uri, parameters) = part.target(&uri, &found.parameters)?;
        plan(part.route, &uri, parameters)
    });
    parts.collect()
}

/// The request as its client sends it; for one that was made earlier, without what only this one says.
fn request(
    question: &Question,
    method: &str,
    host: &str,
    is_this: bool,
) -> Result<Request<Full<Bytes>>, CannotExplain> {
    let cannot = |what: &str| CannotExplain::Request(format!("{what} cannot be sent"));
    let content = question.content.clone().filter(|_| is_this);
    let mut request = Request::new(Full::new(Bytes::from(content.clone().unwrap_or_default())));
    *request.method_mut() = method.parse().map_err(|_| cannot(method))?;
    *request.uri_mut() = question.target.parse().map_err(|_| cannot(&question.target))?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| cannot(host))?);
    for (name, value) in &question.fields {
        let field: HeaderName = name.parse().map_err(|_| cannot(name))?;
        let is_own = field == CACHE_CONTROL || field == RANGE || field.as_str().starts_with("if-");
        if field == HOST || (is_own && !is_this) {
            continue;
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| cannot(name))?;
        value.set_sensitive(field == AUTHORIZATION);
        headers.append(field, value);
    }
    if let Some(content) = &content {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    }
    Ok(request)
}

fn ways(shared: &Shared, recorder: &Recorder) -> Vec<Way> {
    let walks = recorder.walks();
    let begun = walks.first().map(|walk| walk.begun).unwrap_or_default();
    let sources = shared.words.sources();
    let way = |walk: &backstop::walk::Walk| {
        let steps = shared.words.steps(&shared.engine, walk, begun);
        Way {
            route: shared.engine.route(walk.route).rules.name.clone(),
            role: walk.role,
            steps: steps.into_iter().map(|step| (step.clone(), line(sources, step.rule))).collect(),
            has_decided: walk.has_decided,
        }
    };
    walks.iter().map(way).collect()
}

/// What was counted in between.
fn settled(before: &[RequestCount], after: Vec<RequestCount>) -> Option<RequestCount> {
    let of = |count: &RequestCount| {
        let known = before.iter().find(|known| {
            (known.outcome, known.source, known.reason) == (count.outcome, count.source, count.reason)
        });
        known.map_or(0, |known| known.count)
    };
    after.into_iter().find(|count| count.count > of(count))
}

fn answer(received: Received, settled: Option<RequestCount>, took: Duration) -> Answer {
    let Received { status, fields, is_cut } = received;
    let field = fields.get("backstop").and_then(|field| field.to_str().ok()).unwrap_or_default();
    let said = |name: &str| {
        let mut members = field.split(", ").filter_map(|member| member.split_once('='));
        members.find(|(known, _)| *known == name).map(|(_, value)| value)
    };
    let (outcome, source, reason) = match settled {
        Some(count) => (count.outcome.token(), count.source.token(), count.reason),
        // It came to no route.
        None => {
            let or = |name, otherwise| said(name).unwrap_or(otherwise);
            (or("outcome", "rejected"), or("source", "none"), or("reason", "none"))
        }
    };
    let kept = fields.iter().filter(|(name, _)| name.as_str() != "date");
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned().into();
    Answer {
        outcome: outcome.into(),
        source: source.into(),
        reason: reason.into(),
        status: status.as_u16(),
        fields: kept.map(|(name, value)| (name.as_str().into(), text(value))).collect(),
        is_cut,
        took,
    }
}

fn matched(loaded: &Loaded, found: Found) -> Matched {
    let index = usize::from(found.route.0);
    let (rules, settings) = (loaded.policy.routes.get(index), loaded.routes.get(index));
    let names: Vec<&str> = found.parameters.0.iter().map(|(name, _)| &**name).collect();
    let is_it = |rule: &&backstop_policy::MatchRule| rule.template.parameters().eq(names.iter().copied());
    let matches = settings.map(|settings| &settings.matches[..]).unwrap_or_default();
    let rule = matches.iter().find(is_it).or_else(|| matches.first());
    Matched {
        name: rules.map(|rules| rules.name.clone()).unwrap_or_default(),
        class: rules.map_or("", |rules| rules.class.name()),
        rule: rule.map(ToString::to_string).unwrap_or_default(),
        parameters: found.parameters.0,
        line: settings.and_then(|settings| line(&loaded.sources, settings.origin)),
        is_observed: false,
    }
}

/// A time, in words, exactly.
pub fn written(time: Duration) -> String {
    let ns = time.as_nanos();
    let exact = |unit: u128, name: &str| {
        let (whole, rest) = (ns / unit, ns % unit);
        if rest == 0 {
            return format!("{whole} {name}");
        }
        let digits = unit.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        format!("{whole}.{} {name}", fraction.trim_end_matches('0'))
    };
    match ns {
        0 => "0 s".to_owned(),
        1..1_000 => exact(1, "ns"),
        1_000..1_000_000 => exact(1_000, "µs"),
        1_000_000..1_000_000_000 => exact(1_000_000, "ms"),
        _ => exact(1_000_000_000, "s"),
    }
}
