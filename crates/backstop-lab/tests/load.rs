//! The generator measures from the intended time, within its bounds, and counts everything.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use backstop_lab::{
    load::{self, Answers, Kind, LoadError, Plan},
    origin::{Answer, Behaviour, Gate, Matcher, Origin, Then},
};

const BOUND: Duration = Duration::from_secs(10);

#[tokio::test]
async fn one_stall_shows_in_every_request_that_should_have_been_sent() {
    let stall = Duration::from_millis(300);
    let origin = Origin::start().await.unwrap();
    origin.default(Answer::new(200).body("ok"));
    // One connection, 200 requests per second for one second; the 50th answer stalls.
    origin.on(Matcher::path("/stall"), Answer::new(200).delay(stall));
    let targets = (0..200).map(|at| if at == 50 { "/stall" } else { "/" }.to_owned());
    let kind = Kind::get("/").targets(targets);
    let plan =
        Plan::new(origin.addr(), 200.0, Duration::from_secs(1)).connections(1).keep_samples(1000).kind(kind);
    let summary = load::run(plan).await.unwrap();
    assert_eq!((summary.total.offered, summary.total.answered, summary.total.failed), (200, 200, 0));
    // Some 60 requests should have been sent during the stall. Each shows what was left of it, sent or not.
    let begin = Duration::from_millis(250);
    for sample in summary.samples.iter().filter(|sample| sample.intended >= begin) {
        let left = (begin + stall).saturating_sub(sample.intended);
        assert!(sample.latency >= left, "{sample:?}");
    }
    let shown = summary.samples.iter().filter(|sample| sample.latency >= Duration::from_millis(100)).count();
    assert!(shown >= 40, "{shown} of 200 requests show at least 100 ms");
    assert!(summary.total.latency.p90_ns >= 150_000_000, "{:?}", summary.total.latency);
    assert!(summary.total.latency.max_ns >= 300_000_000);
    assert!(origin.peak_connections() == 1 && origin.count() == 200);
}

#[tokio::test]
async fn intended_times_are_a_constant_rate() {
    let origin = Origin::start().await.unwrap();
    let plan = Plan::new(origin.addr(), 400.0, Duration::from_millis(250)).keep_samples(100);
    let mut summary = load::run(plan).await.unwrap();
    summary.samples.sort_by_key(|sample| sample.sequence);
    for (sample, sequence) in summary.samples.iter().zip(0_u32..) {
        assert_eq!(sample.intended, Duration::from_micros(2500) * sequence);
        assert!(sample.send_lag.unwrap() <= sample.latency);
    }
    assert_eq!(summary.samples.len(), 100);
}

/// A request that found no connection was never sent. Counted as sent at once, it would make the generator look punctual.
#[tokio::test]
async fn what_was_never_sent_has_no_send_lag() {
    let origin = Origin::start().await.unwrap();
    let plan = |address| Plan::new(address, 100.0, Duration::from_millis(100)).keep_samples(10);
    let summary = load::run(plan(origin.addr())).await.unwrap();
    assert_eq!((summary.total.answered, summary.total.send_lag.count), (10, 10));
    assert!(summary.total.send_lag.min_ns > 0);
    origin.refuse().await.unwrap();
    let summary = load::run(plan(origin.addr())).await.unwrap();
    assert_eq!((summary.total.failures["connect"], summary.total.send_lag.count), (10, 0));
    assert!(
        summary.samples.iter().all(|sample| sample.send_lag.is_none() && sample.latency > Duration::ZERO)
    );
}

#[tokio::test]
async fn excess_is_counted_and_never_dropped() {
    let gate = Gate::new();
    let origin = Origin::start().await.unwrap();
    origin.default(Answer::new(200).gate(&gate));
    let plan = Plan::new(origin.addr(), 500.0, Duration::from_millis(200)).connections(2).waiting_max(3);
    let run = load::start(plan).unwrap();
    gate.wait_for_waiting(2, BOUND).await.unwrap();
    let opener = gate.clone();
    let opened = tokio::task::spawn(async move {
        // 100 requests are offered: 2 in flight, 3 wait, 95 are excess. One that was offered is none of them for a moment.
        let all = |progress: &load::Progress| {
            let somewhere = progress.in_flight + progress.waiting + progress.total.excess;
            progress.total.offered == 100 && somewhere == 100
        };
        while !all(&run.progress()) {
            tokio::task::yield_now().await;
        }
        let progress = run.progress();
        opener.open();
        (progress, run.finish().await)
    });
    let (progress, summary) = opened.await.unwrap();
    let summary = summary.unwrap();
    assert_eq!((progress.in_flight, progress.waiting, progress.total.excess), (2, 3, 95));
    assert_eq!((summary.total.offered, summary.total.answered, summary.total.excess), (100, 5, 95));
    assert_eq!((origin.count(), origin.peak_in_flight()), (5, 2));
}

