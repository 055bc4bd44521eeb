//! The login file: the service that a person is signed in to, and the session.

use crate::failure::Failure;
use contract::{Email, Timestamp};
use serde::{Deserialize, Serialize};
use std::{fs, io, path::PathBuf};

/// The content of the login file, which `svc login` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredLogin {
    /// The only service that gets the session.
    pub api_url: String,
    pub application_id: String,
    pub email: Email,
    pub session_token: String,
    /// The end of the session. Use extends it.
    pub expires_at: Timestamp,
}

pub struct LoginFile {
    path: PathBuf,
}

impl LoginFile {
    /// The file is in the configuration folder of the person.
    pub fn locate(environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let folder = environment("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| Some(PathBuf::from(environment("HOME")?).join(".config")));
        let folder = folder.ok_or_else(|| {
            Failure::usage("neither HOME nor XDG_CONFIG_HOME is set", "set one of them")
        })?;
        Ok(LoginFile { path: folder.join("svc/login.json") })
    }

    /// The login, or `None` without a login file.
    pub fn read(&self) -> Result<Option<StoredLogin>, Failure> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::file(&self.path, &error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            Failure::usage(
                format!("{} is not a login file: {error}", self.path.display()),
                "remove it, and sign in with `svc login`",
            )
        })
    }

    /// Replaces the login. Only its owner can read the file, and a crash leaves the old or the new
    /// login.
    pub fn write(&self, login: &StoredLogin) -> Result<(), Failure> {
        let write = || -> io::Result<()> {
            let folder = self.path.parent().unwrap_or(&self.path);
            fs::create_dir_all(folder)?;
            // The temporary file has mode 0600, and keeps it when it is renamed.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, login)?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().map_err(|error| Failure::file(&self.path, &error))
    }

    pub fn remove(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::file(&self.path, &error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_login_is_kept_for_its_owner_alone_and_can_be_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_string_lossy().into_owned();
        let file = LoginFile::locate(&|name| (name == "HOME").then(|| folder.clone())).unwrap();
        assert_eq!(file.read().unwrap(), None);
        let mut login = StoredLogin {
            api_url: "http://127.0.0.1:8080".into(),
            application_id: "svc".into(),
            email: "ada@example.com".parse().unwrap(),
            session_token: "r:1".into(),
            expires_at: Timestamp::from_millis(0),
        };
        file.write(&login).unwrap();
        login.session_token = "r:2".into();
        file.write(&login).unwrap();
        assert_eq!(file.read().unwrap(), Some(login));
        let mode = fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(file.read().unwrap(), None);
    }
}
