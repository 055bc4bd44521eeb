//! Typed ids: a prefix for the kind, and a ULID, which is unique and sorts by time.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Cow, fmt, str::FromStr};
use ulid::Ulid;

/// The text is not an id of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an id such as {prefix}_01J9ZQ8F5W7V3T6M2K4N8R0P1S")]
pub struct NotAnId {
    prefix: &'static str,
}

/// The common interface of typed ids.
pub trait Id:
    Copy + Eq + std::hash::Hash + Ord + fmt::Display + FromStr + Send + Sync + 'static
{
    /// The text before the underscore.
    const PREFIX: &'static str;
    /// Makes an id from its unique part.
    fn of(unique: Ulid) -> Self;
    /// The unique part. It sorts by time.
    fn unique(self) -> Ulid;
}

macro_rules! ids {
    ($($(#[$doc:meta])+ $name:ident $prefix:literal),+ $(,)?) => {
        const _: () =
            crate::assertions::assert_all_differ(&[&[$($prefix),+]], "two ids have one prefix");
        $(
            $(#[$doc])+
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(Ulid);

            impl Id for $name {
                const PREFIX: &'static str = $prefix;
                fn of(unique: Ulid) -> Self {
                    $name(unique)
                }
                fn unique(self) -> Ulid {
                    self.0
                }
            }
            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let mut text = [0; ulid::ULID_LEN];
                    f.write_str(concat!($prefix, "_"))?;
                    f.write_str(self.0.array_to_str(&mut text))
                }
            }
            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Display::fmt(self, f)
                }
            }
            impl FromStr for $name {
                type Err = NotAnId;
                fn from_str(text: &str) -> Result<Self, NotAnId> {
                    read($prefix, text).map($name)
                }
            }
            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                    s.collect_str(self)
                }
            }
            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                    let text = Cow::<str>::deserialize(d)?;
                    text.parse().map_err(serde::de::Error::custom)
                }
            }
            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({
                        "type": "string",
                        "pattern": concat!("^", $prefix, "_[0-9A-HJKMNP-TV-Z]{26}$"),
                    })
                }
            }
        )+
    };
}

/// The store compares ids as text, so only the canonical spelling is valid.
fn read(prefix: &'static str, text: &str) -> Result<Ulid, NotAnId> {
    let unique = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
    let unique = unique.filter(|u| u.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()));
    let parsed =
        unique.and_then(|u| Ulid::from_string(u).ok().filter(|ulid| ulid.to_string() == u));
    parsed.ok_or(NotAnId { prefix })
}

ids! {
    /// A user account.
    UserId "usr",
    /// A session of a user.
    SessionId "ses",
    /// An organization, whose members share projects.
    OrganizationId "org",
    /// An invitation into an organization.
    InvitationId "inv",
    /// A project of an organization.
    ProjectId "prj",
    /// An app of a project.
    AppId "app",
    /// An uploaded binary.
    ArtifactId "art",
    /// A release of an app.
    ReleaseId "rel",
    /// One target of a release's publication.
    PublicationId "pub",
    /// A credential of an app.
    CredentialId "crd",
    /// The repository of an app.
    RepositoryId "rep",
    /// A build of an app.
    BuildId "bld",
    /// A CI workflow that may upload artifacts of an app.
    PublisherId "tpb",
    /// A payment of a buyer.
    CheckoutId "chk",
    /// A subscription of a buyer.
    SubscriptionId "sub",
    /// A channel of a shop.
    CommerceChannelId "chn",
    /// A deploy token.
    TokenId "tok",
    /// An announcement of the operators.
    AnnouncementId "ann",
    /// A backend or market instance.
    InstanceId "ins",
    /// A container engine of another machine.
    EngineId "eng",
    /// A template of instances.
    TemplateId "tpl",
    /// A backup of an instance's database.
    BackupId "bak",
    /// A schedule of backups.
    ScheduleId "sch",
    /// A deployment of an app.
    DeploymentId "dep",
    /// A certificate of this server.
    CertificateId "crt",
    /// A host name of an app.
    DomainId "dom",
    /// A registered container image.
    ImageId "img",
    /// A build of an image.
    JobId "job",
    /// An entry of the audit log.
    EventId "evt",
    /// A webhook of an organization.
    WebhookId "whk",
    /// The delivery of an event to a webhook.
    DeliveryId "dlv",
    /// An event as receivers of webhooks get it: their `webhook-id`.
    MessageId "msg",
}
