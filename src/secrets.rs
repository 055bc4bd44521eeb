//! The keys of a server, created on its first start and kept in its data directory.

use actors::{
    operators::installation::{self, Installation, fingerprint},
    ports::Random,
};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// Clients send it with every call. It is not a secret.
    pub application_id: String,
    /// Grants access to everything.
    pub master_key: String,
    /// Signs upload and download addresses. 64 letters and digits.
    pub signing_key: String,
    /// Encrypts the secrets in the store. 64 letters and digits. Key files from versions without
    /// instances lack it.
    #[serde(default)]
    pub encryption_key: String,
    /// Keys that encrypted before it, while `svc admin rekey` is under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older_encryption_keys: Vec<String>,
}

impl Keys {
    /// What the store knows of these keys and of this program.
    pub fn installation(&self) -> Installation {
        Installation {
            application_id: self.application_id.clone(),
            signing_key: fingerprint(&self.signing_key),
            encryption_key: fingerprint(&self.encryption_key),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            shape: installation::SHAPE,
        }
    }
}

/// What the person needs who creates the first administrator.
#[derive(Clone, Serialize, Deserialize)]
pub struct FirstStart {
    pub token: String,
}

pub fn keys_path(data: &Path) -> PathBuf {
    data.join("secrets/keys.json")
}

pub fn first_start_path(data: &Path) -> PathBuf {
    data.join("secrets/first-start.json")
}

/// Reads the application id from the key file.
pub fn application_id(data: &Path) -> io::Result<String> {
    let keys: Keys = serde_json::from_slice(&std::fs::read(keys_path(data))?)?;
    Ok(keys.application_id)
}

/// Reads the keys. Creates the key file of a new store, and a missing encryption key. Fails if there is
/// a store but no key file, or if the store has secrets but the encryption key is missing: new keys
/// could not decrypt them.
pub fn keys(
    data: &Path,
    random: &Random,
    is_new: bool,
    has_secrets: impl FnOnce() -> io::Result<bool>,
) -> io::Result<Keys> {
    if !is_new && !keys_path(data).exists() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "{} is missing, and the store was written with its keys: put the file back, from the place of the store's backups",
                keys_path(data).display()
            ),
        ));
    }
    let secret = |prefix, length| random.secret(prefix, length).map_err(io::Error::other);
    let mut keys = read_or_make(&keys_path(data), || {
        Ok(Keys {
            application_id: secret("svc_", 24)?,
            master_key: secret("svc_mk_", 40)?,
            signing_key: secret("", 64)?,
            encryption_key: secret("", 64)?,
            older_encryption_keys: Vec::new(),
        })
    })?;
    if keys.encryption_key.is_empty() {
        if has_secrets()? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the encryption key is missing, and the store holds secrets that were sealed with it: restore the newer file",
            ));
        }
        keys.encryption_key = secret("", 64)?;
        write(&keys_path(data), &serde_json::to_vec_pretty(&keys)?)?;
    }
    Ok(keys)
}

/// Makes a new encryption key, and keeps the present one beside it. If an earlier call was not
/// completed, its new key counts.
pub fn begin_rekey(data: &Path, random: &Random) -> io::Result<Keys> {
    let path = keys_path(data);
    let mut keys: Keys = serde_json::from_slice(&std::fs::read(&path)?)?;
    if keys.encryption_key.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "there is no encryption key yet: start the server once, which makes one",
        ));
    }
    if keys.older_encryption_keys.is_empty() {
        let new = random.secret("", 64).map_err(io::Error::other)?;
        keys.older_encryption_keys.push(std::mem::replace(&mut keys.encryption_key, new));
        write(&path, &serde_json::to_vec_pretty(&keys)?)?;
    }
    Ok(keys)
}

/// Forgets the older encryption keys.
pub fn end_rekey(data: &Path, keys: Keys) -> io::Result<()> {
    let keys = Keys { older_encryption_keys: Vec::new(), ..keys };
    write(&keys_path(data), &serde_json::to_vec_pretty(&keys)?)
}

/// Makes the token for the first administrator, or reads it if an earlier start made it.
pub fn first_start(data: &Path, random: &Random) -> io::Result<FirstStart> {
    read_or_make(&first_start_path(data), || {
        Ok(FirstStart { token: random.secret("svc_fs_", 40).map_err(io::Error::other)? })
    })
}

/// Removes the token: the first administrator exists.
pub fn end_first_start(data: &Path) -> io::Result<()> {
    match std::fs::remove_file(first_start_path(data)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn read_or_make<T: Serialize + serde::de::DeserializeOwned>(
    path: &Path,
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", path.display()))
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let made = make()?;
            write(path, &serde_json::to_vec_pretty(&made)?)?;
            Ok(made)
        }
        Err(e) => Err(e),
    }
}

/// Writes the file atomically, readable only by the user of this process.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    std::fs::File::open(folder)?.sync_all()
}
