//! Git repositories.

use super::PortError;
use crate::runtime::turns::Tenant;
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    runners::SshAccess,
    ssh::{SshHostKey, SshPrivateKey, SshPublicKey},
    text::{AccessToken, GitRef, GitUrl},
};
use futures_util::stream::BoxStream;
use repository::Files;
use std::time::Duration;

/// Git repositories. The work waits for turns, which tenants share.
#[async_trait]
pub trait Sources: Send + Sync {
    /// Checks a repository out. Refuses one without this Dockerfile.
    async fn fetch(
        &self,
        remote: &Remote,
        dockerfile: &str,
        within: Duration,
    ) -> Result<Fetched, SourceError>;
    /// Reads the files that make a repository managed, without its history.
    async fn inspect(&self, remote: &Remote, within: Duration) -> Result<Inspected, SourceError>;
    /// Asks the host of an ssh address for its key, without signing in.
    async fn host_key(
        &self,
        tenant: Tenant,
        url: &GitUrl,
        within: Duration,
    ) -> Result<SshHostKey, SourceError>;
    /// Makes a key pair at random, whose public half ends with this comment.
    fn new_key_pair(&self, comment: &str) -> Result<KeyPair, PortError>;
}

/// A key pair for ssh.
#[derive(Debug)]
pub struct KeyPair {
    pub private: SshPrivateKey,
    pub public: SshPublicKey,
}

/// The address of a repository, and the permission to read it.
pub struct Remote {
    /// For whom it is read.
    pub tenant: Tenant,
    pub url: GitUrl,
    pub revision: Revision,
    /// `None`: everybody may read it.
    pub credential: Option<GitCredential>,
}

/// The permission to read a repository.
#[derive(Debug)]
pub enum GitCredential {
    /// For https.
    Token(AccessToken),
    /// For ssh.
    DeployKey {
        access: SshAccess,
        /// The half that the host must know.
        public: SshPublicKey,
    },
}

/// Which commit of a repository is read.
pub enum Revision {
    /// The newest commit of the repository's own default branch.
    DefaultBranch,
    /// The newest commit of this branch.
    Branch(GitRef),
    /// A tag or a branch with this name, in this order, or a commit.
    Named(GitRef),
}

impl Revision {
    /// The commit that a name stands for, or the newest one if there is no name.
    pub fn of(name: Option<GitRef>) -> Revision {
        name.map_or(Revision::DefaultBranch, Revision::Named)
    }
}

/// The files of a repository at one commit.
pub struct Inspected {
    pub commit: String,
    /// The branch, tag or commit that was read.
    pub git_ref: String,
    pub files: Files,
}

/// A repository at one commit.
pub struct Fetched {
    pub commit: String,
    /// The files as a tar archive.
    pub context: BoxStream<'static, std::io::Result<Bytes>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The repository, branch or file does not exist or may not be read.
    #[error("{0}")]
    Refused(String),
    /// The host does not answer.
    #[error("{0}")]
    Unreachable(String),
}
