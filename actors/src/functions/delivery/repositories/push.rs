//! Pushes that the host of a repository reports.

use crate::{
    call::platform::Platform,
    kinds::{
        delivery::repositories::{Command, Repositories, Repository, lookup},
        people::accounts::keyed_digest,
    },
};
use contract::{AppId, Fault, RepositoryId, repositories::PushReceived};
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// What proves that a report comes from the host of the repository.
pub enum Proof {
    /// The HMAC-SHA256 of the body with the secret (GitHub, Gitea).
    Signature(Vec<u8>),
    /// The secret (GitLab).
    Secret(String),
}

impl Proof {
    fn holds(&self, secret: &str, body: &[u8]) -> bool {
        match self {
            Proof::Signature(signature) => {
                let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes());
                mac.is_ok_and(|mac| mac.chain_update(body).verify_slice(signature).is_ok())
            }
            Proof::Secret(sent) => sent.as_bytes().ct_eq(secret.as_bytes()).into(),
        }
    }
}

/// The part of a report that counts.
#[derive(Deserialize)]
struct Push {
    /// The full name of the branch or tag, such as `refs/heads/main`. Other events, such as GitHub's
    /// `ping`, have none.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
}

/// The secret of a repository's webhook. It follows from the key of the installation and the id
/// of the repository, so it is not stored.
pub(super) fn webhook_secret(platform: &Platform, id: RepositoryId) -> String {
    keyed_digest(&platform.settings.signing_key, &format!("repository webhook\n{id}"))
}

/// Checks a repository again after a push to its branch.
pub(crate) async fn take_push(
    platform: &Platform,
    app: AppId,
    proof: &Proof,
    body: &[u8],
) -> Result<PushReceived, Fault> {
    let held = lookup::connected(&platform.world.store, app)?;
    let genuine = held.filter(|(id, _)| proof.holds(&webhook_secret(platform, *id), body));
    // The same fault for an app without a repository: it may not even exist.
    let (id, repository) = genuine.ok_or_else(|| {
        Fault::Unauthenticated(
            "this is not signed with the secret of the repository's webhook; \
             svc_getRepositoryWebhook shows it"
                .into(),
        )
    })?;
    let push: Push = serde_json::from_slice(body).map_err(|e| Fault::Malformed(e.to_string()))?;
    let checking = push.reference.is_some_and(|pushed| is_of(&repository, &pushed));
    if checking {
        platform.world.to::<Repositories>(id).ask(Command::Check).await?;
    }
    Ok(PushReceived { checking })
}

/// Whether a reference is the branch that is checked. Before the first check, the default branch is
/// not known, so it may be any.
fn is_of(repository: &Repository, pushed: &str) -> bool {
    let connected = repository.source.branch.as_ref().map(|branch| branch.as_str());
    let found = repository.checked.as_ref().map(|checked| checked.branch.as_str());
    let branch = pushed.strip_prefix("refs/heads/");
    branch.is_some() && connected.or(found).is_none_or(|expected| branch == Some(expected))
}
