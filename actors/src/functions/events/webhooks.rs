//! The handlers of the group Webhooks that are about webhooks.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        events::webhooks::{Command, Webhook, Webhooks, signature::Secret},
        people::organizations::Organizations,
        world::World,
    },
    ports::sealed::Sealed,
    runtime::{entries::Under, pagination},
};
use contract::{
    BoundedSet, Fault, Page, Patch, Serves, WebUrl, WebhookId,
    webhooks::{
        self as wire, CreateWebhook, DeleteWebhook, DeletedWebhook, GetWebhook, GetWebhooks,
        RotateWebhookSecret, UpdateWebhook, WebhookWithSecret,
    },
};

/// How many webhooks an organization may have.
const MOST: u64 = 20;

pub(crate) fn view(id: WebhookId, webhook: &Webhook) -> wire::Webhook {
    wire::Webhook {
        id,
        organization_id: webhook.organization_id,
        url: webhook.url.clone(),
        description: webhook.description.clone(),
        events: webhook.events.clone(),
        enabled: webhook.enabled,
        disabled_reason: webhook.disabled_reason.clone(),
        failing_since: webhook.failing_since,
        previous_secret_until: webhook.previous_secret.as_ref().map(|previous| previous.until),
        created_by: webhook.created_by,
        created_at: webhook.created_at,
        updated_at: webhook.updated_at,
    }
}

/// A new secret of a webhook, and the same sealed.
fn new_secret(world: &World, id: WebhookId) -> Result<(Secret, Sealed), Fault> {
    let ports = &world.ports;
    let secret = Secret::new(&ports.random).map_err(|_| Fault::Internal)?;
    let sealed = ports.sealer.seal(&id.to_string(), secret.reveal());
    Ok((secret, sealed.map_err(|_| Fault::Internal)?))
}

fn check_receiver(world: &World, url: &WebUrl) -> Result<(), Fault> {
    world.ports.receivers.check(url).map_err(|why| Fault::invalid("url", why))
}

impl Serves<CreateWebhook> for Platform {
    async fn serve(&self, cx: &Call, p: CreateWebhook) -> Result<WebhookWithSecret, Fault> {
        check_receiver(&self.world, &p.url)?;
        let cx = &cx.held_to_account()?;
        let of_organization = Under::<Organizations>(p.organization_id);
        let _turn = self.world.creation(p.organization_id).await?;
        if self.world.store.count::<Webhooks>(&of_organization)? >= MOST {
            return Err(Fault::NotNow(format!(
                "this organization has {MOST} webhooks, which is the most; delete one with svc_deleteWebhook first"
            )));
        }
        let id: WebhookId = self.world.ports.random.id(cx.now);
        let (secret, sealed) = new_secret(&self.world, id)?;
        let maker = cx.caller.user.as_ref();
        let webhook = Webhook {
            organization_id: p.organization_id,
            url: p.url,
            description: p.description,
            events: p.events.map(BoundedSet::into_vec),
            enabled: true,
            disabled_reason: None,
            failing_since: None,
            secret: sealed,
            previous_secret: None,
            created_by: maker.map(|maker| maker.id),
            maker_epoch: maker.map_or(0, |maker| maker.account.token_epoch),
            created_at: cx.now,
            updated_at: cx.now,
        };
        let secret = secret.reveal().to_owned();
        self.world.webhooks.add(p.organization_id, id);
        cx.to::<Webhooks>(id)
            .create(webhook, move |webhook| {
                Ok(WebhookWithSecret { webhook: view(id, webhook), secret: secret.clone() })
            })
            .await
    }
}

impl Serves<GetWebhooks> for Platform {
    async fn serve(&self, _: &Call, p: GetWebhooks) -> Result<Page<wire::Webhook>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Organizations>(p.organization_id));
        pagination::page::<Webhooks, _>(store, &entry, (p.limit, p.cursor), |id, seen| {
            Ok((!seen.is_deleted()).then(|| view(id, &seen.state)))
        })
    }
}

impl Serves<GetWebhook> for Platform {
    async fn serve(&self, cx: &Call, _: GetWebhook) -> Result<wire::Webhook, Fault> {
        let (id, seen) = cx.ancestry.webhook()?;
        Ok(view(id, &seen.state))
    }
}

impl Serves<UpdateWebhook> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateWebhook) -> Result<wire::Webhook, Fault> {
        if let Some(url) = &p.url {
            check_receiver(&self.world, url)?;
        }
        let events = match p.events {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(events) => Patch::Set(events.into_vec()),
        };
        let id = p.webhook_id;
        let UpdateWebhook { url, description, enabled, .. } = p;
        let update = Command::Update { url, events, description, enabled };
        cx.to::<Webhooks>(id).change(update, move |webhook| Ok(view(id, webhook))).await
    }
}

impl Serves<DeleteWebhook> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteWebhook) -> Result<DeletedWebhook, Fault> {
        let id = p.webhook_id;
        let reply = move |_: &Webhook| Ok(DeletedWebhook { deleted: id });
        cx.to::<Webhooks>(id).change(Command::Delete, reply).await
    }
}

impl Serves<RotateWebhookSecret> for Platform {
    async fn serve(&self, cx: &Call, p: RotateWebhookSecret) -> Result<WebhookWithSecret, Fault> {
        let id = p.webhook_id;
        let (secret, sealed) = new_secret(&self.world, id)?;
        let secret = secret.reveal().to_owned();
        let reply = move |webhook: &Webhook| {
            Ok(WebhookWithSecret { webhook: view(id, webhook), secret: secret.clone() })
        };
        cx.to::<Webhooks>(id).change(Command::Rotate(sealed), reply).await
    }
}
