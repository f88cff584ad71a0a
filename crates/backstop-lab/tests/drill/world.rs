//! A policy with short times, the services that it names, and drills played against a stand-in.

use std::collections::BTreeSet;

use backstop_lab::{
    drill::{DrillReport, Facts, Samples, Scenario, Verdict, ready::Ready, run},
    origin::{Answer, Behaviour, Origin, Request},
};
use backstop_policy::{FileSource, Loaded};

use crate::standin::{Flaw, StandIn};

/// Services that answer for as long as this lives.
pub(crate) struct World {
    pub(crate) facts: Facts,
    pub(crate) services: Vec<Origin>,
}

/// The evidence of its alternative.
struct Evidence;

impl FileSource for Evidence {
    fn read(&self, _path: &std::path::Path) -> std::io::Result<Vec<u8>> {
        let text = "dependency = \"replica\"\nrate = \"500/s\"\nconcurrency = 20\np95 = \"5ms\"\n\
                    measured = 2020-01-01\nvalid_until = 2999-01-01\nload = \"none\"\n";
        Ok(text.into())
    }
}

/// What a service answers: which product, in which language, for whom. So no two keys have the same content.
fn echo(request: &Request) -> Answer {
    let path = request.target.split("?drill-aged").next().unwrap_or_default().to_owned();
    let field = |name: &str| request.header(name).unwrap_or("none").to_owned();
    let body = serde_json::json!({
        "id": path,
        "method": request.method,
        "lang": field("accept-language"),
        "tenant": field("x-tenant"),
        // Long enough to be cut in the middle.
        "text": "text ".repeat(20),
    });
    if path.starts_with("/check") {
        return match request.header("authorization") {
            Some(_) => Answer::new(204).header("X-Allowed", "yes"),
            None => Answer::new(401).header("WWW-Authenticate", "Bearer"),
        };
    }
    Answer::new(200).header("Content-Type", "application/json").body(body.to_string())
}

impl World {
    /// Services and the policy that names them.
    pub(crate) async fn new() -> Self {
        let mut services = Vec::new();
        for _ in 0..6 {
            let origin = Origin::start().await.unwrap();
            origin.default(Behaviour::from_fn(echo));
            services.push(origin);
        }
        let mut text = include_str!("policy.toml").to_owned();
        for (number, service) in services.iter().enumerate() {
            text = text.replace(&format!("127.0.0.1:{}", 9001 + number), &service.addr().to_string());
        }
        Self { facts: Facts::new(policy(&text)), services }
    }

    /// The ready drill of this name.
    pub(crate) fn scenario(&self, name: &str) -> Scenario {
        let samples = Samples {
            values: [("product".to_owned(), vec!["1".to_owned(), "2".to_owned()])].into(),
            fields: vec![("authorization".to_owned(), "Bearer drill".to_owned())],
            asks: Vec::new(),
        };
        Ready::find(name).unwrap().scenario(&self.facts, &samples, false).unwrap()
    }

    /// Plays a drill against a stand-in.
    pub(crate) async fn play(&self, scenario: &Scenario, flaw: Option<Flaw>) -> DrillReport {
        run(&self.facts, scenario, &StandIn::new(flaw), 7, &mut |_| {}).await.unwrap()
    }
}

/// A policy that must be right.
pub(crate) fn policy(text: &str) -> Loaded {
    backstop_policy::parse(text, "policy.toml", &Evidence)
        .unwrap_or_else(|refused| panic!("{}", backstop_policy::render_human(&refused, text, false)))
}

/// The names of what did not hold.
pub(crate) fn failed(report: &DrillReport) -> BTreeSet<&str> {
    let failed = report.findings.iter().filter(|finding| finding.verdict == Verdict::Failed);
    failed.map(|finding| finding.name.as_str()).collect()
}

/// What did not hold, in words.
pub(crate) fn words(report: &DrillReport) -> String {
    let failed = report.findings.iter().filter(|finding| finding.verdict == Verdict::Failed);
    let words = failed.map(|finding| format!("{}: {:#?}", finding.promise, finding.examples));
    words.collect::<Vec<_>>().join("\n")
}
