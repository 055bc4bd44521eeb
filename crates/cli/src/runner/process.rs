//! Programs of a build: each in its own process group, which ends with the runner.

use super::user::User;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::os::unix::process::CommandExt;
use std::{
    ffi::{OsStr, OsString},
    io::{self, PipeReader},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The only variable that the watch needs. The runner's own hold its token.
const PATH: &str = "PATH";

/// Kills the group `$0` when its standard input ends: that is when the runner is gone, however it
/// ended.
const WATCH: &str = "cat >/dev/null; kill -s KILL -- \"-$0\"";

/// A running program with all that it started. Dropping it kills them.
pub struct Process {
    child: Child,
    /// `None` after the group was killed.
    group: Option<Pid>,
    watch: Option<Child>,
}

/// Why a program is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exited(ExitStatus),
    /// `stop` said so.
    Stopped,
    /// The time was over.
    Late,
}

impl Process {
    /// Starts a program with this environment alone, as this user or as that of the runner. Returns
    /// the pipe with all its output.
    pub fn start(
        program: &[&OsStr],
        folder: &Path,
        environment: &[(OsString, OsString)],
        user: Option<&User>,
    ) -> io::Result<(Process, PipeReader)> {
        let (name, arguments) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (output, input) = io::pipe()?;
        let mut command = Command::new(name);
        command.args(arguments).current_dir(folder).env_clear();
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).process_group(0);
        let child = match user {
            None => command.spawn()?,
            Some(user) => {
                command.uid(user.uid).gid(user.gid);
                without_new_rights(command)?
            }
        };
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let mut process = Process { child, group, watch: None };
        process.watch = Some(watch(process.child.id())?);
        Ok((process, output))
    }

    /// Waits for the end of the program, at most until `by`, and kills what it left running.
    pub fn wait(mut self, by: Instant, stop: impl Fn() -> bool) -> io::Result<Ended> {
        loop {
            if self.has_exited()? {
                self.kill_group();
                return Ok(Ended::Exited(self.child.wait()?));
            }
            if stop() {
                return Ok(Ended::Stopped);
            }
            if Instant::now() >= by {
                return Ok(Ended::Late);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Process {
    /// Whether the program has ended. Its id stays taken, so that the group can be killed.
    fn has_exited(&self) -> io::Result<bool> {
        let Some(id) = self.group else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(id), options)?.is_some())
    }

    /// Kills the group, once: after the program was waited for, the system may give its id to
    /// another process.
    fn kill_group(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.child.wait();
        if let Some(mut watch) = self.watch.take() {
            let _ = watch.kill();
            let _ = watch.wait();
        }
    }
}

/// Starts a command so that neither it nor what it starts gets more rights by running a program such as
/// `sudo`, which belongs to another user.
#[cfg(target_os = "linux")]
fn without_new_rights(mut command: Command) -> io::Result<Child> {
    // The attribute is one of a thread, for good, and what the thread starts inherits it.
    let start = move || {
        rustix::thread::set_no_new_privs(true)?;
        command.spawn()
    };
    let started = thread::spawn(start).join();
    started.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
}

/// Other systems have no such attribute that a program can set for another.
#[cfg(not(target_os = "linux"))]
fn without_new_rights(mut command: Command) -> io::Result<Child> {
    command.spawn()
}

fn watch(group: u32) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", WATCH]).arg(group.to_string()).env_clear();
    command.envs(std::env::var_os(PATH).map(|path| (PATH, path)));
    // A group of its own: an interrupt from the terminal ends the runner and not the watch.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn run(script: &str, within: Duration, stop: bool) -> (Ended, String) {
        let path = (OsString::from("PATH"), std::env::var_os("PATH").unwrap());
        let program = ["sh", "-c", script].map(OsStr::new);
        let (process, mut output) =
            Process::start(&program, Path::new("/"), &[path], None).unwrap();
        let ended = process.wait(Instant::now() + within, || stop).unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        (ended, text)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_ends_with_all_that_it_started() {
        // The background process holds the pipe open, so reading ends only when it is gone.
        let (ended, text) = run("sleep 1000 & echo out; echo err >&2; exit 3", LONG, false);
        assert!(matches!(ended, Ended::Exited(status) if status.code() == Some(3)), "{ended:?}");
        assert_eq!(text, "out\nerr\n");
        assert_eq!(run("sleep 1000", Duration::ZERO, false).0, Ended::Late);
        assert_eq!(run("sleep 1000", LONG, true).0, Ended::Stopped);
    }

    #[test]
    fn a_program_sees_only_its_own_environment() {
        let (_, text) = run("env | cut -d= -f1 | sort | tr '\\n' ' '", LONG, false);
        assert_eq!(text, "PATH PWD ", "what a shell sets itself, and PATH");
    }
}
