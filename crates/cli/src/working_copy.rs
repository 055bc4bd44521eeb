//! The working copy of a repository that a command runs in, and its configuration.

use crate::failure::Failure;
use contract::text::RepositoryName;
use repository::{
    CONFIG, Config, FileContent, Files, LARGEST_FILE, PACKAGE, WORKFLOW, stays_inside,
};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The GitHub of most repositories, and of most services with a GitHub App.
pub const GITHUB: &str = "https://github.com";

/// A folder with the files of a repository.
pub struct WorkingCopy {
    root: PathBuf,
}

impl WorkingCopy {
    /// The working copy that contains the current folder, or else the folder itself.
    pub fn find() -> Result<Self, Failure> {
        let here =
            std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
        let is_root = |folder: &&Path| folder.join(CONFIG).exists() || folder.join(".git").exists();
        let root = here.ancestors().find(is_root).unwrap_or(&here).to_owned();
        Ok(WorkingCopy { root })
    }

    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        WorkingCopy { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The configuration, if there is one.
    pub fn config(&self) -> Result<Option<Config>, Failure> {
        let unfit = |why: &dyn std::fmt::Display| {
            Failure::usage(
                format!("{}: {why}", self.root.join(CONFIG).display()),
                "`svc doctor` says what belongs into it",
            )
        };
        match self.content(CONFIG) {
            FileContent::Missing => Ok(None),
            FileContent::Unreadable(why) => Err(unfit(&why)),
            FileContent::Text(text) => serde_json::from_str(&text).map(Some).map_err(|e| unfit(&e)),
        }
    }

    /// The full path of a file that the configuration names. Refuses a path that leads out of the
    /// repository, also through a link.
    pub fn file(&self, path: &str) -> Result<PathBuf, Failure> {
        let full = self.root.join(path);
        let outside = || {
            Failure::usage(
                format!("{path:?} leads out of the repository"),
                format!("name a path inside it in {CONFIG}"),
            )
        };
        if !stays_inside(path) {
            return Err(outside());
        }
        let resolve =
            |path: &Path| path.canonicalize().map_err(|error| Failure::file(path, &error));
        let (root, file) = (resolve(&self.root)?, resolve(&full)?);
        if file.starts_with(root) { Ok(file) } else { Err(outside()) }
    }

    /// The name of this repository at a host such as `https://github.com`, if its origin is there.
    pub fn name_at(&self, host: &str) -> Option<RepositoryName> {
        let mut git = Command::new("git");
        git.args(["remote", "get-url", "origin"]).current_dir(&self.root).stderr(Stdio::null());
        let url = String::from_utf8(git.output().ok()?.stdout).ok()?;
        let (_, host) = host.trim_end_matches('/').split_once("://")?;
        let rest = ["https://", "http://", "git@", "ssh://git@", "git://"];
        let rest = rest.iter().find_map(|scheme| url.trim().strip_prefix(scheme))?;
        let (at, path) = rest.split_at_checked(host.len())?;
        let path = path.strip_prefix(['/', ':']).filter(|_| at.eq_ignore_ascii_case(host))?;
        let path = path.trim_end_matches('/');
        path.strip_suffix(".git").unwrap_or(path).parse().ok()
    }

    /// The files of a managed repository.
    pub fn files(&self) -> Files {
        Files {
            package: self.content(PACKAGE),
            config: self.content(CONFIG),
            workflow: self.content(WORKFLOW),
        }
    }

    fn content(&self, path: &str) -> FileContent {
        let read = || {
            let mut bytes = Vec::new();
            let file = File::open(self.root.join(path))?;
            file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes)?;
            io::Result::Ok(bytes)
        };
        match read() {
            Ok(bytes) => bytes.into(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => FileContent::Missing,
            Err(e) => FileContent::Unreadable(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_of_the_configuration_stay_in_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repository");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("app.apk"), "x").unwrap();
        fs::write(folder.path().join("secret.apk"), "x").unwrap();
        std::os::unix::fs::symlink("../secret.apk", root.join("link.apk")).unwrap();
        let copy = WorkingCopy::at(&root);
        assert!(copy.file("./app.apk").is_ok());
        for outside in ["../secret.apk", "link.apk", "/etc/hosts", "a/../../secret.apk"] {
            let failure = copy.file(outside).unwrap_err();
            assert!(failure.to_string().contains("leads out"), "{outside}: {failure}");
        }
        assert!(copy.file("absent.apk").is_err());
    }
}
