//! The gallery of templates, from which instances are made, and the forms with which superadmins
//! change it.

use crate::{
    form::{Form, value},
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    BoundedSet, Fault, Limit,
    images::{DockerImage, SearchDockerImages},
    instances::InstanceKind,
    templates::{
        AddTemplateDockerVersion, CreateTemplate, DeleteTemplate, GetTemplate, GetTemplateStats,
        GetTemplates, HealthCheck, Pricing, PricingModel, Template as Blueprint, TemplateService,
        TemplateStats, TemplateStatus, TemplateVersion, UpdateTemplate, UpdateTemplatePricing,
        UpdateTemplateStatus, UpdateTemplateVersion,
    },
    text::Slug,
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/templates", web::get().to(list))
        .route("/templates", web::post().to(create))
        .route("/templates/{slug}", web::get().to(show))
        .route("/templates/{slug}", web::post().to(change))
        .route("/templates/{slug}/status", web::post().to(set_status))
        .route("/templates/{slug}/version", web::post().to(set_version))
        .route("/templates/{slug}/pricing", web::post().to(set_pricing))
        .route("/templates/{slug}/versions", web::post().to(add_version))
        .route("/templates/{slug}/delete", web::post().to(delete));
}

/// The templates that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplatesQuery {
    query: String,
    kind: String,
    cursor: String,
}

impl TemplatesQuery {
    fn form(&self) -> Form {
        Form::search([("query", &self.query), ("kind", &self.kind), (CURSOR, &self.cursor)])
    }
}

/// What a template costs.
pub fn price(say: &Messages, template: &Blueprint) -> String {
    let pricing = &template.pricing;
    match (pricing.model, pricing.amount, &pricing.currency, &pricing.plan_code) {
        (PricingModel::Free, ..) => say.for_free(),
        (PricingModel::OneTime, Some(amount), Some(currency), _) => {
            contract::money::Amount::new(amount).map_or_else(String::new, |amount| {
                contract::money::Money { amount, currency: currency.clone() }.to_string()
            })
        }
        (PricingModel::Subscription, _, _, Some(plan)) => say.by_subscription(plan),
        _ => String::new(),
    }
}

#[derive(Template)]
#[template(path = "templates.html")]
struct TemplatesPage {
    frame: Frame,
    list: ListPart<Blueprint>,
    form: Form,
}

async fn list(visitor: Visitor, query: web::Query<TemplatesQuery>) -> PageResult {
    list_with(&visitor, query.into_inner(), Form::default()).await
}

async fn list_with(visitor: &Visitor, query: TemplatesQuery, form: Form) -> PageResult {
    let list = ListPart::read(visitor, "/templates", query.form(), |form| {
        let (query, kind, cursor) = (form.get("query")?, form.get("kind")?, form.get(CURSOR)?);
        Ok(GetTemplates { query, kind, limit: Limit::default(), cursor })
    })
    .await?;
    let frame = Frame::of(visitor, Messages::menu_templates).await?;
    let shown = if form.fault().is_some() { &form } else { &list.form };
    form_page(&shown.clone(), &TemplatesPage { frame, list, form })
}

/// The tags of a form: words.
fn tags(form: &Form) -> Result<BoundedSet<Slug, 0, 20>, Fault> {
    value::read("tags", form.value("tags").split_whitespace())
}

