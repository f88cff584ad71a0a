//! `backstop drill`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Drill {
    #[command(subcommand)]
    pub(crate) command: Option<DrillCommand>,
    /// The policy file. Its dependencies have to be there: they are called through proxies that fail on demand
    #[arg(value_name = "POLICY", required = true)]
    pub(crate) policy: Option<PathBuf>,
    /// A drill file: requests, faults and what has to hold
    #[arg(value_name = "DRILL")]
    pub(crate) drill: Option<PathBuf>,
    /// A ready drill, or `all`; several times for several. Default: all, unless there is a drill file
    #[arg(long, value_name = "NAME")]
    pub(crate) ready: Vec<String>,
    /// Lists the ready drills, what each concerns of this policy and how long it takes, and runs none
    #[arg(long)]
    pub(crate) list: bool,
    /// What stands for a parameter of paths, such as `product=42` or `product=42,43`. Default: 1
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair('='))]
    pub(crate) sample: Vec<(String, String)>,
    /// A field of every request of ready drills, such as `authorization: Bearer ...`
    #[arg(long, value_name = "NAME: VALUE", value_parser = pair(':'))]
    pub(crate) header: Vec<(String, String)>,
    /// Writes the report as one page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// What chance is drawn from: the same number draws the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DrillCommand {
    /// Measures in steps how much a dependency bears as an alternative, and writes the evidence that `verified` names
    Capacity(Capacity),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Capacity {
    /// The policy file
    #[arg(value_name = "POLICY")]
    pub(crate) policy: PathBuf,
    /// The dependency to measure, which is really called
    #[arg(long, value_name = "NAME")]
    pub(crate) dependency: String,
    /// What is asked with GET: a path that costs what an alternative's answers cost
    #[arg(long, value_name = "PATH")]
    pub(crate) path: String,
    /// A field of every request
    #[arg(long, value_name = "NAME: VALUE", value_parser = pair(':'))]
    pub(crate) header: Vec<(String, String)>,
    /// The first step
    #[arg(long, value_name = "RATE", default_value = "10/s", value_parser = rate)]
    pub(crate) from: u64,
    /// The last step. Never beyond the rate of a resource that it uses, unless `--beyond-policy`
    #[arg(long, value_name = "RATE", default_value = "1000/s", value_parser = rate)]
    pub(crate) to: u64,
    /// What it usually bears besides, which is sent at the same time
    #[arg(long, value_name = "RATE", default_value = "0/s", value_parser = rate)]
    pub(crate) baseline: u64,
    /// How long each step lasts
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = step)]
    pub(crate) step: Duration,
    /// What other load was present, in words, for whoever reads the evidence next
    #[arg(long, value_name = "TEXT")]
    pub(crate) load: Option<String>,
    /// For how many days the evidence counts
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: u32,
    /// Where the evidence is written. Default: the file that the policy's `verified` names
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Goes beyond the rates of the resources that it uses
    #[arg(long)]
    pub(crate) beyond_policy: bool,
}

fn pair(at: char) -> impl Fn(&str) -> Result<(String, String), String> + Clone + Send + Sync + 'static {
    move |text| match text.split_once(at) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("a name, `{at}` and a value are expected")),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("/s").and_then(|number| number.trim().parse().ok());
    number
        .filter(|rate| *rate <= 100_000)
        .ok_or_else(|| "a rate such as `200/s` is expected, at most 100000/s".to_owned())
}

fn step(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration such as `3s` or `500ms` is expected, from 200ms to 60s".to_owned();
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, 1000),
    };
    let ms =
        number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    Some(ms).filter(|ms| (200..=60_000).contains(ms)).map(Duration::from_millis).ok_or_else(wrong)
}
