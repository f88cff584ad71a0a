//! A PostgreSQL of the test's own, and as much of its protocol as one query needs.

use std::io::{Error, Result};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::BOUND;
use crate::support::gateway::folder;

/// One server, in a folder and on a port of its own, ended by its pid.
#[derive(Debug)]
pub(crate) struct Postgres {
    folder: PathBuf,
    pub(crate) port: u16,
    child: Option<Child>,
}

/// Where Debian keeps the programs, which are not in the path there.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.exists());
    found.max().unwrap_or_else(|| name.into())
}

/// It refuses to run as root: then it runs as whoever owns databases here, or as nobody.
fn other_user() -> Option<u32> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).stderr(Stdio::null()).output().expect("id");
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().ok()
    };
    (id(&["-u"]) == Some(0)).then(|| id(&["-u", "postgres"]).unwrap_or(65_534))
}

fn command(name: &str, folder: &Path) -> Command {
    let program = program(name);
    let mut command = match other_user() {
        None => Command::new(program),
        Some(user) => {
            chown(folder, Some(user), Some(user)).expect("root gives away a folder");
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]);
            command.arg(program);
            command
        }
    };
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Postgres {
    pub(crate) async fn start() -> Self {
        let folder = folder();
        let made = command("initdb", &folder)
            .args(["-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"])
            .status();
        assert!(made.expect("initdb: scripts/test-servers installs it").success());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let mut postgres = Self { folder, port: port.expect("a free port").port(), child: None };
        postgres.again().await;
        postgres
    }

    /// Starts it, and waits until it answers.
    pub(crate) async fn again(&mut self) {
        let settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"];
        let child = command("postgres", &self.folder)
            .args(["-D", "data", "-p", &self.port.to_string()])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .spawn();
        self.child = Some(child.expect("postgres: scripts/test-servers installs it"));
        let answers = async {
            while Link::open(self.port, "test").await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(BOUND, answers).await.expect("it answers");
    }

    /// It ends at once: every connection breaks.
    pub(crate) fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // QUIT is its immediate shutdown; `kill -9` would leave its shared memory behind.
            let asked = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
            assert!(asked.is_ok_and(|asked| asked.success()) && child.wait().is_ok());
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end();
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}

/// One connection (PostgreSQL protocol 3.0, simple queries).
#[derive(Debug)]
pub(crate) struct Link(TcpStream);

impl Link {
    /// Connects under this name, by which `pg_stat_activity` knows it.
    pub(crate) async fn open(port: u16, name: &str) -> Result<Self> {
        let mut link = Self(TcpStream::connect(("127.0.0.1", port)).await?);
        link.0.set_nodelay(true)?;
        let words = ["user", "postgres", "database", "postgres", "application_name", name, ""];
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        body.extend(words.iter().flat_map(|word| word.bytes().chain([0])));
        link.send(&body).await?;
        link.answer().await?;
        Ok(link)
    }

    /// The first column of every row.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<Vec<String>> {
        self.0.write_all(b"Q").await?;
        let body: Vec<u8> = sql.bytes().chain([0]).collect();
        self.send(&body).await?;
        self.answer().await
    }

    async fn send(&mut self, body: &[u8]) -> Result<()> {
        let length = i32::try_from(body.len() + 4).map_err(Error::other)?;
        self.0.write_all(&[&length.to_be_bytes(), body].concat()).await
    }

    /// Everything up to "ready for query".
    async fn answer(&mut self) -> Result<Vec<String>> {
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            let kind = self.0.read_u8().await?;
            let length = usize::try_from(self.0.read_i32().await?).map_err(Error::other)?;
            let mut body = vec![0; length.saturating_sub(4)];
            self.0.read_exact(&mut body).await?;
            match kind {
                // A row: the number of columns, then the length of the first and its bytes.
                b'D' => {
                    let end =
                        6 + usize::try_from(i32::from_be_bytes(body[2..6].try_into().unwrap())).unwrap_or(0);
                    rows.push(String::from_utf8_lossy(&body[6..end]).into_owned());
                }
                b'E' => refused = Some(String::from_utf8_lossy(&body).into_owned()),
                b'Z' => return refused.map_or(Ok(rows), |why| Err(Error::other(why))),
                _ => {}
            }
        }
    }
}
