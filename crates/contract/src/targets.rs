//! The targets of publications: the stores, and the install page.

use crate::{artifacts::ArtifactKind, credentials::CredentialKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The targets of a publication.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The iOS app store.
    AppStore,
    /// The Android app store.
    GooglePlay,
    /// The iOS beta distribution service.
    Testflight,
    /// The mobile app distribution service.
    FirebaseAppDistribution,
    /// An install page of the service, with a QR code.
    Ota,
}

impl Target {
    /// Every target once.
    pub const ALL: [Target; 5] = [
        Target::AppStore,
        Target::GooglePlay,
        Target::Testflight,
        Target::FirebaseAppDistribution,
        Target::Ota,
    ];

    /// Whether the target takes files of this kind.
    pub const fn takes(self, kind: ArtifactKind) -> bool {
        match self {
            Target::AppStore | Target::Testflight => matches!(kind, ArtifactKind::Ipa),
            Target::GooglePlay => !matches!(kind, ArtifactKind::Ipa),
            Target::FirebaseAppDistribution | Target::Ota => true,
        }
    }

    /// The kinds of credentials that open the target, the best first. Empty: it needs none.
    pub const fn keys(self) -> &'static [CredentialKind] {
        use CredentialKind as K;
        match self {
            Target::AppStore | Target::Testflight => &[K::AppStoreConnectKey],
            Target::GooglePlay => &[K::GoogleServiceAccount],
            Target::FirebaseAppDistribution => {
                &[K::FirebaseServiceAccount, K::GoogleServiceAccount]
            }
            Target::Ota => &[],
        }
    }

    /// The target's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Target::AppStore => "app-store",
            Target::GooglePlay => "google-play",
            Target::Testflight => "testflight",
            Target::FirebaseAppDistribution => "firebase-app-distribution",
            Target::Ota => "ota",
        }
    }
}
