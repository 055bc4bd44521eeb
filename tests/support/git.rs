//! A git server on this machine.

use crate::support::engine::Engine;
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A git server with one repository, `app.git`.
pub struct Git {
    folder: tempfile::TempDir,
    /// The URL of the repository.
    pub url: String,
    /// The host and the port of the server, which are on the internal network.
    pub host: String,
    server: Child,
}

impl Git {
    /// Serves an empty repository.
    pub fn serve() -> Git {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/git/server.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(folder.path()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let host = format!("127.0.0.1:{}", port.trim());
        let git = Git { folder, url: format!("http://{host}/app.git"), host, server };
        std::fs::create_dir(git.work()).unwrap();
        git.run(&["init", "--quiet", "--initial-branch=main"]);
        git
    }

    /// Serves the repository at another path too, such as `acme/app.git`. Returns the URL.
    pub fn also_at(&self, path: &str) -> String {
        let link = self.folder.path().join(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(self.work(), link).unwrap();
        format!("http://{}/{path}", self.host)
    }

    /// The working folder.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("app.git")
    }

    /// Lets the server do as `tests/support/git/server.py` says of this setting.
    pub fn set(&self, setting: &str, value: &str) {
        std::fs::write(self.folder.path().join(setting), value).unwrap();
    }

    pub fn unset(&self, setting: &str) {
        std::fs::remove_file(self.folder.path().join(setting)).unwrap();
    }

    /// How many bytes of repositories the server has sent.
    pub fn sent(&self) -> u64 {
        let sent = std::fs::read_to_string(self.folder.path().join("sent"));
        sent.map_or(0, |sent| sent.parse().unwrap())
    }

    /// Runs git in the working folder and returns its output.
    pub fn run(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let mut command = Command::new("git");
        let done = command.current_dir(self.work()).args(identity).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Commits these files and returns the id of the commit.
    pub fn commit(&self, files: &[(&str, String)]) -> String {
        for (path, content) in files {
            let path = self.work().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        self.run(&["add", "--all"]);
        self.run(&["commit", "--quiet", "--message", "a change"]);
        self.run(&["rev-parse", "HEAD"])
    }

    /// Commits a backend whose function `version` answers this.
    pub fn commit_version(&self, engine: &Engine, version: &str) -> String {
        let from = engine.base("parse-server");
        self.commit(&[
            (
                "Dockerfile",
                format!("FROM {from}\nCOPY cloud/main.js /parse-server/cloud/main.js\n"),
            ),
            ("cloud/main.js", format!("Parse.Cloud.define('version', () => '{version}');\n")),
        ])
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
