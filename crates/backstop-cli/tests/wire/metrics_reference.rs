//! The reference of metrics against the metrics of a running gateway, and whatever else names metrics against both.
//!
//! The last section of the page is generated: name, type, unit, labels and help, as the gateway shows them. The tables above it are
//! written by hand and explain; they name the same metrics. `UPDATE_REFERENCE=1` writes the generated section anew.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backstop_lab::client;

use crate::alerts::names;
use crate::metrics::with_everything;
use crate::raw::Wires;
use crate::support::run;

const BEGIN: &str = "<!-- generated: UPDATE_REFERENCE=1 cargo nextest run -p backstop-cli --test wire metrics_reference -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn page() -> PathBuf {
    root().join("docs/reference/metrics.md")
}

/// One metric, by the name that its samples have.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
    has_samples: bool,
}

/// Every metric of an exposition.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut named = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            families.entry(name.to_owned()).or_default().help = help.trim_end_matches('.').to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            name.clone_into(&mut named);
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if !line.starts_with('#') {
            let family = families.get_mut(&named).expect("a family before its samples");
            family.has_samples = true;
            let labels = line
                .split_once('{')
                .and_then(|(_, rest)| rest.rsplit_once('}'))
                .map_or("", |(labels, _)| labels);
            // A value holds no quote: names of the policy and words of closed lists.
            let labels =
                labels.split("\",").filter_map(|label| label.split_once("=\"")).map(|(name, _)| name);
            family.labels.extend(labels.filter(|name| *name != "le").map(str::to_owned));
        }
    }
    let name = |base: String, kind: &str| if kind == "counter" { format!("{base}_total") } else { base };
    families.into_iter().map(|(base, family)| (name(base, &family.kind), family)).collect()
}

/// By the words at the end of a name (<https://prometheus.io/docs/practices/naming/>).
fn unit(name: &str) -> &'static str {
    match name.trim_end_matches("_total").rsplit('_').next() {
        Some("seconds") => "seconds",
        Some("bytes") => "bytes",
        Some("ratio" | "share") => "share of 1",
        _ => "",
    }
}

/// What a gateway shows that has something of everything, and has answered a request on a route that keeps copies.
async fn shown() -> String {
    let wires = Wires::with(with_everything).await;
    assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
    client::get(wires.gateway.admin, "/metrics", &[]).await.unwrap().text()
}

/// The rows of the tables that are written by hand: name, type and labels.
fn by_hand(page: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (cells[0].trim_end_matches('`').to_owned(), (cells[1].to_owned(), labels))
    })
    .collect()
}

#[test]
fn the_reference_has_every_metric_as_it_is() {
    run(async {
        let families = families(&shown().await);
        let text = std::fs::read_to_string(page()).unwrap();
        let (hand, generated) = text.split_once(BEGIN).expect("the generated section");
        let hand = by_hand(hand);
        assert_eq!(
            hand.keys().collect::<Vec<_>>(),
            families.keys().collect::<Vec<_>>(),
            "what is explained, and what there is"
        );
        let mut rows = String::from("\n| metric | type | unit | labels | help |\n|---|---|---|---|---|\n");
        for (name, family) in &families {
            let (kind, labels) = &hand[name];
            assert_eq!(*kind, family.kind, "{name}");
            if family.has_samples {
                assert_eq!(*labels, family.labels, "{name}");
            }
            let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
            rows += &format!("| {name} | {} | {} | {labels} | {} |\n", family.kind, unit(name), family.help);
        }
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            let (hand, _) = text.split_once(BEGIN).unwrap();
            std::fs::write(page(), format!("{hand}{BEGIN}{rows}")).unwrap();
        } else {
            assert_eq!(generated, rows, "run with UPDATE_REFERENCE=1");
        }
    });
}

