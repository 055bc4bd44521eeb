//! Templates of instances: services, each with an image version and settings.

use crate::{
    BoundedSet, Description, ImageId, Name, NewName, Notes, Page, TemplateId, Timestamp,
    VersionName,
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

    /// Create a template as a draft.
    ///
    /// Add a version with `addTemplateDockerVersion`, then publish the template with
    /// `updateTemplateStatus`.
    "createTemplate": CreateTemplate {
        /// What people call the template. It need not be unique.
        name: NewName,
        /// The name of the template in URLs. It is unique.
        slug: Slug,
        /// The kind of instances that are made from it. It never changes.
        kind: InstanceKind,
        /// What people should know of the template, at most 2,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
        /// The category under which it is listed, such as `backend`. A new name makes a new
        /// category.
        category: Slug,
        /// Words by which a search finds the template, at most 20.
        #[serde(default)]
        tags: BoundedSet<Slug, 0, 20>,
    } -> Template { who: SuperAdmin, effect: Change, errors: [Exists "the slug is taken"] }

    /// Change the description of a template. Its versions never change.
    "updateTemplate": UpdateTemplate {
        template_id: TemplateId,
        /// The new name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// The new name in URLs, which must be unique. Without it, the name in URLs stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slug: Option<Slug>,
        /// Replaces the description. Null clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
        /// The new category. Without it, the category stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Slug>,
        /// Replaces the words by which a search finds the template. Without it, they stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tags: Option<BoundedSet<Slug, 0, 20>>,
    } -> Template { who: SuperAdmin, effect: Change, errors: [Exists "the slug is taken"] }

    /// Delete a template that no instance uses.
    "deleteTemplate": DeleteTemplate { template_id: TemplateId } -> DeletedTemplate
    { who: SuperAdmin, effect: Change, errors: [NotNow "instances use it"] }

    /// Publish a template, archive it, or make it a draft again.
    ///
    /// Only published templates are public and can be used for new instances.
    "updateTemplateStatus": UpdateTemplateStatus {
        template_id: TemplateId,
        /// Who may see the template from now on, and make instances from it.
        status: TemplateStatus,
    } -> Template
    { who: SuperAdmin, effect: Change, errors: [NotNow "it has no version yet"] }

    /// Choose the version of a template for new instances.
    "updateTemplateVersion": UpdateTemplateVersion {
        template_id: TemplateId,
        /// A version that the template has. Instances that exist stay as they are.
        version: SemanticVersion,
    } -> Template
    { who: SuperAdmin, effect: Change, errors: [NotFound "the template has no such version"] }

    /// Set the price of a template, and whether it is featured.
    "updateTemplatePricing": UpdateTemplatePricing {
        template_id: TemplateId,
        /// Replaces the price. By default, it stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pricing: Option<Pricing>,
        /// Whether `getFeaturedTemplates` lists the template. Without it, this stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        featured: Option<bool>,
    } -> Template { who: SuperAdmin, effect: Change }

    /// Add a version to a template.
    ///
    /// A version never changes. The first version becomes the current one at once.
    "addTemplateDockerVersion": AddTemplateDockerVersion {
        template_id: TemplateId,
        /// The new version, such as `1.4.0`.
        version: SemanticVersion,
        /// One service for each role. The role `server` is required.
        services: BoundedSet<TemplateService, 1, 5>,
        /// What is new in the version, at most 10,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Template { who: SuperAdmin, effect: Change,
        errors: [Exists "the template has this version", Invalid "an image version is deprecated"] }

    /// Read a template by its id or its slug. Only published templates are public.
    "getTemplate": GetTemplate {
        /// Give exactly one of `templateId` and `slug`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template_id: Option<TemplateId>,
        /// The name of the template in URLs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("examples" = ["parse-server-postgresql"]))]
        slug: Option<Slug>,
    } -> Template { who: Public, effect: Read }

    /// List templates.
    "getTemplates": GetTemplates {
        /// Words to find in the name, the description or the tags.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        /// Return only templates of this kind of instances.
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
        /// The category, such as `backend`.
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
        /// What people call the template. It need not be unique.
        name: Name,
        /// The name of the template in URLs. It is unique.
        slug: Slug,
        /// The kind of instances that are made from it.
        kind: InstanceKind,
        /// What people should know of the template. Null if nobody wrote it.
        description: Option<Description>,
        /// The category under which it is listed, such as `backend`.
        category: Slug,
        /// Words by which a search finds the template.
        tags: Vec<Slug>,
        /// Who may see the template, and make instances from it.
        status: TemplateStatus,
        /// Whether `getFeaturedTemplates` lists the template.
        featured: bool,
        /// What the template costs. The service shows the price and charges nobody.
        pricing: Pricing,
        /// The version for new instances. Null if the template has no version.
        current_version: Option<SemanticVersion>,
        /// In the order in which they were added.
        versions: Vec<TemplateVersion>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A version of a template: the services of instances that are made from it.
    pub struct TemplateVersion {
        /// The version, unique in its template, such as `1.4.0`.
        version: SemanticVersion,
        /// The services of an instance, one for each role.
        services: Vec<TemplateService>,
        /// What is new in the version. Null if nobody wrote it.
        notes: Option<Notes>,
        created_at: Timestamp,
    }

    /// The template that the call deleted.
    pub struct DeletedTemplate { deleted: TemplateId }

    /// The usage of a template.
    pub struct TemplateStats {
        /// The instances that were made from the template. Deleted ones do not count.
        instances: InstanceCounts,
        /// The number of instances of each template version.
        by_version: BTreeMap<String, u64>,
        /// The number of instances that were created on each of the last 30 days (`2026-01-31`,
        /// UTC). Deleted instances do not count.
        installs_by_day: BTreeMap<String, u64>,
    }

    /// The number of instances, in total and running.
    pub struct InstanceCounts {
        /// The number of instances that are not deleted.
        total: u64,
        /// The number of instances in the state `running`.
        running: u64,
    }
}

/// A container of each instance that is made from the template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateService {
    /// The role in the instance. Other services reach this one under the role's name in lower case.
    pub role: Role,
    /// A registered image.
    pub image_id: ImageId,
    /// A registered version of that image.
    pub image_version: VersionName,
    /// Environment variables. `${secret.NAME}` stands for a secret that is generated for each
    /// instance. `${instance.id}`, `${instance.appId}` and `${instance.url}` stand for properties
    /// of the instance; `~dashboard` or `~storefront` after `${instance.url}` makes it the address of that
    /// service. `${service.url}` stands for the base URL of functions, and `${service.applicationId}`
    /// for the application id.
    #[serde(default)]
    pub env: Env,
    /// Variables that callers may replace, with the values that they have otherwise. Placeholders are
    /// as in `env`.
    #[serde(default)]
    pub default_env: Env,
    /// Names of variables that callers may set and that are not secret. Replies show their values;
    /// the values of all other variables are masked.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub plain_env: BoundedSet<EnvName, 0, 100>,
    /// The folder of the service's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<ContainerPath>,
    /// The port of the service. It is published on the loopback address of the machine; clients
    /// reach it through `svc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The health check. Without one, a running container counts as healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// Replaces the command of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<BoundedSet<Argument, 1, 64>>,
    /// For a database: how to dump, restore and test it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// Memory in megabytes, if the instance sets none. The default is 512.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u32>,
    /// Writable folders in memory, in addition to the volume. The default is `/tmp` and `/run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<BoundedSet<ContainerPath, 0, 10>>,
    /// Whether the service may change the files of its image. By default, they are read-only.
    #[serde(default)]
    pub writable: bool,
}

