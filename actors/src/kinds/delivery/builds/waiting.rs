//! Tells the calls of idle runners that a build waits.

use contract::{AppId, BuildId, OrganizationId};
use std::collections::HashSet;
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
pub struct WaitingBuilds(Sender<Waiting>);

impl Default for WaitingBuilds {
    fn default() -> Self {
        WaitingBuilds(channel(MOST_MISSED).0)
    }
}

impl WaitingBuilds {
    pub fn announce(&self, waiting: Waiting) {
        // Fails only if no call waits.
        let _ = self.0.send(waiting);
    }

    /// Hears of all builds from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
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
