//! `svc webhook`: addresses that get the events of an organization.

use crate::{
    Context,
    args::WebhookCommand as Command,
    client::Client,
    failure::Failure,
    lists,
    printer::{Fields, Table, cell, moment, word},
};
use contract::{
    DeliveryId, OrganizationId, Patch, WebhookId,
    page::Limit,
    webhooks::{
        CreateWebhook, DeleteWebhook, DeliveryAttempt, DeliveryState, EventType, GetWebhook,
        GetWebhookDeliveries, GetWebhookDelivery, GetWebhooks, RedeliverWebhook,
        RotateWebhookSecret, TestWebhook, UpdateWebhook, Webhook, WebhookDelivery,
        WebhookWithSecret,
    },
};
use std::{thread, time::Duration};

/// The pause before a delivery that has not ended is read again. A test has one attempt, which ends
/// within 15 seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub fn webhook(cx: &Context<'_>, command: Command) -> Result<(), Failure> {
    let client = cx.client()?;
    match command {
        Command::Create { url, organization, event, description } => {
            let events = match event.is_empty() {
                true => None,
                false => Some(Failure::list("--event", event)?),
            };
            let organization_id = organization;
            let made = client.call(&CreateWebhook { organization_id, url, events, description })?;
            with_secret(cx, &made)?;
            cx.printer.note(format_args!("next: svc webhook test {}", made.webhook.id));
            Ok(())
        }
        Command::List { organization, all } => list(cx, &client, organization, all),
        Command::Show { webhook } => {
            cx.printer.reply(&client.call(&GetWebhook { webhook_id: webhook })?, fields)
        }
        Command::Update { webhook, url, event, all_events, description, enable, disable } => {
            let events = match (all_events, event.is_empty()) {
                (true, _) => Patch::Clear,
                (false, true) => Patch::Keep,
                (false, false) => Patch::Set(Failure::list("--event", event)?),
            };
            let updated = client.call(&UpdateWebhook {
                webhook_id: webhook,
                url,
                events,
                description: description.map_or(Patch::Keep, Patch::Set),
                enabled: (enable || disable).then_some(enable),
            })?;
            cx.printer.reply(&updated, fields)
        }
        Command::Delete { webhook } => {
            let deleted = client.call(&DeleteWebhook { webhook_id: webhook })?;
            cx.printer.reply(&deleted, |deleted| format!("{} is deleted", deleted.deleted))
        }
        Command::Rotate { webhook } => {
            with_secret(cx, &client.call(&RotateWebhookSecret { webhook_id: webhook })?)
        }
        Command::Test { webhook } => test(cx, &client, webhook),
        Command::Deliveries { webhook: Some(webhook), state, all, .. } => {
            deliveries(cx, &client, (webhook, state), all)
        }
        Command::Deliveries { delivery: Some(delivery), .. } => cx
            .printer
            .reply(&client.call(&GetWebhookDelivery { delivery_id: delivery })?, delivery_fields),
        Command::Deliveries { .. } => Ok(()),
        Command::Redeliver { delivery } => {
            let again = client.call(&RedeliverWebhook { delivery_id: delivery })?;
            cx.printer.reply(&again, delivery_fields)?;
            cx.printer.note(format_args!("next: svc webhook deliveries --delivery {}", again.id));
            Ok(())
        }
    }
}

fn list(
    cx: &Context<'_>,
    client: &Client,
    organization_id: OrganizationId,
    all: bool,
) -> Result<(), Failure> {
    let limit = Limit::default();
    let webhooks = client.list(all, |cursor| GetWebhooks { organization_id, limit, cursor })?;
    lists::print(cx, &webhooks, |webhooks| {
        let table = Table::new(["ID", "URL", "EVENTS", "STATE", "CREATED"]);
        webhooks.iter().fold(table, |table, webhook| {
            table.row([
                webhook.id.to_string(),
                webhook.url.to_string(),
                events(webhook),
                state(webhook).to_owned(),
                moment(webhook.created_at),
            ])
        })
    })
}

