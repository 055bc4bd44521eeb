//! Webhooks of organizations, and their deliveries.

use super::tab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{Note, PageResult, Refused, done, form_page, page},
    tone::Tone,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    DeliveryId, Limit, OrganizationId, WebhookId,
    organizations::{GetOrganization, ListOrganizations, Organization},
    webhooks::{
        CreateWebhook, DeleteWebhook, EventType, GetWebhook, GetWebhookDeliveries,
        GetWebhookDelivery, GetWebhooks, RedeliverWebhook, RotateWebhookSecret, TestWebhook,
        UpdateWebhook, Webhook, WebhookDelivery, WebhookWithSecret,
    },
};
use messages::{Messages, Sentence};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/account/webhooks", web::get().to(organizations))
        .route("/organizations/{id}/webhooks", web::get().to(list))
        .route("/organizations/{id}/webhooks", web::post().to(create))
        .route("/webhooks/{id}", web::get().to(show))
        .route("/webhooks/{id}", web::post().to(change))
        .route("/webhooks/{id}/test", web::post().to(test))
        .route("/webhooks/{id}/rotate", web::post().to(rotate))
        .route("/webhooks/{id}/delete", web::post().to(delete))
        .route("/deliveries/{id}", web::get().to(delivery))
        .route("/deliveries/{id}/redeliver", web::post().to(redeliver));
}

/// The organizations, each with a link to its webhooks.
#[derive(Template)]
#[template(path = "webhooks_all.html")]
struct OrganizationWebhooksPage {
    frame: Frame,
    list: ListPart<Organization>,
}

async fn organizations(visitor: Visitor, query: web::Query<ListQuery>) -> PageResult {
    let list = ListPart::read(&visitor, "/account/webhooks", query.form(), |form| {
        let cursor = form.get(CURSOR)?;
        Ok(ListOrganizations { query: None, limit: Limit::default(), cursor })
    })
    .await?;
    page(&OrganizationWebhooksPage { frame: tab(&visitor, "/webhooks").await?, list })
}

/// All event types, for the boxes of a form.
fn events() -> &'static [EventType] {
    EventType::ALL
}

/// The state of a webhook in a word.
fn state(say: &Messages, webhook: &Webhook) -> (Tone, String) {
    match (webhook.enabled, webhook.failing_since) {
        (false, _) => (Tone::Idle, say.disabled()),
        (true, Some(_)) => (Tone::Bad, say.failing()),
        (true, None) => (Tone::Good, say.enabled()),
    }
}

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    organization: Organization,
    list: ListPart<Webhook>,
    form: Form,
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    let organization_id = crate::pages::id(path, "organization")?;
    list_with(&visitor, organization_id, Form::default(), &query).await
}

async fn list_with(
    visitor: &Visitor,
    organization_id: OrganizationId,
    form: Form,
    query: &ListQuery,
) -> PageResult {
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let at = format!("/organizations/{organization_id}/webhooks");
    let list = ListPart::read(visitor, &at, query.form(), |form| {
        Ok(GetWebhooks { organization_id, limit: Limit::default(), cursor: form.get(CURSOR)? })
    })
    .await?;
    let frame = Frame::of(visitor, Messages::webhooks)
        .await?
        .below_page(Messages::menu_organizations, "/organizations");
    let frame = frame.below(&organization.name, format!("/organizations/{organization_id}"));
    form_page(&form.clone(), &WebhooksPage { frame, organization, list, form })
}

/// The frame of a page below the webhooks of an organization.
async fn below_organization(
    visitor: &Visitor,
    title: Sentence,
    organization_id: OrganizationId,
) -> Result<Frame, Refused> {
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let at = format!("/organizations/{organization_id}");
    let frame =
        Frame::of(visitor, title).await?.below_page(Messages::menu_organizations, "/organizations");
    Ok(frame
        .below(&organization.name, &at)
        .below_page(Messages::webhooks, format!("{at}/webhooks")))
}

/// The page after a secret was made: the only one that shows it.
#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct WebhookSecretPage {
    frame: Frame,
    made: WebhookWithSecret,
}

