//! Repositories, builds, and who proves where an upload comes from.

use super::parse_host_and_port;
use clap::{ArgAction, Args};
use contract::{
    WebUrl,
    text::{GitRef, RepositoryName},
    trusted_publishers::GITHUB,
};
use std::path::PathBuf;

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
    /// Build users' repositories even if other machines can reach the service. A build is not
    /// isolated: its Dockerfile can reach everything on the network of this machine.
    #[arg(
        long,
        env = "SVC_TRUST_BUILDS",
        action = ArgAction::Set,
        num_args = 0..=1,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub trust_builds: bool,
    /// Who may issue identity tokens of CI jobs, in the form of GitHub's.
    #[arg(long, env = "SVC_OIDC_ISSUERS", value_delimiter = ',', default_value = GITHUB)]
    pub oidc_issuers: Vec<WebUrl>,
    /// A folder with trusted roots of Sigstore (`trusted_root.json` files), in place of those of the
    /// program. The service reads the files again when they change.
    #[arg(long, env = "SVC_TRUSTED_ROOTS")]
    pub trusted_roots: Option<PathBuf>,
}

fn parse_central(text: &str) -> Result<(RepositoryName, GitRef), String> {
    let (repository, git_ref) = text.split_once('@').unwrap_or((text, "main"));
    Ok((repository.parse()?, git_ref.parse()?))
}
