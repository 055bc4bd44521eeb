//! The help and the manual pages of the command line.

use crate::support::{ports::free_port, service::SVC};
use std::{
    process::Command,
    time::{Duration, Instant},
};

fn printed(args: &[&str]) -> String {
    let done = Command::new(SVC).args(args).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn help_names_the_options_that_a_command_reads() {
    let client = |help: &str| help.contains("--api-url") && help.contains("--json");
    for command in [&["apps"][..], &["build", "trigger"], &["runner"]] {
        assert!(client(&printed(&[command, &["--help"]].concat())), "{command:?}");
    }
    for command in [&["serve"][..], &["admin", "backup"], &["completions"]] {
        let help = printed(&[command, &["--help"]].concat());
        assert!(!help.contains("--api-url") && !help.contains("--output"), "{command:?}: {help}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["man", folder.path().to_str().unwrap()]);
    for (page, content) in [
        ("svc.1", "backends"),
        ("svc-serve.1", "SVC_LISTEN"),
        ("svc-build-trigger.1", "profile"),
        ("svc-admin-restore.1", "svc\\-admin\\-restore"),
    ] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(content), "{page}: {text}");
    }
}

#[test]
fn a_log_without_a_service_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let mut logs = Command::new(SVC);
    logs.args(["builds", "logs", "bld_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "--token", "svc_dt_x"]);
    logs.args(["--api-url", &format!("http://127.0.0.1:{}", free_port())]);
    let done = logs.current_dir(&folder).env("XDG_CONFIG_HOME", folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
