//! The user of this machine as whom builds run.

use crate::failure::Failure;
use std::{
    io,
    os::unix::fs::chown,
    path::Path,
    process::{Command, Stdio},
};

/// Who runs the builds of a runner that is root, unless `--user` names somebody.
const NOBODY: &str = "nobody";

/// Another user than that of the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl User {
    /// The user for builds; `None` is the user of the runner. Only root can become another user.
    pub fn choose(named: Option<&str>) -> Result<Option<User>, Failure> {
        let own = rustix::process::geteuid();
        if named.is_none() && !own.is_root() {
            return Ok(None);
        }
        let user = User::find(named.unwrap_or(NOBODY))?;
        match (own.is_root(), user.uid == own.as_raw()) {
            (_, true) => Ok(None),
            (true, false) => Ok(Some(user)),
            (false, false) => Err(Failure::usage(
                format!("only root can run builds as the user {}", user.name),
                "leave --user out, or start the runner as that user",
            )),
        }
    }

    fn find(name: &str) -> Result<User, Failure> {
        let number = |what: &str| {
            let mut id = Command::new("id");
            id.args([what, "--", name]).stdin(Stdio::null()).stderr(Stdio::null());
            let output = id.output().ok().filter(|output| output.status.success())?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        match (number("-u"), number("-g")) {
            (Some(uid), Some(gid)) => Ok(User { name: name.to_owned(), uid, gid }),
            _ => Err(Failure::usage(
                format!("this machine has no user {name}"),
                "say --user with the user who is to run builds",
            )),
        }
    }

    /// Gives a file or folder to the user.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}
