//! The programs and packages that a test needs. If one is missing, the test reports its name and is
//! left out.

use super::rig;
use std::{
    collections::HashSet,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

/// Installs the node packages of a folder of `tests/support` if they are missing. Returns whether
/// they are there; if not, prints which test is left out.
pub fn node_packages(test: &str, folder: &str) -> bool {
    node_packages_in(test, &rig::folder_of(folder))
}

/// Installs the node packages of this folder if they are missing. Returns whether they are there; if
/// not, prints which test is left out.
pub fn node_packages_in(test: &str, folder: &Path) -> bool {
    static INSTALLED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let mut installed = INSTALLED.lock().unwrap();
    let installed = installed.get_or_insert_default();
    let is_here = installed.contains(folder) || folder.join("node_modules").exists();
    if !programs(test, if is_here { &["node"][..] } else { &["node", "npm"] }) {
        return false;
    }
    if !is_here {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit"]).current_dir(folder);
        let done = npm.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    installed.insert(folder.to_owned());
    true
}

/// Whether these programs are installed. If not, prints which test is left out, and the missing
/// program.
pub fn programs(test: &str, programs: &[&str]) -> bool {
    let missing = |program: &&&str| {
        let started = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        started.is_err()
    };
    let missing = programs.iter().find(missing);
    if let Some(program) = missing {
        left_out(test, &format!("{program} is missing"));
    }
    missing.is_none()
}

/// Prints that a test is left out, and why.
pub fn left_out(test: &str, why: &str) {
    // The test harness hides the output of `eprintln!` in tests that pass.
    let _ = writeln!(std::io::stderr(), "left out: {test} because {why}");
}

/// Whether this process is root. If not, prints which test is left out.
pub fn root(test: &str) -> bool {
    let is_root = is_root();
    if !is_root {
        left_out(test, "it needs root");
    }
    is_root
}

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}
