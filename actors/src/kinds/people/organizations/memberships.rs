//! The memberships of a user. They are derived from the organizations' records and written in the
//! same transactions.

use crate::runtime::side_record::{End, SideRecord};
use contract::{OrganizationId, Timestamp, authentication::Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Merge;

/// The organizations of a user, with the user's membership in each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memberships {
    pub organizations: BTreeMap<OrganizationId, Membership>,
}

/// A user's membership in one organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The role. An owner has the role `admin`.
    pub role: Role,
    /// Whether the user owns the organization.
    pub owner: bool,
    /// Whether the organization is the user's personal one.
    pub personal: bool,
    /// When the user joined. Tokens and projects from before an earlier departure give no rights.
    pub since: Timestamp,
}

/// A change of one membership, written by its organization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MembershipsDelta {
    Join(OrganizationId, Membership),
    Leave(OrganizationId),
}

impl Memberships {
    /// The highest role in any organization. Personal organizations do not count.
    pub fn role(&self) -> Role {
        let shared = self.organizations.values().filter(|membership| !membership.personal);
        shared.map(|membership| membership.role).max().unwrap_or(Role::Client)
    }
}

impl SideRecord for Memberships {
    fn end(&self) -> End {
        End::WithKey
    }
}

impl Merge for Memberships {
    type Delta = MembershipsDelta;
    fn merge(old: Option<Self>, delta: &MembershipsDelta) -> Option<Self> {
        let mut memberships = old.unwrap_or_default();
        match delta {
            MembershipsDelta::Join(organization, membership) => {
                memberships.organizations.insert(*organization, *membership)
            }
            MembershipsDelta::Leave(organization) => memberships.organizations.remove(organization),
        };
        Some(memberships)
    }
}
