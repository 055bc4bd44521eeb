//! What a user is a member of: derived from the organizations, and written in their transactions.

use contract::{OrganizationId, Timestamp, UserId, authentication::Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{Merge, Record};

/// The organizations of a user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    /// With the user's part in each.
    pub organizations: BTreeMap<OrganizationId, Held>,
}

/// A user's part in an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The role; an owner holds `admin`.
    pub role: Role,
    /// Whether the user owns it.
    pub owner: bool,
    /// Whether it is a personal organization.
    pub personal: bool,
    /// When the user joined. What it was given or made there before, it lost when it left.
    pub since: Timestamp,
}

/// What an organization tells the reach of a user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReachDelta {
    /// The user's part is this.
    Join(OrganizationId, Held),
    /// The user has none any more.
    Leave(OrganizationId),
}

impl Reach {
    /// The highest role held; personal organizations do not count.
    pub fn role(&self) -> Role {
        let shared = self.organizations.values().filter(|held| !held.personal);
        shared.map(|held| held.role).max().unwrap_or(Role::Client)
    }
}

impl Record for Reach {
    const TREE: &'static str = "reach";
    const SCHEMA: u16 = 1;
    type Key = UserId;
    type Content = Self;
}

impl Merge for Reach {
    type Delta = ReachDelta;
    fn merge(old: Option<Self>, delta: &ReachDelta) -> Option<Self> {
        let mut reach = old.unwrap_or_default();
        match delta {
            ReachDelta::Join(organization, held) => {
                reach.organizations.insert(*organization, *held)
            }
            ReachDelta::Leave(organization) => reach.organizations.remove(organization),
        };
        Some(reach)
    }
}
