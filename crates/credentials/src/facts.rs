//! What is in the files of a credential. Nothing here is secret.

use contract::Timestamp;
use serde::{Deserialize, Serialize};

/// What is in an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Facts {
    /// For signing apps for iOS.
    IosSigning(IosSigning),
    /// For signing apps for Android.
    AndroidKeystore(AndroidKeystore),
    /// For the API with which apps get into the App Store and TestFlight.
    AppStoreConnectKey(AppStoreConnectKey),
    /// For Google Play and Firebase.
    GoogleServiceAccount(GoogleServiceAccount),
}

impl Facts {
    /// When the first part expires. `None` if nothing does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::IosSigning(signing) => {
                Some(signing.certificate.not_after.min(signing.profile.expires_at))
            }
            Self::AndroidKeystore(keystore) => Some(keystore.certificate.not_after),
            Self::AppStoreConnectKey(_) | Self::GoogleServiceAccount(_) => None,
        }
    }
}

/// A certificate with its private key, and a provisioning profile that lists the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IosSigning {
    /// It signs the app, and the profile lists it.
    pub certificate: CertificateFacts,
    /// Decides whether the app can go to a store.
    pub certificate_kind: AppleCertificate,
    /// The team, such as `ABCDE12345`, of certificate and profile.
    pub team_id: String,
    /// It says for which app and which devices the certificate may sign.
    pub profile: ProfileFacts,
}

/// A keystore, and the entry in it that signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AndroidKeystore {
    /// The entries with a private key, in the order of the file.
    pub aliases: Vec<String>,
    /// The entry that was named, or the only one.
    pub alias: String,
    /// The certificate of this entry.
    pub certificate: CertificateFacts,
}

/// A key of App Store Connect's API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppStoreConnectKey {
    /// Ten letters and digits.
    pub key_id: String,
    /// The UUID of the team, lower-case. A key of one person has none.
    pub issuer_id: Option<String>,
    /// The private key: always of the curve P-256.
    pub key: KeyKind,
}

/// A key of a Google service account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoogleServiceAccount {
    /// Who the account is: invite this address in the Play Console.
    pub client_email: String,
    /// The project of Google Cloud in which the account was made.
    pub project_id: String,
    /// The id of the key, by which it can be revoked.
    pub private_key_id: String,
    /// The number of the account.
    pub client_id: Option<String>,
}

/// A certificate. Whether its issuer really issued it is not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateFacts {
    /// Such as `C=DE, O=Example, CN=Example App`, at most 500 characters.
    pub subject: String,
    /// Who issued it, in the same form. Equals the subject if nobody else did.
    pub issuer: String,
    /// Lower-case hex digits, without leading zeros.
    pub serial: String,
    /// SHA-256 of the DER certificate, 64 lower-case hex digits.
    pub sha256: String,
    /// The first moment at which it is valid.
    pub not_before: Timestamp,
    /// The last moment at which it is valid.
    pub not_after: Timestamp,
    /// The public half.
    pub key: KeyKind,
}

/// The algorithm and the size of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "camelCase")]
pub enum KeyKind {
    /// The usual one for certificates of Apple and for Android.
    Rsa {
        /// Bits of the modulus.
        bits: u32,
    },
    /// A curve of NIST.
    Ec {
        /// 256, 384 or 521, for P-256, P-384 or P-521.
        bits: u32,
    },
}

/// What Apple issued a certificate for, as far as it signs apps for iOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AppleCertificate {
    /// "Apple Development" or "iPhone Developer".
    Development,
    /// "Apple Distribution" or "iPhone Distribution", also of the Enterprise Program.
    Distribution,
}

/// A provisioning profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileFacts {
    /// As Apple's developer site shows it.
    pub name: String,
    /// By which Xcode names it.
    pub uuid: String,
    /// The team, such as `ABCDE12345`.
    pub team_id: String,
    /// The team as people read it.
    pub team_name: Option<String>,
    /// The bundle ids for which it may be used: one, or a pattern such as `com.example.*` or `*`.
    pub bundle_id: String,
    /// Where apps with it can be installed.
    pub kind: ProfileKind,
    /// The number of devices in it. Zero for the App Store and in-house.
    pub devices: u64,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When apps with it stop working, but for those of the App Store.
    pub expires_at: Timestamp,
    /// Whether a debugger may attach to the app.
    pub get_task_allow: bool,
    /// `production` or `development`, if the app may receive push messages.
    pub aps_environment: Option<String>,
}

/// Where an app can be installed, by the profile in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallsOn {
    /// Which devices.
    pub kind: ProfileKind,
    /// The UDIDs of the devices. None for the App Store and in-house.
    pub devices: Vec<String>,
    /// When the app stops working, but for those of the App Store.
    pub expires_at: Timestamp,
}

/// Where apps can be installed that have a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileKind {
    /// On the listed devices, with a debugger.
    Development,
    /// On the listed devices.
    AdHoc,
    /// Through TestFlight and the App Store.
    AppStore,
    /// On every device of the company.
    Enterprise,
}

impl ProfileKind {
    /// As a person calls it.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::AdHoc => "ad hoc distribution",
            Self::AppStore => "the App Store",
            Self::Enterprise => "in-house distribution",
        }
    }
}
