//! Whether this machine has the programs that the build commands of a repository begin with.

use crate::working_copy::WorkingCopy;
use contract::repositories::{Finding, Severity};
use repository::{CONFIG, Config};
use std::{collections::BTreeSet, env, ffi::OsStr, path::Path};

/// Words that the shell itself understands at the beginning of a command.
const OF_THE_SHELL: [&str; 20] = [
    ".", ":", "[", "case", "cd", "command", "echo", "eval", "exec", "export", "for", "if", "set",
    "test", "trap", "ulimit", "umask", "unset", "until", "while",
];

/// Adds a finding for each program that is missing here.
pub fn check(copy: &WorkingCopy, config: &Config, findings: &mut Vec<Finding>) {
    let path = env::var_os("PATH").unwrap_or_default();
    let commands = config.build.values().flat_map(|profiles| profiles.values());
    let programs: BTreeSet<_> = commands.filter_map(|command| program(command)).collect();
    let missing = programs.into_iter().filter(|program| !is_there(program, copy.root(), &path));
    findings.extend(missing.map(|program| Finding {
        check: "program".into(),
        severity: Severity::Warning,
        path: Some(CONFIG.into()),
        line: None,
        problem: format!("the program {program:?} of a build command is not on this machine"),
        fix: "install it, or build on a machine that has it".into(),
    }));
}

/// The program that a shell command begins with; `None` if only a shell can tell.
fn program(command: &str) -> Option<&str> {
    let first = command.split_whitespace().next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    (first.chars().all(is_plain) && !OF_THE_SHELL.contains(&first)).then_some(first)
}

fn is_there(program: &str, root: &Path, path: &OsStr) -> bool {
    if program.contains('/') {
        return root.join(program).is_file();
    }
    env::split_paths(path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_a_command_is_its_program() {
        for (command, expected) in [
            ("make ipa", Some("make")),
            ("  ./gradlew assembleRelease", Some("./gradlew")),
            ("cd android && ./gradlew", None),
            ("FLAVOR=x make", None),
            ("$MAKE ipa", None),
            ("", None),
        ] {
            assert_eq!(program(command), expected, "{command}");
        }
    }

    #[test]
    fn programs_are_found_in_the_path_and_in_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gradlew"), "").unwrap();
        let (root, path) = (folder.path(), folder.path().as_os_str());
        assert!(is_there("gradlew", Path::new("/"), path));
        assert!(is_there("./gradlew", root, OsStr::new("")));
        assert!(!is_there("gradlew", root, OsStr::new("/nonexistent")));
        assert!(!is_there("./mvnw", root, path));
    }
}
