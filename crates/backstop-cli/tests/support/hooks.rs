//! The hand on the running gateway's clock.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// One connection to the binary's test socket.
#[derive(Debug)]
pub struct Hand(BufReader<UnixStream>);

impl Hand {
    pub fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the test socket");
        stream.set_read_timeout(Some(super::BOUND)).expect("a bound");
        Self(BufReader::new(stream))
    }

    /// Says one command and waits until it is in force.
    pub fn say(&mut self, command: &str) {
        self.0.get_mut().write_all(format!("{command}\n").as_bytes()).expect("the gateway listens");
        let mut answer = String::new();
        self.0.read_line(&mut answer).expect("the gateway answers");
        assert!(answer.starts_with("ok "), "{command}: {answer}");
    }

    /// Time stands still.
    pub fn freeze(&mut self) {
        self.say("freeze");
    }

    /// Time since boot and the date go forward together, as time does.
    pub fn advance(&mut self, by: Duration) {
        self.say(&format!("mono +{}", by.as_nanos()));
        self.say(&format!("wall +{}", by.as_nanos()));
    }

    /// Time since boot alone, in nanoseconds.
    pub fn mono(&mut self, ns: i64) {
        self.say(&format!("mono {ns:+}"));
    }

    /// The date alone, in nanoseconds.
    pub fn wall(&mut self, ns: i64) {
        self.say(&format!("wall {ns:+}"));
    }
}
