//! Tells the calls of idle runners that a build waits, and keeps them apart when many claim at once.

use contract::{AppId, BuildId, OrganizationId};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast::{Receiver, Sender, channel, error::RecvError};

/// How many builds a slow call may miss before it looks at the store again.
const MOST_MISSED: usize = 1_024;

/// A build that begins to wait for a runner.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub id: BuildId,
    pub app: AppId,
    /// `None`: the build does not know it.
    pub organization: Option<OrganizationId>,
}

/// The organizations and apps whose builds a runner executes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    pub organizations: HashSet<OrganizationId>,
    pub apps: HashSet<AppId>,
}

impl Served {
    /// Whether the runner executes builds of this app in this organization.
    pub fn has(&self, app: AppId, organization: OrganizationId) -> bool {
        self.apps.contains(&app) || self.organizations.contains(&organization)
    }

    /// Whether the build may be one for the runner.
    fn may_have(&self, waiting: &Waiting) -> bool {
        waiting.organization.is_none_or(|organization| self.has(waiting.app, organization))
    }
}

/// Announces builds to all calls that wait for one.
pub struct WaitingBuilds {
    announced: Sender<Waiting>,
    /// The builds that a call is claiming.
    claimed: Arc<Mutex<HashSet<BuildId>>>,
}

impl Default for WaitingBuilds {
    fn default() -> Self {
        WaitingBuilds { announced: channel(MOST_MISSED).0, claimed: Arc::default() }
    }
}

/// A call claims this build, until this is dropped.
pub struct Claiming {
    id: BuildId,
    claimed: Arc<Mutex<HashSet<BuildId>>>,
}

impl Drop for Claiming {
    fn drop(&mut self) {
        lock(&self.claimed).remove(&self.id);
    }
}

fn lock(claimed: &Mutex<HashSet<BuildId>>) -> MutexGuard<'_, HashSet<BuildId>> {
    claimed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WaitingBuilds {
    pub fn announce(&self, waiting: Waiting) {
        // Fails only if no call waits.
        let _ = self.announced.send(waiting);
    }

    /// `None` if another call claims the build already. A hundred runners that ask at once would otherwise all
    /// try the same builds, one after the other.
    pub fn begin_claim(&self, id: BuildId) -> Option<Claiming> {
        let is_free = lock(&self.claimed).insert(id);
        is_free.then(|| Claiming { id, claimed: self.claimed.clone() })
    }

    /// Hears of all builds from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.announced.subscribe())
    }
}

/// Hears of the builds that begin to wait.
pub struct Listener(Receiver<Waiting>);

impl Listener {
    /// Returns when there may be a build for the runner.
    pub async fn heard(&mut self, served: &Served) {
        loop {
            match self.0.recv().await {
                Ok(waiting) if !served.may_have(&waiting) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                // The sender lives as long as the service.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
