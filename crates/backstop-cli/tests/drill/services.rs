//! Services, policies in a folder of their own, and calls of the binary.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

use std::path::PathBuf;
use std::process::{Command, Output};

use backstop_lab::origin::{Answer, Behaviour, Origin, Request};
use serde_json::{Value, json};

use crate::support::gateway::folder;

/// What the evidence of an alternative says.
const EVIDENCE: &str = "dependency = \"replica\"\nrate = \"500/s\"\nconcurrency = 20\np95 = \"5ms\"\n\
                        measured = 2020-01-01\nvalid_until = 2999-01-01\nload = \"none\"\n";

/// Says in each answer which path, language and tenant it is for: no two keys have the same content.
fn echo(request: &Request) -> Answer {
    let field = |name: &str| request.header(name).unwrap_or("none").to_owned();
    if request.path() == "/check" {
        return match request.header("authorization") {
            Some(_) => Answer::new(204).header("X-Allowed", "yes").header("X-User", "ada"),
            None => Answer::new(401).header("WWW-Authenticate", "Bearer"),
        };
    }
    if request.path().ends_with("/recommendations") {
        return Answer::json("[1,2,3]");
    }
    let body = json!({
        "id": request.path(),
        "text": "text ".repeat(20),
        "lang": field("accept-language"),
        "tenant": field("x-tenant"),
    });
    Answer::json(body.to_string())
}

/// Services and a folder with a policy that names them.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) services: Vec<Origin>,
}

impl Place {
    /// So many services; those of the policy text are at the ports from 9001 on.
    pub(crate) async fn new(count: u16, policy: &str) -> Self {
        let mut services = Vec::new();
        for _ in 0..count {
            let origin = Origin::start().await.unwrap();
            origin.default(Behaviour::from_fn(echo));
            services.push(origin);
        }
        let place = Self { folder: folder(), services };
        std::fs::create_dir_all(&place.folder).unwrap();
        place.write("replica.toml", EVIDENCE);
        place.write("general-recommendations.json", "[]");
        place.policy(policy);
        place
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    /// Writes the policy, with the services' own addresses.
    pub(crate) fn policy(&self, text: &str) {
        let mut text = text.to_owned();
        for (number, service) in self.services.iter().enumerate() {
            text = text.replace(&format!("127.0.0.1:{}", 9001 + number), &service.addr().to_string());
        }
        self.write("policy.toml", &text);
    }

    /// `backstop drill policy.toml` with these words.
    pub(crate) fn drill(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
        let command = command.current_dir(&self.folder).args(["drill", "policy.toml"]).args(words);
        command.args(["--json", "report.json"]).output().unwrap()
    }

    /// The report of the last drill.
    pub(crate) fn report(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.folder.join("report.json")).unwrap()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_dir_all(&self.folder);
    }
}

/// The names of the drills with this verdict.
pub(crate) fn drills(report: &Value, verdict: &str) -> Vec<String> {
    let drills = report["drills"].as_array().unwrap().iter().filter(|drill| drill["verdict"] == verdict);
    drills.map(|drill| drill["name"].as_str().unwrap().to_owned()).collect()
}

/// The names of what did not hold in any drill.
pub(crate) fn failed(report: &Value) -> std::collections::BTreeSet<String> {
    let findings =
        report["drills"].as_array().unwrap().iter().flat_map(|drill| drill["findings"].as_array().unwrap());
    let failed = findings.filter(|finding| finding["verdict"] == "failed");
    failed.map(|finding| finding["name"].as_str().unwrap().to_owned()).collect()
}

/// What a call said, for the message of a failed test.
pub(crate) fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
