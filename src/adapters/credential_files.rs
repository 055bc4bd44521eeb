//! Opens the files of credentials with the crate `credentials`, on threads that others go before.

use crate::process;
use actors::{
    ports::credentials::{CredentialContents, CredentialFiles, CredentialUpload, Refused, Secret},
    runtime::turns::{NoTurn, Tenant, Turns},
};
use app_stores::{AppStoreConnectKey, Pem, ServiceAccount};
use async_trait::async_trait;
use contract::{
    Timestamp,
    artifacts::Distribution,
    credentials::{Certificate, CredentialFacts, CredentialKind, ProvisioningProfile},
    text::PasswordAttempt,
};
use credentials::{CertificateFacts, Facts, File, ProfileKind, Refusal};
use data_encoding::BASE64;
use payments::{PaystackKey, StripeKey};
use serde::Deserialize;

/// Opens files, some of which take tenths of a second of a processor.
pub struct CredentialOpener(Turns<Tenant>);

impl Default for CredentialOpener {
    /// One processor is left for everything else.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        CredentialOpener(Turns::halved(processors.saturating_sub(1).max(1)))
    }
}

#[async_trait]
impl CredentialFiles for CredentialOpener {
    async fn open(
        &self,
        tenant: Tenant,
        upload: CredentialUpload,
        now: Timestamp,
    ) -> Result<Result<CredentialContents, Refused>, NoTurn> {
        let turn = self.0.take(tenant).await?;
        let opened = process::after_others("credentials", move || {
            // The work keeps its turn even if nobody waits for it.
            let _turn = turn;
            open(&upload, now)
        });
        let unreadable = |_| Err(refused("data", "the file cannot be read".into()));
        Ok(opened.await.unwrap_or_else(unreadable))
    }
}

fn refused(field: &'static str, why: String) -> Refused {
    Refused { field, why }
}

fn text(password: Option<&PasswordAttempt>) -> &str {
    password.map_or("", PasswordAttempt::as_str)
}

fn open(upload: &CredentialUpload, now: Timestamp) -> Result<CredentialContents, Refused> {
    let CredentialUpload { kind, data, password, profile, alias, key_password, key_id, issuer_id } =
        upload;
    let password = text(password.as_ref());
    let profile = profile.as_deref().unwrap_or_default();
    let file = match kind {
        CredentialKind::IosSigning => {
            credentials::UploadedFiles::IosSigning { p12: data, password, profile }
        }
        CredentialKind::AndroidKeystore => credentials::UploadedFiles::AndroidKeystore {
            keystore: data,
            password,
            alias: alias.as_deref(),
            key_password: key_password.as_ref().map(PasswordAttempt::as_str),
        },
        CredentialKind::AppStoreConnectKey => credentials::UploadedFiles::AppStoreConnectKey {
            p8: data,
            file_name: None,
            key_id: key_id.as_deref(),
            issuer_id: issuer_id.as_deref(),
        },
        CredentialKind::GoogleServiceAccount | CredentialKind::FirebaseServiceAccount => {
            credentials::UploadedFiles::GoogleServiceAccount { json: data }
        }
        CredentialKind::RepositoryHost => return token(data),
        CredentialKind::Paystack => return paystack(data),
        CredentialKind::Stripe => return stripe(data),
    };
    let opened =
        credentials::open(file, now).map_err(|why| refused(field(&why), why.to_string()))?;
    let expires_at = opened.facts.expires_at();
    let warnings = opened.warnings.iter().map(ToString::to_string).collect();
    let secret = secret(upload, password, &opened.facts)?;
    let facts = shown(opened.facts)?;
    Ok(CredentialContents { facts, expires_at, warnings, secret })
}

/// A token of a repository host: text on one line.
fn token(data: &[u8]) -> Result<CredentialContents, Refused> {
    let bad = || refused("data", "must be the token as text, in base64".into());
    let text = std::str::from_utf8(data).map_err(|_| bad())?;
    let token = text.trim().parse().map_err(|why| refused("data", why))?;
    Ok(CredentialContents {
        facts: CredentialFacts::default(),
        expires_at: None,
        warnings: Vec::new(),
        secret: Secret::Token(token),
    })
}

fn paystack(data: &[u8]) -> Result<CredentialContents, Refused> {
    let key = PaystackKey::read(data).map_err(|why| refused("data", why.to_string()))?;
    let (live, hint) = (key.is_live(), format!("…{}", key.last4()));
    Ok(provider_key(live, hint, Vec::new(), Secret::Paystack(key)))
}

fn stripe(data: &[u8]) -> Result<CredentialContents, Refused> {
    let key = StripeKey::read(data).map_err(|why| refused("data", why.to_string()))?;
    let warnings = match key.webhook_secrets.is_empty() {
        true => vec![
            "It has no signing secret of a webhook, so notices of Stripe are refused, and payments \
             are found by looking alone: store it again with webhookSecrets."
                .into(),
        ],
        false => Vec::new(),
    };
    let (live, hint) = (key.is_live(), format!("…{}", key.last4()));
    Ok(provider_key(live, hint, warnings, Secret::Stripe(key)))
}

