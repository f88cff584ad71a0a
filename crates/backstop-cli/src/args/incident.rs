//! An incident, from its file.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Incident {
    /// The gateway's policy file, which says where its files are
    #[arg(value_name = "POLICY")]
    pub(crate) policy: PathBuf,
    /// Which one. Default: the newest
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Writes the report into a file of its own
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// As it was written
    #[arg(long)]
    pub(crate) json: bool,
}
