//! Which container engine has the instances. Nodes that share a store must not take another one for it: they would
//! find none of the containers there, and make new ones.

use super::This;
use crate::runtime::{
    side_record::{End, SideRecord},
    store::Store,
};
use contract::Fault;
use serde::{Deserialize, Serialize};
use store::{Change, StoreError};

/// The engine that has the instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownEngine {
    /// What the engine calls itself. It stays the same as long as its data is there.
    pub id: String,
}

impl SideRecord for KnownEngine {
    fn end(&self) -> End {
        End::Never
    }
}

/// The engine of the settings takes no more instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDrained {}

impl SideRecord for OwnDrained {
    fn end(&self) -> End {
        End::Never
    }
}

/// Compares an engine with the known one. Makes it the known one if there is none.
pub async fn recognize(store: &Store, id: &str) -> Result<(), String> {
    if id.is_empty() {
        return Err("this engine does not say which one it is, so nodes cannot share it".into());
    }
    store.fence().await.map_err(|e| e.to_string())?;
    let known = store.get::<KnownEngine>(&This).map_err(|e| e.to_string())?;
    if let Some(known) = known {
        return match known.id == id {
            true => Ok(()),
            false => Err(format!(
                "this engine is {id}, and the instances are at {}: set SVC_DOCKER_HOST to that one at all nodes; if \
                 it was replaced, stop all nodes and run svc admin forget-engine",
                known.id
            )),
        };
    }
    let engine = KnownEngine { id: id.to_owned() };
    let change = Change::new().create::<KnownEngine>(&This, engine);
    match store.commit(change).await {
        Err(Fault::Stale) => Err("another node has found an engine at the same moment".into()),
        done => done.map_err(|e| e.to_string()),
    }
}

/// Forgets the engine, because it was replaced. Returns which one it was.
pub async fn forget(store: &store::Store) -> Result<Option<String>, StoreError> {
    let Some(known) = store.get::<KnownEngine>(&This)? else { return Ok(None) };
    store.commit(Change::new().remove::<KnownEngine>(&This, &known)).await?;
    Ok(Some(known.id.clone()))
}
