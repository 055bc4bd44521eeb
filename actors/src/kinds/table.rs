//! One row for each kind of resource, and the code that follows from the rows: the store records,
//! the handles of the owners, the look-up of ancestors, the deletion of children, and what is done
//! once for each kind ([`KindVisitor`]).
//!
//! `under` names the parent kind. `beside` names more kinds by which the resources are indexed.

use super::{
    ancestry::Located,
    cascade,
    commerce::{
        checkouts::Checkouts, commerce_channels::CommerceChannels, subscriptions::Subscriptions,
    },
    delivery::{
        artifacts::Artifacts, builds::Builds, credentials::Credentials, publications::Publications,
        releases::Releases, repositories::Repositories, trusted_publishers::TrustedPublishers,
    },
    events::{deliveries::Deliveries, webhooks::Webhooks},
    hosting::{
        backup_schedules::BackupSchedules, backups::Backups, certificates::Certificates,
        deployments::Deployments, domains::Domains, engines::Engines, image_builds::ImageBuilds,
        images::Images, instances::Instances, templates::Templates,
    },
    people::{
        accounts::Accounts, announcements::Announcements, apps::Apps, organizations::Organizations,
        projects::Projects, tokens::Tokens,
    },
    world::World,
};
use crate::runtime::{
    directory::Rules,
    entries::{self, Under},
    handle::Handle,
    reindex,
    resource::{Child, HasParent, Kept, Resource, Retry, Row},
    store::Store,
};
use actix_rt::ArbiterHandle;
use contract::{
    AnnouncementId, AppId, ArtifactId, BackupId, BuildId, CertificateId, CheckoutId,
    CommerceChannelId, CredentialId, DeliveryId, DeploymentId, DomainId, EngineId, Fault, ImageId,
    InstanceId, JobId, OrganizationId, ProjectId, PublicationId, PublisherId, ReleaseId,
    RepositoryId, ScheduleId, Subject, SubscriptionId, TemplateId, TokenId, UserId, WebhookId,
};
use std::{any::Any, sync::Arc};
use store::{Claims, Entries, Entry, Record, Snapshot, StoreError};

