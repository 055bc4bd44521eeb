//! What a folder must hold so that it can be deployed. The command line checks that before it sends
//! anything, and the service once more.

use serde_json::Value;

/// The Dockerfile of a folder. A folder that has one is built with it.
pub const DOCKERFILE: &str = "Dockerfile";
/// The cloud code of a Parse Server.
pub const CLOUD_CODE: &str = "cloud/main.js";
/// The folders that may name npm packages: the root, and that of the cloud code.
pub const PACKAGE_FOLDERS: [&str; 2] = ["", "cloud/"];
/// The files from which npm installs packages, in one of [`PACKAGE_FOLDERS`].
pub const PACKAGE_FILES: [&str; 4] =
    [crate::PACKAGE, "package-lock.json", "npm-shrinkwrap.json", ".npmrc"];
/// The largest file of [`PACKAGE_FILES`], in bytes.
pub const LARGEST_PACKAGE_FILE: u64 = 16 << 20;

/// How a folder is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderKind {
    /// With its own Dockerfile.
    Dockerfile,
    /// Its files are put onto the image of a Parse Server. Nothing of it runs during the build.
    CloudCode,
    /// The same, and its npm packages are installed.
    CloudCodeWithPackages,
}

impl FolderKind {
    /// Every kind once.
    pub const ALL: [FolderKind; 3] =
        [FolderKind::Dockerfile, FolderKind::CloudCode, FolderKind::CloudCodeWithPackages];

    /// Whether the build runs programs or contacts hosts that the folder names.
    pub fn runs_code(self) -> bool {
        self != FolderKind::CloudCode
    }
}

/// Whether npm reads this file when it installs packages.
pub fn is_package_file(path: &str) -> bool {
    let in_folder = |folder: &&str| path.strip_prefix(*folder);
    PACKAGE_FOLDERS.iter().filter_map(in_folder).any(|name| PACKAGE_FILES.contains(&name))
}

/// The files of a folder that have been seen.
#[derive(Debug, Default)]
pub struct FolderContents {
    dockerfile: bool,
    cloud_code: bool,
    packages: bool,
    broken: Option<String>,
}

impl FolderContents {
    /// Notes a regular file. `content` is needed for package files only.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.dockerfile |= path == DOCKERFILE;
        self.cloud_code |= path == CLOUD_CODE;
        if PACKAGE_FOLDERS.iter().any(|f| path.strip_prefix(*f) == Some(crate::PACKAGE)) {
            match serde_json::from_slice::<Value>(content) {
                Ok(package) => self.packages |= has_packages(&package),
                Err(e) => self.broken = Some(format!("{path} is not valid JSON: {e}")),
            }
        }
    }

    /// How the folder is built, or why it cannot be deployed.
    pub fn kind(self) -> Result<FolderKind, String> {
        if self.dockerfile {
            return Ok(FolderKind::Dockerfile);
        }
        if !self.cloud_code {
            return Err(format!(
                "there is nothing to deploy: the folder has neither {CLOUD_CODE} nor a {DOCKERFILE} \
                 at its root"
            ));
        }
        match self.broken {
            Some(broken) => Err(broken),
            None if self.packages => Ok(FolderKind::CloudCodeWithPackages),
            None => Ok(FolderKind::CloudCode),
        }
    }
}

fn has_packages(package: &Value) -> bool {
    let named = |field: &str| package[field].as_object().is_some_and(|named| !named.is_empty());
    named("dependencies") || named("optionalDependencies")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(files: &[(&str, &str)]) -> Result<FolderKind, String> {
        let mut seen = FolderContents::default();
        for (path, content) in files {
            seen.file(path, content.as_bytes());
        }
        seen.kind()
    }

    #[test]
    fn a_folder_needs_a_dockerfile_or_cloud_code() {
        use FolderKind::*;
        let code = (CLOUD_CODE, "");
        let packages = r#"{"dependencies": {"ms": "2.1.3"}}"#;
        assert_eq!(kind(&[code]), Ok(CloudCode));
        assert_eq!(kind(&[code, ("package.json", "{}")]), Ok(CloudCode));
        assert_eq!(kind(&[code, ("package.json", packages)]), Ok(CloudCodeWithPackages));
        assert_eq!(kind(&[code, ("cloud/package.json", packages)]), Ok(CloudCodeWithPackages));
        assert_eq!(kind(&[code, ("other/package.json", packages)]), Ok(CloudCode));
        assert_eq!(kind(&[code, ("package.json", "{"), ("Dockerfile", "")]), Ok(Dockerfile));
        assert!(
            kind(&[code, ("package.json", "{")]).is_err_and(|why| why.contains("package.json"))
        );
        for files in [&[][..], &[("main.js", "")], &[("docker/Dockerfile", "")]] {
            assert!(kind(files).is_err_and(|why| why.contains("neither cloud/main.js")));
        }
    }
}
