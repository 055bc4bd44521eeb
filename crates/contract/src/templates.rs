//! Templates: blueprints of instances. A template says which services, of which image versions.

use crate::{
    BoundedSet, Description, ImageId, Name, Notes, Page, TemplateId, Timestamp, VersionName,
    env::Env,
    instances::{InstanceKind, Role},
    page::*,
    patch::Patch,
    text::{
        Argument, ContainerPath, Currency, EnvName, HttpPath, Identifier, PlanCode, Query, Slug,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

functions! {
    group "Templates";

    /// Create a template, as a draft. A version is added to it, and it is published.
    "createTemplate": CreateTemplate {
        name: Name,
        /// In addresses; unique.
        slug: Slug,
        kind: InstanceKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
        category: Slug,
        #[serde(default)]
        tags: BoundedSet<Slug, 0, 20>,
    } -> Template { who: SuperAdmin, effect: Change, errors: [Exists "the slug is taken"] }

    /// Change what a template says of itself. Its versions never change.
    "updateTemplate": UpdateTemplate {
        template_id: TemplateId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slug: Option<Slug>,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Slug>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tags: Option<BoundedSet<Slug, 0, 20>>,
    } -> Template { who: SuperAdmin, effect: Change, errors: [Exists "the slug is taken"] }

    /// Delete a template that no instance uses.
    "deleteTemplate": DeleteTemplate { template_id: TemplateId } -> DeletedTemplate
    { who: SuperAdmin, effect: Change, errors: [NotNow "instances use it"] }

    /// Publish a template, archive it, or make it a draft again. Only published ones are shown to
    /// the public and used for new instances.
    "updateTemplateStatus": UpdateTemplateStatus { template_id: TemplateId, status: TemplateStatus } -> Template
    { who: SuperAdmin, effect: Change, errors: [NotNow "it has no version yet"] }

    /// Make a version current: what new instances are made of.
    "updateTemplateVersion": UpdateTemplateVersion { template_id: TemplateId, version: SemanticVersion } -> Template
    { who: SuperAdmin, effect: Change, errors: [NotFound "the template has no such version"] }

    /// Say what a template costs, and whether it is featured.
    "updateTemplatePricing": UpdateTemplatePricing {
        template_id: TemplateId,
        pricing: Pricing,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        featured: Option<bool>,
    } -> Template { who: SuperAdmin, effect: Change }

    /// Add a version to a template. It never changes afterwards; the first one is current at once.
    "addTemplateDockerVersion": AddTemplateDockerVersion {
        template_id: TemplateId,
        version: SemanticVersion,
        /// One for each role; a `server` among them.
        services: BoundedSet<TemplateService, 1, 5>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Template { who: SuperAdmin, effect: Change,
        errors: [Exists "the template has this version", Invalid "an image version is deprecated"] }

    /// Read a template, by its id or its slug. The public sees published ones.
    "getTemplate": GetTemplate {
        /// Exactly one of this and `slug`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template_id: Option<TemplateId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slug: Option<Slug>,
    } -> Template { who: Public, effect: Read }

    /// List templates.
    "getTemplates": GetTemplates {
        /// Words in the name, the description or the tags.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Template> { who: Public, effect: Read }

    /// List the featured templates.
    "getFeaturedTemplates": GetFeaturedTemplates {
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Template> { who: Public, effect: Read }

    /// List the templates of a category.
    "getTemplatesByCategory": GetTemplatesByCategory {
        category: Slug,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Template> { who: Public, effect: Read }

    /// Count the instances of a template.
    "getTemplateStats": GetTemplateStats { template_id: TemplateId } -> TemplateStats
    { who: Admin, effect: Read }
}

records! {
    /// A blueprint of instances.
    pub struct Template {
        id: TemplateId,
        name: Name,
        slug: Slug,
        kind: InstanceKind,
        description: Option<Description>,
        category: Slug,
        tags: Vec<Slug>,
        status: TemplateStatus,
        featured: bool,
        pricing: Pricing,
        /// What new instances are made of; null while there is no version.
        current_version: Option<SemanticVersion>,
        /// In the order in which they were added.
        versions: Vec<TemplateVersion>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A version of a template.
    pub struct TemplateVersion {
        version: SemanticVersion,
        services: Vec<TemplateService>,
        notes: Option<Notes>,
        created_at: Timestamp,
    }

    /// What was deleted.
    pub struct DeletedTemplate { deleted: TemplateId }

    /// How much a template is used.
    pub struct TemplateStats {
        instances: InstanceCounts,
        /// Instances by template version.
        by_version: BTreeMap<String, u64>,
        /// Instances made, by day (`2026-01-31`, UTC), of the last 30 days. Deleted ones do not count.
        installs_by_day: BTreeMap<String, u64>,
    }

    /// How many instances there are.
    pub struct InstanceCounts { total: u64, running: u64 }
}

/// One service of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateService {
    /// What it is in the instance. Others reach it under this name in lower case.
    pub role: Role,
    /// A registered image.
    pub image_id: ImageId,
    /// One of its versions.
    pub image_version: VersionName,
    /// Its environment. `${secret.NAME}` stands for a secret that each instance has of its own,
    /// `${instance.id}`, `${instance.appId}` and `${instance.url}` for what they say.
    #[serde(default)]
    pub env: Env,
    /// Variables that callers may replace, with the values that they have otherwise. Placeholders are
    /// as in `env`.
    #[serde(default)]
    pub default_env: Env,
    /// Names of variables that callers set and that are no secrets: their values are shown. All
    /// other values that callers set are masked.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub plain_env: BoundedSet<EnvName, 0, 100>,
    /// Where it keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<ContainerPath>,
    /// Where it listens. It is published on the loopback address of the machine, and reached
    /// through the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How to find out whether it is well. Where there is none, a container that runs is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// Replaces the image's own command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<BoundedSet<Argument, 1, 64>>,
    /// What is in it, for those that are databases: how they are dumped, restored and tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// Megabytes of memory where the instance does not say; 512 where nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u32>,
    /// Folders that it may write to, in memory, beside its volume; `/tmp` and `/run` where nothing
    /// is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<BoundedSet<ContainerPath, 0, 10>>,
    /// Whether it changes the files of its image. Where not, they are read-only.
    #[serde(default)]
    pub writable: bool,
}

/// How to find out whether a service is well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HealthCheck {
    /// This path answers with a status from 200 to 399.
    Http(HttpPath),
    /// This program inside of the container ends with 0.
    Command(BoundedSet<Argument, 1, 64>),
}

/// A database, as its users see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Database {
    /// Which tools it has.
    pub engine: DatabaseEngine,
    /// The database.
    pub name: Identifier,
    /// Who may do everything with it.
    pub user: Identifier,
    /// The secret that is this user's password; none where there is no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<Identifier>,
}

/// What a database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseEngine {
    /// SQL; has `pg_dump` and `psql`.
    Postgresql,
    /// Documents; has `mongodump` and `mongorestore`.
    Mongodb,
}

/// Who sees a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TemplateStatus {
    /// Only administrators.
    Draft,
    /// Everyone.
    Published,
    /// Only administrators; instances of it go on.
    Archived,
}

/// What a template costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pricing {
    /// How it is paid.
    pub model: PricingModel,
    /// In the currency's minor unit. With `oneTime`, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// With `oneTime`, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The payment provider's plan. With `subscription`, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_code: Option<PlanCode>,
}

impl Default for Pricing {
    fn default() -> Self {
        Pricing { model: PricingModel::Free, amount: None, currency: None, plan_code: None }
    }
}

/// How a template is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PricingModel {
    /// Not at all.
    Free,
    /// Once.
    OneTime,
    /// By a plan.
    Subscription,
}

texts! {
    /// A version that can be ordered, such as `1.4.0` or `2.0.0-rc.1`.
    SemanticVersion,
    schema: {"type": "string", "pattern": "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$", "maxLength": 64},
    rule: |text| {
        let (numbers, pre) = text.split_once('-').map_or((text, None), |(n, p)| (n, Some(p)));
        let number = |n: &str| !n.is_empty() && n.len() <= 9 && n.bytes().all(|b| b.is_ascii_digit()) && (n == "0" || !n.starts_with('0'));
        let good = numbers.split('.').count() == 3 && numbers.split('.').all(number);
        let pre = pre.is_none_or(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.'));
        if good && pre && text.len() <= 64 { Ok(text.to_owned()) } else { Err("must be a version such as 1.4.0".into()) }
    };
}

impl std::fmt::Debug for SemanticVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.as_str(), f)
    }
}
