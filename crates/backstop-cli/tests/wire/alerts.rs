//! Prometheus' own rule tester, over what a real gateway showed in a quiet hour and in an outage that is answered with 200.
//!
//! Both are recorded by this test, with the gateway's clock moved: a scrape every 15 s. A recording of each lies beside the rules,
//! for whoever changes them without a gateway; `UPDATE_RECORDING=1` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Answer, Matcher, Origin};

use crate::raw::direct;
use crate::support::shop::HOST;
use crate::support::{Gateway, Hand, Policy, products, run};

const SECOND: Duration = Duration::from_secs(1);
/// Seconds between two scrapes.
const STEP: usize = 15;
const RULES: &str = include_str!("../../../../deploy/prometheus/backstop.rules.yml");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus").canonicalize().expect("the rules")
}

/// A shop, of which six requests in ten are for what `catalog` answers and the rest for what `pages` does.
struct World {
    catalog: Origin,
    pages: Origin,
    gateway: Gateway,
    hand: Hand,
    recording: Recording,
    second: usize,
}

impl World {
    async fn open() -> Self {
        let (catalog, pages) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        catalog.default(products("right"));
        pages.default(Answer::new(200).body(b"page".to_vec()));
        let description = Policy::description("languages =\ncorrect =\nin_flight = 50\nmax_age = \"6m\"");
        let policy = Policy::empty()
            .dependency("catalog", catalog.addr(), "breaker = {}\nrecovery = {}")
            .dependency("pages", pages.addr(), "")
            .route("description.public_read", &description.replace("\"language\", ", ""))
            .route("pages.direct", &direct("GET /pages/{page}", "").replace("catalog", "pages"));
        let mut gateway = Gateway::start(&policy);
        HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        hand.say("sync on");
        Self { catalog, pages, gateway, hand, recording: Recording::default(), second: 0 }
    }

    /// So many seconds with so many requests in each, scraped every 15. The statuses of the answers.
    async fn pass(&mut self, seconds: usize, each: usize) -> BTreeMap<u16, usize> {
        let mut statuses = BTreeMap::new();
        for _ in 0..seconds {
            if self.second.is_multiple_of(STEP) {
                let text = client::get(self.gateway.admin, "/metrics", &[]).await.unwrap().text();
                self.recording.take(&text);
            }
            for number in 0..each {
                let number = self.second * each + number;
                let target = match number % 10 {
                    0..6 => format!("/p/{}", number % 6),
                    _ => "/pages/1".to_owned(),
                };
                *statuses.entry(self.gateway.get(&target, &[]).await.status()).or_default() += 1;
            }
            self.hand.pass(SECOND);
            self.second += 1;
        }
        statuses
    }
}

/// The series that the rules read.
#[derive(Default)]
struct Recording {
    series: BTreeMap<String, Vec<Option<String>>>,
    scrapes: usize,
}

impl Recording {
    fn take(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            if !names(RULES).contains(&name) {
                continue;
            }
            let labels = labels.strip_suffix('}').expect("labels");
            let comma = if labels.is_empty() { "" } else { "," };
            let key = format!("{name}{{job=\"backstop\",instance=\"edge:9901\"{comma}{labels}}}");
            let values = self.series.entry(key).or_default();
            values.resize(self.scrapes, None);
            values.push(Some(value.trim_end_matches(".0").to_owned()));
        }
        self.scrapes += 1;
    }

    /// As the rule tester reads it: `VxN` is a value and N more of it, `_xN` are N times nothing.
    fn written(&self) -> String {
        let mut text = String::new();
        for (series, values) in &self.series {
            let mut values = values.clone();
            values.resize(self.scrapes, None);
            let mut runs: Vec<(Option<String>, usize)> = Vec::new();
            for value in values {
                match runs.last_mut() {
                    Some((last, count)) if *last == value => *count += 1,
                    _ => runs.push((value, 1)),
                }
            }
            let runs = runs.iter().map(|(value, count)| match (value, count) {
                (Some(value), 1) => value.clone(),
                (Some(value), count) => format!("{value}x{}", count - 1),
                (None, 1) => "_".to_owned(),
                (None, count) => format!("_x{count}"),
            });
            let runs = runs.collect::<Vec<_>>().join(" ");
            writeln!(text, "      - series: '{series}'\n        values: '{runs}'").unwrap();
        }
        text
    }

    /// A test for the rule tester: what fires at which second.
    fn test(&self, about: &str, firing: &[(usize, &[&str])]) -> String {
        let mut text = format!(
            "# {about}\n# Recorded by crates/backstop-cli/tests/wire/alerts.rs from a running gateway; UPDATE_RECORDING=1 writes it anew.\nrule_files:\n  - ../backstop.rules.yml\nevaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n{}    promql_expr_test:\n",
            self.written()
        );
        for (second, alerts) in firing {
            writeln!(text, "      - expr: count by (alertname) (ALERTS{{alertstate=\"firing\"}})\n        eval_time: {second}s").unwrap();
            if alerts.is_empty() {
                text.push_str("        exp_samples: []\n");
                continue;
            }
            text.push_str("        exp_samples:\n");
            for alert in *alerts {
                writeln!(text, "          - labels: '{{alertname=\"{alert}\"}}'\n            value: 1")
                    .unwrap();
            }
        }
        text
    }
}

