//! The declarations of `svc engine`.

use crate::values::Label;
use clap::{Args, Subcommand};
use contract::{
    BackupId, EngineId, InstanceId, Name,
    ssh::SshHostKey,
    text::{EngineAddress, PrivateAddress},
};
use std::path::PathBuf;

/// The keys by which an engine is reached.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct EngineKeyArgs {
    /// Over TLS: the folder with ca.pem, cert.pem and key.pem of a client
    #[arg(long, value_name = "FOLDER", conflicts_with = "key")]
    pub certificates: Option<PathBuf>,
    /// Over ssh: the file with a private key of OpenSSH, without a pass phrase
    #[arg(long, value_name = "FILE", requires = "host_key")]
    pub key: Option<PathBuf>,
    /// Over ssh: the key of the host, such as "ssh-ed25519 AAAA…"; cut -d " " -f 1,2 /etc/ssh/ssh_host_ed25519_key.pub
    /// prints it there
    #[arg(long, value_name = "KEY", requires = "key", conflicts_with = "certificates")]
    pub host_key: Option<SshHostKey>,
}

/// The commands about container engines.
#[derive(Debug, Subcommand)]
pub enum EngineCommand {
    /// Add a Docker engine of another machine, which is reached over TLS or over ssh
    Add {
        /// What people call the engine
        name: Name,
        /// Where its Docker API is: 10.0.0.21:2376 over TLS, or ssh://docker@10.0.0.21
        #[arg(long)]
        address: EngineAddress,
        /// The address of its machine on which servers are published, such as 10.0.0.21
        #[arg(long)]
        private_address: PrivateAddress,
        #[command(flatten)]
        keys: EngineKeyArgs,
        /// A label that instances may ask for, such as region=eu; repeat it for each
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<Label>,
    },
    /// List the container engines, with their room
    List,
    /// List the instances of an engine
    Instances {
        /// The id of the engine (eng_…); without it, the engine of SVC_DOCKER_HOST
        engine: Option<EngineId>,
        /// List all instances, not only the newest
        #[arg(long)]
        all: bool,
    },
    /// Move an instance to another engine, with its data
    Move {
        /// The id of the instance (ins_…)
        instance: InstanceId,
        /// The id of the engine (eng_…); without it, the engine of SVC_DOCKER_HOST
        #[arg(long = "to", value_name = "ENGINE")]
        engine: Option<EngineId>,
    },
    /// Begin an instance anew on another engine, from a backup, because its own engine is lost
    Recover {
        /// The id of the instance (ins_…)
        instance: InstanceId,
        /// The id of the other engine (eng_…); without it, the engine of SVC_DOCKER_HOST
        #[arg(long = "to", value_name = "ENGINE")]
        engine: Option<EngineId>,
        /// The backup that it begins with (bak_…); without it, the newest one is named
        #[arg(long)]
        backup: Option<BackupId>,
    },
    /// Replace the keys of an engine, before certificates expire
    Renew {
        /// The id of the engine (eng_…)
        engine: EngineId,
        #[command(flatten)]
        keys: EngineKeyArgs,
    },
    /// Place no more instances on an engine
    Drain {
        /// The id of the engine (eng_…); without it, the engine of SVC_DOCKER_HOST
        engine: Option<EngineId>,
        /// Place instances on it again
        #[arg(long)]
        undo: bool,
    },
    /// Forget an engine that has no instances
    Remove {
        /// The id of the engine (eng_…)
        engine: EngineId,
        /// Its machine is gone for good, with the data of instances that were deleted or moved away
        #[arg(long)]
        lost: bool,
    },
}
