//! Fetches git repositories over HTTPS and over ssh with the `git` program.
//!
//! The adapter runs and checks out nothing of a repository: it fetches one commit into a folder of
//! its own, and streams it as a tar archive or reads single files of it. It resolves the host once,
//! refuses addresses that are not on the public internet, and makes git connect to that address. Git
//! runs with resource limits, because strangers wrote its input.

mod host_key;
mod inspect;
mod key_pair;
mod known;
mod process;
mod refusals;

use actors::{
    ports::{
        PortError,
        sources::{
            Fetched, GitCredential, Inspected, KeyPair, Remote, Revision, SourceError, Sources,
        },
    },
    runtime::turns::{NoTurn, Tenant, Turn, Turns},
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{git_url::SshAddress, ssh::SshHostKey, text::GitUrl};
use futures_util::{StreamExt, stream, stream::BoxStream};
use known::KnownCommits;
use process::{ProcessGroup, Repository, Way, cannot_run};
use remote::ssh::SshFolder;
use remote::{PrivateHosts, is_public, look_up};
use std::{
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

pub struct Git {
    /// Fetched repositories, each in a temporary folder.
    folder: PathBuf,
    private_hosts: PrivateHosts,
    /// Why git cannot be used.
    unusable: Option<String>,
    /// Why ssh cannot be used.
    no_ssh: Option<String>,
    fetches: Turns<Tenant>,
    /// Apart from those of fetches, so that no check waits for a build.
    inspections: Turns<Tenant>,
    known: KnownCommits,
}

/// The oldest version that supports `http.curloptResolve`.
const OLDEST: (u32, u32) = (2, 37);
/// How many repositories are fetched for builds at the same time. Twice as many are checked. One
/// tenant has at most half of both.
const AT_A_TIME: usize = 4;

/// How long git may pause while it writes an archive.
const IDLE: Duration = Duration::from_secs(60);
const PIECE: usize = 64 << 10;
/// The maximum size of the archive, in bytes. A repository stores files compressed, so its limit
/// does not bound the archive.
const LARGEST_ARCHIVE: u64 = 4 << 30;

impl Git {
    /// `folder` holds temporary repositories.
    pub fn new(folder: PathBuf, private_hosts: PrivateHosts) -> io::Result<Git> {
        std::fs::create_dir_all(&folder)?;
        // Removes repositories that an earlier process left. They are fetched again.
        for left in std::fs::read_dir(&folder)?.flatten() {
            std::fs::remove_dir_all(left.path())?;
        }
        // As git runs later on.
        let version = std::process::Command::new("nice").args(["git", "--version"]).output();
        let unusable = usable(version).err();
        if let Some(why) = &unusable {
            tracing::warn!(why, "repositories cannot be built");
        }
        let ssh = std::process::Command::new("ssh").arg("-V").output();
        let no_ssh = ssh.err().map(|e| format!("ssh cannot be run on the machine of svc: {e}"));
        let (fetches, inspections) = (Turns::halved(AT_A_TIME), Turns::halved(2 * AT_A_TIME));
        let known = KnownCommits::default();
        Ok(Git { folder, private_hosts, unusable, no_ssh, fetches, inspections, known })
    }

    /// Resolves the host to the one address that git may connect to.
    async fn resolve(&self, host: &str, port: u16) -> Result<IpAddr, SourceError> {
        let unknown = || SourceError::Unreachable(format!("the host {host} is not known"));
        let found = look_up(host).await.map_err(|_| unknown())?;
        let address = found.first().map(IpAddr::to_canonical).ok_or_else(unknown)?;
        if is_public(address) || self.private_hosts.contains(host, port) {
            return Ok(address);
        }
        Err(SourceError::Refused(format!(
            "{host}:{port} is not on the public internet; an operator can allow it with SVC_GIT_PRIVATE_HOSTS"
        )))
    }
}

fn crowded(why: NoTurn) -> SourceError {
    SourceError::Unreachable(why.to_string())
}

/// Checks the answer of `git --version`.
fn usable(answered: io::Result<std::process::Output>) -> Result<(), String> {
    let answered = answered.map_err(|e| format!("git cannot be run: {e}"))?;
    let said = String::from_utf8_lossy(&answered.stdout);
    let version = said.trim().strip_prefix("git version ").unwrap_or_default();
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) >= (Some(OLDEST.0), Some(OLDEST.1)) {
        return Ok(());
    }
    let (major, minor) = OLDEST;
    Err(format!("git is {version}, and must be {major}.{minor} or later"))
}

#[async_trait]
impl Sources for Git {
    async fn fetch(
        &self,
        remote: &Remote,
        dockerfile: &str,
        within: Duration,
    ) -> Result<Fetched, SourceError> {
        if let Some(why) = &self.unusable {
            return Err(SourceError::Unreachable(why.clone()));
        }
        let turn = self.fetches.take(remote.tenant).await.map_err(crowded)?;
        let done = tokio::time::timeout(within, self.fetch_in(turn, remote, dockerfile)).await;
        done.unwrap_or_else(|_| {
            Err(SourceError::Unreachable("the repository was not fetched in time".into()))
        })
    }

    async fn inspect(&self, remote: &Remote, within: Duration) -> Result<Inspected, SourceError> {
        self.in_turn(remote.tenant, within, inspect::inspect(self, remote)).await
    }

    async fn host_key(
        &self,
        tenant: Tenant,
        url: &GitUrl,
        within: Duration,
    ) -> Result<SshHostKey, SourceError> {
        let Some(server) = url.ssh() else {
            return Err(SourceError::Refused("only ssh hosts have a key".into()));
        };
        self.in_turn(tenant, within, host_key::presented(self, server)).await
    }

    fn new_key_pair(&self, comment: &str) -> Result<KeyPair, PortError> {
        key_pair::generate(comment)
    }
}

impl Git {
    /// Waits for a turn, and for short work.
    async fn in_turn<T>(
        &self,
        tenant: Tenant,
        within: Duration,
        work: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        if let Some(why) = &self.unusable {
            return Err(SourceError::Unreachable(why.clone()));
        }
        let _turn = self.inspections.take(tenant).await.map_err(crowded)?;
        tokio::time::timeout(within, work).await.unwrap_or_else(|_| {
            Err(SourceError::Unreachable(format!(
                "the host did not send what was asked for within {} s",
                within.as_secs()
            )))
        })
    }
}

impl Git {
    /// Makes an empty folder for a repository, and decides which address git may connect to. Before
    /// git fetches into it, [`init`](Repository::init) makes it a repository.
    async fn open(
        &self,
        remote: &Remote,
        turn: Option<Turn<Tenant>>,
    ) -> Result<Repository, SourceError> {
        let folder = TempDir::new_in(&self.folder).map_err(cannot_run)?;
        let way = match remote.url.ssh() {
            Some(server) => self.over_ssh(folder.path(), server, remote).await?,
            None => self.over_http(remote).await?,
        };
        Ok(Repository { folder, url: remote.url.clone(), way, _turn: turn })
    }

    async fn over_http(&self, remote: &Remote) -> Result<Way, SourceError> {
        let url = remote.url.as_str();
        let url = url::Url::parse(url).map_err(|e| SourceError::Refused(e.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        if url.scheme() != "https" && !self.private_hosts.contains(host, port) {
            return Err(SourceError::Refused(format!(
                "{host} is asked over http, where anybody on the way can change what is read; use https"
            )));
        }
        // curl looks a name with a final dot up by another one, and would miss the address below.
        if host.ends_with('.') {
            return Err(SourceError::Refused(format!("leave out the final dot of {host}")));
        }
        let address = self.resolve(host, port).await?;
        let token = match &remote.credential {
            Some(GitCredential::Token(token)) => Some(token.clone()),
            Some(GitCredential::DeployKey { .. }) | None => None,
        };
        Ok(Way::Http { resolved: format!("{host}:{port}:{address}"), token })
    }

    async fn over_ssh(
        &self,
        folder: &Path,
        server: SshAddress<'_>,
        remote: &Remote,
    ) -> Result<Way, SourceError> {
        let Some(GitCredential::DeployKey { access, .. }) = &remote.credential else {
            return Err(SourceError::Refused(
                "svc has no deploy key for this address: connect it to the app first".into(),
            ));
        };
        let address = self.resolve_ssh(server).await?;
        let made = SshFolder::create(folder.join("ssh"), access, Some(address));
        made.map(Way::Ssh).map_err(cannot_run)
    }

    /// The one address that ssh may connect to.
    async fn resolve_ssh(&self, server: SshAddress<'_>) -> Result<IpAddr, SourceError> {
        if let Some(why) = &self.no_ssh {
            return Err(SourceError::Unreachable(why.clone()));
        }
        self.resolve(server.host, server.port).await
    }

    async fn fetch_in(
        &self,
        turn: Turn<Tenant>,
        remote: &Remote,
        dockerfile: &str,
    ) -> Result<Fetched, SourceError> {
        let repository = self.open(remote, Some(turn)).await?;
        repository.init()?;
        let wanted = match &remote.revision {
            Revision::DefaultBranch => "HEAD".to_owned(),
            Revision::Branch(branch) => format!("refs/heads/{}", branch.as_str()),
            Revision::Named(name) => name.as_str().to_owned(),
        };
        let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--", "origin", &wanted];
        if let Err(e) = repository.within_its_size(repository.run(&fetch)).await {
            return Err(refusals::explained(self, e, remote).await);
        }
        let commit = repository.run(&["rev-parse", "FETCH_HEAD^{commit}"]).await?.trim().to_owned();
        let object = format!("{commit}:{dockerfile}");
        if repository.run(&["cat-file", "-e", &object]).await.is_err() {
            return Err(SourceError::Refused(format!(
                "the repository has no {dockerfile} at {commit}"
            )));
        }
        let archive =
            repository.start(&["archive", "--format=tar", &commit]).map_err(cannot_run)?;
        Ok(Fetched { commit, context: stream_of(repository, archive, LARGEST_ARCHIVE) })
    }
}

/// Streams the archive. The stream ends with an error if git fails or the archive exceeds `most`
/// bytes.
fn stream_of(
    repository: Repository,
    archive: ProcessGroup,
    most: u64,
) -> BoxStream<'static, io::Result<Bytes>> {
    let next = move |state: Option<(Repository, ProcessGroup, u64)>| async move {
        let (repository, mut archive, left) = state?;
        let mut piece = vec![0; PIECE];
        let read = match archive.child.stdout.as_mut() {
            Some(out) => tokio::time::timeout(IDLE, out.read(&mut piece)).await,
            None => Ok(Ok(0)),
        };
        match read {
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
            Ok(Err(e)) => Some((Err(e), None)),
            Ok(Ok(0)) => match archive.child.wait().await {
                Ok(status) if status.success() => None,
                Ok(status) => Some((Err(io::Error::other(format!("git archive: {status}"))), None)),
                Err(e) => Some((Err(e), None)),
            },
            Ok(Ok(n)) => match left.checked_sub(n as u64) {
                Some(left) => {
                    piece.truncate(n);
                    Some((Ok(piece.into()), Some((repository, archive, left))))
                }
                None => {
                    let why = format!("the files of the repository are more than {most} bytes");
                    Some((Err(io::Error::other(why)), None))
                }
            },
        }
    };
    stream::unfold(Some((repository, archive, most)), next).boxed()
}

#[cfg(test)]
mod tests {
    use super::{process::tests::repository, *};
    use futures_util::TryStreamExt;
    use std::process::Stdio;
    use tokio::process::Command;

    #[tokio::test]
    async fn an_archive_that_is_too_large_is_cut_off() {
        let archive = || {
            let mut zeros = Command::new("head");
            zeros.args(["-c", "200000", "/dev/zero"]).stdout(Stdio::piped());
            ProcessGroup::start(zeros).unwrap()
        };
        let whole = stream_of(repository(), archive(), 200_000).try_collect::<Vec<Bytes>>().await;
        assert_eq!(whole.unwrap().concat().len(), 200_000);
        let cut = stream_of(repository(), archive(), 199_999).try_collect::<Vec<Bytes>>().await;
        assert!(cut.unwrap_err().to_string().contains("199999 bytes"));
    }

    #[test]
    fn an_old_git_is_not_used() {
        let answer = |said: &str| {
            usable(Ok(std::process::Output {
                status: Default::default(),
                stdout: said.into(),
                stderr: Vec::new(),
            }))
        };
        for new in ["git version 2.37.0\n", "git version 2.39.5 (Apple Git-154)", "git version 3.0"]
        {
            assert_eq!(answer(new), Ok(()));
        }
        assert_eq!(
            answer("git version 2.36.9\n").unwrap_err(),
            "git is 2.36.9, and must be 2.37 or later"
        );
        assert!(answer("something else").is_err());
    }
}
