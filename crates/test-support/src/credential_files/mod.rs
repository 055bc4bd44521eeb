//! Files made with `openssl` and `keytool`, and small changes to files in DER.

pub mod der;
pub mod ios;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use contract::Timestamp;
use credentials::{Opened, Refusal, UploadedFiles};
use tempfile::TempDir;

/// A folder that is removed in the end, and the commands that run in it.
pub struct Folder(TempDir);

impl Default for Folder {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Folder {
    fn output(&self, script: &str) -> Output {
        Command::new("sh")
            .args(["-ec", script])
            .current_dir(self.0.path())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs commands that must succeed. Returns what they print.
    pub fn sh(&self, script: &str) -> String {
        let output = self.output(script);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{script}: {stderr}{}",
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether a command succeeds.
    pub fn succeeds(&self, script: &str) -> bool {
        self.output(script).status.success()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    /// Makes `<name>.key` and a self-signed `<name>.pem`. `key` is for `-newkey`, as `rsa:2048`.
    pub fn self_signed(&self, name: &str, key: &str, subject: &str) {
        self.sh(&format!(
            "openssl req -x509 -newkey {key} -nodes -days 10000 -keyout {name}.key -out {name}.pem \
             -subj '{subject}' 2>&1"
        ));
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

pub const RSA: &str = "rsa:2048";
pub const P256: &str = "ec -pkeyopt ec_paramgen_curve:P-256";

/// The present, by the clock with which the tools date certificates.
pub fn now() -> Timestamp {
    let millis = Folder::default().sh("date +%s000");
    Timestamp::from_millis(millis.trim().parse().unwrap())
}

pub fn years_later(years: i64) -> Timestamp {
    Timestamp::from_millis(now().as_millis() + years * 366 * 24 * 60 * 60 * 1000)
}

pub fn open(upload: UploadedFiles) -> Result<Opened, Refusal> {
    credentials::open(upload, now())
}

/// A keystore whose only key has the password of the keystore.
pub fn keystore<'a>(keystore: &'a [u8], password: &'a str) -> UploadedFiles<'a> {
    UploadedFiles::AndroidKeystore { keystore, password, alias: None, key_password: None }
}

/// The code of the refusal.
pub fn code(upload: UploadedFiles) -> &'static str {
    match open(upload) {
        Ok(opened) => panic!("{opened:?}"),
        Err(refusal) => refusal.code(),
    }
}
