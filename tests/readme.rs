//! The tour of the README works as written.

use crate::support::{
    ports::free_port,
    requires,
    service::{SVC, Service},
};
use std::{
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

/// The shell blocks below a heading of the README.
fn blocks(heading: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, section) = readme.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_tour_of_the_readme_works_as_written() {
    if !requires::programs("the_tour_of_the_readme_works_as_written", &["git", "python3", "curl"]) {
        return;
    }
    let port = free_port();
    let host = format!("127.0.0.1:{port}");
    let service = Service::start_with(&[("SVC_GIT_PRIVATE_HOSTS", &host)]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["data/fixtures", "tests"] {
        symlink(root.join(folder), service.home.join(folder)).unwrap();
    }
    let blocks = blocks("Five minutes");
    let [start, tour @ ..] = &blocks[..] else { panic!("the README has no tour") };
    assert_eq!(start, "SVC_GIT_PRIVATE_HOSTS=127.0.0.1:8081 make run\n");
    let folder = Path::new(SVC).parent().unwrap().display().to_string();
    let refused = "svc publish data/fixtures/sample-tampered.apk";
    let mut script = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for block in tour {
        let block = block.replace("http://127.0.0.1:8080", &service.url);
        let block = block.replace("8081", &port.to_string());
        let block = block.replace("$PWD/target/quick", &folder);
        script += &block.replace(refused, &format!("! {refused}"));
    }
    script += "echo \"preview is $RELEASE\"\n";
    assert!(script.contains(&format!("! {refused}\n")) && script.contains("svc runner"));
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(&script).current_dir(&service.home).stdin(Stdio::null());
    shell.env("XDG_CONFIG_HOME", service.home.join("config")).env("SVC_API_URL", &service.url);
    let done = shell.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}\n{out}\n{err}\n{}", done.status, service.last_words());
    // The reply over plain HTTP, the versions of the releases, the refusal, and the address at the end.
    for told in ["\"sessionToken\"", "1.4.2", "1.5.0", "rolled"] {
        assert!(out.contains(told), "{told}\n{out}\n{err}");
    }
    assert!(err.contains("signature"), "{err}");
    let (_, release) = out.trim_end().rsplit_once("preview is ").unwrap();
    assert!(out.contains(&format!("/install/{release}")), "{out}");
}
