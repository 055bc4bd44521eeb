//! Where the service keeps what it stores.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageArgs {
    /// The directory for run-time state: the store, secrets, staged uploads, artifacts and backups.
    #[arg(long, env = "SVC_DATA", default_value = "data/run")]
    pub data: PathBuf,
    /// An S3 bucket for artifacts, such as s3://bucket/prefix. Credentials and endpoint come from
    /// the AWS_ variables. The default is a folder of the data directory.
    #[arg(long, env = "SVC_ARTIFACT_STORE")]
    pub artifact_store: Option<String>,
}
