//! The handlers of the group Trusted publishers.

pub mod exchange;

use crate::{
    call::{authz, context::Call, platform::Platform},
    kinds::{
        delivery::trusted_publishers::{Command, Publisher, TrustedPublishers},
        people::apps::Apps,
    },
    runtime::{entries::Under, pagination},
};
use contract::{
    Fault, Page, PublisherId, Serves,
    trusted_publishers::{
        AddTrustedPublisher, GetTrustedPublishers, RemoveTrustedPublisher, RemovedTrustedPublisher,
        TrustedPublisher, usual_events,
    },
};

/// How many publishers an app may trust.
const MOST: u64 = 20;

impl Serves<AddTrustedPublisher> for Platform {
    async fn serve(&self, cx: &Call, p: AddTrustedPublisher) -> Result<TrustedPublisher, Fault> {
        let issuers = &self.settings.oidc_issuers;
        let issuer = match p.issuer {
            Some(issuer) => issuers.iter().find(|allowed| **allowed == issuer),
            None => issuers.first(),
        };
        let issuer = issuer.cloned().ok_or_else(|| {
            let allowed: Vec<_> = issuers.iter().map(|issuer| issuer.as_str()).collect();
            Fault::invalid("issuer", format!("must be one of {}", allowed.join(", ")))
        })?;
        let cx = &cx.held_to_account()?;
        let maker = cx.user()?;
        authz::check_maker(&self.world, maker, &cx.ancestry)?;
        let _turn = self.world.creation(p.app_id).await?;
        if self.world.store.count::<TrustedPublishers>(&Under::<Apps>(p.app_id))? >= MOST {
            return Err(Fault::NotNow(format!(
                "this app has {MOST} trusted publishers, which is the most; remove one with svc_removeTrustedPublisher first"
            )));
        }
        let id: PublisherId = self.world.ports.random.id(cx.now);
        let maker_epoch = maker.account.token_epoch;
        let shown = TrustedPublisher {
            id,
            app_id: p.app_id,
            issuer,
            repository: p.repository,
            workflow: p.workflow,
            environment: p.environment,
            git_ref: p.git_ref,
            events: if p.events.is_none() { usual_events() } else { p.events.into_vec() },
            repository_id: p.repository_id,
            repository_owner_id: p.repository_owner_id,
            created_by: maker.id,
            created_at: cx.now,
        };
        let publisher = Publisher { shown, maker_epoch };
        let reply = |publisher: &Publisher| Ok(publisher.shown.clone());
        cx.to::<TrustedPublishers>(id).create(publisher, reply).await
    }
}

impl Serves<GetTrustedPublishers> for Platform {
    async fn serve(
        &self,
        _: &Call,
        p: GetTrustedPublishers,
    ) -> Result<Page<TrustedPublisher>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        pagination::page::<TrustedPublishers, _>(store, &entry, (p.limit, p.cursor), |_, seen| {
            Ok(Some(seen.shown.clone()))
        })
    }
}

impl Serves<RemoveTrustedPublisher> for Platform {
    async fn serve(
        &self,
        cx: &Call,
        p: RemoveTrustedPublisher,
    ) -> Result<RemovedTrustedPublisher, Fault> {
        let reply = |publisher: &Publisher| Ok(RemovedTrustedPublisher { deleted: publisher.id });
        cx.to::<TrustedPublishers>(p.publisher_id).change(Command::Remove, reply).await
    }
}
