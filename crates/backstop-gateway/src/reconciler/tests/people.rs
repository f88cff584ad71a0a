//! Calling a person: the log, once for each; the webhook; what was there before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstop_engine::operation::{Attention, Doubt, State};

use super::super::counts::RouteCounts;
use super::upstream::{BOUND, Upstream, answer};
use super::world::{World, count, eventually, lines, listen, pay, route, start};

/// Another operation's answer: a person has to look.
fn mismatch() -> Upstream {
    Upstream::start(|_| answer(200, r#"{"key":"another","status":"paid"}"#))
}

#[test]
fn an_operation_that_needs_a_person_is_a_line_in_the_log_once() {
    listen();
    let upstream = mismatch();
    let mut world = World::new(vec![pay(&upstream)]);
    let id = world.unknown("pay", 201);
    world.start();
    eventually(|| matches!(world.state(id), State::Attention(Attention::Mismatch)));
    world.pass(Duration::from_secs(2));
    eventually(|| !lines(&format!("operation={id}")).is_empty());
    // Asked again while a person has it, with the same answer.
    world.pass(Duration::from_secs(1000));
    eventually(|| upstream.requests().len() >= 2);
    world.pass(Duration::from_secs(2));
    let said = lines(&format!("operation={id}"));
    let expected = format!(
        "ERROR message=an operation needs a person: find out with its upstream whether it happened, then decide it with \
         `backstop operations resolve ID --outcome OUTCOME --reason TEXT` \
         operation={id} route=pay why=\"mismatch\" created=2026-01-01T00:00:00.000Z since=2026-01-01T00:00:00.000Z"
    );
    assert_eq!(said, [expected]);
    assert!(lines("k201").is_empty(), "no key is in the log");
    assert_eq!(count(&world.counts().raised), 1);
}

#[test]
fn what_needed_a_person_before_is_told_once_as_one() {
    listen();
    let upstream = mismatch();
    let mut first = World::new(vec![pay(&upstream)]);
    let ids = [202, 203].map(|number| first.unknown("pay", number));
    first.start();
    eventually(|| ids.iter().all(|id| matches!(first.state(*id), State::Attention(_))));
    first.pass(Duration::from_secs(2));
    assert!(first.handle.take().unwrap().close(BOUND) && first.operations.ledger.close(BOUND));
    let told = |id| lines(&format!("operation={id}")).len();
    assert_eq!(ids.map(told), [1, 1]);
    let mut second =
        World::again(first.rows.clone(), vec![pay(&upstream)], first.clock.clone(), first.hand.clone());
    second.start();
    second.pass(Duration::from_secs(3));
    let oldest = lines(&format!("oldest={}", ids[0]));
    assert_eq!(oldest.len(), 1, "{oldest:?}");
    assert!(oldest[0].contains("count=2 "), "{oldest:?}");
    assert_eq!(ids.map(told), [1, 1], "not again");
}

/// Nobody can ask: a route without a status query, and one that the policy does not name any more.
#[test]
fn where_nobody_can_ask_a_person_is_called_at_once() {
    listen();
    let upstream = mismatch();
    let mut world = World::new(vec![route("blind", &upstream, None)]);
    let ids = [world.unknown("blind", 204), world.unknown("gone", 205)];
    world.start();
    for id in ids {
        eventually(|| !matches!(world.state(id), State::Unknown(_)));
        assert_eq!(world.state(id), State::Attention(Attention::NoStatusQuery));
    }
    world.pass(Duration::from_secs(2));
    assert_eq!(ids.map(|id| lines(&format!("operation={id}")).len()), [1, 1]);
    let counts = world.counts();
    let asked = |counts: &RouteCounts| (counts.route.to_string(), count(&counts.not_askable));
    assert_eq!([&counts.routes[0], &counts.gone].map(asked), [("blind".to_owned(), 1), (String::new(), 1)]);
    assert!(upstream.requests().is_empty());
}

#[test]
fn credentials_that_are_refused_are_an_alarm_and_no_verdict() {
    listen();
    let upstream = Upstream::start(|_| answer(401, ""));
    let mut world = World::new(vec![route("locked", &upstream, pay(&upstream).rules.verification)]);
    let id = world.unknown("locked", 206);
    world.start();
    eventually(|| world.queries("credentials") == 1);
    eventually(|| {
        world.pass(Duration::from_secs(1));
        world.queries("credentials") >= 5
    });
    assert_eq!(world.state(id), State::Unknown(Doubt::Timeout));
    let began = start().mono;
    let alarms = || lines("route=locked").len();
    while world.clock.mono() < began.after(Duration::from_secs(60)) {
        assert_eq!(alarms(), 1, "once a minute");
        world.pass(Duration::from_secs(1));
    }
    // The breaker lets one try in up to 30 s.
    while alarms() < 2 {
        assert!(
            world.clock.mono() < began.after(Duration::from_secs(100)),
            "the second comes after a minute"
        );
        world.pass(Duration::from_secs(1));
    }
    assert_eq!((alarms(), world.state(id)), (2, State::Unknown(Doubt::Timeout)));
}

/// The first two tries fail. After 1 s and 4 s more it is told.
#[test]
fn a_webhook_is_told_once_and_tried_again_while_it_fails() {
    let tries = Arc::new(AtomicUsize::new(0));
    let count_of = Arc::clone(&tries);
    let hook = Upstream::start(move |_| match count_of.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => answer(500, ""),
        _ => answer(204, ""),
    });
    let upstream = mismatch();
    let mut world = World::new(vec![pay(&upstream)]).with_webhook(&hook);
    let id = world.unknown("pay", 207);
    world.start();
    eventually(|| matches!(world.state(id), State::Attention(_)));
    eventually(|| {
        world.step();
        count(&world.counts().webhook_delivered) == 1
    });
    world.pass(Duration::from_secs(30));
    let requests = hook.requests();
    assert_eq!((requests.len(), count(&world.counts().webhook_failed)), (3, 2));
    let (head, content) = requests[2].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hooks/pay HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
    let content: serde_json::Value = serde_json::from_str(content).unwrap();
    let expected = serde_json::json!({
        "operation": id.to_string(),
        "route": "pay",
        "why": "mismatch",
        "created": "2026-01-01T00:00:00.000Z",
        "since": "2026-01-01T00:00:00.000Z",
    });
    assert_eq!(content, expected);
    assert!(upstream.requests().iter().all(|request| request.starts_with("GET ")));
}

/// It does not answer, so each try takes its 5 s; questions go on meanwhile, and in the end it is given up.
#[test]
fn a_webhook_that_hangs_keeps_nobody_waiting() {
    let hook = Upstream::start(|_| super::upstream::Reply::Hang);
    let upstream = Upstream::start(|line| {
        let key = if line.contains("key=k208&") { "another" } else { "k209" };
        answer(200, &format!(r#"{{"key":"{key}","status":"paid"}}"#))
    });
    let mut world = World::new(vec![pay(&upstream)]).with_webhook(&hook);
    world.unknown("pay", 208);
    world.start();
    eventually(|| {
        world.step();
        !hook.requests().is_empty()
    });
    let other = world.unknown("pay", 209);
    eventually(|| {
        world.step();
        matches!(world.state(other), State::Succeeded(_))
    });
    eventually(|| {
        world.step();
        count(&world.counts().webhook_given_up) == 1
    });
    assert_eq!((hook.requests().len(), count(&world.counts().webhook_failed)), (4, 4));
    assert_eq!(count(&world.counts().webhook_delivered), 0);
}
