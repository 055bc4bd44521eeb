//! The handlers of the group Templates.

use crate::{
    call::{
        context::{Call, Caller, SignedIn},
        platform::Platform,
    },
    kinds::{
        hosting::{
            images::Images,
            instances::Instances,
            templates::{Command, TemplateClaim, TemplateIndex, Templates, check},
        },
        world::World,
    },
    runtime::{entries::Under, pagination, ref_count::RefCount},
};
use contract::{
    BoundedSet, Cursor, Fault, FieldProblem, ImageId, Limit, Page, Serves, TemplateId,
    instances::InstanceState,
    templates::{
        AddTemplateDockerVersion, CreateTemplate, DeleteTemplate, DeletedTemplate,
        GetFeaturedTemplates, GetTemplate, GetTemplateStats, GetTemplates, GetTemplatesByCategory,
        InstanceCounts, Pricing, PricingModel, Template, TemplateStats, TemplateStatus,
        TemplateVersion, UpdateTemplate, UpdateTemplatePricing, UpdateTemplateStatus,
        UpdateTemplateVersion,
    },
};
use std::{collections::BTreeMap, time::Duration};
use store::{Entry, Snapshot};

/// How far back the statistics count installations by day.
const INSTALL_DAYS: Duration = Duration::from_secs(30 * 24 * 3600);

/// Whether the caller may see and use templates that are not published.
pub(crate) fn sees_all(caller: &Caller) -> bool {
    caller.master || caller.user.as_ref().is_some_and(SignedIn::is_superadmin)
}

pub(crate) fn template(world: &World, id: TemplateId) -> Result<Snapshot<Templates>, Fault> {
    let found = world.store.get::<Templates>(&id)?;
    found.ok_or(Fault::NotFound("template"))
}

async fn change_template(cx: &Call, id: TemplateId, command: Command) -> Result<Template, Fault> {
    cx.to::<Templates>(id).change(command, |template| Ok(template.clone())).await
}

fn list_templates(
    cx: &Call,
    entry: &impl Entry<Templates>,
    page: (Limit, Option<Cursor>),
    wanted: impl Fn(&Template) -> bool,
) -> Result<Page<Template>, Fault> {
    let all = sees_all(&cx.caller);
    pagination::page::<Templates, _>(&cx.world.store, entry, page, |_, seen| {
        let template = &seen.state;
        let shown = (all || template.status == TemplateStatus::Published) && wanted(template);
        Ok(shown.then(|| template.clone()))
    })
}

impl Serves<CreateTemplate> for Platform {
    async fn serve(&self, cx: &Call, p: CreateTemplate) -> Result<Template, Fault> {
        let id: TemplateId = self.world.ports.random.id(cx.now);
        let template = Template {
            id,
            name: p.name.into(),
            slug: p.slug,
            kind: p.kind,
            description: p.description,
            category: p.category,
            tags: p.tags.into_vec(),
            status: TemplateStatus::Draft,
            featured: false,
            pricing: Pricing::default(),
            current_version: None,
            versions: Vec::new(),
            created_at: cx.now,
            updated_at: cx.now,
        };
        cx.to::<Templates>(id).create(template, |template| Ok(template.clone())).await
    }
}

impl Serves<UpdateTemplate> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateTemplate) -> Result<Template, Fault> {
        let command = Command::Update {
            name: p.name.map(Into::into),
            slug: p.slug,
            description: p.description,
            category: p.category,
            tags: p.tags.map(BoundedSet::into_vec),
        };
        change_template(cx, p.template_id, command).await
    }
}

impl Serves<DeleteTemplate> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteTemplate) -> Result<DeletedTemplate, Fault> {
        let id = p.template_id;
        template(&self.world, id)?;
        if self.world.store.get::<RefCount>(&id.to_string())?.is_some() {
            return Err(Fault::NotNow(
                "instances use this template; archive it with updateTemplateStatus, or delete them first".into(),
            ));
        }
        let reply = DeletedTemplate { deleted: id };
        cx.to::<Templates>(id).change(Command::Delete, move |_| Ok(reply.clone())).await
    }
}

impl Serves<UpdateTemplateStatus> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateTemplateStatus) -> Result<Template, Fault> {
        change_template(cx, p.template_id, Command::SetStatus(p.status)).await
    }
}

impl Serves<UpdateTemplateVersion> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateTemplateVersion) -> Result<Template, Fault> {
        change_template(cx, p.template_id, Command::SetVersion(p.version)).await
    }
}

impl Serves<UpdateTemplatePricing> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateTemplatePricing) -> Result<Template, Fault> {
        p.pricing.as_ref().map_or(Ok(()), check_pricing)?;
        let command = Command::SetPricing(p.pricing, p.featured);
        change_template(cx, p.template_id, command).await
    }
}