#[tokio::test]
async fn a_drain_that_is_over_leaves_excess_and_timeouts_are_failures() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::hang());
    let plan = Plan::new(origin.addr(), 100.0, Duration::from_millis(100))
        .connections(1)
        .timeout(Duration::from_millis(150))
        .drain(Duration::ZERO);
    let summary = load::run(plan).await.unwrap();
    let total = &summary.total;
    assert_eq!(total.offered, 10);
    assert_eq!(total.answered + total.failed + total.excess, 10);
    assert!(total.failed >= 1 && total.excess >= 1, "{total:?}");
    assert_eq!(total.failures.get("timeout"), Some(&total.failed));
}

#[tokio::test]
async fn statuses_outcomes_checks_and_weights_are_counted_by_kind() {
    let origin = Origin::start().await.unwrap();
    let mark = "outcome=fallback, source=snapshot, age=30, reason=connect_timeout";
    origin.on(Matcher::path("/copy"), Answer::json("{}").header("Backstop", mark).header("Age", "30"));
    origin.on(
        Matcher::path("/refused"),
        Answer::new(503).header("Backstop", "outcome=rejected, reason=capacity"),
    );
    origin.on(Matcher::path("/odd"), Answer::new(200).header("Backstop", "?"));
    let seen = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&seen);
    let plan = Plan::new(origin.addr(), 400.0, Duration::from_millis(200))
        .kind(Kind::get("/copy").weight(4).check(|response| response.text() == "{}"))
        .kind(Kind::get("/refused").weight(2))
        .kind(Kind::new("plain", "POST", "/plain").header("X-Kind", "plain").body("abc").check(|_| false))
        .kind(Kind::get("/odd"))
        .keep_samples(10)
        .on_sample(move |sample| {
            assert!(sample.failure.is_none());
            counting.fetch_add(1, Ordering::Relaxed);
        });
    let summary = load::run(plan).await.unwrap();
    let total = &summary.total;
    assert_eq!((total.offered, total.answered, total.wrong), (80, 80, 10));
    assert_eq!(
        total.by_status.iter().map(|(&status, &count)| (status, count)).collect::<Vec<_>>(),
        [(200, 60), (503, 20)]
    );
    let outcomes: Vec<_> = total.by_outcome.iter().map(|(name, &count)| (name.as_str(), count)).collect();
    assert_eq!(outcomes, [("fallback", 40), ("rejected", 20), ("unmarked", 10), ("unreadable", 10)]);
    assert_eq!(total.by_source.get("snapshot"), Some(&40));
    assert_eq!(summary.kinds[2].0, "plain");
    assert_eq!((summary.kinds[2].1.answered, summary.kinds[2].1.wrong), (10, 10));
    assert_eq!((summary.samples.len(), summary.unkept_samples), (10, 70));
    let copy = summary.samples.iter().find(|sample| sample.kind == 0).unwrap();
    assert_eq!(copy.headers, [("backstop".to_owned(), mark.to_owned()), ("age".to_owned(), "30".to_owned())]);
    assert_eq!(seen.load(Ordering::Relaxed), 80);
    assert_eq!(
        origin.count_where(|request| request.header("x-kind") == Some("plain") && request.text() == "abc"),
        10
    );
    assert!(serde_json::to_string(&summary).unwrap().contains("\"p99_ns\""));
}

