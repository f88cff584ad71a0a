//! The hand on the running gateway's clock, and on the moments of its operations.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use backstop_store::ledger::checkpoint::Checkpoint;

/// What a gateway's clock shows, in nanoseconds since boot and since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub mono: i64,
    pub wall: i64,
}

impl Reading {
    /// As time goes by.
    pub fn after(self, by: Duration) -> Self {
        let ns = i64::try_from(by.as_nanos()).expect("a short time");
        Self { mono: self.mono + ns, wall: self.wall + ns }
    }

    /// The commands by which a gateway starts with its clock standing still at this reading.
    pub fn as_start(self) -> String {
        format!("freeze; at {} {}", self.mono, self.wall)
    }
}

/// One connection to the binary's test socket.
#[derive(Debug)]
pub struct Hand(BufReader<UnixStream>);

impl Hand {
    pub fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the test socket");
        stream.set_read_timeout(Some(super::BOUND)).expect("a bound");
        Self(BufReader::new(stream))
    }

    /// Says one command and waits until it is in force. What the clock then shows.
    pub fn say(&mut self, command: &str) -> Reading {
        self.0.get_mut().write_all(format!("{command}\n").as_bytes()).expect("the gateway listens");
        let mut answer = String::new();
        self.0.read_line(&mut answer).expect("the gateway answers");
        let shown: Vec<&str> = answer.split_whitespace().collect();
        let ["ok", mono, wall] = shown.as_slice() else { panic!("{command}: {answer}") };
        Reading { mono: mono.parse().expect("a number"), wall: wall.parse().expect("a number") }
    }

    /// What the clock shows.
    pub fn reading(&mut self) -> Reading {
        self.say("get")
    }

    /// Time stands still.
    pub fn freeze(&mut self) {
        self.say("freeze");
    }

    /// Time goes on as it does.
    pub fn go_on(&mut self) {
        self.say("run");
    }

    /// Time since boot and the date go forward together, as time does.
    pub fn advance(&mut self, by: Duration) {
        self.say(&format!("mono +{}", by.as_nanos()));
        self.say(&format!("wall +{}", by.as_nanos()));
    }

    /// As [`Hand::advance`], both at the same moment. What the clock then shows.
    pub fn pass(&mut self, by: Duration) -> Reading {
        let then = self.reading().after(by);
        self.say(&format!("at {} {}", then.mono, then.wall))
    }

    /// A thread of the gateway panics.
    pub fn panic(&mut self) {
        self.say("panic");
    }

    /// From now on whoever passes this moment of an operation stands still there.
    pub fn hold(&mut self, point: Checkpoint) {
        self.say(&format!("hold {}", point.token()));
    }

    /// Waits until somebody stands there, within the bound.
    pub fn wait_for_held(&mut self, point: Checkpoint) {
        self.say(&format!("held {}", point.token()));
    }

    /// Whoever stands there goes on, and nobody is held there any more.
    pub fn release(&mut self, point: Checkpoint) {
        self.say(&format!("release {}", point.token()));
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
