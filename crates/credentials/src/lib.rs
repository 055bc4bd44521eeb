//! Opens the files with which apps are signed and stores are reached, and says what is in them.
//!
//! It is called the moment somebody uploads such a file, so that a wrong password, an expired
//! certificate or a profile that does not fit is reported then, and not when a release fails.
//!
//! | upload | files |
//! |---|---|
//! | iOS signing | `.p12` with one certificate and its key, and a `.mobileprovision` |
//! | Android keystore | PKCS#12; old Java keystores are refused with the command that converts them |
//! | App Store Connect key | `AuthKey_….p8` |
//! | Google service account | the JSON of a key |
//!
//! No network is used: whether Apple or Google has revoked a key shows only when it is used. Whoever
//! issued a certificate or signed a profile is not judged either.

#![warn(missing_docs)]

mod android_keystore;
mod app_store_connect;
mod ber;
mod certificate;
mod facts;
mod identity;
mod ios_signing;
mod key;
mod looks;
mod pem;
mod pkcs12;
mod profile;
mod refusal;
mod service_account;
mod warning;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use contract::Timestamp;

pub use facts::{
    AndroidKeystore, AppStoreConnectKey, AppleCertificate, CertificateFacts, Facts,
    GoogleServiceAccount, InstallsOn, IosSigning, KeyKind, ProfileFacts, ProfileKind,
};
pub use looks::Looks;
pub use refusal::{File, Refusal};
pub use warning::{SOON_DAYS, Warning};

use identity::Request;

/// The largest file that is read, in bytes. Real ones have some 10 KiB.
pub const MAX_FILE: usize = 1 << 20;

/// The files of a credential, as somebody uploads them.
#[derive(Clone, Copy)]
pub enum UploadedFiles<'a> {
    /// What signs an app for iOS.
    IosSigning {
        /// The certificate and its private key, PKCS#12.
        p12: &'a [u8],
        /// The password of `p12`, which may be empty.
        password: &'a str,
        /// The `.mobileprovision`.
        profile: &'a [u8],
    },
    /// What signs an app for Android.
    AndroidKeystore {
        /// The keystore, PKCS#12.
        keystore: &'a [u8],
        /// The password of `keystore`.
        password: &'a str,
        /// The entry that signs. Needed if there are several. Upper case and lower case are equal.
        alias: Option<&'a str>,
        /// The password of the entry, if it has one of its own.
        key_password: Option<&'a str>,
    },
    /// What asks App Store Connect.
    AppStoreConnectKey {
        /// The private key, PEM.
        p8: &'a [u8],
        /// The name of the file, which tells the key id if Apple gave it.
        file_name: Option<&'a str>,
        /// Ten letters and digits. `None` if the file's name has them.
        key_id: Option<&'a str>,
        /// The id of the team's issuer. `None` for a key of one person.
        issuer_id: Option<&'a str>,
    },
    /// What asks Google Play and Firebase.
    GoogleServiceAccount {
        /// The JSON of the key.
        json: &'a [u8],
    },
}

impl UploadedFiles<'_> {
    /// The file that is named if a parser panics.
    fn main_file(&self) -> File {
        match self {
            Self::IosSigning { .. } => File::P12,
            Self::AndroidKeystore { .. } => File::Keystore,
            Self::AppStoreConnectKey { .. } => File::P8,
            Self::GoogleServiceAccount { .. } => File::ServiceAccount,
        }
    }
}

/// Names the kind, and nothing that is in the files.
impl fmt::Debug for UploadedFiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UploadedFiles(a {}, …)", self.main_file())
    }
}

/// An upload that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// What is in it. Nothing of this is secret.
    pub facts: Facts,
    /// What its sender should know.
    pub warnings: Vec<Warning>,
}

/// Opens an upload, and checks that its parts are valid at `now` and fit each other.
///
/// Blocks for some milliseconds, and up to some seconds for a hostile file: call it off the async
/// threads.
///
/// # Errors
///
/// A [`Refusal`] says what is wrong and what to do. It is final for these bytes, but for a
/// certificate that is not valid yet.
pub fn open(upload: UploadedFiles, now: Timestamp) -> Result<Opened, Refusal> {
    // The parsers of other crates read bytes of strangers here. A panic in one must become an answer.
    catch_unwind(AssertUnwindSafe(|| open_files(upload, now)))
        .unwrap_or(Err(Refusal::Unreadable { file: upload.main_file() }))
}

/// Where an app can be installed, by the profile in it. `None`: it is no profile that says so.
pub fn installs_on(profile: &[u8]) -> Option<InstallsOn> {
    // As in `open`.
    catch_unwind(|| profile::installs_on(profile)).unwrap_or_default()
}

fn open_files(upload: UploadedFiles, now: Timestamp) -> Result<Opened, Refusal> {
    let (facts, mut warnings) = match upload {
        UploadedFiles::IosSigning { p12, password, profile } => {
            let (facts, warnings) = ios_signing::open(p12, password, profile, now)?;
            (Facts::IosSigning(facts), warnings)
        }
        UploadedFiles::AndroidKeystore { keystore, password, alias, key_password } => {
            let file = File::Keystore;
            let request = Request { file, bytes: keystore, password, alias, key_password };
            let (facts, warnings) = android_keystore::open(&request, now)?;
            (Facts::AndroidKeystore(facts), warnings)
        }
        UploadedFiles::AppStoreConnectKey { p8, file_name, key_id, issuer_id } => {
            let (facts, warnings) = app_store_connect::open(p8, file_name, key_id, issuer_id)?;
            (Facts::AppStoreConnectKey(facts), warnings)
        }
        UploadedFiles::GoogleServiceAccount { json } => {
            (Facts::GoogleServiceAccount(service_account::open(json)?), Vec::new())
        }
    };
    warnings.extend(expires_soon(&facts, now));
    Ok(Opened { facts, warnings })
}

fn expires_soon(facts: &Facts, now: Timestamp) -> Option<Warning> {
    let soon = now + Duration::from_secs(SOON_DAYS * 24 * 60 * 60);
    let at = facts.expires_at().filter(|at| *at <= soon)?;
    let what = match facts {
        Facts::IosSigning(signing) if signing.profile.expires_at == at => "provisioning profile",
        _ => "certificate",
    };
    Some(Warning::ExpiresSoon { what, at })
}
