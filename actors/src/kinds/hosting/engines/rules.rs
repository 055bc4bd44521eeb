//! The rules of a container engine that an operator added.

use crate::{
    ports::sealed::Sealed,
    runtime::{
        ref_count::RefCount,
        resource::{Moment, Resource, Step, Unique, without_effects},
        store::Store,
    },
};
use contract::{
    Fault, Name, Timestamp,
    ssh::SshHostKey,
    text::{CertificatePem, EngineAddress, PrivateAddress, Slug},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{Change, Entries};

#[derive(Debug, Clone, Copy)]
pub struct Engines;

/// An added engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddedEngine {
    pub name: Name,
    pub address: EngineAddress,
    /// The address of its machine on which servers are published.
    pub private_address: PrivateAddress,
    /// What the engine calls itself, which never changes: another one at the same address is none of ours.
    pub identity: String,
    pub keys: EngineKeys,
    /// How often the keys were replaced: connections with earlier ones are closed.
    pub renewals: u32,
    pub labels: BTreeMap<Slug, Slug>,
    /// Whether it takes no more instances.
    pub draining: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What the service and an engine prove themselves by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKeys {
    Tls {
        authority: CertificatePem,
        certificate: CertificatePem,
        key: Sealed,
        /// When the certificate expires.
        expires_at: Timestamp,
    },
    Ssh {
        host_key: SshHostKey,
        key: Sealed,
    },
}

impl EngineKeys {
    /// When the certificate of the client expires, if it has one.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            EngineKeys::Tls { expires_at, .. } => Some(*expires_at),
            EngineKeys::Ssh { .. } => None,
        }
    }
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Fields that are `None` stay as they are.
    Update {
        name: Option<Name>,
        labels: Option<BTreeMap<Slug, Slug>>,
        keys: Option<Box<EngineKeys>>,
    },
    Drain(bool),
    /// Forget the engine. Refused while an instance is placed on it.
    Remove,
}

store::entries! {
    pub enum EngineIndex of Engines {
        All = "all",
    }
}

store::claims! {
    pub enum EngineClaim of Engines {
        Name { name: String } = "name",
        Identity { identity: String } = "identity",
    }
}

/// Refuses an engine that was added, where the engine of the settings is expected: each would take the containers of
/// the other for leftovers.
pub fn refuse_added(store: &Store, identity: &str) -> Result<(), String> {
    let identity = EngineClaim::Identity { identity: identity.to_owned() };
    match store.holder::<Engines>(&identity) {
        Ok(None) => Ok(()),
        Ok(Some(id)) => Err(format!(
            "the engine of SVC_DOCKER_HOST was added as {id} too: set another one, or remove that with svc engine \
             remove {id}"
        )),
        Err(e) => Err(e.to_string()),
    }
}

impl Resource for Engines {
    type New = AddedEngine;
    type State = AddedEngine;
    type Command = Command;
    without_effects!();

    fn create(_: &Moment<Self>, engine: AddedEngine) -> Result<Step<Self>, Fault> {
        Ok(Step::put(engine))
    }

    fn on_command(
        mut engine: AddedEngine,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        match command {
            Command::Update { name, labels, keys } => {
                engine.name = name.unwrap_or(engine.name);
                engine.labels = labels.unwrap_or(engine.labels);
                if let Some(keys) = keys {
                    engine.keys = *keys;
                    engine.renewals += 1;
                }
            }
            Command::Drain(draining) if engine.draining == draining => return Ok(Step::keep()),
            Command::Drain(draining) => engine.draining = draining,
            Command::Remove => {
                let unused = Change::new().require_absent::<RefCount>(&at.id.to_string());
                return Ok(Step::remove().also(unused));
            }
        }
        engine.updated_at = at.now;
        Ok(Step::put(engine))
    }

    fn index(_: &AddedEngine) -> Entries<Self> {
        Entries::default().and(EngineIndex::All)
    }

    fn claims(engine: &AddedEngine) -> Vec<Unique<Self>> {
        let name = EngineClaim::Name { name: engine.name.as_str().to_lowercase() };
        let identity = EngineClaim::Identity { identity: engine.identity.clone() };
        let named = || {
            Fault::Exists("an engine of this name was added already; choose another name".into())
        };
        let known = || {
            Fault::Exists(
                "this engine was added already, maybe at another address; see svc_admin_getEngines"
                    .into(),
            )
        };
        vec![Unique::new(name, named), Unique::new(identity, known)]
    }
}
