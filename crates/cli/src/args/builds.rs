//! The commands about repositories and builds.

use super::Listing;
use crate::values::one_of;
use clap::{Args, Subcommand};
use contract::{
    AppId, BuildId, Name, OrganizationId, PublisherId,
    apps::Platform,
    ssh::SshFingerprint,
    text::{
        CiEvent, Environment, GitRef, GitUrl, HostId, RefPattern, RepositoryName, Slug,
        WorkflowFile,
    },
};
use std::path::PathBuf;

/// `svc publisher`.
#[derive(Debug, Subcommand)]
pub enum PublisherCommand {
    /// Trust a workflow of a repository on GitHub to upload artifacts of an app
    Add {
        /// The repository, such as acme/app
        #[arg(long)]
        repository: RepositoryName,
        /// The file of the workflow in .github/workflows
        #[arg(long, default_value = "svc-build.yml")]
        workflow: WorkflowFile,
        /// Only jobs of this environment
        #[arg(long)]
        environment: Option<Environment>,
        /// Only runs of this branch or tag, such as refs/heads/main or refs/tags/v*
        #[arg(long = "ref")]
        git_ref: Option<RefPattern>,
        /// Only runs that this event begins; repeatable. Without it: push, release, workflow_dispatch
        /// and schedule
        #[arg(long = "event")]
        events: Vec<CiEvent>,
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
    },
    /// List the workflows that an app trusts
    List {
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
        /// List all, not only the newest
        #[arg(long)]
        all: bool,
    },
    /// Trust a workflow no longer
    Remove {
        /// The id, as in `svc publisher list`
        publisher: PublisherId,
    },
}

/// `svc init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// A platform; by default those that the folders of the repository tell of
    #[arg(long, value_delimiter = ',', value_parser = one_of::<Platform>())]
    pub platform: Vec<Platform>,
    /// The repository with the reusable workflow; by default svc-ci of the same owner on GitHub
    #[arg(long, value_name = "OWNER/REPOSITORY")]
    pub workflow: Option<String>,
}

/// `svc build`.
#[derive(Debug, Subcommand)]
pub enum BuildCommand {
    /// Build an app from its connected repository
    Trigger {
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
        /// The platform to build for
        #[arg(long, value_parser = one_of::<Platform>())]
        platform: Platform,
        /// The build profile
        #[arg(long, default_value = "production")]
        profile: Name,
        /// A branch, tag or commit; by default the connected branch
        #[arg(long = "ref", value_name = "REF")]
        git_ref: Option<GitRef>,
        /// A label that the runner needs in addition to the platform; repeat it for each
        #[arg(long, value_delimiter = ',')]
        label: Vec<Slug>,
        /// Print the log, and wait for the end
        #[arg(long, short)]
        follow: bool,
    },
    /// Show a build
    Show {
        /// The id of the build (bld_…)
        build: BuildId,
    },
    /// Cancel a build
    Cancel {
        /// The id of the build (bld_…)
        build: BuildId,
    },
}

/// `svc builds`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BuildsArgs {
    #[command(subcommand)]
    pub command: Option<BuildsCommand>,
    #[command(flatten)]
    pub listing: Listing,
}

/// The commands below `svc builds`.
#[derive(Debug, Subcommand)]
pub enum BuildsCommand {
    /// Print the log of a build
    Logs {
        /// The id of the build (bld_…)
        build: BuildId,
        /// Go on until the build ends; fail if it does not succeed
        #[arg(long, short)]
        follow: bool,
    },
}

/// `svc runner`.
#[derive(Debug, Args)]
pub struct RunnerArgs {
    /// What this machine can build: android, ios, and any other words that builds ask for
    #[arg(long, required = true, value_delimiter = ',')]
    pub labels: Vec<Slug>,
    /// The name of the runner; by default that of the machine
    #[arg(long)]
    pub name: Option<Name>,
    /// Execute the builds of this organization; repeat it for each
    #[arg(long, value_name = "ORGANIZATION", value_delimiter = ',')]
    pub organization: Vec<OrganizationId>,
    /// Execute the builds of this app; repeat it for each [env: SVC_APP_ID]
    #[arg(long, value_name = "APP", value_delimiter = ',')]
    pub app: Vec<AppId>,
    /// The user of this machine who runs the builds of a runner that is root; by default nobody
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Holds a folder for each build while it runs; by default the folder for temporary files
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
    /// A variable of the environment that builds get too; repeat it for each
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub pass_env: Vec<String>,
    /// End after one build
    #[arg(long)]
    pub once: bool,
}

/// `svc repo`.
#[derive(Debug, Subcommand)]
pub enum RepoCommand {
    /// Connect a repository to an app, in place of an earlier one, and check it
    Connect {
        /// The https or ssh address of the repository
        url: GitUrl,
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
        /// The branch; by default the repository's own default branch
        #[arg(long)]
        branch: Option<GitRef>,
        /// Read a token from standard input, with which the service may read the repository
        #[arg(long)]
        token_stdin: bool,
        /// The installation of the service's GitHub App; by default the one that GitHub names
        #[arg(long)]
        installation: Option<HostId>,
        /// The fingerprint of the key that an ssh host must have; by default the known one, or that of
        /// the first check
        #[arg(long, value_name = "FINGERPRINT")]
        host_key: Option<SshFingerprint>,
    },
    /// Check the repository of an app again
    Check {
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
    },
    /// Disconnect the repository of an app, and forget its token and its deploy key
    Disconnect {
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
    },
}
