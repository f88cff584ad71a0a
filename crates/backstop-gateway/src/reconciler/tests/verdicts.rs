//! What answers come to, and that nothing but a question is ever sent.

use std::time::Duration;

use backstop::operation::echo;
use backstop::operation::member::Json;
use backstop_engine::operation::{Attention, Doubt, Evidence, EvidenceKind, State};
use backstop_engine::policy::effect::EchoSource;

use super::upstream::{Reply, Upstream, answer, bytes};
use super::world::{SECRET, World, eventually, pay, query, route, verification};

fn is_by_status(evidence: Evidence) -> bool {
    evidence.kind() == EvidenceKind::Status
}

/// What an operation is in after one answer, how often it was asked, and what that was counted as.
fn after(reply: Reply, word: &str) -> (State, u32) {
    let upstream = Upstream::start(move |_| reply.clone());
    let mut world = World::new(vec![pay(&upstream)]);
    let id = world.unknown("pay", 1);
    world.start();
    eventually(|| world.queries(word) == 1);
    eventually(|| world.record(id).progress.parts().lease_until.is_none());
    assert_eq!(upstream.requests().len(), 1, "{word}");
    let record = world.record(id);
    (record.progress.state(), record.progress.parts().asked)
}

/// By hand, from the contract of `query`.
#[test]
fn an_answer_that_the_contract_names_decides() {
    let (state, _) = after(answer(200, r#"{"key":"k1","status":"paid"}"#), "succeeded");
    assert!(matches!(state, State::Succeeded(evidence) if is_by_status(evidence)), "{state:?}");
    let (state, _) = after(answer(200, r#"{"key":"k1","status":"declined"}"#), "failed");
    assert!(matches!(state, State::Failed(evidence) if is_by_status(evidence)), "{state:?}");
    let (state, _) = after(answer(200, r#"{"key":"k2","status":"paid"}"#), "mismatch");
    assert_eq!(state, State::Attention(Attention::Mismatch), "it is about another operation");
    let (state, _) = after(answer(200, r#"{"status":"paid"}"#), "mismatch");
    assert_eq!(state, State::Attention(Attention::Mismatch), "it does not say what it is about");
}

/// Whatever goes wrong with a question moves no operation.
#[test]
fn every_other_answer_leaves_it_unknown() {
    let paid = r#"{"key":"k1","status":"paid"}"#;
    let large = format!(r#"{{"key":"k1","status":"paid","more":"{}"}}"#, "x".repeat(1 << 20));
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{paid}", paid.len() + 1);
    let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1c\r\n{\"key\":\"k1\"";
    let two =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {0}\r\ncontent-length: {0}\r\n\r\n{paid}", paid.len());
    let both = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\ntransfer-encoding: chunked\r\n\r\n1c\r\n{paid}\r\n0\r\n\r\n",
        paid.len()
    );
    // A cache between keeps what it was told before there was the operation.
    let old =
        "HTTP/1.1 404 Not Found\r\nage: 3600\r\ncontent-length: 26\r\n\r\n{\"code\":\"no_such_payment\"}";
    let moved = "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n";
    for (reply, word) in [
        (answer(200, r#"{"key":"k1","status":"processing"}"#), "pending"),
        (answer(404, r#"{"code":"no_such_payment"}"#), "absent"),
        (bytes(old), "old"),
        (answer(404, "<html>no such page</html>"), "unmatched"),
        (answer(200, "<html>welcome</html>"), "unmatched"),
        (answer(200, ""), "unmatched"),
        (answer(200, r#"{"key":"k1","status":"paid","status":"declined"}"#), "unnamed"),
        (answer(200, r#"{"key":"k1","status":"refunded"}"#), "unnamed"),
        (answer(200, &large), "too_large"),
        (answer(401, ""), "credentials"),
        (answer(403, r#"{"code":"no_such_payment"}"#), "credentials"),
        (answer(500, paid), "unavailable"),
        (answer(503, ""), "unavailable"),
        (bytes(moved), "redirect"),
        (bytes(&cut), "incomplete"),
        (bytes(chunk), "incomplete"),
        (bytes("HTTP/1.1 200 OK\r\n\r\n{\"key\":\"k1\""), "incomplete"),
        (bytes(&two), "protocol"),
        (bytes(&both), "protocol"),
        (bytes("no HTTP at all\r\n\r\n"), "protocol"),
        (bytes(""), "reset"),
    ] {
        // That it is there is remembered: no absence decides it any more.
        let doubt = if matches!(word, "pending" | "unnamed") { Doubt::Pending } else { Doubt::Timeout };
        assert_eq!(after(reply, word), (State::Unknown(doubt), 1), "{word}");
    }
}

/// An answer that ends with its connection is whole if its content says so (RFC 9112 section 8).
#[test]
fn an_answer_that_ends_with_its_connection_is_believed_if_it_is_one_whole_object() {
    let reply = bytes("HTTP/1.1 200 OK\r\n\r\n{\"key\":\"k1\",\"status\":\"paid\"}");
    assert!(matches!(after(reply, "succeeded").0, State::Succeeded(_)));
}

#[test]
fn a_question_has_its_time_and_then_says_nothing() {
    let upstream = Upstream::start(|_| Reply::Hang);
    let mut world = World::new(vec![pay(&upstream)]);
    let id = world.unknown("pay", 1);
    world.start();
    upstream.until(1);
    world.hand.advance(Duration::from_secs(2) - Duration::from_nanos(1));
    assert_eq!(world.queries("read_timeout"), 0);
    world.hand.advance(Duration::from_nanos(1));
    eventually(|| world.queries("read_timeout") == 1);
    eventually(|| world.record(id).progress.parts().asked == 1);
    assert_eq!(world.state(id), State::Unknown(Doubt::Timeout));
}

#[test]
fn an_upstream_that_is_not_there_says_nothing() {
    // A port that is taken and not listened on refuses.
    let held = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    held.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let gone = held.local_addr().unwrap().as_socket().unwrap();
    let other = Upstream::start(|_| Reply::Hang);
    let mut followed = pay(&other);
    followed.addresses = vec![gone.into()];
    let mut world = World::new(vec![followed]);
    let id = world.unknown("pay", 1);
    world.start();
    eventually(|| world.queries("connect") == 1);
    eventually(|| world.record(id).progress.parts().asked == 1);
    assert_eq!(world.state(id), State::Unknown(Doubt::Timeout));
}

/// What the operator declares goes with it, and nothing else.
#[test]
fn a_question_is_a_get_with_the_operators_credentials_on_a_connection_of_its_own() {
    let upstream = Upstream::start(|_| answer(200, r#"{"key":"k1","status":"processing"}"#));
    let mut world = World::new(vec![pay(&upstream)]);
    world.unknown("pay", 1);
    world.start();
    for count in 1..=3 {
        upstream.until(count);
        eventually(|| world.queries("pending") == count as u64);
        world.pass(Duration::from_secs(1));
    }
    let expected = "GET /payments?key=k1&full=1 HTTP/1.1\r\nhost: pay.internal\r\nauthorization: Bearer ours\r\n\
                    connection: close\r\ncache-control: no-cache\r\n\r\n";
    for request in upstream.requests() {
        assert_eq!(request, expected);
    }
}

#[test]
fn an_answer_with_another_amount_needs_a_person() {
    let by_amount = || {
        let mut query = query();
        query.echo.push(("/amount".into(), EchoSource::Body("/amount".into())));
        query
    };
    for (amount, is_same) in [("1299", true), ("1300", false)] {
        let content = format!(r#"{{"key":"k1","status":"paid","amount":{amount}}}"#);
        let upstream = Upstream::start(move |_| answer(200, &content));
        let mut world = World::new(vec![route("pay", &upstream, Some(verification(by_amount())))]);
        let kept = echo::captured(&SECRET, &by_amount(), Json::of(br#"{"amount":1299,"card":"1"}"#));
        let id = world.unknown_with("pay", 1, kept);
        world.start();
        eventually(|| !matches!(world.state(id), State::Unknown(_)));
        let state = world.state(id);
        assert_eq!(matches!(state, State::Succeeded(_)), is_same, "{state:?}");
        assert_eq!(state == State::Attention(Attention::Mismatch), !is_same, "{state:?}");
    }
}
