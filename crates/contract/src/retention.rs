//! Retention: how long the service keeps what is over.

use crate::Timestamp;
use std::{collections::BTreeMap, time::Duration};

const DAY: Duration = Duration::from_secs(24 * 3600);

macro_rules! retentions {
    ($($(#[$meta:meta])* $retention:ident $name:literal $days:literal;)+) => {
        /// What is kept for a number of days after its end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Retention {
            $($(#[$meta])* $retention),+
        }

        impl Retention {
            /// All retentions, in the order of the documentation.
            pub const ALL: &[Retention] = &[$(Retention::$retention),+];

            /// The name, as the setting spells it.
            pub const fn name(self) -> &'static str {
                match self { $(Retention::$retention => $name),+ }
            }

            /// The days, unless the setting says otherwise.
            pub const fn default_days(self) -> u32 {
                match self { $(Retention::$retention => $days),+ }
            }
        }
    };
}

retentions! {
    /// Entries of the audit log. They are exported before they are removed.
    Audit "audit" 365;
    /// Builds of apps that have ended.
    Builds "builds" 90;
    /// The logs of builds of apps that have ended.
    BuildLogs "buildLogs" 30;
    /// Deployments that have ended and are not in the history of their service, with their logs.
    Deployments "deployments" 90;
    /// Builds of images that have ended, with their logs.
    ImageBuilds "imageBuilds" 90;
    /// Uploads that were rejected or have expired.
    RejectedArtifacts "rejectedArtifacts" 30;
    /// Releases that were superseded, rolled back or failed, with their publications. The latest of each channel
    /// stay.
    Releases "releases" 365;
    /// Checkouts that were paid.
    Checkouts "checkouts" 730;
    /// Checkouts that ended without money, and whose page takes none any more.
    UnpaidCheckouts "unpaidCheckouts" 1;
    /// Checkouts that nobody paid, and whose page the provider does not close.
    OpenCheckouts "openCheckouts" 30;
    /// Deploy tokens that were revoked or have expired.
    Tokens "tokens" 30;
    /// Deliveries to webhooks that have ended.
    Deliveries "deliveries" 30;
}

/// The retentions of this installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retentions(BTreeMap<Retention, Option<u32>>);

impl Retentions {
    /// Sets the number of days. `None`: what has ended is kept for ever.
    pub fn set(&mut self, retention: Retention, days: Option<u32>) {
        self.0.insert(retention, days);
    }

    /// The number of days. `None`: for ever.
    pub fn days(&self, retention: Retention) -> Option<u32> {
        self.0.get(&retention).copied().unwrap_or(Some(retention.default_days()))
    }

    /// What ended before this time is removed now. `None`: nothing.
    pub fn over_before(&self, retention: Retention, now: Timestamp) -> Option<Timestamp> {
        self.days(retention).map(|days| now - DAY * days)
    }
}
