//! The engines in memory: for each one a connection, and what was last found there.

use super::{
    health::{EngineHealth, EngineStatus},
    rules::{AddedEngine, EngineIndex, EngineKeys, Engines},
};
use crate::{
    kinds::world::World,
    ports::{engines::Access, sealed::SealError},
    runtime::store::Store,
};
use container_engine::{Certificates, Credentials, Engine, EngineError};
use contract::{EngineId, Fault, runners::SshAccess};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, PoisonError},
};

/// An engine as this process knows it.
pub struct Host {
    /// `None`: the engine of the settings.
    pub id: Option<EngineId>,
    pub engine: Arc<dyn Engine>,
    pub health: EngineHealth,
    /// Where the servers of its containers are reached.
    pub address: IpAddr,
}

/// All engines that this process uses.
pub struct Hosts {
    own: Arc<Host>,
    added: Mutex<HashMap<EngineId, Connected>>,
}

/// An added engine, and with which of its keys the connection was made.
struct Connected {
    renewals: u32,
    host: Arc<Host>,
}

impl Hosts {
    /// `own` is the engine of the settings.
    pub fn new(own: Arc<dyn Engine>) -> Hosts {
        let (health, address) = (EngineHealth::default(), Ipv4Addr::LOCALHOST.into());
        let own = Arc::new(Host { id: None, engine: own, health, address });
        Hosts { own, added: Mutex::default() }
    }

    /// The engine of the settings. Images are built there.
    pub fn own(&self) -> &Arc<Host> {
        &self.own
    }

    /// The engines that this process has looked at, that of the settings first.
    pub fn known(&self) -> Vec<Arc<Host>> {
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let added = added.values().map(|connected| connected.host.clone());
        [self.own.clone()].into_iter().chain(added).collect()
    }

    /// What is known of all engines together. What one of them says of itself is that of the settings.
    pub fn status(&self) -> EngineStatus {
        let statuses = self.known().into_iter().map(|host| host.health.status());
        statuses.reduce(EngineStatus::and).unwrap_or_default()
    }
}

impl World {
    /// The engine of this id, or that of the settings. [`EngineError::Unreachable`] if there is none.
    pub fn host(&self, id: Option<EngineId>) -> Result<Arc<Host>, EngineError> {
        let Some(id) = id else { return Ok(self.hosts.own.clone()) };
        let unread = |fault: Fault| EngineError::Unreachable(fault.to_string());
        let found = self.store.get::<Engines>(&id).map_err(unread)?;
        let gone = || EngineError::Unreachable("its engine was removed".into());
        let found = found.ok_or_else(gone)?;
        let mut added = self.hosts.added.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = added.get(&id).filter(|it| it.renewals == found.renewals) {
            return Ok(known.host.clone());
        }
        let access =
            access(self, id, &found).map_err(|e| EngineError::Unreachable(e.to_string()))?;
        let engine = self.ports.engines.connect(&access).map_err(EngineError::Unreachable)?;
        let (health, address) = (EngineHealth::of_other_machine(), access.publishes_at);
        let host = Arc::new(Host { id: Some(id), engine, health, address });
        let connected = Connected { renewals: found.renewals, host: host.clone() };
        added.insert(id, connected);
        Ok(host)
    }

    /// All engines, that of the settings first. An added one of which nothing can be made is left out.
    pub fn all_hosts(&self) -> Result<Vec<Arc<Host>>, Fault> {
        let ids = engine_ids(&self.store)?;
        let mut added = self.hosts.added.lock().unwrap_or_else(PoisonError::into_inner);
        added.retain(|id, _| ids.contains(id));
        drop(added);
        let added = ids.into_iter().filter_map(|id| match self.host(Some(id)) {
            Ok(host) => Some(host),
            Err(e) => {
                tracing::error!(%id, error = %e, "an engine is left out");
                None
            }
        });
        Ok([self.hosts.own.clone()].into_iter().chain(added).collect())
    }
}

/// The engines that operators added, in the order in which they did.
pub fn engine_ids(store: &Store) -> Result<Vec<EngineId>, Fault> {
    store.oldest::<Engines>(&EngineIndex::All, None).keys().collect()
}

fn access(world: &World, id: EngineId, engine: &AddedEngine) -> Result<Access, SealError> {
    let open = |key| world.ports.sealer.open(&id.to_string(), key);
    let credentials = match &engine.keys {
        EngineKeys::Tls { authority, certificate, key, .. } => Credentials::Tls(Certificates {
            authority: authority.to_string(),
            certificate: certificate.to_string(),
            key: open(key)?,
        }),
        EngineKeys::Ssh { host_key, key } => Credentials::Ssh(SshAccess {
            private_key: open(key)?.parse().map_err(|_| SealError::Foreign)?,
            host_key: host_key.clone(),
        }),
    };
    Ok(Access {
        address: engine.address.clone(),
        credentials,
        publishes_at: engine.private_address.ip(),
        identity: Some(engine.identity.clone()),
    })
}
