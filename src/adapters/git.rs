//! Git repositories over HTTPS, through the `git` program.
//!
//! Nothing of a repository is ever run or checked out here: one commit is fetched into a folder of
//! its own and streamed as a tar archive. The address is resolved once, held to the public internet,
//! and git is told to connect to just that address.

use actors::ports::{Checkout, SourceError, Sources};
use async_trait::async_trait;
use bytes::Bytes;
use contract::deployments::GitSource;
use futures_util::{StreamExt, stream, stream::BoxStream};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

pub struct Git {
    /// Where repositories are while they are built.
    folder: PathBuf,
    /// Hosts that may be of the internal network.
    private_hosts: Vec<String>,
}

/// How long the end of an archive may be silent.
const IDLE: Duration = Duration::from_secs(60);
/// Bytes of an archive that are read at a time.
const PIECE: usize = 64 << 10;
/// Bytes of a repository that are fetched.
const LARGEST_REPOSITORY: u64 = 2 << 30;
/// Bytes of its files, which are compressed in the repository.
const LARGEST_ARCHIVE: u64 = 4 << 30;
/// How often what was fetched so far is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Git {
    /// With a folder for what is under way, and hosts that may be of the internal network.
    pub fn new(folder: PathBuf, private_hosts: Vec<String>) -> io::Result<Git> {
        std::fs::create_dir_all(&folder)?;
        // What was under way when the process last ended is fetched again.
        for left in std::fs::read_dir(&folder)?.flatten() {
            std::fs::remove_dir_all(left.path())?;
        }
        Ok(Git { folder, private_hosts })
    }

    /// The one address that this repository is fetched from.
    async fn resolve(&self, host: &str, port: u16) -> Result<IpAddr, SourceError> {
        let away = || SourceError::Away(format!("the host {host} is not known"));
        let mut found = tokio::net::lookup_host((host, port)).await.map_err(|_| away())?;
        let address = found.next().map(|a: SocketAddr| a.ip().to_canonical()).ok_or_else(away)?;
        if is_public(address) || self.private_hosts.iter().any(|allowed| allowed == host) {
            return Ok(address);
        }
        Err(SourceError::Refused(format!(
            "{host} is not on the public internet; an operator can allow it with SVC_GIT_PRIVATE_HOSTS"
        )))
    }
}

/// Whether an address is on the public internet: no loopback, private, link-local, shared,
/// documentation, benchmark, multicast or reserved one (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [first, second, third, _] = a.octets();
            let special = matches!(
                (first, second, third),
                (0 | 10 | 127 | 224.., _, _)
                    | (100, 64..=127, _)
                    | (169, 254, _)
                    | (172, 16..=31, _)
                    | (192, 168, _)
                    | (192, 0, 0 | 2)
                    | (198, 18..=19, _)
                    | (198, 51, 100)
                    | (203, 0, 113)
            );
            !special
        }
        // 2000::/3 is what is given out; documentation and tunnels to IPv4 are in it.
        IpAddr::V6(a) => {
            let [first, second, ..] = a.segments();
            (0x2000..=0x3fff).contains(&first)
                && !matches!((first, second), (0x2001, 0x0..=0x1ff | 0xdb8) | (0x2002, _))
        }
    }
}

#[async_trait]
impl Sources for Git {
    async fn checkout(&self, git: &GitSource, within: Duration) -> Result<Checkout, SourceError> {
        let done = tokio::time::timeout(within, self.fetch(git)).await;
        done.unwrap_or_else(|_| {
            Err(SourceError::Away("the repository was not fetched in time".into()))
        })
    }
}

