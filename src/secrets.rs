//! The keys of a server, created on its first start and kept in its data directory.

use actors::{
    installation::{self, Installation, fingerprint},
    ports::random::Random,
};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The prefix of master keys.
const MASTER_KEY: &str = "svc_mk_";

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
    /// The fingerprint of the signing key before, while `svc admin rekey` is under way: the store may
    /// know that one still. What it signed is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_signing_key: Option<String>,
}

/// The keys that are to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    pub encryption_key: bool,
    pub signing_key: bool,
    pub master_key: bool,
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

    /// The fingerprints of the keys with which the store may still be written, because a renewal is
    /// under way.
    pub fn older_fingerprints(&self) -> Vec<String> {
        let encryption = self.older_encryption_keys.iter().map(|key| fingerprint(key));
        encryption.chain(self.older_signing_key.clone()).collect()
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
            master_key: secret(MASTER_KEY, 40)?,
            signing_key: secret("", 64)?,
            encryption_key: secret("", 64)?,
            older_encryption_keys: Vec::new(),
            older_signing_key: None,
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

/// Makes new keys. Beside a new encryption key it keeps the present one, and of the present signing key
/// the fingerprint. If an earlier call was not completed, its new keys count; a master key is complete
/// at once.
pub fn begin_rekey(data: &Path, random: &Random, renewal: Renewal) -> io::Result<Keys> {
    let path = keys_path(data);
    let mut keys: Keys = serde_json::from_slice(&std::fs::read(&path)?)?;
    if keys.encryption_key.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "there is no encryption key yet: start the server once, which makes one",
        ));
    }
    let secret = |prefix, length| random.secret(prefix, length).map_err(io::Error::other);
    if renewal.encryption_key && keys.older_encryption_keys.is_empty() {
        let older = std::mem::replace(&mut keys.encryption_key, secret("", 64)?);
        keys.older_encryption_keys.push(older);
    }
    if renewal.signing_key && keys.older_signing_key.is_none() {
        keys.older_signing_key = Some(fingerprint(&keys.signing_key));
        keys.signing_key = secret("", 64)?;
    }
    if renewal.master_key {
        keys.master_key = secret(MASTER_KEY, 40)?;
    }
    write(&path, &serde_json::to_vec_pretty(&keys)?)?;
    Ok(keys)
}

/// Forgets the older keys.
pub fn end_rekey(data: &Path, keys: Keys) -> io::Result<()> {
    let keys = Keys { older_encryption_keys: Vec::new(), older_signing_key: None, ..keys };
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

/// The name of this node among those that share a store. It is of this data directory, and no secret.
pub fn node(data: &Path, random: &Random) -> io::Result<String> {
    read_or_make(&data.join("node.json"), || random.secret("", 12).map_err(io::Error::other))
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