fn provider_key(
    live: bool,
    hint: String,
    warnings: Vec<String>,
    secret: Secret,
) -> CredentialContents {
    let facts =
        CredentialFacts { key_hint: Some(hint), live: Some(live), ..CredentialFacts::default() };
    CredentialContents { facts, expires_at: None, warnings, secret }
}

/// What is kept of the files, sealed.
fn secret(upload: &CredentialUpload, password: &str, facts: &Facts) -> Result<Secret, Refused> {
    let pem = || {
        let pem = std::str::from_utf8(&upload.data);
        pem.map(|pem| Pem(pem.to_owned())).map_err(|_| refused("data", "must be text".into()))
    };
    Ok(match facts {
        Facts::IosSigning(_) => Secret::IosSigning {
            p12: BASE64.encode(&upload.data),
            password: password.to_owned(),
            profile: BASE64.encode(upload.profile.as_deref().unwrap_or_default()),
        },
        Facts::AndroidKeystore(keystore) => Secret::AndroidKeystore {
            keystore: BASE64.encode(&upload.data),
            password: password.to_owned(),
            alias: keystore.alias.clone(),
            key_password: upload.key_password.as_ref().map(|p| p.as_str().to_owned()),
        },
        Facts::AppStoreConnectKey(key) => Secret::AppStoreConnect(AppStoreConnectKey {
            key_id: key.key_id.clone(),
            issuer_id: key.issuer_id.clone(),
            private_key: pem()?,
        }),
        Facts::GoogleServiceAccount(account) => {
            let file: KeyFile = serde_json::from_slice(&upload.data)
                .map_err(|_| refused("data", "must be the JSON of a key".into()))?;
            Secret::Google(ServiceAccount {
                client_email: account.client_email.clone(),
                private_key_id: account.private_key_id.clone(),
                private_key: Pem(file.private_key),
            })
        }
    })
}

/// The secret part of the key of a service account.
#[derive(Deserialize)]
struct KeyFile {
    private_key: String,
}

/// What callers see.
fn shown(facts: Facts) -> Result<CredentialFacts, Refused> {
    let none = CredentialFacts::default();
    Ok(match facts {
        Facts::IosSigning(signing) => {
            let (kind, profile) = (signing.certificate_kind, signing.profile);
            CredentialFacts {
                certificate: Some(Certificate {
                    kind: Some(format!("Apple {kind:?}")),
                    team_id: Some(signing.team_id),
                    ..certificate(signing.certificate)?
                }),
                profile: Some(ProvisioningProfile {
                    name: profile.name,
                    uuid: profile.uuid,
                    team_id: profile.team_id,
                    bundle_id: profile.bundle_id,
                    distribution: distribution(profile.kind),
                    expires_at: profile.expires_at,
                }),
                ..none
            }
        }
        Facts::AndroidKeystore(keystore) => CredentialFacts {
            certificate: Some(certificate(keystore.certificate)?),
            alias: Some(keystore.alias),
            ..none
        },
        Facts::AppStoreConnectKey(key) => {
            CredentialFacts { key_id: Some(key.key_id), issuer_id: key.issuer_id, ..none }
        }
        Facts::GoogleServiceAccount(account) => CredentialFacts {
            key_id: Some(account.private_key_id),
            client_email: Some(account.client_email),
            project_id: Some(account.project_id),
            ..none
        },
    })
}

fn certificate(facts: CertificateFacts) -> Result<Certificate, Refused> {
    Ok(Certificate {
        subject: facts.subject,
        issuer: facts.issuer,
        sha256: facts.sha256.parse().map_err(|why| refused("data", why))?,
        kind: None,
        team_id: None,
        not_before: facts.not_before,
        not_after: facts.not_after,
    })
}

/// The parameter that a refusal is about.
fn field(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::WrongPassword { .. } => "password",
        Refusal::WrongKeyPassword { .. } | Refusal::KeyPasswordNeeded { .. } => "keyPassword",
        Refusal::SeveralKeys { .. } | Refusal::UnknownAlias { .. } => "alias",
        Refusal::NoKeyId | Refusal::BadKeyId | Refusal::OtherKeyId { .. } => "keyId",
        Refusal::BadIssuerId => "issuerId",
        Refusal::NotAProfile { .. }
        | Refusal::ProfileAltered
        | Refusal::UnsupportedSignature
        | Refusal::IncompleteProfile { .. }
        | Refusal::ProfileExpired { .. }
        | Refusal::OtherPlatform { .. }
        | Refusal::TeamMismatch { .. }
        | Refusal::KindMismatch { .. }
        | Refusal::CertificateNotInProfile { .. }
        | Refusal::TooLarge { file: File::Profile, .. }
        | Refusal::Unreadable { file: File::Profile } => "profile",
        _ => "data",
    }
}

/// Where apps with a profile can be installed, as the API names it.
pub(super) fn distribution(kind: ProfileKind) -> Distribution {
    match kind {
        ProfileKind::Development => Distribution::Development,
        ProfileKind::AdHoc => Distribution::AdHoc,
        ProfileKind::AppStore => Distribution::AppStore,
        ProfileKind::Enterprise => Distribution::Enterprise,
    }
}