macro_rules! kinds {
    ($(
        $one:ident: $kind:ident {
            id: $id:ty, stored: $stored:literal, noun: $noun:literal
            $(, subject: $subject:ident)? $(, under: $parent:ident)? $(, beside: [$($beside:ident),+])? $(,)?
        }
    )+) => {
        $(
            impl Record for $kind {
                const TREE: &'static str = $stored;
                const SCHEMA: u16 = <$kind as Resource>::SHAPE;
                type Key = $id;
                type Content = Kept<$kind>;

                fn index(kept: &Kept<$kind>) -> Entries<$kind> {
                    entries::of(kept)
                        $(.and_all(<$kind as Child>::parent(&kept.state).map(Under::<$parent>)))?
                }

                fn claims(kept: &Kept<$kind>) -> Claims<$kind> {
                    Claims::default().and_all(<$kind as Resource>::claims(&kept.state))
                }

                fn upgrade(from: u16, old: serde_json::Value) -> Result<Kept<$kind>, StoreError> {
                    <$kind as Resource>::upgrade(from, old)
                }
            }

            impl Row for $kind {
                const NOUN: &'static str = $noun;
                type Host = World;

                fn parent_key(_state: &<$kind as Resource>::State) -> Option<String> {
                    parent_key!(_state, $kind $(, $parent)?)
                }

                fn organization(
                    _id: &$id,
                    _state: &<$kind as Resource>::State,
                    _store: &Store,
                ) -> Result<Option<OrganizationId>, Fault> {
                    organization!($kind, _id, _state, _store $(, $parent)?)
                }
            }

            impl Located for $kind {
                fn place(ancestry: &mut Ancestry) -> &mut Option<($id, Snapshot<$kind>)> {
                    &mut ancestry.$one
                }

                fn find_parent(
                    _ancestry: &mut Ancestry,
                    _store: &Store,
                    _state: &<$kind as Resource>::State,
                ) -> Result<(), Fault> {
                    $(if let Some(id) = <$kind as Child>::parent(_state) {
                        _ancestry.find::<$parent>(_store, id)?;
                    })?
                    Ok(())
                }
            }

            impl Owned for $kind {
                fn owners(all: &Owners) -> &Handle<$kind> {
                    &all.$one
                }
            }

            $(impl HasParent for $kind {
                type Parent = $parent;
            })?
            $(impl Entry<$kind> for Under<$parent> {})?
            $($(impl Entry<$kind> for Under<$beside> {})+)?
        )+

        /// The store trees of the kinds of resources.
        pub const STORED: &[&str] = &[$($stored),+];

        /// The handles of the owners, one for each kind of resource.
        #[derive(Clone)]
        pub struct Owners {
            $($one: Handle<$kind>),+
        }

        impl Owners {
            pub(crate) async fn start(
                world: &Arc<World>,
                arbiters: &[ArbiterHandle],
                rules: Rules,
            ) -> Result<Owners, Fault> {
                Ok(Owners { $($one: Handle::start(world, arbiters, rules).await?),+ })
            }

            /// Wakes the owners whose work this process, or the one that acted before it, may have begun.
            pub(crate) async fn resume(&self) {
                $(self.$one.resume().await;)+
            }

            /// Tells the owner of a record that another process has written it. Does nothing for records of
            /// no kind of this table.
            pub(crate) async fn written_by_other(&self, kind: &str, key: &str) {
                $(if kind == <$kind as Record>::TREE && let Ok(id) = key.parse() {
                    return self.$one.written_by_other(id).await;
                })+
            }

            /// Restarts the owner of a resource; false if the owner is not in memory.
            pub async fn restart(&self, id: &str) -> Result<bool, Fault> {
                $(if let Ok(id) = id.parse() {
                    return self.$one.restart(id).await;
                })+
                Ok(false)
            }

            /// Tells some children of a resource to delete themselves, in the order of the table.
            /// Returns whether none is left. If some are, it gives them a moment.
            pub(crate) async fn delete_children(
                world: &World,
                id: &(dyn Any + Send + Sync),
            ) -> Result<bool, Retry> {
                let mut asked = 0;
                $($(if let Some(id) = id.downcast_ref::<<$parent as Record>::Key>() {
                    if asked == 0 || !<$kind as Child>::NEEDED_TO_THE_END {
                        let entry = Under::<$parent>(*id);
                        let command = || <$kind as Child>::delete_under(*id, world);
                        asked += cascade::delete_some::<$kind>(world, &entry, command).await?;
                    }
                })?)+
                if asked > 0 {
                    world.ports.clock.sleep(cascade::PAUSE).await;
                }
                Ok(asked == 0)
            }
        }

        /// Gives the records of earlier versions the index entries that they lack. Runs before any
        /// owner exists, because owners remember their records.
        pub async fn reindex(store: &Store) -> Result<(), Fault> {
            $(reindex::reindex::<$kind>(store).await?;)+
            Ok(())
        }

        /// The object that a call is about and its ancestors, as they were read.
        #[derive(Clone, Default)]
        pub struct Ancestry {
            $(pub $one: Option<($id, Snapshot<$kind>)>),+
        }

        impl Ancestry {
            $(
                #[doc = concat!("The ", $noun, "; `NotFound` if the call has none.")]
                pub fn $one(&self) -> Result<($id, &Snapshot<$kind>), Fault> {
                    let found = self.$one.as_ref().map(|(id, seen)| (*id, seen));
                    found.ok_or(Fault::NotFound($noun))
                }
            )+

            /// Finds the object and its ancestors. A deleted object is not found.
            pub(crate) fn of(
                store: &Store,
                subject: Subject,
                personal: Option<OrganizationId>,
            ) -> Result<Ancestry, Fault> {
                let mut ancestry = Ancestry::default();
                match subject {
                    Subject::None => {}
                    Subject::Personal => {
                        if let Some(id) = personal {
                            ancestry.find::<Organizations>(store, id)?;
                        }
                    }
                    Subject::Membership(id, _) => ancestry.find::<Organizations>(store, id)?,
                    Subject::DeletedInstance(id) => ancestry.find_deleted_instance(store, id)?,
                    $($(Subject::$subject(id) => ancestry.find::<$kind>(store, id)?,)?)+
                }
                Ok(ancestry)
            }
        }

        /// The noun for a subject, as faults name it.
        pub fn noun(subject: Subject) -> &'static str {
            match subject {
                Subject::None | Subject::Personal => "object",
                Subject::Membership(..) => Organizations::NOUN,
                Subject::DeletedInstance(_) => Instances::NOUN,
                $($(Subject::$subject(_) => $noun,)?)+
            }
        }

        /// Visits every kind.
        pub fn visit<V: KindVisitor>(visitor: &mut V) -> Result<(), V::Error> {
            $(visitor.visit::<$kind>()?;)+
            Ok(())
        }
    };
}

/// The key of a resource's parent; `None` for a kind whose row names no parent kind.
macro_rules! parent_key {
    ($state:ident, $kind:ident) => {
        None
    };
    ($state:ident, $kind:ident, $parent:ident) => {
        <$kind as Child>::parent($state).map(|id: <$parent as Record>::Key| id.to_string())
    };
}

