//! Webhooks of organizations, and their deliveries.

use super::tab;
use crate::{
    answer::{Answer, Frame, Note, done, form_page, page},
    form::Form,
    list::List,
    pages::Part,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, OrganizationId, WebhookId,
    organizations::{GetOrganization, ListOrganizations, Organization},
    webhooks::{
        CreateWebhook, DeleteWebhook, EventType, GetWebhook, GetWebhookDeliveries,
        GetWebhookDelivery, GetWebhooks, RedeliverWebhook, RotateWebhookSecret, TestWebhook,
        UpdateWebhook, Webhook, WebhookDelivery, WebhookWithSecret,
    },
};
use serde_json::{Value, json};

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
struct Organizations {
    frame: Frame,
    list: List<Organization>,
}

async fn organizations(visitor: Visitor, part: web::Query<Part>) -> Answer {
    let (at, fields) = ("/account/webhooks", part.fields());
    let list = List::read::<ListOrganizations>(&visitor, at, json!({}), &fields).await?;
    page(&Organizations { frame: tab(&visitor, "/webhooks").await?, list })
}

/// All event types, for the boxes of a form.
fn events() -> &'static [EventType] {
    EventType::ALL
}

/// The state of a webhook in a word.
fn state(webhook: &Webhook) -> &'static str {
    match (webhook.enabled, webhook.failing_since) {
        (false, _) => "disabled",
        (true, Some(_)) => "failing",
        (true, None) => "enabled",
    }
}

#[derive(Template)]
#[template(path = "webhooks.html")]
struct Webhooks {
    frame: Frame,
    organization: Organization,
    list: List<Webhook>,
    form: Form,
}

async fn list(visitor: Visitor, path: web::Path<String>, part: web::Query<Part>) -> Answer {
    let organization_id = crate::pages::id(path, "organization")?;
    list_with(&visitor, organization_id, Form::default(), &part).await
}

async fn list_with(
    visitor: &Visitor,
    organization_id: OrganizationId,
    form: Form,
    part: &Part,
) -> Answer {
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let at = format!("/organizations/{organization_id}/webhooks");
    let of = json!({"organizationId": organization_id});
    let list = List::read::<GetWebhooks>(visitor, &at, of, &part.fields()).await?;
    let frame = Frame::of(visitor, "Webhooks").await?.below("Organizations", "/organizations");
    let frame = frame.below(&organization.name, format!("/organizations/{organization_id}"));
    form_page(&form.clone(), &Webhooks { frame, organization, list, form })
}

/// The page after a secret was made: the only one that shows it.
#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct Secret {
    frame: Frame,
    made: WebhookWithSecret,
}