async fn with_secret(visitor: &Visitor, made: WebhookWithSecret) -> PageResult {
    page(&WebhookSecretPage {
        frame: Frame::of(visitor, Messages::secret_of_the_webhook).await?,
        made,
    })
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let organization_id: OrganizationId = crate::pages::id(path, "organization")?;
    let params = |form: &Form| {
        Ok(CreateWebhook {
            organization_id,
            url: form.get("url")?,
            events: form.get("events")?,
            description: form.get("description")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(made) => with_secret(&visitor, made).await,
        Err(fault) => {
            list_with(&visitor, organization_id, form.refused(fault), &ListQuery::default()).await
        }
    }
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    frame: Frame,
    webhook: Webhook,
    list: ListPart<WebhookDelivery>,
    form: Form,
}

/// A form with the present settings.
fn filled(webhook: &Webhook) -> Form {
    let text = |name: &str, value: String| (name.to_owned(), value);
    let description = webhook.description.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut fields = vec![text("url", webhook.url.to_string()), text("description", description)];
    if webhook.enabled {
        fields.push(text("enabled", "yes".into()));
    }
    let events = webhook.events.iter().flatten();
    fields.extend(events.map(|event| text("events", event.name().into())));
    Form::new(fields)
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    let webhook_id = crate::pages::id(path, "webhook")?;
    show_with(&visitor, webhook_id, Form::default(), &query).await
}

/// Shows a webhook with a form that was refused, or an empty one. Fields that it does not have say what
/// is set now.
async fn show_with(
    visitor: &Visitor,
    webhook_id: WebhookId,
    form: Form,
    query: &ListQuery,
) -> PageResult {
    let webhook = visitor.read(&GetWebhook { webhook_id }).await?;
    let form = form.beside(filled(&webhook));
    let at = format!("/webhooks/{webhook_id}");
    let list = ListPart::read(visitor, &at, query.form(), |form| {
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(GetWebhookDeliveries { webhook_id, state: None, limit, cursor })
    })
    .await?;
    let frame = below_organization(visitor, Messages::webhook, webhook.organization_id).await?;
    form_page(&form.clone(), &WebhookPage { frame, webhook, list, form })
}

async fn change(visitor: Visitor, path: web::Path<String>, mut form: Form) -> PageResult {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    let params = |form: &Form| {
        Ok(UpdateWebhook {
            webhook_id,
            url: Some(form.get("url")?),
            events: form.get("events")?,
            description: form.get("description")?,
            enabled: Some(form.has("enabled", "yes")),
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&format!("/webhooks/{webhook_id}"), visitor.say().the_webhook_is_changed()),
        Err(fault) => {
            form.mark_unticked(&["enabled", "events"]);
            show_with(&visitor, webhook_id, form.refused(fault), &ListQuery::default()).await
        }
    }
}

async fn test(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    match visitor.send(&form, |_| Ok(TestWebhook { webhook_id })).await {
        Ok(delivery) => done(
            &format!("/deliveries/{}", delivery.id),
            Note::plain(visitor.say().test_is_on_its_way()),
        ),
        Err(fault) => {
            show_with(&visitor, webhook_id, form.refused(fault), &ListQuery::default()).await
        }
    }
}

async fn rotate(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    match visitor.send(&form, |_| Ok(RotateWebhookSecret { webhook_id })).await {
        Ok(made) => with_secret(&visitor, made).await,
        Err(fault) => {
            show_with(&visitor, webhook_id, form.refused(fault), &ListQuery::default()).await
        }
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    let webhook = visitor.read(&GetWebhook { webhook_id }).await?;
    let params = |form: &Form| {
        form.confirm(webhook.url.as_str(), "the address of the webhook")?;
        Ok(DeleteWebhook { webhook_id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(
            &format!("/organizations/{}/webhooks", webhook.organization_id),
            visitor.say().the_webhook_is_deleted(),
        ),
        Err(fault) => {
            show_with(&visitor, webhook_id, form.refused(fault), &ListQuery::default()).await
        }
    }
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    frame: Frame,
    delivery: WebhookDelivery,
    form: Form,
}

async fn delivery(visitor: Visitor, path: web::Path<String>) -> PageResult {
    delivery_with(&visitor, crate::pages::id(path, "delivery")?, Form::default()).await
}

async fn delivery_with(visitor: &Visitor, delivery_id: DeliveryId, form: Form) -> PageResult {
    let delivery = visitor.read(&GetWebhookDelivery { delivery_id }).await?;
    let webhook = visitor.read(&GetWebhook { webhook_id: delivery.webhook_id }).await?;
    let frame = below_organization(visitor, Messages::delivery, webhook.organization_id).await?;
    let frame = frame.below_page(Messages::webhook, format!("/webhooks/{}", delivery.webhook_id));
    form_page(&form.clone(), &DeliveryPage { frame, delivery, form })
}

async fn redeliver(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let delivery_id = crate::pages::id(path, "delivery")?;
    match visitor.send(&form, |_| Ok(RedeliverWebhook { delivery_id })).await {
        Ok(again) => done(
            &format!("/deliveries/{}", again.id),
            Note::plain(visitor.say().event_is_on_its_way()),
        ),
        Err(fault) => delivery_with(&visitor, delivery_id, form.refused(fault)).await,
    }
}
