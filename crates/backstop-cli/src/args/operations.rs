//! `backstop operations`.

use std::path::PathBuf;

use backstop_engine::operation::{Decision, OperationId, State};
use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Operations {
    /// Lists operations, those that began first before the others
    List(List),
    /// Shows one operation with its history
    Show(Show),
    /// Decides an operation that needs a person. Nothing is sent again: whoever asks about it hears this from then on
    Resolve(Resolve),
}

/// Which gateway is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Port {
    /// The admin address of the gateway. Default: 127.0.0.1:9901
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "policy")]
    pub(crate) admin: Option<String>,
    /// The policy file that the gateway runs, to take the address from
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) port: Port,
    /// Only those in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(State::TOKENS))]
    pub(crate) state: Option<String>,
    /// Only those that began at this date or later, in UTC: 2026-01-31 or 2026-01-31T23:59:59Z
    #[arg(long, value_name = "DATE", conflicts_with = "after")]
    pub(crate) from: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Go on where a list ended, as it says
    #[arg(long, value_name = "MARK")]
    pub(crate) after: Option<String>,
    /// As the gateway says it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The operation's name: 32 hexadecimal digits
    #[arg(value_name = "ID")]
    pub(crate) id: OperationId,
    #[command(flatten)]
    pub(crate) port: Port,
    /// As the gateway says it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Resolve {
    /// The operation's name: 32 hexadecimal digits
    #[arg(value_name = "ID")]
    pub(crate) id: OperationId,
    #[command(flatten)]
    pub(crate) port: Port,
    /// What came of it
    #[arg(long, value_enum)]
    pub(crate) outcome: Outcome,
    /// Why, in one line: it stays in the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Who decides. Default: what the variable USER says
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Outcome {
    /// It was executed
    Succeeded,
    /// It was refused or declined, without effect
    Failed,
    /// It was not executed
    NotExecuted,
}

impl From<Outcome> for Decision {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Decision::Succeeded,
            Outcome::Failed => Decision::Failed,
            Outcome::NotExecuted => Decision::NotExecuted,
        }
    }
}
