//! The demo's page, as the built binary serves it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use backstop_lab::client::{self, Response};
use serde_json::Value;
use tokio::time::Instant;

use super::gateway::folder;

/// A running demo, ended when dropped.
#[derive(Debug)]
pub struct Demo {
    child: Child,
    /// Where it keeps its ledger, which one that is killed leaves behind.
    folder: PathBuf,
    /// Where the page is.
    pub page: SocketAddr,
    pub plain: SocketAddr,
    pub backstop: SocketAddr,
    /// The gateway's own operators' port.
    admin: SocketAddr,
}

impl Demo {
    /// Starts it for so long at most, without a browser.
    pub fn start(seconds: u32) -> Self {
        let folder = folder();
        let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .args(["demo", "--no-open", "--for", &seconds.to_string()])
            .current_dir(&folder)
            .env("TMPDIR", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the built binary");
        let mut lines = BufReader::new(child.stdout.take().expect("its standard output")).lines();
        let mut line = || lines.next().expect("a line").expect("its standard output");
        let (first, second) = (line(), line());
        let address = |text: &str, before: &str| -> SocketAddr {
            let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {text}"));
            let end = rest.find([',', ' ', '/']).unwrap_or(rest.len());
            rest[..end].parse().expect("an address")
        };
        let page = address(&first, "page: http://");
        let plain = address(&second, "plain proxy on http://");
        let backstop = address(&second, "behind Backstop on http://");
        let admin = address(&second, "status page: http://");
        Self { child, folder, page, plain, backstop, admin }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.page)
    }

    pub async fn get(&self, path: &str) -> Response {
        client::get(self.page, path, &[]).await.expect("an answer")
    }

    /// Everything that it counted so far.
    pub async fn state(&self) -> Value {
        self.get("/state.json").await.json().expect("its state")
    }

    /// Presses a button as the page does without JavaScript. `fields` are further ones.
    pub async fn press_as(&self, button: &str, is_broken: bool, fields: &[(&str, &str)]) -> Response {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let fields: Vec<_> = form.iter().chain(fields).copied().collect();
        let body = format!("button={button}&broken={is_broken}");
        client::request(self.page, "POST", "/press", &fields, body.as_bytes()).await.expect("an answer")
    }

    /// Presses a button and is led back to the page.
    pub async fn press(&self, button: &str, is_broken: bool) {
        let answer = self.press_as(button, is_broken, &[]).await;
        assert_eq!((answer.status(), answer.header("location")), (303, Some("/")), "{}", answer.text());
    }

    /// Looks until its state is as wanted, and at every state on the way there.
    pub async fn until(&self, what: &str, bound: Duration, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let state = self.state().await;
            if is_so(&state) {
                return state;
            }
            if begun.elapsed() >= bound {
                panic!("not within {bound:?}: {what}\n{}", self.told(state).await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What it counted, short enough to be read where a test has failed, and what the gateway says of itself.
    async fn told(&self, mut state: Value) -> String {
        for side in ["plain", "backstop"] {
            for row in state[side]["rows"].as_array_mut().into_iter().flatten() {
                row["strip"].take();
            }
        }
        let status = client::get(self.admin, "/status.json", &[]).await;
        let mut status = status.ok().and_then(|answer| answer.json().ok()).unwrap_or_default();
        status["history"].take();
        format!("{state}\n{status}")
    }

    /// Ends it as an operator does.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status().expect("kill");
        assert!(sent.success());
    }

    /// How it ended.
    pub fn ended(mut self) -> i32 {
        self.child.wait().expect("its end").code().unwrap_or(-1)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _over_already = self.child.kill();
        let _ended = self.child.wait();
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}

/// What most answers of a row are now: a verdict.
pub fn now<'a>(state: &'a Value, side: &str, row: &str) -> &'a Value {
    let rows = state[side]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|one| one["kind"] == row).unwrap_or_else(|| panic!("no row {row}"));
    &found["now"]
}

/// A verdict with its status.
pub fn is_now(state: &Value, side: &str, row: &str, verdict: &str, status: Option<u16>) -> bool {
    let now = now(state, side, row);
    now["verdict"] == verdict && now["status"].as_u64() == status.map(u64::from)
}

/// Every kind of request is answered normally on both sides.
pub fn is_quiet(state: &Value) -> bool {
    let rows =
        [("products", 200), ("reviews", 200), ("recommendations", 200), ("account", 200), ("payments", 201)];
    ["plain", "backstop"]
        .iter()
        .all(|side| rows.iter().all(|(row, status)| is_now(state, side, row, "normal", Some(*status))))
}
