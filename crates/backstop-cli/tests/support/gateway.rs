//! One running gateway process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use backstop_lab::client::{self, ClientError, Response};

use super::metrics::Metrics;
use super::{BOUND, Hand, Policy};

/// The gateway, stopped when dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    folder: PathBuf,
    /// Whether the folder goes to a next life.
    handed_on: bool,
    /// Where clients are accepted.
    pub addr: SocketAddr,
    /// The operators' port.
    pub admin: SocketAddr,
    /// What requests name as their `Host`; the address, unless it is changed. Copies are kept by it.
    pub host: String,
    log: Arc<Mutex<Vec<String>>>,
}

/// A gateway that never listened.
#[derive(Debug)]
pub struct NotStarted {
    /// How it ended; `None` if it neither listened nor ended within the bound.
    pub status: Option<ExitStatus>,
    pub log: Vec<String>,
}

/// The built binary.
const BINARY: &str = env!("CARGO_BIN_EXE_backstop");

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A new empty folder for one gateway.
pub fn folder() -> PathBuf {
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("backstop-test-{}-{number}", std::process::id()));
    let _left_by_nobody = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

impl Gateway {
    /// Starts the binary with a policy, in a folder of its own.
    pub fn start(policy: &Policy) -> Self {
        Self::start_in(&folder(), policy)
    }

    /// Starts the binary in a folder that may hold copies from before.
    pub fn start_in(folder: &Path, policy: &Policy) -> Self {
        Self::start_with_clock(folder, policy, "")
    }

    /// As [`Gateway::start`], of a process that may have so many files open. The limit is set by a shell that then becomes the
    /// gateway: a limit of the test's own process would be one of all tests in it.
    pub fn start_with_files(policy: &Policy, files: u64) -> Self {
        let mut limited = Command::new("/bin/sh");
        limited.args(["-c", &format!("ulimit -S -n {files} && exec \"$0\" \"$@\""), BINARY]);
        Self::start_as(limited, &folder(), policy, "")
    }

    /// As [`Gateway::start_in`], with commands for the clock that are obeyed before anything is opened.
    pub fn start_with_clock(folder: &Path, policy: &Policy, clock: &str) -> Self {
        Self::start_as(Command::new(BINARY), folder, policy, clock)
    }

    /// As [`Gateway::start_in`], with a variable of its environment.
    pub fn start_with(
        folder: &Path,
        policy: &Policy,
        variable: &str,
        value: impl AsRef<std::ffi::OsStr>,
    ) -> Self {
        let mut command = Command::new(BINARY);
        command.env(variable, value);
        Self::start_as(command, folder, policy, "")
    }

    /// As [`Gateway::start_in`], of a process that ends by itself, as `kill -9` ends it, when an operation passes a moment,
    /// such as `answer_read:3`.
    ///
    /// # Errors
    /// If it ended before it listened, which that moment may be the cause of.
    pub fn start_to_be_killed(folder: &Path, policy: &Policy, at: &str) -> Result<Self, NotStarted> {
        let mut command = Command::new(BINARY);
        command.env("BACKSTOP_KILL_AT", at);
        Self::try_start_as(command, folder, policy, "")
    }

    fn start_as(command: Command, folder: &Path, policy: &Policy, clock: &str) -> Self {
        Self::try_start_as(command, folder, policy, clock)
            .unwrap_or_else(|why| panic!("the gateway did not start: {why:#?}\n{}", policy.text()))
    }