fn with_secret(cx: &Context<'_>, made: &WebhookWithSecret) -> Result<(), Failure> {
    cx.printer.reply(made, |made| fields(&made.webhook).with("secret", &made.secret))?;
    cx.printer.note("keep the secret now: it is not shown again");
    Ok(())
}

/// Sends a test event, and fails if the receiver does not accept it.
fn test(cx: &Context<'_>, client: &Client, webhook_id: WebhookId) -> Result<(), Failure> {
    let mut delivery = client.call(&TestWebhook { webhook_id })?;
    while delivery.state == DeliveryState::Pending {
        thread::sleep(LOOK_EVERY);
        delivery = client.call(&GetWebhookDelivery { delivery_id: delivery.id })?;
    }
    cx.printer.reply(&delivery, delivery_fields)?;
    if delivery.state == DeliveryState::Succeeded {
        return Ok(());
    }
    let why = delivery.attempts.last().and_then(|attempt| attempt.error.clone());
    let why = why.or(delivery.error).unwrap_or_default();
    Err(Failure::told(
        format!("the receiver did not accept the test: {why}"),
        "mend the receiver, or change its address with `svc webhook update`".to_owned(),
    ))
}

fn deliveries(
    cx: &Context<'_>,
    client: &Client,
    (webhook_id, state): (WebhookId, Option<DeliveryState>),
    all: bool,
) -> Result<(), Failure> {
    let limit = Limit::default();
    let deliveries =
        client.list(all, |cursor| GetWebhookDeliveries { webhook_id, state, limit, cursor })?;
    lists::print(cx, &deliveries, |deliveries| {
        let table = Table::new(["ID", "EVENT", "STATE", "ATTEMPTS", "LAST", "NEXT", "CREATED"]);
        deliveries.iter().fold(table, |table, delivery| {
            table.row([
                delivery.id.to_string(),
                delivery.event.to_string(),
                word(&delivery.state),
                delivery.attempts.len().to_string(),
                cell(delivery.attempts.last().map(outcome)),
                cell(delivery.next_attempt_at.map(moment)),
                moment(delivery.created_at),
            ])
        })
    })
}

/// The status of an attempt, or why there is none.
fn outcome(attempt: &DeliveryAttempt) -> String {
    let status = attempt.status.map(|status| status.to_string());
    status.or(attempt.error.clone()).unwrap_or_default()
}

fn events(webhook: &Webhook) -> String {
    let names = |events: &Vec<EventType>| {
        events.iter().map(|event| event.name()).collect::<Vec<_>>().join(",")
    };
    webhook.events.as_ref().map_or("all".to_owned(), names)
}

fn state(webhook: &Webhook) -> &'static str {
    match (webhook.enabled, webhook.failing_since) {
        (false, _) => "disabled",
        (true, Some(_)) => "failing",
        (true, None) => "enabled",
    }
}

fn fields(webhook: &Webhook) -> Fields {
    Fields::new()
        .with("id", webhook.id)
        .with("url", &webhook.url)
        .with_some("description", webhook.description.as_ref())
        .with("events", events(webhook))
        .with("state", state(webhook))
        .with_some("reason", webhook.disabled_reason.as_ref())
        .with_some("failing since", webhook.failing_since.map(moment))
        .with_some("previous secret until", webhook.previous_secret_until.map(moment))
}

fn delivery_fields(delivery: &WebhookDelivery) -> Fields {
    let fields = Fields::new()
        .with("id", delivery.id)
        .with("message", delivery.message_id)
        .with("event", delivery.event)
        .with("state", word(&delivery.state))
        .with_some("error", delivery.error.as_ref())
        .with_some("repeats", delivery.redelivery_of.map(|id: DeliveryId| id.to_string()))
        .with_some("next attempt", delivery.next_attempt_at.map(moment));
    delivery.attempts.iter().fold(fields, |fields, attempt| {
        fields.with(
            &moment(attempt.at),
            format!("{} after {} ms", outcome(attempt), attempt.duration_ms),
        )
    })
}