async fn with_secret(visitor: &Visitor, made: WebhookWithSecret) -> Answer {
    page(&Secret { frame: Frame::of(visitor, "Secret of the webhook").await?, made })
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let organization_id: OrganizationId = crate::pages::id(path, "organization")?;
    let mut params = form.params(&["url", "description"]);
    params.insert("organizationId".into(), json!(organization_id));
    let wanted = form.values("events");
    if !wanted.is_empty() {
        params.insert("events".into(), wanted.into());
    }
    match visitor.send::<CreateWebhook>(&Value::Object(params), form.key()).await {
        Ok(made) => with_secret(&visitor, made).await,
        Err(fault) => {
            list_with(&visitor, organization_id, form.refused(fault), &Part::default()).await
        }
    }
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct Show {
    frame: Frame,
    webhook: Webhook,
    list: List<WebhookDelivery>,
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

async fn show(visitor: Visitor, path: web::Path<String>, part: web::Query<Part>) -> Answer {
    let webhook_id = crate::pages::id(path, "webhook")?;
    show_with(&visitor, webhook_id, Form::default(), &part).await
}

/// Shows a webhook with a form that was refused, or an empty one. Fields that it does not have say what
/// is set now.
async fn show_with(visitor: &Visitor, webhook_id: WebhookId, form: Form, part: &Part) -> Answer {
    let webhook = visitor.read(&GetWebhook { webhook_id }).await?;
    let form = form.beside(filled(&webhook));
    let (at, fields) = (format!("/webhooks/{webhook_id}"), part.fields());
    let list = List::read::<GetWebhookDeliveries>(visitor, &at, of(webhook_id), &fields).await?;
    let frame = Frame::of(visitor, "Webhook").await?.below("Organizations", "/organizations");
    let at = format!("/organizations/{}/webhooks", webhook.organization_id);
    let frame = frame.below("Webhooks", at);
    form_page(&form.clone(), &Show { frame, webhook, list, form })
}

async fn change(visitor: Visitor, path: web::Path<String>, mut form: Form) -> Answer {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    let events = form.values("events");
    let description = Some(form.value("description")).filter(|text| !text.is_empty());
    let params = json!({
        "webhookId": webhook_id,
        "url": form.value("url"),
        "description": description,
        "enabled": form.has("enabled", "yes"),
        "events": (!events.is_empty()).then_some(events),
    });
    match visitor.send::<UpdateWebhook>(&params, form.key()).await {
        Ok(_) => done(&format!("/webhooks/{webhook_id}"), "The webhook is changed."),
        Err(fault) => {
            form.say_boxes(&["enabled", "events"]);
            show_with(&visitor, webhook_id, form.refused(fault), &Part::default()).await
        }
    }
}

/// The id alone, which is all that the functions of the buttons need.
fn of(webhook_id: WebhookId) -> Value {
    json!({"webhookId": webhook_id})
}

async fn test(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    match visitor.send::<TestWebhook>(&of(webhook_id), form.key()).await {
        Ok(delivery) => {
            done(&format!("/deliveries/{}", delivery.id), Note::plain("The test is on its way."))
        }
        Err(fault) => show_with(&visitor, webhook_id, form.refused(fault), &Part::default()).await,
    }
}

async fn rotate(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    match visitor.send::<RotateWebhookSecret>(&of(webhook_id), form.key()).await {
        Ok(made) => with_secret(&visitor, made).await,
        Err(fault) => show_with(&visitor, webhook_id, form.refused(fault), &Part::default()).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let webhook_id: WebhookId = crate::pages::id(path, "webhook")?;
    let webhook = visitor.read(&GetWebhook { webhook_id }).await?;
    if form.value("confirmation") != webhook.url.as_str() {
        let fault = Fault::invalid("confirmation", "is not the address of the webhook");
        return show_with(&visitor, webhook_id, form.refused(fault), &Part::default()).await;
    }
    match visitor.send::<DeleteWebhook>(&of(webhook_id), form.key()).await {
        Ok(_) => done(
            &format!("/organizations/{}/webhooks", webhook.organization_id),
            "The webhook is deleted.",
        ),
        Err(fault) => show_with(&visitor, webhook_id, form.refused(fault), &Part::default()).await,
    }
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct Delivery {
    frame: Frame,
    delivery: WebhookDelivery,
    form: Form,
}

async fn delivery(visitor: Visitor, path: web::Path<String>) -> Answer {
    delivery_with(&visitor, path, Form::default()).await
}

async fn delivery_with(visitor: &Visitor, path: web::Path<String>, form: Form) -> Answer {
    let delivery_id = crate::pages::id(path, "delivery")?;
    let delivery = visitor.read(&GetWebhookDelivery { delivery_id }).await?;
    let frame = Frame::of(visitor, "Delivery").await?;
    let frame = frame.below("Webhook", format!("/webhooks/{}", delivery.webhook_id));
    form_page(&form.clone(), &Delivery { frame, delivery, form })
}

async fn redeliver(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let params = json!({"deliveryId": path.as_str()});
    match visitor.send::<RedeliverWebhook>(&params, form.key()).await {
        Ok(again) => done(
            &format!("/deliveries/{}", again.id),
            Note::plain("The event is on its way again."),
        ),
        Err(fault) => delivery_with(&visitor, path, form.refused(fault)).await,
    }
}
