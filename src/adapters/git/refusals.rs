//! What to do about the refusals of hosts.

use super::{Git, host_key};
use actors::ports::{Credential, Remote, SourceError};
use repository::ssh::other_host_key;

/// Says what to do about the usual refusals of hosts.
pub(super) async fn explained(git: &Git, e: SourceError, remote: &Remote) -> SourceError {
    let SourceError::Refused(said) = e else { return e };
    if let (Some(server), Some(Credential::DeployKey { access, .. })) =
        (remote.url.ssh(), &remote.credential)
        && is_about_host_key(&said)
    {
        return match host_key::presented(git, server).await {
            Ok(presented) => SourceError::Refused(other_host_key(
                &presented.fingerprint(),
                &access.host_key.fingerprint(),
            )),
            Err(e) => e,
        };
    }
    understood(said, remote.credential.as_ref())
}

/// Whether ssh does not accept the key of the host: it is another one, or one of another type.
fn is_about_host_key(said: &str) -> bool {
    said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED")
        || said.contains("Host key verification failed")
}

fn understood(said: String, credential: Option<&Credential>) -> SourceError {
    let is_about = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let passing = [
        "Failed to connect",
        "Couldn't connect",
        "Could not resolve host",
        "Connection refused",
        "Connection reset",
        "Connection timed out",
        "Connection closed",
        "Operation timed out",
        "No route to host",
        "Network is unreachable",
        "Timeout, server",
        "Operation too slow",
        "early EOF",
        "error: 429",
        "error: 5",
    ];
    if is_about(&passing) {
        return SourceError::Unreachable(said);
    }
    // Some hosts deny that a repository exists to those who may not read it.
    let denied = [
        "could not read Username",
        "Authentication failed",
        "error: 401",
        "error: 403",
        "Permission denied",
    ];
    let unknown =
        ["not found", "error: 404", "could not be found", "does not appear to be a git repository"];
    let why = if is_about(&denied) || is_about(&unknown) {
        match credential {
            Some(Credential::Token(_)) => {
                "the host does not accept the token for this repository, or there is no such \
                 repository: connect it again with a token that may read it"
            }
            Some(Credential::DeployKey { public, .. }) => &format!(
                "the host does not let svc read it, or there is no such repository: add this \
                 deploy key to the repository at its host: {public}"
            ),
            None => {
                "the repository is private or does not exist: connect it with a token that may \
                 read it"
            }
        }
    } else if is_about(&["error: 301", "error: 302", "error: 307", "error: 308"]) {
        "the host redirects this address: connect the address that it redirects to"
    } else if is_about(&["couldn't find remote ref"]) {
        "the repository has no such branch, tag or commit"
    } else {
        return SourceError::Refused(said);
    };
    SourceError::Refused(format!("{why} ({said})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::runners::SshAccess;

    #[test]
    fn a_refused_deploy_key_is_shown_to_be_added() {
        let public = "ssh-ed25519 AAAA svc app_1";
        let private_key =
            "-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----\n";
        let access = SshAccess {
            private_key: private_key.parse().unwrap(),
            host_key: "ssh-ed25519 AAAA".parse().unwrap(),
        };
        let key = Credential::DeployKey { access, public: public.parse().unwrap() };
        // What OpenSSH, GitHub, GitLab and git-upload-pack say.
        for said in [
            "git@host: Permission denied (publickey).",
            "ERROR: Repository not found.",
            "ERROR: The project you were looking for could not be found or you don't have permission",
            "fatal: '/app.git' does not appear to be a git repository",
        ] {
            let why = understood(said.into(), Some(&key)).to_string();
            let wanted = format!("add this deploy key to the repository at its host: {public}");
            assert!(why.contains(&wanted) && why.contains(said), "{why}");
        }
        for said in [
            "ssh: connect to host 127.0.0.1 port 22: Connection refused",
            "kex_exchange_identification: Connection closed by remote host",
        ] {
            assert_eq!(understood(said.into(), Some(&key)), SourceError::Unreachable(said.into()));
        }
    }
}