async fn create(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(CreateTemplate {
            name: form.get("name")?,
            slug: form.get("slug")?,
            kind: form.get("kind")?,
            description: form.get("description")?,
            category: form.get("category")?,
            tags: tags(form)?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(made) => done(&at(&made.slug), visitor.say().template_is_a_draft()),
        Err(fault) => list_with(&visitor, TemplatesQuery::default(), form.refused(fault)).await,
    }
}

fn at(slug: &Slug) -> String {
    format!("/templates/{slug}")
}

#[derive(Template)]
#[template(path = "template.html")]
struct TemplatePage {
    frame: Frame,
    template: Blueprint,
    /// The registered images, for their names.
    images: Vec<DockerImage>,
    /// How often it is used. Only administrators see it.
    stats: Option<TemplateStats>,
    form: Form,
}

impl TemplatePage {
    /// The function that makes an instance of the template.
    fn maker(&self) -> &'static str {
        match self.template.kind {
            InstanceKind::Backend => "svc_createBackendInstance",
            InstanceKind::Market => "svc_deployMarketServer",
        }
    }

    /// The instances that were made in the days that the service counts.
    fn made(stats: &TemplateStats) -> u64 {
        stats.installs_by_day.values().sum()
    }

    /// The instances of each version, in words.
    fn by_version(stats: &TemplateStats) -> String {
        let words = stats.by_version.iter().map(|(version, count)| format!("{version}: {count}"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// The image of a service, by its name and version.
    fn image(&self, service: &TemplateService) -> String {
        let found = self.images.iter().find(|image| image.id == service.image_id);
        let name =
            found.map_or_else(|| service.image_id.to_string(), |image| image.name.to_string());
        format!("{name} {}", service.image_version)
    }

    /// How the service learns whether it is healthy.
    fn health(say: &Messages, service: &TemplateService) -> String {
        match &service.health_check {
            None => say.it_runs(),
            Some(HealthCheck::Http(path)) => format!("GET {path}"),
            Some(HealthCheck::Command(words)) => {
                words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Where a service listens and what it keeps, in words.
    fn details(say: &Messages, service: &TemplateService) -> String {
        let port = service.port.map(|port| say.on_port(port));
        let volume = service.volume.as_ref().map(|folder| say.data_in(folder));
        let database = service.database.as_ref().map(|database| super::name(say, &database.engine));
        [port, volume, database].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Reads the template that an address names.
async fn read(visitor: &Visitor, path: web::Path<String>) -> Result<Blueprint, Refused> {
    let slug: Slug = super::id(path, "template")?;
    visitor.read(&GetTemplate { template_id: None, slug: Some(slug) }).await
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let template = read(&visitor, path).await?;
    show_with(&visitor, template, Form::default()).await
}

/// Shows a template with a form that was refused, or an empty one. The other forms have what is set
/// now.
async fn show_with(visitor: &Visitor, template: Blueprint, form: Form) -> PageResult {
    let frame = Frame::of(visitor, |_| template.name.to_string())
        .await?
        .below_page(Messages::menu_templates, "/templates");
    let stats = match frame.is_superadmin() {
        true => Some(visitor.read(&GetTemplateStats { template_id: template.id }).await?),
        false => None,
    };
    let images = SearchDockerImages { query: None, limit: Limit::MOST, cursor: None };
    let images = visitor.read(&images).await?.items;
    let form = form.beside(filled(&template));
    form_page(&form.clone(), &TemplatePage { frame, template, images, stats, form })
}

/// The forms of a template with what is set now.
fn filled(template: &Blueprint) -> Form {
    let words = |slugs: &[Slug]| slugs.iter().map(Slug::as_str).collect::<Vec<_>>().join(" ");
    let is_current =
        |version: &&TemplateVersion| template.current_version.as_ref() == Some(&version.version);
    let current = template.versions.iter().find(is_current);
    let services = current.map(|version| serde_json::to_string_pretty(&version.services));
    let pricing = &template.pricing;
    Form::filled([
        ("name", template.name.to_string()),
        ("slug", template.slug.to_string()),
        ("category", template.category.to_string()),
        ("description", template.description.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("tags", words(&template.tags)),
        ("status", super::wire(&template.status)),
        (
            "currentVersion",
            template.current_version.as_ref().map(ToString::to_string).unwrap_or_default(),
        ),
        ("services", services.and_then(Result::ok).unwrap_or_else(|| "[]".to_owned())),
        ("model", super::wire(&pricing.model)),
        ("amount", pricing.amount.map(|amount| amount.to_string()).unwrap_or_default()),
        ("currency", pricing.currency.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("planCode", pricing.plan_code.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("featured", if template.featured { "yes" } else { "" }.to_owned()),
    ])
}

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let template = read(&visitor, path).await?;
    let params = |form: &Form| {
        Ok(UpdateTemplate {
            template_id: template.id,
            name: form.get("name")?,
            slug: form.get("slug")?,
            description: form.get("description")?,
            category: form.get("category")?,
            tags: Some(tags(form)?),
        })
    };
    match visitor.send(&form, params).await {
        Ok(changed) => done(&at(&changed.slug), visitor.say().the_template_is_changed()),
        Err(fault) => show_with(&visitor, template, form.refused(fault)).await,
    }
}

async fn set_status(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let template = read(&visitor, path).await?;
    let params = |form: &Form| {
        Ok(UpdateTemplateStatus { template_id: template.id, status: form.get("status")? })
    };
    match visitor.send(&form, params).await {
        Ok(changed) => done(
            &at(&changed.slug),
            visitor.say().template_is(super::name(&visitor.say(), &changed.status)),
        ),
        Err(fault) => show_with(&visitor, template, form.refused(fault)).await,
    }
}

async fn set_version(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let template = read(&visitor, path).await?;
    let params = |form: &Form| {
        let version = form.get("currentVersion")?;
        Ok(UpdateTemplateVersion { template_id: template.id, version })
    };
    match visitor.send(&form, params).await {
        Ok(changed) => done(&at(&changed.slug), visitor.say().new_instances_get_this()),
        Err(fault) => {
            // The form for a new version has a field `version`.
            let form = form.refused_as(fault, &[("version", "currentVersion")]);
            show_with(&visitor, template, form).await
        }
    }
}

async fn set_pricing(visitor: Visitor, path: web::Path<String>, mut form: Form) -> PageResult {
    let template = read(&visitor, path).await?;
    let params = |form: &Form| {
        let pricing = Pricing {
            model: form.get("model")?,
            amount: form.get("amount")?,
            currency: form.get("currency")?,
            plan_code: form.get("planCode")?,
        };
        let featured = form.has("featured", "yes");
        Ok(UpdateTemplatePricing {
            template_id: template.id,
            pricing: Some(pricing),
            featured: Some(featured),
        })
    };
    match visitor.send(&form, params).await {
        Ok(changed) => done(&at(&changed.slug), visitor.say().the_price_is_set()),
        Err(fault) => {
            form.mark_unticked(&["featured"]);
            show_with(&visitor, template, form.refused(fault)).await
        }
    }
}

async fn add_version(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let template = read(&visitor, path).await?;
    let params = |form: &Form| {
        Ok(AddTemplateDockerVersion {
            template_id: template.id,
            version: form.get("version")?,
            services: form.get_json("services")?,
            notes: form.get("notes")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(&template.slug), visitor.say().the_version_is_there()),
        Err(fault) => show_with(&visitor, template, form.refused(fault)).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let template = read(&visitor, path).await?;
    let params = |form: &Form| {
        form.confirm(template.name.as_str(), "the name of the template")?;
        Ok(DeleteTemplate { template_id: template.id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/templates", visitor.say().the_template_is_deleted()),
        Err(fault) => show_with(&visitor, template, form.refused(fault)).await,
    }
}
