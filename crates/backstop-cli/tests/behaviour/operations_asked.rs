//! What `backstop operations` says where there is nothing to ask, or where it is asked wrongly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use crate::support::gateway::{folder, output};
use crate::support::{Gateway, Policy};

const ID: &str = "0123456789abcdef0123456789abcdef";

/// A policy without operations.
fn shop() -> Policy {
    Policy::shop(SocketAddr::from(([127, 0, 0, 1], 1)))
}

/// Its exit status and what it says on standard error.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = folder();
    let (status, told, errors) = output(arguments, &folder);
    assert_eq!(told, "", "{arguments:?}");
    std::fs::remove_dir_all(&folder).unwrap();
    (status.code(), errors)
}

#[test]
fn where_no_gateway_is_it_says_how_to_name_one() {
    // Nobody listens on a port that was given back.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for words in [
        &["list"][..],
        &["show", ID],
        &["resolve", ID, "--outcome", "failed", "--reason", "r", "--by", "ana"],
    ] {
        let arguments: Vec<&str> =
            ["operations"].iter().chain(words).chain(&["--admin", &free]).copied().collect();
        let (status, errors) = refused(&arguments);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.starts_with(&format!("error: no gateway answers at {free}\n")), "{errors}");
        assert!(errors.contains("hint: name the gateway's admin address with --admin HOST:PORT"), "{errors}");
    }
}

#[test]
fn what_is_no_gateway_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let foreign = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}";
    let other = std::thread::spawn(move || {
        for answer in [foreign, cut, "", "SSH-2.0-OpenSSH_9.2\r\n\r\n", cut, foreign] {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let (status, errors) = refused(&["operations", "list", "--admin", &address]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("is no operators' port of a gateway"), "{errors}");
    let (status, errors) = refused(&["operations", "list", "--admin", &address]);
    assert_eq!(status, Some(2));
    assert!(errors.starts_with(&format!("error: the answer of {address} is not whole\n")), "{errors}");
    // It closes without an answer, or gives none of a gateway's: a decision may have come through.
    let order = ["operations", "resolve", ID, "--outcome", "failed", "--reason", "r", "--by", "ana"];
    for _ in 0..4 {
        let (status, errors) = refused(&[&order[..], &["--admin", &address]].concat());
        assert_eq!(status, Some(2));
        let hint = "hint: the decision may have been written: look with `backstop operations show ID` before";
        assert!(errors.contains(hint), "{errors}");
    }
    other.join().unwrap();
}

#[test]
fn a_gateway_without_a_ledger_says_so() {
    let gateway = Gateway::start(&shop());
    let admin = gateway.admin.to_string();
    let (status, errors) = refused(&["operations", "list", "--admin", &admin]);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("this gateway has no ledger"), "{errors}");
    assert!(errors.contains("hint: it has no route of class `effect` in its policy"), "{errors}");
    // The policy names the port that the gateway was told, which is any.
    let policy = gateway.folder().join("policy.toml").display().to_string();
    let (status, errors) = refused(&["operations", "list", "--policy", &policy]);
    assert_eq!(status, Some(2));
    assert!(errors.starts_with("error: the policy says port 0"), "{errors}");
    // A policy that names it leads there.
    let named = shop().gateway(&format!("admin = \"{admin}\"")).text();
    std::fs::write(&policy, named).unwrap();
    let (_, errors) = refused(&["operations", "list", "--policy", &policy]);
    assert!(errors.contains("this gateway has no ledger"), "{errors}");
}

#[test]
fn wrong_words_are_refused_before_anything_is_asked() {
    for (words, told) in [
        (&["show", "7f"][..], "32 digits in lower-case hexadecimal"),
        (&["list", "--state", "lost"], "dispatching, unknown, succeeded, failed, not_executed, attention"),
        (&["list", "--limit", "501"], "1..=500"),
        (&["list", "--from", "2026-01-31", "--after", "7.0"], "cannot be used with"),
        (&["list", "--admin", "nowhere"], "no address of a gateway"),
        (&["list", "--admin", "127.0.0.1:9901/x"], "no address of a gateway"),
        (&["list", "--admin", "127.0.0.1:1", "--policy", "p.toml"], "cannot be used with"),
        (&["list", "--policy", "nowhere.toml"], "nowhere.toml"),
        (&["resolve", ID, "--outcome", "unknown", "--reason", "r"], "succeeded, failed, not-executed"),
        (&["resolve", ID, "--outcome", "failed"], "--reason <TEXT>"),
        (
            &["resolve", ID, "--outcome", "failed", "--reason", "r", "--by", " "],
            "nobody is named who decides",
        ),
    ] {
        let arguments: Vec<&str> = ["operations"].iter().chain(words).copied().collect();
        let (status, errors) = refused(&arguments);
        assert_eq!(status, Some(2), "{words:?}: {errors}");
        assert!(errors.contains(told), "{words:?}: {errors}");
    }
}

/// The variable USER names who decides, `--by` names somebody else, and without either nothing is asked.
#[test]
fn who_decides_is_the_user_unless_it_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let order = |user: Option<&str>, by: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
        command.args(["operations", "resolve", ID, "--outcome", "not-executed", "--reason", "r"]);
        command.args(by).args(["--admin", &address]).stdin(Stdio::null()).env_remove("USER");
        user.map(|user| command.env("USER", user));
        command.output().unwrap()
    };
    let nobody = order(None, &[]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("hint: say who decides with --by NAME"));
    let cases: [(Option<&str>, &[&str], &str); 3] =
        [(Some("ana"), &[], "ana"), (Some("ana"), &["--by", "bob"], "bob"), (None, &["--by", "bob"], "bob")];
    let heard = std::thread::spawn(move || cases.map(|_| refuse_one(&listener)));
    for (user, by, _) in cases {
        assert_eq!(order(user, by).status.code(), Some(1), "{user:?} {by:?}");
    }
    for (heard, (.., expected)) in heard.join().unwrap().into_iter().zip(cases) {
        let (head, body) = heard.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("POST /operations/{ID}/resolve HTTP/1.1\r\n")), "{head}");
        let order: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(order, serde_json::json!({ "outcome": "not_executed", "by": expected, "reason": "r" }));
    }
}

/// Refuses one decision, as a gateway does. What it was asked.
fn refuse_one(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut heard = String::new();
    while !heard.ends_with('}') {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    let body = r#"{"title":"Conflict","status":409,"detail":"no"}"#;
    let answer = format!("HTTP/1.1 409 Conflict\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).unwrap();
    heard
}
