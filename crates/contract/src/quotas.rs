//! Quotas: how much an organization may have at once, or within a time, by the tier of its owner.

use crate::authentication::Tier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

records! {
    /// What is used of one quota.
    pub struct QuotaUse {
        /// What is limited.
        quota: Quota,
        /// What the amounts count.
        unit: Unit,
        /// How much is used.
        used: u64,
        /// The most that the organization may use. Null if there is no limit.
        limit: Option<u64>,
    }
}

/// What the amounts of a quota count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// Things, such as projects.
    Count,
    /// Bytes.
    Bytes,
    /// Thousandths of a processor.
    MilliCpus,
}

impl Unit {
    /// An amount, as people read it. Templates pass references.
    pub fn say(self, &amount: &u64) -> String {
        match self {
            Unit::Count => amount.to_string(),
            Unit::Bytes => bytes(amount),
            Unit::MilliCpus => format!("{}", amount as f64 / 1000.0),
        }
    }
}

/// An amount of bytes in binary units, such as `1.5 GiB`.
fn bytes(amount: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.into_iter().find(|(_, size)| amount >= *size);
    unit.map_or(format!("{amount} bytes"), |(name, size)| {
        let tenths = (amount as f64 * 10.0 / size as f64).round() / 10.0;
        format!("{tenths} {name}")
    })
}

macro_rules! quotas {
    ($($(#[$meta:meta])* $quota:ident $name:literal $unit:ident $noun:literal;)+) => {
        /// The quotas of an organization.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Quota {
            $($(#[$meta])* #[serde(rename = $name)] $quota),+
        }

        impl Quota {
            /// All quotas, in the order of the documentation.
            pub const ALL: &[Quota] = &[$(Quota::$quota),+];

            /// The name, as calls and settings spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Quota::$quota => $name),+ }
            }

            /// What the amounts count.
            pub const fn unit(self) -> Unit {
                match self { $(Quota::$quota => Unit::$unit),+ }
            }

            /// What is counted, in the words of messages.
            pub const fn noun(self) -> &'static str {
                match self { $(Quota::$quota => $noun),+ }
            }
        }
    };
}

quotas! {
    /// The organizations that the owner of a personal organization made, without the personal one. Others do not
    /// have it.
    Organizations "organizations" Count "organizations";
    /// Projects.
    Projects "projects" Count "projects";
    /// Apps.
    Apps "apps" Count "apps";
    /// Members, with the owner.
    Members "members" Count "members";
    /// Webhooks.
    Webhooks "webhooks" Count "webhooks";
    /// Domains of apps, also those that are not proven.
    Domains "domains" Count "domains";
    /// Backends and market servers, also stopped ones.
    Instances "instances" Count "instances";
    /// The memory limits of the services of all instances together, also of stopped ones.
    InstanceMemory "instanceMemory" Bytes "memory for instances";
    /// The processors of the services of all instances together, also of stopped ones.
    InstanceCpus "instanceCpus" MilliCpus "processors for instances";
    /// What the volumes and the containers of all instances hold on the disk together, as measured last; of
    /// deleted instances, what is kept.
    InstanceDisk "instanceDisk" Bytes "disk for instances";
    /// Builds and deployments of images that have not ended.
    Builds "builds" Count "builds and deployments under way";
    /// The minutes that this machine built images of deployments in the month (UTC); each build counts a whole
    /// one at least.
    BuildMinutes "buildMinutes" Count "build minutes of this month";
    /// The images that deployments built, each with the layers that it shares.
    ImageBytes "imageBytes" Bytes "images of deployments";
    /// The logs of builds and of deployments.
    LogBytes "logBytes" Bytes "logs of builds and deployments";
    /// Uploads of artifacts that are not finalized.
    OpenUploads "openUploads" Count "open uploads";
    /// The bytes of artifacts, and of uploads as they were declared.
    ArtifactBytes "artifactBytes" Bytes "artifacts";
    /// Backups.
    Backups "backups" Count "backups";
    /// The bytes of backups.
    BackupBytes "backupBytes" Bytes "backups";
    /// The mails with invitations that were sent within an hour.
    Mails "mails" Count "mails of the last hour";
}

/// The quotas of each tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quotas(BTreeMap<Tier, BTreeMap<Quota, u64>>);

impl Quotas {
    /// Reads the quotas of each tier: an object by tier with an object by quota. What is left out has no limit.
    pub fn read(json: &str) -> Result<Quotas, String> {
        serde_json::from_str(json).map_err(|e| format!("the quotas: {e}"))
    }

    /// The most that an organization of a tier may use of a quota. `None`: there is no limit.
    pub fn limit(&self, tier: Tier, quota: Quota) -> Option<u64> {
        self.0.get(&tier)?.get(&quota).copied()
    }

    /// Sets a limit, or takes it away.
    pub fn set(&mut self, tier: Tier, quota: Quota, limit: Option<u64>) {
        let limits = self.0.entry(tier).or_default();
        match limit {
            Some(limit) => limits.insert(quota, limit),
            None => limits.remove(&quota),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_said_as_people_read_them() {
        assert_eq!(Unit::Count.say(&12), "12");
        assert_eq!(Unit::MilliCpus.say(&2_500), "2.5");
        for (amount, said) in
            [(17, "17 bytes"), (1536, "1.5 KiB"), (20 << 30, "20 GiB"), ((1 << 30) - 1, "1024 MiB")]
        {
            assert_eq!(Unit::Bytes.say(&amount), said);
        }
    }
}
