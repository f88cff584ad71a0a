//! The binary that people run has no hand on its clock.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::Policy;
use crate::support::gateway::folder;

/// The variable that opens the hand's socket in a test build.
const SOCKET: &str = "BACKSTOP_TEST_SOCKET";

fn plain() -> String {
    std::env::var("BACKSTOP_PLAIN").expect(
        "BACKSTOP_PLAIN names a binary built without `test-hooks`; `make test` builds it, and by hand it is \
         `cargo build -p backstop-cli`, then a copy of target/debug/backstop",
    )
}

#[test]
fn it_does_not_even_know_the_variables() {
    let holds = |path: &str, word: &str| {
        let mut bytes = Vec::new();
        std::fs::File::open(path).expect(path).read_to_end(&mut bytes).expect(path);
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    };
    for word in [SOCKET, "BACKSTOP_TEST_CLOCK", "BACKSTOP_KILL_AT"] {
        assert!(!holds(&plain(), word), "{word}");
        assert!(holds(env!("CARGO_BIN_EXE_backstop"), word), "the search would find {word}");
    }
}

#[test]
fn it_ignores_the_variables() {
    let folder = folder();
    let socket = folder.join("hooks");
    let policy = Policy::shop("127.0.0.1:9".parse().unwrap());
    std::fs::write(folder.join("policy.toml"), policy.text()).unwrap();
    let mut child = Command::new(plain())
        .args(["run", "policy.toml"])
        .current_dir(&folder)
        .env(SOCKET, &socket)
        .env("BACKSTOP_TEST_CLOCK", "not understood")
        .env("BACKSTOP_KILL_AT", "not understood")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the plain binary");
    let mut lines = BufReader::new(child.stderr.take().expect("standard error")).lines();
    let listening = lines.any(|line| line.is_ok_and(|line| line.starts_with("listening on")));
    let opened = socket.exists();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let _left_behind = std::fs::remove_dir_all(&folder);
    assert!(listening, "it starts as ever");
    assert!(!opened, "no socket");
}
