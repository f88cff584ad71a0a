//! What can be said on the command line, and nothing of what is done about it.

mod drill;
mod explain;
mod incident;
mod operations;
mod status;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use drill::{Capacity, Drill, DrillCommand};
pub(crate) use explain::{Caller, Explain};
pub(crate) use incident::Incident;
pub(crate) use operations::{List, Operations, Port, Resolve, Show};
pub(crate) use status::Status;

/// Answers with what was accepted beforehand while something that an HTTP API depends on is broken.
#[derive(Debug, Parser)]
#[command(name = "backstop", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves a policy until it is stopped (SIGTERM or Ctrl-C; requests under way finish)
    Run(Run),
    /// Says everything that is wrong with a policy, and what is risky about it
    Check(Check),
    /// Says what a request would get, step by step, and which line of the policy decides it. Nothing is asked or written
    Explain(Box<Explain>),
    /// Shows one shop twice on a page of this machine, behind a plain proxy and behind Backstop, with buttons that break it
    Demo(Demo),
    /// Rehearses a policy's failures against its own dependencies, through proxies that fail on demand
    Drill(Box<Drill>),
    /// How a running gateway stands: what is degraded, since when and why. Exits with 0 if all is as it should be, 1 if not,
    /// 2 if it cannot be asked
    Status(Status),
    /// What an incident was and what it cost, from its file: also while the gateway is down
    Incident(Incident),
    /// The ledger of operations that must happen once
    #[command(subcommand)]
    Ledger(Ledger),
    /// Operations that must happen once, of a running gateway: what is known of them, and a person's decision
    #[command(subcommand)]
    Operations(Operations),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// Measures what a disk takes: the time of a flush, and whole operations per second, each with two commits
    Bench(LedgerBench),
}

#[derive(Debug, clap::Args)]
pub(crate) struct LedgerBench {
    /// A folder on the disk to measure: that of the store. What is written is in a folder of its own, which goes afterwards
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// How long each of the three measurements lasts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) seconds: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The policy file
    #[arg(value_name = "POLICY")]
    pub(crate) policy: PathBuf,
    /// How log lines are written to standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub(crate) log: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object a line
    Json,
    /// For people
    Text,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The policy file
    #[arg(value_name = "POLICY")]
    pub(crate) policy: PathBuf,
    /// How findings are written to standard output
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// Fail on warnings too
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, with the offending text underlined
    Human,
    /// One JSON document
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Plays an incident in this terminal instead: a small shop, its failing product service, and what clients get
    #[arg(long)]
    pub(crate) terminal: bool,
    /// How long the page is served. Default: until it is stopped, or for 60 s where standard output is no terminal
    #[arg(long = "for", value_name = "SECONDS", conflicts_with = "terminal", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) seconds: Option<u64>,
    /// Does not open a browser
    #[arg(long, conflicts_with = "terminal")]
    pub(crate) no_open: bool,
    /// The policy to play with in the terminal
    ///
    /// Its dependencies `catalog` and `recommender` are served by the demo itself. Default: the shop of the examples,
    /// which is part of this binary
    #[arg(long, value_name = "POLICY", requires = "terminal")]
    pub(crate) policy: Option<PathBuf>,
    /// Requests per second in the terminal
    #[arg(long, value_name = "N", requires = "terminal", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=2000))]
    pub(crate) rate: u32,
}
