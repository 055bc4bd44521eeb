//! Credentials of apps: what signs them, and what opens the stores that publish them.

use crate::{
    AppId, CredentialId, Name, Page, Patch, Sha256, Timestamp, UserId,
    artifacts::Distribution,
    page::*,
    text::{Currency, FileData, PasswordAttempt},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Credentials";

    /// Store a credential of an app.
    ///
    /// The file is opened at once: a wrong password, an expired certificate, a file of another type,
    /// or a profile that does not fit its certificate is refused with the reason. The service
    /// encrypts the secret, uses it, and never returns it. A credential with the same kind and name
    /// is replaced.
    ///
    /// A service account, a key of App Store Connect or a token of a repository host is used for
    /// publications, checks and builds of this app only. Of several with one kind, the one that was
    /// stored last is used.
    "svc_setCredential": SetCredential {
        app_id: AppId,
        /// What the credential is. It decides which of the other parameters are needed.
        kind: CredentialKind,
        /// For `repositoryHost`, the host of the repositories, such as `git.example.com`, or
        /// `git.example.com:8443` with a port that is not that of https.
        name: Name,
        /// The file in base64, at most 256 KiB. For `repositoryHost`, the token. For `paystack` and
        /// `stripe`, the secret key, or JSON: `{"secretKey", "previousKeys"?}` for Paystack,
        /// `{"secretKey", "webhookSecrets"?}` for Stripe.
        data: FileData,
        /// The password of a `.p12` or a keystore. Without one, the empty password is tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        password: Option<PasswordAttempt>,
        /// For `iosSigning`: the provisioning profile in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<FileData>,
        /// For `androidKeystore`: the alias of the key, if the keystore has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<Name>,
        /// For `androidKeystore`: the password of the key, if it is not that of the keystore.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_password: Option<PasswordAttempt>,
        /// For `appStoreConnectKey`: the id of the key, ten capital letters and digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_id: Option<Name>,
        /// For `appStoreConnectKey`: the UUID of the issuer. An individual key has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer_id: Option<Name>,
        /// For `paystack` and `stripe`: the currency of checkouts that name none, such as `EUR`. The
        /// default is that of the account at the provider. A credential that is replaced keeps its
        /// currency unless another one is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        currency: Option<Currency>,
    } -> Credential { who: OwnerOrAdmin of (app_id), effect: Change, cost: 5,
        errors: [NotNow "the app has 50 credentials"] }

    /// Change what a credential says beside its secret.
    "svc_updateCredential": UpdateCredential {
        credential_id: CredentialId,
        /// For `paystack` and `stripe`: the currency of checkouts that name none. `null` stands for
        /// that of the account at the provider.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        currency: Patch<Currency>,
    } -> Credential { who: OwnerOrAdmin of (credential_id), effect: Change }

    /// List the credentials of an app, without their secrets.
    "svc_getCredentials": GetCredentials {
        app_id: AppId,
        /// Return only credentials of this kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<CredentialKind>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Credential> { who: Member of (app_id), effect: Read }

    /// Check now whether a credential opens what it is for.
    ///
    /// The service signs in at the store or at the host of the app's repository, and asks for what a
    /// publication or a build needs. Nothing is changed there. A file that only signs apps is
    /// judged by its dates.
    "svc_checkCredential": CheckCredential { credential_id: CredentialId } -> Credential
    { who: Member of (credential_id), effect: Change, cost: 5,
      errors: [NotNow "the app has no identifier, or no repository at this host"] }

    /// Delete a credential at once. Publications that need it stop until another one is stored.
    "svc_deleteCredential": DeleteCredential { credential_id: CredentialId } -> DeletedCredential
    { who: OwnerOrAdmin of (credential_id), effect: Change }
}

records! {
    /// A credential, without its secret.
    pub struct Credential {
        id: CredentialId,
        app_id: AppId,
        /// What the credential is, which decides what the service uses it for.
        kind: CredentialKind,
        /// Its name, unique among those of its kind. For `repositoryHost`, the host of the
        /// repositories.
        name: Name,
        /// What the file says about itself.
        facts: CredentialFacts,
        /// When the certificate or the profile expires, whichever is first. Null if nothing does.
        expires_at: Option<Timestamp>,
        /// The currency of checkouts that name none, for a payment provider. Null stands for
        /// `accountCurrency`.
        #[serde(default)]
        currency: Option<Currency>,
        /// The currency of the account at the payment provider. Null until a checkout needed it; a
        /// check of the credential lets it be asked for again.
        #[serde(default)]
        account_currency: Option<Currency>,
        /// What somebody should look at, one sentence each.
        warnings: Vec<String>,
        /// The last check of the access, or null.
        check: Option<AccessCheck>,
        /// When a publication, a build or a check last used it; exact to the minute.
        last_used_at: Option<Timestamp>,
        /// Null if the master key alone stored it.
        created_by: Option<UserId>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// What a file says about itself. Fields that its kind does not have are null.
    #[derive(Default)]
    pub struct CredentialFacts {
        /// The certificate of a `.p12` or a keystore.
        certificate: Option<Certificate>,
        /// The provisioning profile.
        profile: Option<ProvisioningProfile>,
        /// The alias of the key in a keystore.
        alias: Option<String>,
        /// The id of a key of App Store Connect, or of the private key of a service account.
        key_id: Option<String>,
        /// The issuer of a key of App Store Connect.
        issuer_id: Option<String>,
        /// The e-mail address of a service account. Grant the permissions to it.
        client_email: Option<String>,
        /// The Google project of a service account.
        project_id: Option<String>,
        /// The end of the secret key of a payment provider, such as `…4242`.
        #[serde(default)]
        key_hint: Option<String>,
        /// Whether the key of a payment provider moves real money. Null for other credentials.
        #[serde(default)]
        live: Option<bool>,
    }

    /// A certificate that signs apps.
    pub struct Certificate {
        /// For whom it was issued, such as `C=DE, O=Example, CN=Example App`. At most 500
        /// characters.
        subject: String,
        /// Who issued it, in the form of `subject`. Both are the same if nobody else did.
        issuer: String,
        /// The SHA-256 of the certificate, as stores and signing tools show it.
        sha256: Sha256,
        /// What Apple issued it for, such as `Apple Distribution`. Null for other issuers.
        kind: Option<String>,
        /// Apple's id of the team.
        team_id: Option<String>,
        /// The first moment at which it is valid.
        not_before: Timestamp,
        /// The last moment at which it is valid.
        not_after: Timestamp,
    }

    /// What a provisioning profile of Apple says about itself.
    pub struct ProvisioningProfile {
        /// The name that Apple's developer site shows.
        name: String,
        /// The UUID by which Xcode names the profile.
        uuid: String,
        /// Apple's id of the team, such as `ABCDE12345`.
        team_id: String,
        /// The bundle identifier, or a pattern that ends with `*`.
        bundle_id: String,
        /// Which devices install the apps that are signed with it.
        distribution: Distribution,
        expires_at: Timestamp,
    }

    /// A check of what a credential opens.
    pub struct AccessCheck {
        at: Timestamp,
        /// Whether the credential opens what it is for.
        ok: bool,
        /// What was found, as one sentence.
        text: String,
    }

    /// The credential that the call deleted.
    pub struct DeletedCredential { deleted: CredentialId }
}

/// The kinds of credentials.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CredentialKind {
    /// A `.p12` with a certificate and its private key, and a provisioning profile.
    IosSigning,
    /// A keystore in the format PKCS#12.
    AndroidKeystore,
    /// A `.p8` key of the App Store Connect API, for `app-store` and `testflight`.
    AppStoreConnectKey,
    /// The JSON key of a Google service account, for `google-play`.
    GoogleServiceAccount,
    /// The JSON key of a Google service account, for `firebase-app-distribution`.
    FirebaseServiceAccount,
    /// A token that reads repositories at a host.
    RepositoryHost,
    /// The secret key of an account at Paystack, for checkouts.
    Paystack,
    /// The secret key of an account at Stripe and the signing secrets of its webhook, for checkouts.
    Stripe,
}

impl CredentialKind {
    /// Every kind once.
    pub const ALL: [CredentialKind; 8] = [
        CredentialKind::IosSigning,
        CredentialKind::AndroidKeystore,
        CredentialKind::AppStoreConnectKey,
        CredentialKind::GoogleServiceAccount,
        CredentialKind::FirebaseServiceAccount,
        CredentialKind::RepositoryHost,
        CredentialKind::Paystack,
        CredentialKind::Stripe,
    ];

    /// The kind's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            CredentialKind::IosSigning => "iosSigning",
            CredentialKind::AndroidKeystore => "androidKeystore",
            CredentialKind::AppStoreConnectKey => "appStoreConnectKey",
            CredentialKind::GoogleServiceAccount => "googleServiceAccount",
            CredentialKind::FirebaseServiceAccount => "firebaseServiceAccount",
            CredentialKind::RepositoryHost => "repositoryHost",
            CredentialKind::Paystack => "paystack",
            CredentialKind::Stripe => "stripe",
        }
    }
}
