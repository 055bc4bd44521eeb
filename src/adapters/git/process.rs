//! Runs the `git` program on a repository in a temporary folder, within limits.

use crate::process::AFTER_OTHERS;
use actors::{
    ports::sources::SourceError,
    runtime::turns::{Tenant, Turn},
};
use contract::text::{AccessToken, GitUrl};
use remote::ssh::SshFolder;
use repository::git_environment;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{fs, io, path::Path, process::Stdio, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
};

/// The maximum output of a git command, in bytes. Archives have their own limit.
const MOST_OUTPUT: u64 = 64 << 10;
/// The longest error output that is passed on, in characters. Its last words are cut.
const LONGEST_REASON: usize = 500;
/// Limits of each process: memory in KiB, processor time in seconds, and file size in blocks of 512
/// bytes. A pack of a few kilobytes can expand to objects of many gigabytes. `$0` is the priority, and what
/// follows is the program.
#[cfg(target_os = "linux")]
const LIMITED: &str =
    "ulimit -v 2097152 && ulimit -t 600 && ulimit -f 8388608 && exec nice -n \"$0\" \"$@\"";
#[cfg(not(target_os = "linux"))]
const LIMITED: &str = "ulimit -t 600 && ulimit -f 8388608 && exec nice -n \"$0\" \"$@\"";
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
    // No process that tidies a folder which is removed soon.
    "maintenance.auto=false",
];
/// The maximum size of a fetched repository, in bytes.
const LARGEST_REPOSITORY: u64 = 2 << 30;
/// How often the size of a fetch is measured.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The folder of a repository. Dropping it removes the folder.
pub(super) struct Repository {
    pub folder: TempDir,
    /// What git calls `origin`. Under that name, it remembers what the server left out.
    pub url: GitUrl,
    pub way: Way,
    pub _turn: Option<Turn<Tenant>>,
}

/// How git reaches the host of a repository.
pub(super) enum Way {
    Http {
        /// `host:port:address`, in curl's syntax.
        resolved: String,
        token: Option<AccessToken>,
    },
    Ssh(SshFolder),
}

/// A child process and its process group. Dropping it kills the group.
pub(super) struct ProcessGroup {
    pub child: Child,
}

impl ProcessGroup {
    pub fn start(mut command: Command) -> io::Result<ProcessGroup> {
        Ok(ProcessGroup { child: command.process_group(0).kill_on_drop(true).spawn()? })
    }
}

impl Drop for ProcessGroup {
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
    /// `git` with no configuration of this machine, no prompts and no protocol but that of the way.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = limited("git", self.folder.path());
        command
            .envs([
                ("HOME", "/nonexistent"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_TERMINAL_PROMPT", "0"),
                // No repository around the folder counts, also while there is none in it.
                ("GIT_DIR", "."),
            ])
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .args(["-c", &format!("remote.origin.url={}", self.url.as_str())]);
        match &self.way {
            Way::Http { resolved, token } => command
                .env("GIT_ALLOW_PROTOCOL", "https:http")
                .envs(token.iter().flat_map(git_environment))
                .args(["-c", &format!("http.curloptResolve={resolved}")]),
            Way::Ssh(folder) => command.envs(folder.environment()),
        };
        command.args(arguments);
        command
    }

    /// Makes the folder an empty repository, as `git init --bare` would, by the layout that
    /// gitrepository-layout(5) describes.
    pub fn init(&self) -> Result<(), SourceError> {
        let folder = self.folder.path();
        let made = ["objects", "refs"].iter().try_for_each(|at| fs::create_dir(folder.join(at)));
        made.and_then(|()| fs::write(folder.join("HEAD"), "ref: refs/heads/main\n"))
            .and_then(|()| fs::write(folder.join("config"), "[core]\n\tbare = true\n"))
            .map_err(cannot_run)
    }

    /// Starts git and discards its error output.
    pub fn start(&self, arguments: &[&str]) -> io::Result<ProcessGroup> {
        let mut command = self.command(arguments);
        command.stderr(Stdio::null());
        ProcessGroup::start(command)
    }

    /// Waits for `work`, unless the fetched objects exceed [`LARGEST_REPOSITORY`].
    pub async fn within_its_size<T>(
        &self,
        work: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        tokio::select! {
            done = work => done,
            () = self.outgrows(LARGEST_REPOSITORY) => Err(SourceError::Refused(format!(
                "the repository is larger than {} GiB", LARGEST_REPOSITORY >> 30
            ))),
        }
    }

