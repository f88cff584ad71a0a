//! What is explained, by numbers that follow from the policy.

use backstop_policy::{Loaded, NoFiles, parse};

use super::{CannotExplain, Explanation, Question, explain};
use crate::steps::Told;

const POLICY: &str = r#"
[gateway]
name = "edge"
listen = "127.0.0.1:8080"
in_flight = 10
[store]
snapshots = { memory = "1 MiB", disk = "0 B" }
[dependency.catalog]
url = "http://127.0.0.1:1"
connections = 4
connect = "50ms"
breaker = {}
[dependency.two]
url = ["http://127.0.0.1:2", "http://127.0.0.1:3"]
connect = "40ms"
[route.description.public_read]
match = "GET /p/{id}"
dependency = "catalog"
deadline = "300ms"
in_flight = 2
key = ["path.id"]
max_age = "60s"
correct = { type = "application/json", has = ["/id"], echo = { "/of/id" = "path.id" } }
retry = { attempts = 2 }
[route.two.direct]
match = "* /two"
dependency = "two"
deadline = "1s"
in_flight = 2
"#;

fn loaded() -> Loaded {
    parse(POLICY, "policy.toml", &NoFiles).unwrap()
}

fn ask(request: &str, suppose: impl FnOnce(&mut Question)) -> Explanation {
    let mut question = Question::about(request).unwrap();
    suppose(&mut question);
    explain(&loaded(), &question).unwrap()
}

fn words(explanation: &Explanation) -> (u16, &str, &str, &str) {
    let answer = &explanation.answer;
    (answer.status, &*answer.outcome, &*answer.source, &*answer.reason)
}

fn steps(explanation: &Explanation) -> Vec<(&'static str, u128)> {
    explanation.ways[0].steps.iter().map(|(step, _)| (step.name, step.at.as_micros())).collect()
}

/// 60 s are served and not a nanosecond more.
#[test]
fn a_copy_is_as_old_as_is_supposed() {
    for (age, expected) in [
        ("60s", (200, "fallback", "snapshot", "breaker_open")),
        ("60000000001ns", (503, "rejected", "none", "age")),
        ("none", (503, "rejected", "none", "missing")),
    ] {
        let explanation = ask("GET /p/1", |question| {
            question.breaker("catalog=open").unwrap();
            question.copy_age(age).unwrap();
        });
        assert_eq!(words(&explanation), expected, "{age}");
    }
}

/// By hand: of 300 ms, 3 ms are kept for the reply and 3 ms for the copy; a call after which another may follow has 60 % of the
/// 294 ms that are left, and after a timeout there is no other.
#[test]
fn time_passes_to_the_nanosecond() {
    let explanation = ask("GET /p/1", |question| {
        question.when("catalog=read_timeout").unwrap();
        question.copy_age("1s").unwrap();
    });
    let expected = [
        ("admitted", 0),
        ("copy_known", 0),
        ("called", 0),
        ("failed", 176_400),
        ("no_retry", 176_400),
        ("copy", 176_400),
        ("decided", 176_400),
    ];
    assert_eq!(steps(&explanation), expected);
    assert_eq!(explanation.answer.took.as_micros(), 176_400);
    let called = &explanation.ways[0].steps[2].0;
    assert_eq!(called.get("until"), Some(&Told::At(std::time::Duration::from_micros(176_400))));
}

/// Each address has 40 ms to be connected to, and both are tried.
#[test]
fn every_address_is_tried_in_its_time() {
    let explanation = ask("GET /two", |question| question.when("two=connect_timeout").unwrap());
    assert_eq!(words(&explanation), (504, "failed", "none", "connect_timeout"));
    let calls: Vec<_> = explanation.calls.iter().map(|call| call.at.as_millis()).collect();
    assert_eq!((calls, explanation.answer.took.as_millis()), (vec![0, 40], 80));
}

#[test]
fn what_happens_to_calls_happens_one_after_the_other() {
    let explanation = ask("GET /p/1", |question| question.when("catalog=reset,ok").unwrap());
    assert_eq!(words(&explanation), (200, "normal", "primary", "none"));
    assert_eq!(explanation.calls.len(), 2);
}

#[test]
fn a_breaker_is_in_what_is_supposed() {
    for (state, reason, calls) in
        [("open", "breaker_open", 0), ("half_open", "none", 1), ("ramping", "ramping", 0)]
    {
        let explanation = ask("GET /p/1", |question| {
            question.breaker(&format!("catalog={state}")).unwrap();
            question.copy_age("1s").unwrap();
        });
        assert_eq!((words(&explanation).3, explanation.calls.len()), (reason, calls), "{state}");
    }
}

#[test]
fn each_step_has_the_line_that_decided_it() {
    let explanation = ask("GET /p/1", |question| question.in_flight("route=2").unwrap());
    let (step, line) = &explanation.ways[0].steps[0];
    let line = line.as_ref().unwrap();
    assert_eq!((step.name, &*line.text), ("refused", "in_flight = 2"));
    assert_eq!(POLICY.lines().nth(line.line as usize - 1), Some("in_flight = 2"));
}

#[test]
fn what_is_explained_twice_is_explained_alike() {
    let explained = || {
        let explanation = ask("GET /p/1", |question| question.when("catalog=reset").unwrap());
        format!("{:?}", (explanation.ways, explanation.answer, explanation.calls))
    };
    assert_eq!(explained(), explained());
}

#[test]
fn names_that_the_policy_does_not_have_are_refused_with_a_suggestion() {
    let mut question = Question::about("GET /p/1").unwrap();
    question.when("catalgo=reset").unwrap();
    let Err(CannotExplain::Question(refused)) = explain(&loaded(), &question) else { panic!("explained") };
    assert_eq!(refused.to_string(), "`catalgo` is no dependency");
    assert_eq!(refused.hint(), Some("did you mean `catalog`?"));
    assert_eq!(question.when("catalog=rset").unwrap_err().hint(), Some("did you mean `reset`?"));
}
