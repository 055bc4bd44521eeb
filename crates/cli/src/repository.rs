//! The repository that a command runs in, and its configuration.

use crate::failure::Failure;
use contract::{AppId, apps::Platform};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

/// The three files that make a repository managed.
pub const PACKAGE: &str = "package.json";
pub const CONFIG: &str = ".svc/config.json";
pub const WORKFLOW: &str = ".github/workflows/svc-build.yml";

/// `.svc/config.json`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    pub platforms: Vec<Platform>,
    /// The shell command that builds, by platform and profile.
    pub build: BTreeMap<Platform, BTreeMap<String, String>>,
    /// The path of the built file, by platform and profile.
    pub artifact: BTreeMap<Platform, BTreeMap<String, String>>,
    /// The service that this repository publishes to.
    pub api_url: Option<String>,
    pub application_id: Option<String>,
    /// The app of this repository.
    pub app: Option<AppId>,
}

/// A folder with a working copy.
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository that contains the current folder, or else the folder itself.
    pub fn find() -> Result<Self, Failure> {
        let here =
            std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
        let is_root = |folder: &&Path| folder.join(CONFIG).exists() || folder.join(".git").exists();
        let root = here.ancestors().find(is_root).unwrap_or(&here).to_owned();
        Ok(Repository { root })
    }

    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Repository { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The configuration, if there is one.
    pub fn config(&self) -> Result<Option<Config>, Failure> {
        let Some(text) = self.text(CONFIG) else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Failure::usage(
                format!("{}: {error}", self.root.join(CONFIG).display()),
                "`svc doctor` says what belongs into it",
            )
        })
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

    /// The text of a file; `None` if the file is missing or cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// Whether a path is relative and has no `..`.
pub fn stays_inside(path: &str) -> bool {
    let mut components = Path::new(path).components();
    components.all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_configuration_stay_in_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repository");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("app.apk"), "x").unwrap();
        fs::write(folder.path().join("secret.apk"), "x").unwrap();
        std::os::unix::fs::symlink("../secret.apk", root.join("link.apk")).unwrap();
        let repository = Repository::at(&root);
        assert!(repository.file("./app.apk").is_ok());
        for outside in ["../secret.apk", "link.apk", "/etc/hosts", "a/../../secret.apk"] {
            let failure = repository.file(outside).unwrap_err();
            assert!(failure.to_string().contains("leads out"), "{outside}: {failure}");
        }
        assert!(repository.file("absent.apk").is_err());
    }
}
