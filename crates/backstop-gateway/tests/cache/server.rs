//! A Redis server of the test's own: a free port, an empty folder, nothing kept, stopped when dropped.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use redis::Connection;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

const BOUND: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Between our letting go of a port and the server's taking it, somebody else may come.
        for _ in 0..5 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
            let address = port.expect("a free port");
            if let Some(child) = run(address, &folder, arguments) {
                return Self { child, folder, address };
            }
        }
        panic!("redis-server does not start: is it installed? scripts/test-servers does that")
    }

    /// Starts it again where it was, after it was killed.
    pub(crate) fn start_again(&mut self) {
        self.child = run(self.address, &self.folder, &[]).expect("the port is still free");
    }

    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it is gone");
    }

    /// Stops it as `SIGSTOP` does: its connections stay, and its system goes on accepting new ones.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("it stands still");
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// A way to look into it that is not the one under test.
    pub(crate) fn look(&self) -> Connection {
        let client = redis::Client::open(format!("redis://{}", self.address)).expect("an address");
        client.get_connection_with_timeout(BOUND).expect("a connection")
    }

    /// How many clients it has, beside whoever looks.
    pub(crate) fn clients(&self) -> usize {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut self.look()).expect("a list");
        list.lines().count() - 1
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL reaches a frozen process as well.
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// The server, once it accepts connections; `None` if it ended before.
fn run(address: SocketAddr, folder: &TempDir, arguments: &[&str]) -> Option<Child> {
    let mut child = Command::new("redis-server")
        .args(["--port", &address.port().to_string(), "--bind", &address.ip().to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(folder.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server, which scripts/test-servers installs");
    let output = child.stdout.take().expect("its output");
    let (told, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.contains("Ready to accept connections") {
                let _nobody_waits = told.send(());
            }
        }
    });
    if is_ready.recv_timeout(BOUND).is_ok() {
        return Some(child);
    }
    let _ended_already = child.kill();
    let _ended_already = child.wait();
    None
}
