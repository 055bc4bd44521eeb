//! What to do about the refusals of hosts.

use super::{Git, host_key};
use actors::ports::sources::{GitCredential, Remote, SourceError};
use repository::other_host_key;

/// Says what to do about the usual refusals of hosts.
pub(super) async fn explained(git: &Git, e: SourceError, remote: &Remote) -> SourceError {
    let SourceError::Refused(said) = e else { return e };
    if let (Some(server), Some(GitCredential::DeployKey { access, .. })) =
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
    understood(&said, remote.credential.as_ref())
}

/// Whether ssh does not accept the key of the host: it is another one, or one of another type.
fn is_about_host_key(said: &str) -> bool {
    said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED")
        || said.contains("Host key verification failed")
}

/// What git and ssh say when a host cannot be reached, and what that means.
const PASSING: &[(&[&str], &str)] = &[
    (&["Could not resolve host"], "its name is not known"),
    (&["Connection refused", "Couldn't connect", "Failed to connect"], "nothing answers there"),
    (&["No route to host", "Network is unreachable"], "there is no way to it"),
    (
        &["Connection timed out", "Operation timed out", "Timeout, server", "Operation too slow"],
        "it does not answer in time",
    ),
    (&["error: 429", "error: 5"], "it is out of order or asks for patience"),
    (&["Connection reset", "Connection closed", "early EOF"], "the connection broke off"),
];

/// A sentence in place of what git and ssh said, which only the log shows.
fn understood(said: &str, credential: Option<&GitCredential>) -> SourceError {
    tracing::debug!(said, "git did not read a repository");
    let is_about = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if let Some((_, why)) = PASSING.iter().find(|(words, _)| is_about(words)) {
        return SourceError::Unreachable(format!(
            "the host of the repository cannot be reached: {why}"
        ));
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
    SourceError::Refused(if is_about(&denied) || is_about(&unknown) {
        match credential {
            Some(GitCredential::Token(_)) => {
                "the host does not accept the token for this repository, or there is no such \
                 repository: connect it again with a token that may read it"
                    .into()
            }
            Some(GitCredential::DeployKey { public, .. }) => format!(
                "the host does not let svc read it, or there is no such repository: add this \
                 deploy key to the repository at its host: {public}"
            ),
            None => {
                "the repository is private or does not exist: connect it with a token that may \
                 read it"
                    .into()
            }
        }
    } else if is_about(&["error: 301", "error: 302", "error: 307", "error: 308"]) {
        "the host redirects this address: connect the address that it redirects to".into()
    } else if is_about(&["couldn't find remote ref"]) {
        "the repository has no such branch, tag or commit".into()
    } else if is_about(&["SSL", "certificate"]) {
        "the host has no valid certificate: it must have one that is trusted everywhere".into()
    } else {
        format!("git cannot read the repository: {}", first_reason(said))
    })
}

/// The first reason of git, without the words by which programs mark it.
fn first_reason(said: &str) -> &str {
    let said = said.trim_start_matches("git: ");
    let mut lines = said.split("; ");
    let reason = lines.find(|line| !line.starts_with("warning:")).unwrap_or(said);
    reason.trim_start_matches("fatal: ").trim_start_matches("error: ")
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
        let key = GitCredential::DeployKey { access, public: public.parse().unwrap() };
        // What OpenSSH, GitHub, GitLab and git-upload-pack say.
        for said in [
            "git@host: Permission denied (publickey).",
            "ERROR: Repository not found.",
            "ERROR: The project you were looking for could not be found or you don't have permission",
            "fatal: '/app.git' does not appear to be a git repository",
        ] {
            let why = understood(said, Some(&key)).to_string();
            let wanted = format!("add this deploy key to the repository at its host: {public}");
            assert!(why.ends_with(&wanted), "{why}");
        }
        for (said, why) in [
            ("ssh: connect to host 127.0.0.1 port 22: Connection refused", "nothing answers there"),
            (
                "kex_exchange_identification: Connection closed by remote host",
                "the connection broke off",
            ),
        ] {
            let why = format!("the host of the repository cannot be reached: {why}");
            assert_eq!(understood(said, Some(&key)), SourceError::Unreachable(why));
        }
    }

    #[test]
    fn what_git_says_is_not_passed_on_raw() {
        let said = "git: warning: redirecting; fatal: protocol error: bad line length; fatal: x";
        let why = understood(said, None).to_string();
        assert_eq!(why, "git cannot read the repository: protocol error: bad line length");
        let said =
            "git: fatal: unable to access 'https://h/a/': server certificate verification failed";
        assert!(understood(said, None).to_string().contains("valid certificate"));
    }
}