/// Every metric that a text names.
pub fn names(text: &str) -> Vec<&str> {
    let is_of_name =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
    text.match_indices("backstop_")
        .filter(|(at, _)| !text[..*at].ends_with(is_of_name))
        .map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|character| !is_of_name(character)).unwrap_or(rest.len())]
        })
        .collect()
}

/// Runs the rule tester over a file.
fn holds(file: &Path) {
    let output = Command::new("promtool").args(["test", "rules"]).arg(file).output();
    let output = output.expect("promtool, which scripts/test-servers installs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        file.display(),
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// What was recorded just now, and what lies beside the rules.
fn both_hold(name: &str, recorded: &str) {
    let kept = folder().join("tests").join(name);
    if std::env::var_os("UPDATE_RECORDING").is_some() {
        std::fs::write(&kept, recorded).unwrap();
    }
    let fresh = crate::support::gateway::folder();
    std::fs::create_dir_all(fresh.join("tests")).unwrap();
    std::fs::write(fresh.join("backstop.rules.yml"), RULES).unwrap();
    let file = fresh.join("tests").join(name);
    std::fs::write(&file, recorded).unwrap();
    holds(&file);
    holds(&kept);
    std::fs::remove_dir_all(fresh).unwrap();
}

/// From the second 300 on `catalog` refuses connections: of all answers six in ten are copies, and all are 200. At 300 + 120 s it has
/// alerted. 216 s into it (6 tenths of six minutes) the copies are on the way to their end, and after 360 s
/// they are refused. Back at 750 s, all is quiet a quarter of an hour later.
#[test]
fn an_outage_of_200s_alerts_within_two_minutes() {
    run(async {
        let mut world = World::open().await;
        let before = world.pass(300, 5).await;
        assert_eq!(before.keys().collect::<Vec<_>>(), [&200]);
        world.catalog.refuse().await.unwrap();
        world.catalog.close_connections();
        let during = world.pass(345, 5).await;
        assert_eq!(during.keys().collect::<Vec<_>>(), [&200], "a dashboard of statuses shows nothing");
        let normal = world.gateway.metrics().await.sum("backstop_requests_total", &["outcome=\"fallback\""]);
        // Six of each ten of 1725, of which the last five are all of these six.
        assert_eq!(normal, 1032.0 + 5.0);
        let refused = world.pass(105, 5).await;
        assert!(refused[&503] > 150, "{refused:?}");
        world.catalog.accept_again().await.unwrap();
        world.pass(900, 5).await;
        assert_eq!(world.pages.count(), 2 * 1650, "the other dependency never knew");
        let (answers, route, refusals) =
            ("BackstopAnswersNotNormal", "BackstopRouteDegraded", "BackstopRequestsRefused");
        let (breaker, age) = ("BackstopBreakerOpen", "BackstopCopiesNearMaxAge");
        let firing: &[(usize, &[&str])] = &[
            (60, &[]),
            (300, &[]),
            (420, &[answers, breaker, route]),
            (540, &[answers, breaker, route]),
            (645, &[answers, breaker, age, route]),
            (750, &[answers, breaker, refusals]),
            (1635, &[]),
        ];
        let about = "An outage of one dependency, answered with 200 from copies, then refused, then over.";
        both_hold("outage.test.yml", &world.recording.test(about, firing));
    });
}

/// An hour with a lively part, a nearly silent one, and what a day has of single faults: one answer in two hundred is a 503, a
/// client leaves now and then, somebody asks for what is not there.
#[test]
fn a_quiet_hour_alerts_nobody() {
    run(async {
        let mut world = World::open().await;
        for round in 0..40 {
            let each = [8, 3, 1, 0][round % 4];
            world.catalog.script(Matcher::path("/p/3"), [Answer::new(503).into()]);
            world.catalog.script(Matcher::path("/p/4"), [Answer::new(404).into()]);
            world.pass(90, each).await;
            let _nobody_there = world.gateway.get("/nowhere", &[]).await;
        }
        let firing: Vec<(usize, &[&str])> = (1..=59).map(|minute| (minute * 60, &[][..])).collect();
        both_hold("quiet.test.yml", &world.recording.test("A quiet hour.", &firing));
    });
}

/// By hand, for each rule the least that it fires on, and one that it does not.
#[test]
fn each_alert_fires_on_what_it_is_for() {
    let file = folder().join("tests/each.test.yml");
    let text = std::fs::read_to_string(&file).unwrap();
    for line in RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(text.contains(&format!("alertname=\"{line}\"")), "{line} is tested");
    }
    holds(&file);
}

/// Whoever is woken finds out what it means and what to do.
#[test]
fn each_alert_is_explained() {
    let output =
        Command::new("promtool").args(["check", "rules"]).arg(folder().join("backstop.rules.yml")).output();
    assert!(output.expect("promtool").status.success());
    let page = std::fs::read_to_string(folder().join("../../docs/reference/alerts.md")).unwrap();
    let alerts: Vec<&str> = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 15);
    for part in ["severity: ", "summary: ", "description: ", "runbook: "] {
        let count = RULES.lines().filter(|line| line.trim().starts_with(part)).count();
        assert_eq!(count, alerts.len(), "{part}");
    }
    for alert in &alerts {
        assert!(page.contains(&format!("\n### {alert}\n")), "{alert}");
        assert!(
            RULES.contains(&format!("runbook: docs/reference/alerts.md#{}\n", alert.to_lowercase())),
            "{alert}"
        );
    }
    assert_eq!(page.matches("\n### Backstop").count(), alerts.len());
}
