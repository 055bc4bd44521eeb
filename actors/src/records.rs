//! Everything in the store: the resources, whose kinds stand in the [table of kinds](crate::kinds::table),
//! and the side records, which stand in the table here. The names of the trees, the index entries, the
//! removal of what expires, `svc admin check` and `svc admin rekey` follow from both tables. A record that
//! stands in none cannot be stored.

use crate::{
    call::{idempotency::StoredReply, lockout::Attempts, mail_limit::Mails},
    installation::{
        Installation, This,
        engine::{KnownEngine, OwnDrained},
    },
    kinds::{
        creation::CreationTurn,
        delivery::{artifacts::ArtifactRefs, builds::Chunk, releases::Current},
        events::webhooks::{Payload, outbox::Outgoing},
        hosting::{
            certificates::AuthorityAccount,
            image_builds::quotas::BuildMinutes,
            instances::{history::DeploymentHistory, metrics::HourlyMetrics},
            progress_log::Line,
            templates::catalogue::Shipped,
        },
        people::{accounts::Session, organizations::Memberships, tokens::LastUse, usage::Usage},
        table::{self, Owned, STORED},
    },
    ports::sealed,
    runtime::{
        audit::Event,
        clock_watch::ClockReading,
        ref_count::RefCount,
        reindex::IndexVersion,
        resource::Resource,
        side_record::{self, SideRecord},
        store::Store,
    },
};
use contract::{ArtifactId, EventId, Fault, MessageId, OrganizationId, Timestamp, TokenId, UserId};
use store::{Claims, Entries, Record, StoreError};

macro_rules! side_records {
    ($($record:ident { stored: $stored:literal, key: $key:ty $(, cached: $cached:literal)? $(,)? })+) => {
        $(impl Record for $record {
            const TREE: &'static str = $stored;
            const SCHEMA: u16 = 1;
            $(const CACHED: bool = $cached;)?
            type Key = $key;
            type Content = Self;

            fn index(record: &Self) -> Entries<Self> {
                side_record::entries(record)
            }

            fn claims(record: &Self) -> Claims<Self> {
                SideRecord::claims(record)
            }
        })+

        /// The store trees of the side records.
        const SIDE_TREES: &[&str] = &[$($stored),+];

        const _: () = contract::assertions::assert_all_differ(
            &[STORED, SIDE_TREES],
            "two kinds of records have one name in the store",
        );

        /// Removes the records whose time is over. Returns the faults of the kinds that failed.
        pub(crate) async fn forget_expired(store: &Store, now: Timestamp) -> Vec<Fault> {
            let mut faults = Vec::new();
            $(faults.extend(side_record::forget_expired::<$record>(store, now).await.err());)+
            faults
        }

        /// Visits every kind of resource, then every kind of side record.
        pub fn visit<V: RecordVisitor>(visitor: &mut V) -> Result<(), V::Error> {
            table::visit(&mut Kinds(visitor))?;
            $(visitor.side_record::<$record>()?;)+
            Ok(())
        }
    };
}

side_records! {
    Session { stored: "session", key: String }
    Attempts { stored: "signInAttempts", key: String }
    Mails { stored: "invitationMails", key: String }
    CreationTurn { stored: "creationTurn", key: String }
    Memberships { stored: "reach", key: UserId }
    Usage { stored: "usage", key: OrganizationId }
    BuildMinutes { stored: "buildMinutes", key: OrganizationId }
    LastUse { stored: "token-use", key: TokenId }
    ArtifactRefs { stored: "hold", key: ArtifactId }
    Current { stored: "current", key: String }
    Chunk { stored: "buildLog", key: EventId, cached: false }
    Line { stored: "logLine", key: EventId, cached: false }
    HourlyMetrics { stored: "metrics", key: String }
    DeploymentHistory { stored: "served", key: String }
    RefCount { stored: "uses", key: String }
    Shipped { stored: "shipped", key: String }
    Outgoing { stored: "outbox", key: MessageId, cached: false }
    Payload { stored: "payloads", key: MessageId }
    StoredReply { stored: "replay", key: String }
    Event { stored: "audit", key: EventId, cached: false }
    AuthorityAccount { stored: "authorityAccount", key: String }
    ClockReading { stored: "clockSeen", key: String }
    IndexVersion { stored: "indexVersion", key: String }
    Installation { stored: "installation", key: This }
    KnownEngine { stored: "engine", key: This }
    OwnDrained { stored: "ownEngineDrained", key: This }
}

/// Code that runs once for each kind of record, until an error.
pub trait RecordVisitor {
    type Error;
    fn resource<R: Resource>(&mut self) -> Result<(), Self::Error>;
    fn side_record<R: SideRecord>(&mut self) -> Result<(), Self::Error>;
}

/// Visits the kinds of resources for a visitor of all records.
struct Kinds<'a, V>(&'a mut V);

impl<V: RecordVisitor> table::KindVisitor for Kinds<'_, V> {
    type Error = V::Error;

    fn visit<R: Owned>(&mut self) -> Result<(), V::Error> {
        self.0.resource::<R>()
    }
}

/// Whether the store holds something that an encryption key sealed.
pub fn has_secrets(store: &store::Store) -> Result<bool, StoreError> {
    let mut search = Search { store, found: false };
    visit(&mut search)?;
    Ok(search.found)
}

/// Looks for a sealed text, one kind after the other.
struct Search<'a> {
    store: &'a store::Store,
    found: bool,
}

impl RecordVisitor for Search<'_> {
    type Error = StoreError;

    fn resource<R: Resource>(&mut self) -> Result<(), StoreError> {
        self.read::<R>()
    }

    fn side_record<R: SideRecord>(&mut self) -> Result<(), StoreError> {
        self.read::<R>()
    }
}

impl Search<'_> {
    fn read<R: Record>(&mut self) -> Result<(), StoreError> {
        if self.found {
            return Ok(());
        }
        for found in self.store.whole::<R>(None) {
            let sealed = sealed::count(&**found?.1);
            if sealed.map_err(|e| StoreError::Unreadable(e.to_string()))? > 0 {
                self.found = true;
                break;
            }
        }
        Ok(())
    }
}

/// The names of all trees in the store.
pub fn trees() -> Vec<&'static str> {
    [STORED, SIDE_TREES].concat()
}