/// Whole and unmarked; marked; wrong by its kind's check; none at all: each is counted under a name of its own, and only
/// what was not allowed is told.
#[tokio::test]
async fn every_answer_has_a_name_and_none_is_overlooked() {
    let origin = Origin::start().await.unwrap();
    let mark = "outcome=fallback, source=snapshot, age=31, reason=breaker_open";
    origin.on(Matcher::path("/copy"), Answer::json("{}").header("Backstop", mark));
    origin.on(Matcher::path("/reset"), Behaviour::reset());
    let answers = Arc::new(Answers::default());
    let counting = Arc::clone(&answers);
    let plan = Plan::new(origin.addr(), 400.0, Duration::from_millis(100))
        .kind(Kind::get("/copy"))
        .kind(Kind::get("/live"))
        .kind(Kind::get("/reset"))
        .kind(Kind::get("/wrong").check(|_| false))
        .on_sample(move |sample| counting.count(sample));
    load::run(plan).await.unwrap();
    let names =
        ["200 fallback snapshot breaker_open", "200 live", "200 live wrong", "no answer: reset_before_head"];
    for name in names {
        assert_eq!(answers.of(name), 10, "{name}: {:?}", answers.by_name());
    }
    assert_eq!(answers.beyond(&names[..2]).into_keys().collect::<Vec<_>>(), names[2..]);
    assert!(answers.beyond(&names).is_empty());
    assert_eq!(answers.oldest_s(), 31);
}

#[tokio::test]
async fn failures_are_named() {
    let origin = Origin::start().await.unwrap();
    origin.on(Matcher::path("/reset"), Behaviour::reset());
    origin.on(Matcher::path("/close"), Behaviour::close());
    origin.on(Matcher::path("/short"), Behaviour::truncated(600, 300));
    origin.on(Matcher::path("/cut"), Behaviour::reset_mid_body(600, 300));
    origin.on(Matcher::path("/garbage"), Behaviour::garbage());
    origin.on(Matcher::path("/ends"), Answer::new(200).then(Then::Close));
    let kinds = ["/reset", "/close", "/short", "/cut", "/garbage", "/ends"];
    let plan = Plan::new(origin.addr(), 240.0, Duration::from_millis(100));
    let plan = kinds.into_iter().fold(plan, |plan, target| plan.kind(Kind::get(target)));
    let summary = load::run(plan).await.unwrap();
    let failures: Vec<_> = summary.total.failures.iter().map(|(&name, &count)| (name, count)).collect();
    let expected = [
        ("closed_before_head", 4),
        ("cut_by_fin", 4),
        ("cut_by_reset", 4),
        ("malformed", 4),
        ("reset_before_head", 4),
    ];
    assert_eq!(failures, expected);
    assert_eq!(summary.total.answered, 4);

    origin.refuse().await.unwrap();
    let refused = load::run(Plan::new(origin.addr(), 100.0, Duration::from_millis(50))).await.unwrap();
    assert_eq!(refused.total.failures.get("connect"), Some(&5));
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced() {
    let origin = Origin::start().await.unwrap();
    let plan = Plan::new(origin.addr(), 20.0, Duration::from_millis(500)).connections(1);
    let run = load::start(plan).unwrap();
    assert!(run.wait_until(BOUND, |progress| progress.total.answered >= 3).await);
    origin.close_connections();
    origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
    let summary = run.finish().await.unwrap();
    assert_eq!((summary.total.answered, summary.total.failed), (10, 0));
    assert!(origin.connections_accepted() >= 2);
}

#[tokio::test]
async fn a_run_can_be_stopped() {
    let origin = Origin::start().await.unwrap();
    let run = load::start(Plan::new(origin.addr(), 100.0, Duration::from_secs(600))).unwrap();
    assert!(run.wait_until(BOUND, |progress| progress.total.answered >= 5).await);
    run.stop();
    let summary = run.finish().await.unwrap();
    assert!(summary.total.offered < 1000);
    assert_eq!(summary.total.offered, summary.total.answered + summary.total.failed + summary.total.excess);
}

#[test]
fn targets_that_are_not_loopback_are_refused() {
    for outside in ["192.0.2.1:80", "0.0.0.0:80", "[2001:db8::1]:80", "[::]:80"] {
        let plan = Plan::new(outside.parse().unwrap(), 1.0, Duration::from_secs(1));
        assert!(matches!(load::start(plan), Err(LoadError::NotLoopback(_))), "{outside}");
    }
    let loopback = "127.0.0.1:80".parse().unwrap();
    for wrong in [
        Plan::new(loopback, 0.0, Duration::from_secs(1)),
        Plan::new(loopback, f64::NAN, Duration::from_secs(1)),
        Plan::new(loopback, 1.0, Duration::from_secs(1)).connections(0),
        Plan::new(loopback, 1.0, Duration::from_secs(1)).kind(Kind::get("/").weight(0)),
        Plan::new(loopback, 1.0, Duration::from_secs(1)).kind(Kind::get("/").targets([])),
    ] {
        assert!(matches!(load::start(wrong), Err(LoadError::Plan(_))));
    }
}
