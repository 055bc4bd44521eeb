//! Where the service keeps what it stores.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use store::{Nodes, Postgres};

/// The database that holds the store, if any.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Storage")]
pub struct DatabaseArgs {
    /// A PostgreSQL database for the store, such as postgres://user:password@host/database. The
    /// default is a folder of the data directory.
    #[arg(long, env = "SVC_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// A file with the address of the database, in place of SVC_STORE.
    #[arg(long, env = "SVC_STORE_FILE", conflicts_with = "store")]
    pub store_file: Option<PathBuf>,
}

impl DatabaseArgs {
    pub fn is_named(&self) -> bool {
        self.store.is_some() || self.store_file.is_some()
    }

    /// The database, if one is named.
    pub fn postgres(&self) -> Result<Option<Postgres>, String> {
        let read = |file: &PathBuf| {
            std::fs::read_to_string(file)
                .map_err(|e| format!("SVC_STORE_FILE: {}: {e}", file.display()))
        };
        let address = match (&self.store, &self.store_file) {
            (Some(address), _) => Some(address.clone()),
            (None, Some(file)) => Some(read(file)?),
            (None, None) => None,
        };
        address
            .map(|address| Postgres::parse(address.trim()).map_err(|e| e.to_string()))
            .transpose()
    }
}

/// How many services run on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NodesArg {
    /// This one alone.
    One,
    /// Several at the same time, which share the work.
    Several,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageArgs {
    /// The directory for run-time state: the store, secrets, staged uploads, artifacts and backups.
    #[arg(long, env = "SVC_DATA", default_value = "data/run")]
    pub data: PathBuf,
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// An S3 bucket for artifacts, such as s3://bucket/prefix. Credentials and endpoint come from
    /// the AWS_ variables. The default is a folder of the data directory.
    #[arg(long, env = "SVC_ARTIFACT_STORE")]
    pub artifact_store: Option<String>,
    /// Whether other services run on the same database at the same time. If so, uploads, backups of instances,
    /// folders and the archive of the audit log are in the bucket too.
    #[arg(long, env = "SVC_NODES", value_enum, default_value = "one")]
    pub nodes: NodesArg,
}

impl StorageArgs {
    /// What the processes of the store are to each other. Fails if several could not share their files.
    pub fn nodes(&self) -> Result<Nodes, String> {
        match self.nodes {
            NodesArg::One => Ok(Nodes::One),
            NodesArg::Several if !self.database.is_named() => {
                Err("SVC_NODES=several needs a database that all nodes use: set SVC_STORE".into())
            }
            NodesArg::Several if self.artifact_store.is_none() => {
                Err("SVC_NODES=several needs a bucket for the files of all nodes: set SVC_ARTIFACT_STORE".into())
            }
            NodesArg::Several => Ok(Nodes::Several),
        }
    }
}