    /// Returns once the fetched objects exceed `most` bytes.
    #[allow(clippy::disallowed_methods, reason = "another program is waited for")]
    async fn outgrows(&self, most: u64) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if size_below(&self.folder.path().join("objects")) > most {
                return;
            }
        }
    }

    /// Whether the server left objects out. Git marks such a pack with a file beside it.
    pub fn lacks_objects(&self) -> bool {
        let packs = fs::read_dir(self.folder.path().join("objects/pack"));
        let is_mark =
            |entry: std::fs::DirEntry| entry.path().extension() == Some("promisor".as_ref());
        packs.into_iter().flatten().flatten().any(is_mark)
    }

    /// Runs git to its end and returns its output.
    pub async fn run(&self, arguments: &[&str]) -> Result<String, SourceError> {
        let out = self.output(arguments, MOST_OUTPUT).await?;
        if out.len() as u64 >= MOST_OUTPUT {
            return Err(SourceError::Refused("git: the server sent too much to read".into()));
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Runs git to its end, or until it has printed `most` bytes, and returns its output.
    pub async fn output(&self, arguments: &[&str], most: u64) -> Result<Vec<u8>, SourceError> {
        let ended = run_to_end(self.command(arguments), most).await?;
        match ended.is_good || ended.out.len() as u64 >= most {
            true => Ok(ended.out),
            false => Err(SourceError::Refused(format!("git: {}", ended.said))),
        }
    }
}

/// A program, with these [limits](LIMITED) and nothing of the environment but `PATH`.
pub(super) fn limited(program: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", LIMITED, &AFTER_OTHERS.to_string(), program])
        .current_dir(folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// A program that ended.
pub(super) struct Ended {
    pub is_good: bool,
    pub out: Vec<u8>,
    /// The beginning of its error output, on one line: the cause comes first, and what follows from
    /// it last.
    pub said: String,
}

/// Runs a program to its end, or until it has printed `most` bytes.
pub(super) async fn run_to_end(mut command: Command, most: u64) -> Result<Ended, SourceError> {
    command.stderr(Stdio::piped());
    let mut group = ProcessGroup::start(command).map_err(cannot_run)?;
    let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
    let (out, err) =
        tokio::try_join!(beginning(out, most), beginning(err, MOST_OUTPUT)).map_err(cannot_run)?;
    let is_good = group.child.wait().await.map_err(cannot_run)?.success();
    let said = String::from_utf8_lossy(&err);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines.collect::<Vec<_>>().join("; ").chars().take(LONGEST_REASON).collect();
    Ok(Ended { is_good, out, said })
}

/// The bytes of all files below a folder, also of those that a server sent one by one.
fn size_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

pub(super) fn cannot_run(e: io::Error) -> SourceError {
    SourceError::Unreachable(format!("git cannot be run: {e}"))
}

/// Reads the first bytes of a program's output. Then the pipe closes, which stops a program that
/// prints without end.
async fn beginning(printed: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if let Some(printed) = printed {
        printed.take(most).read_to_end(&mut read).await?;
    }
    Ok(read)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    pub fn repository() -> Repository {
        Repository {
            folder: tempfile::tempdir().unwrap(),
            url: "https://example.com/app.git".parse().unwrap(),
            way: Way::Http { resolved: String::new(), token: None },
            _turn: None,
        }
    }

    #[tokio::test]
    async fn a_repository_that_outgrows_its_limit_is_seen() {
        let repository = repository();
        let packs = repository.folder.path().join("objects/pack");
        fs::create_dir_all(&packs).unwrap();
        fs::write(packs.join("tmp_pack_1"), [0; 100]).unwrap();
        repository.outgrows(99).await;
        let within = repository.outgrows(100);
        assert!(tokio::time::timeout(LOOK_EVERY * 3, within).await.is_err());
    }

    #[tokio::test]
    async fn a_program_ends_with_all_that_it_started() {
        // The background process holds the pipe open.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo begun; wait"]).stdout(Stdio::piped());
        let mut group = ProcessGroup::start(command).unwrap();
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
        let alias = "alias.limits=!ulimit -v; ulimit -t; ulimit -f; nice";
        let own = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(
            repository.run(&["-c", alias, "limits"]).await.unwrap(),
            format!("2097152\n600\n8388608\n{}\n", (own + AFTER_OTHERS).min(19))
        );
        let endless = "alias.limits=!yes";
        assert!(repository.run(&["-c", endless, "limits"]).await.is_err());
    }
}