/// The organization that a resource belongs to, by way of its parents.
macro_rules! organization {
    (Organizations, $id:ident, $state:ident, $store:ident) => {
        Ok(Some(*$id))
    };
    // An account is created together with its personal organization.
    (Accounts, $id:ident, $state:ident, $store:ident) => {
        Ok(Some($state.personal))
    };
    ($kind:ident, $id:ident, $state:ident, $store:ident) => {
        Ok(None)
    };
    // An instance may be created together with its app, and it outlives it, also with its project.
    (Instances, $id:ident, $state:ident, $store:ident, Apps) => {
        match $state.left_to {
            Some(organization) => Ok(Some(organization)),
            None => organization_of::<Projects>(Some($state.project_id), $store),
        }
    };
    ($kind:ident, $id:ident, $state:ident, $store:ident, Organizations) => {
        Ok(<$kind as Child>::parent($state))
    };
    ($kind:ident, $id:ident, $state:ident, $store:ident, $parent:ident) => {
        organization_of::<$parent>(<$kind as Child>::parent($state), $store)
    };
}

/// The organization of a resource; `None` if it is gone.
fn organization_of<R: Resource>(
    id: Option<R::Key>,
    store: &Store,
) -> Result<Option<OrganizationId>, Fault> {
    let Some(id) = id else { return Ok(None) };
    let Some(found) = store.get::<R>(&id)? else { return Ok(None) };
    R::organization(&id, &found.state, store)
}

kinds! {
    account: Accounts { id: UserId, stored: "account", noun: "user" }
    announcement: Announcements {
        id: AnnouncementId, stored: "announcement", noun: "announcement",
    }
    organization: Organizations {
        id: OrganizationId, stored: "organization", noun: "organization", subject: Organization,
    }
    webhook: Webhooks {
        id: WebhookId, stored: "webhook", noun: "webhook", subject: Webhook, under: Organizations,
    }
    delivery: Deliveries {
        id: DeliveryId, stored: "delivery", noun: "delivery", subject: Delivery, under: Webhooks,
    }
    project: Projects {
        id: ProjectId, stored: "project", noun: "project", subject: Project, under: Organizations,
    }
    app: Apps {
        id: AppId, stored: "app", noun: "app", subject: App, under: Projects,
    }
    deployment: Deployments {
        id: DeploymentId, stored: "deployment", noun: "deployment", subject: Deployment, under: Apps,
    }
    domain: Domains {
        id: DomainId, stored: "domain", noun: "domain", subject: Domain, under: Apps,
    }
    repository: Repositories {
        id: RepositoryId, stored: "repository", noun: "repository", under: Apps,
    }
    build: Builds {
        id: BuildId, stored: "build", noun: "build", subject: Build, under: Apps,
    }
    backup_schedule: BackupSchedules {
        id: ScheduleId, stored: "backupSchedule", noun: "backup schedule", under: Apps,
    }
    backup: Backups {
        id: BackupId, stored: "backup", noun: "backup", subject: Backup, under: Apps,
        beside: [Instances],
    }
    checkout: Checkouts {
        id: CheckoutId, stored: "checkout", noun: "checkout", subject: Checkout, under: Apps,
    }
    subscription: Subscriptions {
        id: SubscriptionId, stored: "subscription", noun: "subscription", under: Apps,
    }
    commerce_channel: CommerceChannels {
        id: CommerceChannelId, stored: "commerceChannel", noun: "commerce channel", under: Apps,
    }
    publication: Publications {
        id: PublicationId, stored: "publication", noun: "publication", under: Apps,
    }
    release: Releases {
        id: ReleaseId, stored: "release", noun: "release", subject: Release, under: Apps,
    }
    artifact: Artifacts {
        id: ArtifactId, stored: "artifact", noun: "artifact", subject: Artifact, under: Apps,
    }
    credential: Credentials {
        id: CredentialId, stored: "credential", noun: "credential", subject: Credential,
        under: Apps,
    }
    trusted_publisher: TrustedPublishers {
        id: PublisherId, stored: "trustedPublisher", noun: "trusted publisher",
        subject: Publisher, under: Apps,
    }
    token: Tokens {
        id: TokenId, stored: "token", noun: "token", subject: Token, under: Apps,
    }
    instance: Instances {
        id: InstanceId, stored: "instance", noun: "instance", subject: Instance, under: Apps,
        beside: [Projects, Templates, Engines],
    }
    certificate: Certificates {
        id: CertificateId, stored: "certificate", noun: "certificate",
    }
    engine: Engines { id: EngineId, stored: "containerEngine", noun: "container engine" }
    image: Images { id: ImageId, stored: "image", noun: "image" }
    template: Templates { id: TemplateId, stored: "template", noun: "template" }
    image_build: ImageBuilds {
        id: JobId, stored: "imageBuild", noun: "build", beside: [Images],
    }
}

/// Code that runs once for each kind, until an error.
pub trait KindVisitor {
    type Error;
    fn visit<R: Owned>(&mut self) -> Result<(), Self::Error>;
}

/// A kind whose owners the world starts.
pub trait Owned: Resource<Host = World> {
    fn owners(all: &Owners) -> &Handle<Self>;
}
