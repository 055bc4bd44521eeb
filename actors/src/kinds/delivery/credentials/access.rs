//! Opens credentials for their uses. Each use is in the audit log.

use super::{Command, Credentials};
use crate::{
    kinds::{people::apps::Apps, world::World},
    ports::{credentials::Secret, sealed::SealError},
    runtime::{audit::Event, entries::Under},
};
use contract::{
    AppId, CredentialId, Fault, Timestamp,
    credentials::{Credential, CredentialKind},
    operators::{AuditEvent, Via},
};
use store::{Change, Snapshot};

/// A credential and its secret.
pub struct Found {
    pub credential: Credential,
    pub secret: Secret,
}

/// Opens the credential of this kind that was stored last. With a name, opens the one that has it.
pub fn newest(
    world: &World,
    app: AppId,
    kind: CredentialKind,
    name: Option<&str>,
) -> Result<Option<Found>, Fault> {
    let Some(seen) = find(world, app, kind, name)? else { return Ok(None) };
    let credential = seen.state.credential.clone();
    let secret = open(world, credential.id, &seen.state.secret)?;
    Ok(Some(Found { credential, secret }))
}

/// What is known of the credential of this kind that was stored last. Its secret stays closed.
pub fn newest_facts(
    world: &World,
    app: AppId,
    kind: CredentialKind,
) -> Result<Option<Credential>, Fault> {
    Ok(find(world, app, kind, None)?.map(|seen| seen.state.credential.clone()))
}

fn find(
    world: &World,
    app: AppId,
    kind: CredentialKind,
    name: Option<&str>,
) -> Result<Option<Snapshot<Credentials>>, Fault> {
    let mut newest: Option<Snapshot<Credentials>> = None;
    for found in world.store.newest::<Credentials>(&Under::<Apps>(app), None) {
        let (_, seen) = found?;
        let credential = &seen.state.credential;
        let is_meant = credential.kind == kind
            && name.is_none_or(|name| credential.name.as_str().eq_ignore_ascii_case(name));
        let stored_at = |seen: &Snapshot<Credentials>| seen.state.credential.updated_at;
        if is_meant && newest.as_ref().is_none_or(|other| credential.updated_at > stored_at(other))
        {
            newest = Some(seen);
        }
    }
    Ok(newest)
}

/// Opens a sealed secret.
pub(crate) fn open(
    world: &World,
    id: CredentialId,
    sealed: &crate::ports::sealed::Sealed,
) -> Result<Secret, Fault> {
    let opened = world.ports.sealer.open(&id.to_string(), sealed);
    let json = opened.map_err(|e: SealError| {
        tracing::error!(%id, error = %e, "a credential cannot be opened");
        Fault::Internal
    })?;
    serde_json::from_str(&json).map_err(|_| Fault::Internal)
}

/// A use of a credential without a call: by whom, and which entry of the audit log tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    pub credential: CredentialId,
    /// The version of the credential.
    pub stored_at: Timestamp,
    pub event: Event,
}

impl Use {
    /// The use of a credential by the object `by`, such as a publication.
    pub fn of(world: &World, credential: &Credential, by: &str) -> Use {
        let now = world.ports.clock.now();
        let event = Event(AuditEvent {
            id: world.ports.random.id(now),
            at: now,
            function: "useCredential".into(),
            user_id: None,
            via: Via::Service,
            address: String::new(),
            resource: credential.id.to_string(),
            organization_id: None,
            project_id: None,
            request_id: by.to_owned(),
        });
        Use { credential: credential.id, stored_at: credential.updated_at, event }
    }

    /// Records the use in the audit log, and notes its time. A secret whose use cannot be recorded must not
    /// be used.
    pub async fn record(&self, world: &World) -> Result<(), Fault> {
        world.store.commit(Change::new().append::<Event>(&self.event.0.id, &self.event)).await?;
        self.note(world).await;
        Ok(())
    }

    /// Notes the time of the use at the credential, which may be deleted by now.
    pub async fn note(&self, world: &World) {
        let used = Command::Used { stored_at: self.stored_at };
        if let Err(fault) = world.to::<Credentials>(self.credential).ask_if_there(used).await {
            tracing::warn!(id = %self.credential, %fault, "the use of a credential was not noted");
        }
    }
}
