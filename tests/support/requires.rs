//! What a test needs besides this program. Where it is missing, the test says so by its name and
//! is left out.

use std::{
    io::Write,
    process::{Command, Stdio},
};

/// Whether these programs are here. If not, prints which test is left out for want of which.
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
        // Not by the macro: the output of tests that pass is not shown.
        let _ = writeln!(std::io::stderr(), "left out: {test} because {program} is missing");
    }
    missing.is_none()
}