impl Git {
    async fn fetch(&self, git: &GitSource) -> Result<Checkout, SourceError> {
        let url =
            url::Url::parse(git.url.as_str()).map_err(|e| SourceError::Refused(e.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        if url.scheme() != "https" && !self.private_hosts.iter().any(|allowed| allowed == host) {
            return Err(SourceError::Refused(format!(
                "{host} is asked over http, where anybody on the way can change what is built; use https"
            )));
        }
        let address = self.resolve(host, port).await?;
        let io = |e: io::Error| SourceError::Away(format!("git cannot be run: {e}"));
        let folder = TempDir::new_in(&self.folder).map_err(io)?;
        let repository = Repository { folder, resolved: format!("{host}:{port}:{address}") };
        repository.run(&["init", "--quiet", "--bare", "."]).await?;
        let wanted = git.git_ref.as_ref().map_or("HEAD", |r| r.as_str());
        let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--", git.url.as_str(), wanted];
        tokio::select! {
            fetched = repository.run(&fetch) => fetched?,
            () = repository.outgrows(LARGEST_REPOSITORY) => return Err(SourceError::Refused(format!(
                "the repository is larger than {} GiB", LARGEST_REPOSITORY >> 30
            ))),
        };
        let commit = repository.run(&["rev-parse", "FETCH_HEAD^{commit}"]).await?.trim().to_owned();
        let dockerfile = git.dockerfile.as_ref().map_or("Dockerfile", |path| path.as_str());
        let object = format!("{commit}:{dockerfile}");
        if repository.run(&["cat-file", "-e", &object]).await.is_err() {
            return Err(SourceError::Refused(format!(
                "the repository has no {dockerfile} at {commit}"
            )));
        }
        let archive =
            repository.command(&["archive", "--format=tar", &commit]).spawn().map_err(io)?;
        Ok(Checkout { commit, context: stream_of(repository, archive, LARGEST_ARCHIVE) })
    }
}

/// A repository that was fetched. The folder goes with it.
struct Repository {
    folder: TempDir,
    /// `host:port:address`, as curl takes it.
    resolved: String,
}

impl Repository {
    /// `git` with nothing of this machine's configuration, no questions, and no way but HTTP.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .current_dir(self.folder.path())
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs([
                ("HOME", "/nonexistent"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_ALLOW_PROTOCOL", "https:http"),
                ("LC_ALL", "C"),
            ])
            .args(["-c", "http.followRedirects=false", "-c", "transfer.fsckObjects=true"])
            // All that is fetched stays in one pack, whose size can be looked at.
            .args(["-c", "fetch.unpackLimit=1"])
            .args(["-c", &format!("http.curloptResolve={}", self.resolved)])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Waits until more was fetched than this.
    #[allow(clippy::disallowed_methods, reason = "another program is waited for")]
    async fn outgrows(&self, most: u64) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let packs = std::fs::read_dir(self.folder.path().join("objects/pack"));
            let sizes =
                packs.into_iter().flatten().flatten().filter_map(|pack| pack.metadata().ok());
            if sizes.map(|pack| pack.len()).sum::<u64>() > most {
                return;
            }
        }
    }

    /// Runs git to its end; what it printed.
    async fn run(&self, arguments: &[&str]) -> Result<String, SourceError> {
        let done = self.command(arguments).output().await;
        let done = done.map_err(|e| SourceError::Away(format!("git cannot be run: {e}")))?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&done.stderr);
        let said =
            said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        Err(SourceError::Refused(format!("git: {}", said.chars().take(500).collect::<String>())))
    }
}

/// The archive as it is written. One that git did not finish, or that has more bytes than this, ends
/// with an error.
fn stream_of(
    repository: Repository,
    child: Child,
    most: u64,
) -> BoxStream<'static, io::Result<Bytes>> {
    let next = move |state: Option<(Repository, Child, u64)>| async move {
        let (repository, mut child, left) = state?;
        let mut piece = vec![0; PIECE];
        let read = match child.stdout.as_mut() {
            Some(out) => tokio::time::timeout(IDLE, out.read(&mut piece)).await,
            None => Ok(Ok(0)),
        };
        match read {
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
            Ok(Err(e)) => Some((Err(e), None)),
            Ok(Ok(0)) => match child.wait().await {
                Ok(status) if status.success() => None,
                Ok(status) => Some((Err(io::Error::other(format!("git archive: {status}"))), None)),
                Err(e) => Some((Err(e), None)),
            },
            Ok(Ok(n)) => match left.checked_sub(n as u64) {
                Some(left) => {
                    piece.truncate(n);
                    Some((Ok(piece.into()), Some((repository, child, left))))
                }
                None => {
                    let why = format!("the files of the repository are more than {most} bytes");
                    Some((Err(io::Error::other(why)), None))
                }
            },
        }
    };
    stream::unfold(Some((repository, child, most)), next).boxed()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::TryStreamExt;

    fn repository() -> Repository {
        Repository { folder: tempfile::tempdir().unwrap(), resolved: String::new() }
    }

    #[tokio::test]
    async fn a_repository_that_outgrows_its_limit_is_seen() {
        let repository = repository();
        let packs = repository.folder.path().join("objects/pack");
        std::fs::create_dir_all(&packs).unwrap();
        std::fs::write(packs.join("tmp_pack_1"), [0; 100]).unwrap();
        repository.outgrows(99).await;
        let within = repository.outgrows(100);
        assert!(tokio::time::timeout(LOOK_EVERY * 3, within).await.is_err());
    }

    #[tokio::test]
    async fn an_archive_that_is_too_large_is_cut_off() {
        let archive = || {
            let mut zeros = Command::new("head");
            zeros.args(["-c", "200000", "/dev/zero"]).stdout(Stdio::piped()).spawn().unwrap()
        };
        let whole = stream_of(repository(), archive(), 200_000).try_collect::<Vec<Bytes>>().await;
        assert_eq!(whole.unwrap().concat().len(), 200_000);
        let cut = stream_of(repository(), archive(), 199_999).try_collect::<Vec<Bytes>>().await;
        assert!(cut.unwrap_err().to_string().contains("199999 bytes"));
    }

    #[test]
    fn addresses_of_the_internal_network_are_known() {
        let inside = [
            "127.0.0.1",
            "10.1.2.3",
            "172.17.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "140.82.121.3", "172.32.0.1", "2606:50c0:8000::153"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
