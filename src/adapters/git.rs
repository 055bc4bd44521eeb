//! Fetches git repositories over HTTPS with the `git` program.
//!
//! The adapter runs and checks out nothing of a repository: it fetches one commit into a folder of
//! its own and streams it as a tar archive. It resolves the host once, refuses addresses that are
//! not on the public internet, and makes git connect to that address. Git runs with resource
//! limits, because strangers wrote its input.

use actors::ports::{Checkout, SourceError, Sources};
use async_trait::async_trait;
use bytes::Bytes;
use contract::deployments::GitSource;
use futures_util::{StreamExt, stream, stream::BoxStream};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    sync::{OwnedSemaphorePermit, Semaphore},
};

pub struct Git {
    /// Fetched repositories, each in a temporary folder.
    folder: PathBuf,
    /// Hosts and ports that may lie on the internal network.
    private_hosts: Vec<(String, u16)>,
    /// Why git cannot be used.
    unusable: Option<String>,
    slots: Arc<Semaphore>,
}

/// The oldest version that supports `http.curloptResolve`.
const OLDEST: (u32, u32) = (2, 37);
/// The maximum number of repositories in use at the same time.
const AT_A_TIME: usize = 4;
/// The maximum output of a git command, in bytes. Archives have their own limit.
const MOST_OUTPUT: u64 = 64 << 10;

/// How long git may pause while it writes an archive.
const IDLE: Duration = Duration::from_secs(60);
const PIECE: usize = 64 << 10;
/// The maximum size of a fetched repository, in bytes.
const LARGEST_REPOSITORY: u64 = 2 << 30;
/// The maximum size of the archive, in bytes. A repository stores files compressed, so its limit
/// does not bound the archive.
const LARGEST_ARCHIVE: u64 = 4 << 30;
/// Limits of each process: memory in KiB, processor time in seconds, and file size in blocks of 512
/// bytes. A pack of a few kilobytes can expand to objects of many gigabytes. `$0` is git.
#[cfg(target_os = "linux")]
const LIMITED: &str =
    "ulimit -v 2097152 && ulimit -t 600 && ulimit -f 8388608 && exec \"$0\" \"$@\"";
#[cfg(not(target_os = "linux"))]
const LIMITED: &str = "ulimit -t 600 && ulimit -f 8388608 && exec \"$0\" \"$@\"";
/// Settings that keep git within these limits, and that abort a transfer from a silent server.
const SETTINGS: [&str; 10] = [
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
    "transfer.fsckObjects=true",
    // All fetched objects stay in one pack, so that its size can be measured.
    "fetch.unpackLimit=1",
    // Large files are streamed, and packs are mapped in pieces.
    "core.bigFileThreshold=16m",
    "core.packedGitWindowSize=32m",
    "core.packedGitLimit=256m",
    "pack.threads=1",
    // No background process that outlives its parent.
    "gc.auto=0",
];
/// How often the size of a fetch is measured.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Git {
    /// `folder` holds temporary repositories. `private_hosts` may lie on the internal network.
    pub fn new(folder: PathBuf, private_hosts: Vec<(String, u16)>) -> io::Result<Git> {
        std::fs::create_dir_all(&folder)?;
        // Removes repositories that an earlier process left. They are fetched again.
        for left in std::fs::read_dir(&folder)?.flatten() {
            std::fs::remove_dir_all(left.path())?;
        }
        let unusable = usable(std::process::Command::new("git").arg("--version").output()).err();
        if let Some(why) = &unusable {
            tracing::warn!(why, "repositories cannot be built");
        }
        let slots = Arc::new(Semaphore::new(AT_A_TIME));
        Ok(Git { folder, private_hosts, unusable, slots })
    }

    fn is_private(&self, host: &str, port: u16) -> bool {
        self.private_hosts.iter().any(|(allowed, at)| (allowed.as_str(), *at) == (host, port))
    }

    /// Resolves the host to the one address that git may connect to.
    async fn resolve(&self, host: &str, port: u16) -> Result<IpAddr, SourceError> {
        let unknown = || SourceError::Unreachable(format!("the host {host} is not known"));
        let mut found = tokio::net::lookup_host((host, port)).await.map_err(|_| unknown())?;
        let address =
            found.next().map(|a: SocketAddr| a.ip().to_canonical()).ok_or_else(unknown)?;
        if is_public(address) || self.is_private(host, port) {
            return Ok(address);
        }
        Err(SourceError::Refused(format!(
            "{host}:{port} is not on the public internet; an operator can allow it with SVC_GIT_PRIVATE_HOSTS"
        )))
    }
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

/// Whether an address is on the public internet: not loopback, private, link-local, shared,
/// documentation, benchmark, multicast or reserved (RFC 6890).
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
        // 2000::/3 is the allocated space. It contains documentation addresses and tunnels to IPv4.
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
        if let Some(why) = &self.unusable {
            return Err(SourceError::Unreachable(why.clone()));
        }
        let slot = self.slots.clone().acquire_owned().await;
        let slot = slot.map_err(|e| SourceError::Unreachable(e.to_string()))?;
        let done = tokio::time::timeout(within, self.fetch(git, slot)).await;
        done.unwrap_or_else(|_| {
            Err(SourceError::Unreachable("the repository was not fetched in time".into()))
        })
    }
}