/// Checks that the fields are those of the pricing model.
fn check_pricing(pricing: &Pricing) -> Result<(), Fault> {
    let Pricing { model, amount, currency, plan_code } = pricing;
    let (name, needed): (_, &[&str]) = match model {
        PricingModel::Free => ("free", &[]),
        PricingModel::OneTime => ("oneTime", &["amount", "currency"]),
        PricingModel::Subscription => ("subscription", &["planCode"]),
    };
    let fields = [
        ("amount", amount.is_some()),
        ("currency", currency.is_some()),
        ("planCode", plan_code.is_some()),
    ];
    let wrong = |(field, is_given): (&str, bool)| {
        let problem = match (needed.contains(&field), is_given) {
            (true, false) => format!("is required for the model {name}"),
            (false, true) => format!("is not for the model {name}"),
            _ => return None,
        };
        Some(FieldProblem { field: format!("pricing.{field}"), problem })
    };
    let problems: Vec<_> = fields.into_iter().filter_map(wrong).collect();
    if problems.is_empty() { Ok(()) } else { Err(Fault::Invalid(problems)) }
}

impl Serves<AddTemplateDockerVersion> for Platform {
    async fn serve(&self, cx: &Call, p: AddTemplateDockerVersion) -> Result<Template, Fault> {
        let template = template(&self.world, p.template_id)?;
        let mut images: BTreeMap<ImageId, Snapshot<Images>> = BTreeMap::new();
        for service in p.services.iter() {
            let found = self.world.store.get::<Images>(&service.image_id)?;
            images.extend(found.map(|seen| (service.image_id, seen)));
        }
        let image = |s: &contract::templates::TemplateService| {
            images.get(&s.image_id).map(|seen| &seen.state)
        };
        let problems = check::problems(template.state.kind, &p.services, image);
        if !problems.is_empty() {
            return Err(Fault::Invalid(problems));
        }
        let version = TemplateVersion {
            version: p.version,
            services: p.services.into_vec(),
            notes: p.notes,
            created_at: cx.now,
        };
        let version = Box::new(version);
        let command = Command::AddVersion { version, images, replaces: Vec::new() };
        change_template(cx, p.template_id, command).await
    }
}

impl Serves<GetTemplate> for Platform {
    async fn serve(&self, cx: &Call, p: GetTemplate) -> Result<Template, Fault> {
        let id = match (p.template_id, p.slug) {
            (Some(id), None) => id,
            (None, Some(slug)) => {
                let id = self.world.store.holder(&TemplateClaim::Slug { slug })?;
                id.ok_or(Fault::NotFound("template"))?
            }
            _ => {
                return Err(Fault::invalid(
                    "templateId",
                    "give exactly one of templateId and slug",
                ));
            }
        };
        let template = template(&self.world, id)?.state.clone();
        if template.status != TemplateStatus::Published && !sees_all(&cx.caller) {
            return Err(Fault::NotFound("template"));
        }
        Ok(template)
    }
}

impl Serves<GetTemplates> for Platform {
    async fn serve(&self, cx: &Call, p: GetTemplates) -> Result<Page<Template>, Fault> {
        let query = p.query.map(|query| query.as_str().to_lowercase());
        list_templates(cx, &TemplateIndex::All, (p.limit, p.cursor), |template| {
            let described = template.description.as_ref().map_or("", |text| text.as_str());
            let tags = template.tags.iter().map(|tag| tag.as_str());
            let mut texts = [template.name.as_str(), described].into_iter().chain(tags);
            p.kind.is_none_or(|kind| template.kind == kind)
                && query.as_ref().is_none_or(|query| {
                    texts.any(|text| text.to_lowercase().contains(query.as_str()))
                })
        })
    }
}

impl Serves<GetFeaturedTemplates> for Platform {
    async fn serve(&self, cx: &Call, p: GetFeaturedTemplates) -> Result<Page<Template>, Fault> {
        list_templates(cx, &TemplateIndex::All, (p.limit, p.cursor), |template| template.featured)
    }
}

impl Serves<GetTemplatesByCategory> for Platform {
    async fn serve(&self, cx: &Call, p: GetTemplatesByCategory) -> Result<Page<Template>, Fault> {
        let entry = TemplateIndex::Category { category: p.category };
        list_templates(cx, &entry, (p.limit, p.cursor), |_| true)
    }
}

impl Serves<GetTemplateStats> for Platform {
    async fn serve(&self, cx: &Call, p: GetTemplateStats) -> Result<TemplateStats, Fault> {
        template(&self.world, p.template_id)?;
        let store = &self.world.store;
        let mut stats = TemplateStats {
            instances: InstanceCounts { total: 0, running: 0 },
            by_version: BTreeMap::new(),
            installs_by_day: BTreeMap::new(),
        };
        for found in store.newest::<Instances>(&Under::<Templates>(p.template_id), None) {
            let (_, seen) = found?;
            let instance = &seen.state;
            if instance.is_deleted() {
                continue;
            }
            stats.instances.total += 1;
            stats.instances.running += u64::from(instance.state == InstanceState::Running);
            *stats.by_version.entry(instance.template_version.to_string()).or_default() += 1;
            if cx.now.since(instance.created_at) <= INSTALL_DAYS {
                *stats.installs_by_day.entry(instance.created_at.day()).or_default() += 1;
            }
        }
        Ok(stats)
    }
}
