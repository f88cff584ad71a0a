//! One browser, driven through a script of a few lines.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The browser, ended when dropped.
pub struct Browser {
    child: Child,
    answers: BufReader<ChildStdout>,
}

/// Light or dark, and how wide.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub scheme: &'static str,
    pub width: u32,
    pub height: u32,
}

pub const LIGHT: Look = Look { scheme: "light", width: 1200, height: 900 };
pub const DARK: Look = Look { scheme: "dark", width: 1200, height: 900 };
pub const PHONE: Look = Look { scheme: "light", width: 360, height: 740 };
pub const LOOKS: [Look; 4] = [LIGHT, DARK, PHONE, Look { scheme: "dark", ..PHONE }];

/// The folder of these tests.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

impl Browser {
    pub fn start() -> Self {
        let folder = folder();
        assert!(
            folder.join("node_modules/playwright-core").is_dir(),
            "run scripts/test-browser first: it installs what drives the browser"
        );
        let mut child = Command::new("node")
            .arg("hand.mjs")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let answers = BufReader::new(child.stdout.take().expect("its standard output"));
        Self { child, answers }
    }

    /// Gives one order and waits for what came of it. The script bounds every wait.
    pub fn say(&mut self, order: &str, what: Value) -> Value {
        let mut line = what;
        line["order"] = order.into();
        let stdin = self.child.stdin.as_mut().expect("its standard input");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the browser's hand listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the browser's hand answers");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{order}: {answer}"));
        assert!(answer["error"].is_null(), "{}", answer["error"]);
        answer["ok"].clone()
    }

    /// A fresh page. Its title.
    pub fn open(&mut self, url: &str, look: Look) -> String {
        let Look { scheme, width, height } = look;
        let what = json!({ "url": url, "scheme": scheme, "width": width, "height": height });
        self.say("open", what).as_str().expect("a title").to_owned()
    }

    /// Waits until the page has these words. How often it was loaded until then.
    pub fn words(&mut self, words: &str) -> u64 {
        self.say("words", json!({ "words": words })).as_u64().expect("a number")
    }

    pub fn text(&mut self, selector: &str) -> String {
        self.say("text", json!({ "selector": selector })).as_str().expect("a text").to_owned()
    }

    /// The checker finds nothing, nobody complained, and nobody but this origin was asked.
    pub fn is_clean(&mut self, origin: &str, what: &str) {
        self.say("open_all", json!({}));
        let violations = self.say("axe", json!({}));
        assert_eq!(violations, json!([]), "{what}");
        self.asked_nobody_else(origin, what);
        let overflow = self.say("overflow", json!({})).as_i64().expect("a number");
        assert!(overflow <= 0, "{what}: the page is {overflow} pixels wider than its window");
    }

    pub fn asked_nobody_else(&mut self, origin: &str, what: &str) {
        let seen = self.say("seen", json!({}));
        assert_eq!(seen["errors"], json!([]), "{what}");
        for request in seen["requests"].as_array().expect("a list") {
            let request = request.as_str().expect("an address");
            assert!(request.starts_with(origin) || request.starts_with("data:"), "{what}: {request}");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The end of its input is the end of the script, and the script ends the browser.
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}