impl Git {
    async fn fetch(
        &self,
        git: &GitSource,
        slot: OwnedSemaphorePermit,
    ) -> Result<Checkout, SourceError> {
        let url =
            url::Url::parse(git.url.as_str()).map_err(|e| SourceError::Refused(e.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        if url.scheme() != "https" && !self.is_private(host, port) {
            return Err(SourceError::Refused(format!(
                "{host} is asked over http, where anybody on the way can change what is built; use https"
            )));
        }
        let address = self.resolve(host, port).await?;
        let io = |e: io::Error| SourceError::Unreachable(format!("git cannot be run: {e}"));
        let folder = TempDir::new_in(&self.folder).map_err(io)?;
        let resolved = format!("{host}:{port}:{address}");
        let repository = Repository { folder, resolved, _slot: Some(slot) };
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
        let archive = repository.start(&["archive", "--format=tar", &commit]).map_err(io)?;
        Ok(Checkout { commit, context: stream_of(repository, archive, LARGEST_ARCHIVE) })
    }
}

/// A fetched repository. Dropping it removes its folder.
struct Repository {
    folder: TempDir,
    /// `host:port:address`, in curl's syntax.
    resolved: String,
    _slot: Option<OwnedSemaphorePermit>,
}

/// A child process and its process group. Dropping it kills the group.
struct Group {
    child: Child,
}

impl Group {
    fn start(mut command: Command) -> io::Result<Group> {
        Ok(Group { child: command.process_group(0).kill_on_drop(true).spawn()? })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A child that has been waited for has no id here: the system may have given the id to
        // another process.
        let running = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = running {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Repository {
    /// `git` with no configuration of this machine, no prompts and no protocol but HTTP.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", LIMITED, "git"])
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
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .args(["-c", &format!("http.curloptResolve={}", self.resolved)])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    /// Starts git and discards its error output.
    fn start(&self, arguments: &[&str]) -> io::Result<Group> {
        let mut command = self.command(arguments);
        command.stderr(Stdio::null());
        Group::start(command)
    }

    /// Returns once the fetched packs exceed `most` bytes.
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

    /// Runs git to its end and returns its output.
    async fn run(&self, arguments: &[&str]) -> Result<String, SourceError> {
        let io = |e: io::Error| SourceError::Unreachable(format!("git cannot be run: {e}"));
        let mut command = self.command(arguments);
        command.stderr(Stdio::piped());
        let mut group = Group::start(command).map_err(io)?;
        let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
        let (out, err) = tokio::try_join!(beginning(out), beginning(err)).map_err(io)?;
        if group.child.wait().await.map_err(io)?.success() {
            return Ok(String::from_utf8_lossy(&out).into_owned());
        }
        let said = String::from_utf8_lossy(&err);
        let said =
            said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        Err(SourceError::Refused(format!("git: {}", said.chars().take(500).collect::<String>())))
    }
}

/// Reads the first bytes of a program's output. Then the pipe closes, which stops a program that
/// prints without end.
async fn beginning(printed: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if let Some(printed) = printed {
        printed.take(MOST_OUTPUT).read_to_end(&mut read).await?;
    }
    Ok(read)
}

/// Streams the archive. The stream ends with an error if git fails or the archive exceeds `most`
/// bytes.
fn stream_of(
    repository: Repository,
    archive: Group,
    most: u64,
) -> BoxStream<'static, io::Result<Bytes>> {
    let next = move |state: Option<(Repository, Group, u64)>| async move {
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::TryStreamExt;

    fn repository() -> Repository {
        Repository { folder: tempfile::tempdir().unwrap(), resolved: String::new(), _slot: None }
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
            zeros.args(["-c", "200000", "/dev/zero"]).stdout(Stdio::piped());
            Group::start(zeros).unwrap()
        };
        let whole = stream_of(repository(), archive(), 200_000).try_collect::<Vec<Bytes>>().await;
        assert_eq!(whole.unwrap().concat().len(), 200_000);
        let cut = stream_of(repository(), archive(), 199_999).try_collect::<Vec<Bytes>>().await;
        assert!(cut.unwrap_err().to_string().contains("199999 bytes"));
    }

    #[tokio::test]
    async fn a_program_ends_with_all_that_it_started() {
        // The background process holds the pipe open.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo begun; wait"]).stdout(Stdio::piped());
        let mut group = Group::start(command).unwrap();
        let mut out = group.child.stdout.take().unwrap();
        out.read_exact(&mut [0; 6]).await.unwrap();
        drop(group);
        let mut rest = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(10), out.read_to_end(&mut rest));
        assert_eq!(end.await.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn git_runs_within_limits() {
        let repository = repository();
        let alias = "alias.limits=!ulimit -v; ulimit -t; ulimit -f";
        assert_eq!(
            repository.run(&["-c", alias, "limits"]).await.unwrap(),
            "2097152\n600\n8388608\n"
        );
        let endless = "alias.limits=!yes";
        assert!(repository.run(&["-c", endless, "limits"]).await.is_err());
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
