//! A Redis server of the test's own: a free port, an empty folder, nothing kept, stopped by its pid when dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use super::BOUND;
use super::gateway::folder;

/// One running server.
#[derive(Debug)]
pub struct Redis {
    child: Child,
    folder: PathBuf,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Redis {
    pub fn start() -> Self {
        let folder = folder();
        // Between our letting go of a port and the server's taking it, somebody else may come.
        for _ in 0..5 {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
            let addr = free.expect("a free port");
            if let Some(child) = run(addr, &folder) {
                return Self { child, folder, addr };
            }
        }
        panic!("redis-server does not start: is it installed? scripts/test-servers does that")
    }

    /// Its address in a policy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// Starts it again where it was, empty, after it was killed.
    pub fn start_again(&mut self) {
        self.child = run(self.addr, &self.folder).expect("the port is still free");
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        self.signal("KILL");
        self.child.wait().expect("it is gone");
    }

    /// Stops it as `SIGSTOP` does: its connections stay, and its system goes on accepting new ones.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// The first line of the answer to a command of plain words.
    pub fn say(&self, command: &[&str]) -> String {
        self.say_bytes(&command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>())
    }

    /// As [`say`](Self::say), of words that need not be text.
    pub fn say_bytes(&self, command: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(self.addr).expect("the server listens");
        stream.set_read_timeout(Some(BOUND)).expect("a bound");
        let mut sent = format!("*{}\r\n", command.len()).into_bytes();
        for word in command {
            sent.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            sent.extend_from_slice(word);
            sent.extend_from_slice(b"\r\n");
        }
        stream.write_all(&sent).expect("it reads");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }

    /// How many values it holds.
    pub fn values(&self) -> u64 {
        self.say(&["DBSIZE"]).trim_start_matches(':').parse().expect("a number")
    }

    /// Waits until it holds so many values, within the bound.
    pub async fn values_until(&self, wanted: u64) {
        let polling = async {
            while self.values() != wanted {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let held = tokio::time::timeout(BOUND, polling).await;
        assert!(held.is_ok(), "{} values instead of {wanted}", self.values());
    }

    /// Its only key.
    pub fn only_key(&self) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.addr).expect("the server listens");
        stream.set_read_timeout(Some(BOUND)).expect("a bound");
        stream.write_all(b"*1\r\n$9\r\nRANDOMKEY\r\n").expect("it reads");
        let mut reader = BufReader::new(stream);
        let mut length = String::new();
        reader.read_line(&mut length).expect("it answers");
        let bytes = length.trim_end().trim_start_matches('$').parse::<usize>().expect("a length");
        let mut key = vec![0; bytes];
        reader.read_exact(&mut key).expect("a key");
        key
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}

/// Starts it and waits until it accepts connections; `None` if it ends before.
fn run(addr: SocketAddr, folder: &std::path::Path) -> Option<Child> {
    let mut child = Command::new("redis-server")
        .args(["--port", &addr.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let out = child.stdout.take()?;
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if line.contains("Ready to accept connections") {
                let _nobody_waits = ready.send(());
            }
        }
    });
    if is_ready.recv_timeout(BOUND).is_ok() {
        return Some(child);
    }
    let _ended_already = child.kill();
    let _ended = child.wait();
    None
}
