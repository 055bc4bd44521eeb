//! The key of an ssh host.

use super::{
    Git,
    process::{cannot_run, limited, run_to_end},
};
use actors::ports::sources::SourceError;
use contract::{git_url::SshAddress, ssh::SshHostKey};
use remote::ssh::{HOST, IN_FOLDER, SshFolder};
use tempfile::TempDir;

/// The key that the host presents now. Does not sign in.
pub(super) async fn presented(
    git: &Git,
    server: SshAddress<'_>,
) -> Result<SshHostKey, SourceError> {
    let address = git.resolve_ssh(server).await?;
    let folder = TempDir::new_in(&git.folder).map_err(cannot_run)?;
    let folder_of_ssh =
        SshFolder::create_to_meet(folder.path().join("ssh"), address).map_err(cannot_run)?;
    let mut command = limited("ssh", folder_of_ssh.path());
    command.args(IN_FOLDER).args(["-l", server.user, "-p", &server.port.to_string()]);
    // The command is for a host that lets everybody in.
    command.args([HOST, "exit"]);
    let ended = run_to_end(command, 0).await?;
    // The end of the program says nothing: the host refuses whoever has no key.
    folder_of_ssh.met().ok_or_else(|| {
        let SshAddress { host, port, .. } = server;
        SourceError::Unreachable(format!(
            "{host}:{port} does not answer as an ssh host: {}",
            ended.said
        ))
    })
}