    fn try_start_as(
        mut command: Command,
        folder: &Path,
        policy: &Policy,
        clock: &str,
    ) -> Result<Self, NotStarted> {
        let file = folder.join("policy.toml");
        std::fs::write(&file, policy.text()).expect("the policy file");
        let socket = folder.join("hooks");
        let _from_before = std::fs::remove_file(&socket);
        let mut child = command
            .args(["run", "policy.toml"])
            .current_dir(folder)
            .env("BACKSTOP_TEST_SOCKET", &socket)
            .env("BACKSTOP_TEST_CLOCK", clock)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the built binary");
        let stderr = child.stderr.take().expect("its standard error");
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, received) = mpsc::channel();
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lock().expect("the log").push(line.clone());
                let _nobody_waits = lines.send(line);
            }
        });
        let found = |what: &str| loop {
            match received.recv_timeout(BOUND) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(what) {
                        let address = rest.trim_end_matches("/metrics");
                        return Some(address.parse::<SocketAddr>().expect("an address"));
                    }
                }
                // Over, or its standard error is closed: it has ended, or is about to.
                Err(_) => return None,
            }
        };
        let bound = found("listening on http://").and_then(|addr| Some((addr, found("metrics on http://")?)));
        let Some((addr, admin)) = bound else {
            let status = ended_within(&mut child, BOUND);
            return Err(NotStarted { status, log: log.lock().expect("the log").clone() });
        };
        let (folder, host) = (folder.to_owned(), addr.to_string());
        Ok(Self { child, folder, handed_on: false, addr, admin, host, log })
    }

    /// The hand on its clock.
    pub fn hand(&self) -> Hand {
        Hand::new(&self.folder.join("hooks"))
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A GET with `Host` and the given fields.
    pub async fn get(&self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.try_get(target, fields).await.unwrap_or_else(|error| panic!("{error:?}\n{:#?}", self.log()))
    }

    /// As [`Gateway::get`], without insisting on an answer.
    pub async fn try_get(&self, target: &str, fields: &[(&str, &str)]) -> Result<Response, ClientError> {
        self.try_request("GET", target, fields, b"").await
    }

    /// Any request.
    pub async fn request(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let answer = self.try_request(method, target, fields, body).await;
        answer.unwrap_or_else(|error| panic!("{error:?}\n{:#?}", self.log()))
    }

    /// As [`Gateway::request`], without insisting on an answer.
    pub async fn try_request(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, ClientError> {
        let mut fields = fields.to_vec();
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            fields.push(("Host", &self.host));
        }
        client::request(self.addr, method, target, &fields, body).await
    }

    /// Its metrics now.
    pub async fn metrics(&self) -> Metrics {
        Metrics::read(self.admin).await
    }

    /// Reads metrics until they satisfy a condition, within the bound.
    pub async fn metrics_until(&self, wanted: impl Fn(&Metrics) -> bool) -> Metrics {
        let metrics = self.metrics_or_last(&wanted).await;
        assert!(wanted(&metrics), "the metrics never came to it: {metrics:#?}\n{:#?}", self.log());
        metrics
    }

    /// As [`Gateway::metrics_until`]; the last reading where the bound is over first.
    pub async fn metrics_or_last(&self, wanted: impl Fn(&Metrics) -> bool) -> Metrics {
        let polling = async {
            loop {
                let metrics = self.metrics().await;
                if wanted(&metrics) {
                    return metrics;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(BOUND, polling).await {
            Ok(metrics) => metrics,
            Err(_) => self.metrics().await,
        }
    }

    /// Waits until a line of the log holds this.
    pub async fn wait_for_log(&self, part: &str) {
        let said = async {
            while !self.log().iter().any(|line| line.contains(part)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let said = tokio::time::timeout(BOUND, said).await;
        assert!(said.is_ok(), "the log never says {part:?}: {:#?}", self.log());
    }

    /// Its log lines so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("the log").clone()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, such as `TERM` or `KILL`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Its folder, which stays. It has ended already.
    pub fn into_folder(mut self) -> PathBuf {
        self.handed_on = true;
        self.folder.clone()
    }

    /// Waits until it has ended, within the bound.
    pub fn wait(&mut self) -> ExitStatus {
        self.ended_within(BOUND).expect("the gateway ends in time")
    }

    /// Waits until it has ended. `None` if it did not, within this time: then it was ended.
    pub fn ended_within(&mut self, bound: Duration) -> Option<ExitStatus> {
        ended_within(&mut self.child, bound)
    }

    /// Ends it as `kill -9` does. Its folder.
    pub fn kill(mut self) -> PathBuf {
        self.signal("KILL");
        self.wait();
        self.handed_on = true;
        self.folder.clone()
    }

    /// Stops it gracefully. Its folder.
    pub fn stop(mut self) -> PathBuf {
        self.signal("TERM");
        assert!(self.wait().success());
        self.handed_on = true;
        self.folder.clone()
    }

    /// Ends it as `kill -9` does and starts it again in the same folder.
    pub fn restart_after_kill(self, policy: &Policy) -> Self {
        Self::start_in(&self.kill(), policy)
    }

    /// Stops it gracefully and starts it again in the same folder.
    pub fn restart(self, policy: &Policy) -> Self {
        Self::start_in(&self.stop(), policy)
    }
}

/// How a process ended, if it did within this time. Else it is ended here, and that is no end of its own.
fn ended_within(child: &mut Child, bound: Duration) -> Option<ExitStatus> {
    let pid = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || sender.send(child.wait()));
        let ended = receiver.recv_timeout(bound).ok();
        if ended.is_none() {
            let _or_just_now = Command::new("kill").args(["-KILL", &pid]).status();
        }
        ended.map(|status| status.expect("its status"))
    })
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
        // After a failure it is worth a look.
        if !self.handed_on && !thread::panicking() {
            let _left_behind = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The output of the binary run to its end.
pub fn output(arguments: &[&str], folder: &Path) -> (ExitStatus, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built binary");
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("standard output").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("standard error").read_to_string(&mut err).expect("text");
    (child.wait().expect("its status"), out, err)
}
