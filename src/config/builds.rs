//! Repositories, builds, and who proves where an upload comes from.

use super::parse_host_and_port;
use actors::ports::site::BuildSize;
use clap::Args;
use container_engine::docker::BUILDER_BASE;
use contract::{
    WebUrl,
    text::{GitRef, RepositoryName},
    trusted_publishers::GITHUB,
};
use std::{path::PathBuf, thread::available_parallelism};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Repositories and builds")]
pub struct BuildArgs {
    /// The client id or the app id of this service's GitHub App. With an app, repositories on GitHub
    /// need no token, and their builds run in GitHub Actions.
    #[arg(long, env = "SVC_GITHUB_APP_ID", requires = "github_app_key")]
    pub github_app_id: Option<String>,
    /// The file with the private key of the GitHub App.
    #[arg(long, env = "SVC_GITHUB_APP_KEY", requires = "github_app_id")]
    pub github_app_key: Option<PathBuf>,
    /// The address of GitHub's pages and repositories.
    #[arg(long, env = "SVC_GITHUB_URL", default_value = "https://github.com")]
    pub github_url: String,
    /// The address of GitHub's API. That of a GitHub Enterprise Server ends in `/api/v3`.
    #[arg(long, env = "SVC_GITHUB_API_URL", default_value = "https://api.github.com")]
    pub github_api_url: String,
    /// A repository of this service on GitHub with the workflow `svc-central.yml`, such as
    /// acme/svc-builds or acme/svc-builds@v1. Its GitHub Actions build the apps whose own repository
    /// does not. The default branch of the reference is main.
    #[arg(
        long,
        env = "SVC_CENTRAL_REPOSITORY",
        requires = "github_app_id",
        value_parser = parse_central
    )]
    pub central_repository: Option<(RepositoryName, GitRef)>,
    /// How long a build may take, in seconds.
    #[arg(long, env = "SVC_BUILD_LIMIT", default_value_t = 7200)]
    pub build_limit: u64,
    /// Hosts of git repositories that may lie on the internal network, such as
    /// git.example.com:8443, separated by commas. The default port is 443, also for ssh. All other
    /// hosts must be on the public internet.
    #[arg(
        long,
        env = "SVC_GIT_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub git_private_hosts: Vec<(String, u16)>,
    /// Hosts that isolated builds of container images reach although they are on the internal network,
    /// such as registry.example.com:5000, separated by commas. 127.0.0.1 is this machine. All other
    /// hosts must be on the public internet.
    #[arg(
        long,
        env = "SVC_BUILD_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub build_private_hosts: Vec<(String, u16)>,
    /// The image from which the service makes that of isolated builds: Debian 13 or later, or 14 for
    /// `COPY --link`. It is pulled without a login if it is not on the machine of the container engine.
    #[arg(long, env = "SVC_BUILDER_BASE_IMAGE", default_value = BUILDER_BASE)]
    pub builder_base_image: String,
    /// The memory of an isolated build, in MiB.
    #[arg(long, env = "SVC_BUILD_MEMORY", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(256..))]
    pub build_memory: u32,
    /// What an isolated build may write, its image included, in MiB. The image takes its room about three
    /// times.
    #[arg(long, env = "SVC_BUILD_DISK", default_value_t = 16384, value_parser = clap::value_parser!(u32).range(512..))]
    pub build_disk: u32,
    /// The processors of an isolated build. The default is half of this machine's, and at least one.
    #[arg(long, env = "SVC_BUILD_CPUS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub build_cpus: Option<u32>,
    /// Who may issue identity tokens of CI jobs, in the form of GitHub's.
    #[arg(long, env = "SVC_OIDC_ISSUERS", value_delimiter = ',', default_value = GITHUB)]
    pub oidc_issuers: Vec<WebUrl>,
    /// A folder with trusted roots of Sigstore (`trusted_root.json` files), in place of those of the
    /// program. The service reads the files again when they change.
    #[arg(long, env = "SVC_TRUSTED_ROOTS")]
    pub trusted_roots: Option<PathBuf>,
}

impl BuildArgs {
    /// How much of the machine an isolated build may have.
    pub fn size(&self) -> BuildSize {
        let half = || available_parallelism().map_or(1, |all| (all.get() / 2).max(1));
        let cpus = self.build_cpus.unwrap_or_else(|| u32::try_from(half()).unwrap_or(1));
        BuildSize {
            memory: u64::from(self.build_memory) << 20,
            cpu_millis: cpus.saturating_mul(1000),
            disk: u64::from(self.build_disk) << 20,
        }
    }
}

fn parse_central(text: &str) -> Result<(RepositoryName, GitRef), String> {
    let (repository, git_ref) = text.split_once('@').unwrap_or((text, "main"));
    Ok((repository.parse()?, git_ref.parse()?))
}
