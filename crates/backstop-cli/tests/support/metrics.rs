//! What the operators' port says.

use std::net::SocketAddr;

use backstop_lab::client;

/// One reading of `/metrics`.
#[derive(Clone, Debug)]
pub struct Metrics(Vec<(String, f64)>);

/// Whether the reference says that only series of this metric are shown that are not zero.
fn may_be_absent(name: &str) -> bool {
    const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");
    let row = format!("| `{name}` |");
    REFERENCE.lines().any(|line| line.starts_with(&row) && line.contains("Only series that are not zero"))
}

impl Metrics {
    pub async fn read(admin: SocketAddr) -> Self {
        let response = client::get(admin, "/metrics", &[]).await.expect("the operators' port answers");
        assert_eq!(response.status(), 200);
        Self::parse(&response.text())
    }

    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with("# EOF\n"), "OpenMetrics text ends with its mark");
        let samples =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
        Self(samples.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect())
    }

    /// The sum of all series of a metric that have every given label, such as `outcome="normal"`. There must be one, unless
    /// the reference says that this metric shows only what is not zero: a name or a label that nobody writes is no zero.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let of_name = self.0.iter().filter(|(series, _)| series.split('{').next() == Some(name));
        let values: Vec<f64> = of_name
            .filter(|(series, _)| labels.iter().all(|label| series.contains(label)))
            .map(|(_, value)| *value)
            .collect();
        assert!(!values.is_empty() || may_be_absent(name), "no series {name} with {labels:?}");
        values.iter().sum()
    }

    /// As [`Metrics::sum`], of a metric that may show no such series yet.
    pub fn sum_or_none(&self, name: &str, labels: &[&str]) -> f64 {
        let of_name = self.0.iter().filter(|(series, _)| series.split('{').next() == Some(name));
        of_name
            .filter(|(series, _)| labels.iter().all(|label| series.contains(label)))
            .map(|(_, value)| *value)
            .sum()
    }

    /// Requests of all routes with this outcome.
    pub fn outcome(&self, outcome: &str) -> u64 {
        self.sum("backstop_requests_total", &[&format!("outcome=\"{outcome}\"")]) as u64
    }

    /// Places taken anywhere.
    pub fn in_flight(&self) -> u64 {
        self.sum("backstop_in_flight", &[]) as u64
    }

    /// Failures counted against any dependency.
    pub fn dependency_failures(&self) -> u64 {
        self.sum("backstop_dependency_failures_total", &[]) as u64
    }
}

/// Requests of all routes by what they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    pub normal: u64,
    pub fallback: u64,
    pub rejected: u64,
    pub failed: u64,
    pub abandoned: u64,
}

impl Metrics {
    /// Requests of all routes by what they came to.
    pub fn outcomes(&self) -> Outcomes {
        Outcomes {
            normal: self.outcome("normal"),
            fallback: self.outcome("fallback"),
            rejected: self.outcome("rejected"),
            failed: self.outcome("failed"),
            abandoned: self.outcome("abandoned"),
        }
    }

    /// Requests with this outcome for this reason.
    pub fn requests(&self, outcome: &str, reason: &str) -> u64 {
        let labels = [format!("outcome=\"{outcome}\""), format!("reason=\"{reason}\"")];
        self.sum("backstop_requests_total", &[&labels[0], &labels[1]]) as u64
    }

    /// Failures of this kind counted against any dependency.
    pub fn failures(&self, kind: &str) -> u64 {
        self.sum("backstop_dependency_failures_total", &[&format!("kind=\"{kind}\"")]) as u64
    }
}
