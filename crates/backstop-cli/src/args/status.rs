//! How a running gateway stands.

use std::path::PathBuf;

use super::Port;

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// The gateway's policy file, which says where its operators' port is
    #[arg(value_name = "POLICY", conflicts_with = "admin")]
    policy: Option<PathBuf>,
    /// Where the gateway's operators' port is: 127.0.0.1:9901 by default
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    /// Again each second, until Ctrl-C; goes on while the gateway is away
    #[arg(long)]
    pub(crate) watch: bool,
    /// As the gateway says it; with --watch one line each second
    #[arg(long)]
    pub(crate) json: bool,
}

impl Status {
    /// Where to ask.
    pub(crate) fn port(&self) -> Port {
        Port { admin: self.admin.clone(), policy: self.policy.clone() }
    }
}