/// A rule or a panel on a name that nobody writes would be silent for ever.
#[test]
fn rules_and_dashboard_name_nothing_that_is_not_there() {
    run(async {
        let families = families(&shown().await);
        let is_there = |name: &str| {
            let of_histogram =
                ["_bucket", "_sum", "_count"].iter().filter_map(|part| name.strip_suffix(part));
            families.contains_key(name)
                || of_histogram
                    .into_iter()
                    .any(|base| families.get(base).is_some_and(|family| family.kind == "histogram"))
        };
        let mut files = vec![
            root().join("deploy/grafana/backstop.json"),
            root().join("deploy/prometheus/backstop.rules.yml"),
        ];
        files.extend(
            std::fs::read_dir(root().join("deploy/prometheus/tests"))
                .unwrap()
                .map(|entry| entry.unwrap().path()),
        );
        assert!(files.len() >= 5);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let named: BTreeSet<&str> = names(&text).into_iter().collect();
            assert!(named.len() > 3, "{}", file.display());
            for name in named {
                assert!(is_there(name), "{} names {name}", file.display());
            }
        }
    });
}

/// What a dashboard needs to be imported: a title, a schema, panels that have a place, and queries that name the data source that is
/// chosen at the import.
#[test]
fn the_dashboard_can_be_imported() {
    let text = std::fs::read_to_string(root().join("deploy/grafana/backstop.json")).unwrap();
    let board: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(board["schemaVersion"].as_u64().unwrap() >= 36);
    assert_eq!((&board["id"], board["title"].as_str()), (&serde_json::Value::Null, Some("Backstop")));
    let variables = board["templating"]["list"].as_array().unwrap();
    assert!(
        variables.iter().any(|variable| variable["type"] == "datasource" && variable["name"] == "datasource")
    );
    let panels = board["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "each has a number of its own");
        let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(place[0] + place[2] <= 24, "{panel}");
        for x in place[0]..place[0] + place[2] {
            for y in place[1]..place[1] + place[3] {
                assert!(taken.insert((x, y)), "panels lie side by side: {}", panel["title"]);
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(!panel["description"].as_str().unwrap().is_empty());
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            assert!(
                !target["expr"].as_str().unwrap().is_empty()
                    && !target["legendFormat"].as_str().unwrap().is_empty()
            );
        }
    }
}

/// Every query is one that Prometheus can read: each becomes a recording rule, which its own tool then checks.
#[test]
fn every_query_of_the_dashboard_is_one() {
    let text = std::fs::read_to_string(root().join("deploy/grafana/backstop.json")).unwrap();
    let board: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut rules = String::from("groups:\n  - name: panels\n    rules:\n");
    let mut count = 0;
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            rules +=
                &format!("      - record: panel:{count}\n        expr: {}\n", serde_json::json!(expression));
            count += 1;
        }
    }
    assert!(count > 20);
    let folder = crate::support::gateway::folder();
    let file = folder.join("panels.yml");
    std::fs::write(&file, &rules).unwrap();
    let output = Command::new("promtool").args(["check", "rules"]).arg(&file).output().expect("promtool");
    assert!(output.status.success(), "{}\n{rules}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

/// `promtool check metrics` reads the older text format, in which a counter's family has the name of its samples.
#[test]
fn promtool_has_nothing_to_say_about_the_metrics() {
    run(async {
        let text = shown().await;
        let mut older = String::new();
        let counters: BTreeSet<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
        for line in text.lines().filter(|line| *line != "# EOF") {
            let is_of_counter =
                |rest: &str| rest.split(' ').next().is_some_and(|name| counters.contains(name));
            match line.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')) {
                Some((word @ ("HELP" | "TYPE"), rest)) if line.starts_with('#') && is_of_counter(rest) => {
                    let (name, rest) = rest.split_once(' ').unwrap();
                    older += &format!("# {word} {name}_total {rest}\n");
                }
                _ => older += &format!("{line}\n"),
            }
        }
        let mut tool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool");
        tool.stdin.take().unwrap().write_all(older.as_bytes()).unwrap();
        let output = tool.wait_with_output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    });
}