/// The health check of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HealthCheck {
    /// The server answers this path with a status from 200 to 399.
    Http(
        /// The path, such as `/health`, at the port of the service.
        HttpPath,
    ),
    /// This program in the container exits with 0. The entry points of some databases first run the
    /// database to set it up, reachable at `localhost` only. The program must fail then: let it
    /// connect to the name of the role, such as `documentdb`.
    Command(
        /// The program, and its arguments.
        BoundedSet<Argument, 1, 64>,
    ),
}

/// The database of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Database {
    /// Decides which tools of the image dump and restore.
    pub engine: DatabaseEngine,
    /// The database on its server that is dumped and restored.
    pub name: Identifier,
    /// A user with all permissions on the database.
    pub user: Identifier,
    /// The name of the secret with this user's password. Null if there is no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<Identifier>,
}

/// What a database is, and the tools that its image must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseEngine {
    /// An SQL database with the tools `pg_dump` and `psql`.
    Postgresql,
    /// A document database with the tools `mongodump` and `mongorestore`.
    Mongodb,
}

/// The visibility of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TemplateStatus {
    /// Only administrators see the template.
    Draft,
    /// Everybody sees the template.
    Published,
    /// Only administrators see the template. Its instances continue to run.
    Archived,
}

/// The price of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pricing {
    /// The kind of payment.
    pub model: PricingModel,
    /// The amount in the currency's minor unit. Only with `oneTime`, where it is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// The currency. Only with `oneTime`, where it is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The payment provider's plan. Only with `subscription`, where it is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_code: Option<PlanCode>,
}

impl Default for Pricing {
    fn default() -> Self {
        Pricing { model: PricingModel::Free, amount: None, currency: None, plan_code: None }
    }
}

/// How users pay for a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PricingModel {
    /// No payment.
    Free,
    /// One payment.
    OneTime,
    /// A subscription to a plan.
    Subscription,
}

texts! {
    /// A version with an order, such as `1.4.0` or `2.0.0-rc.1`.
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
