//! The handlers of the group Apps.

use crate::{
    call::{context::Call, platform::Platform},
    functions::{
        commerce::checkouts::unsettled::{Whole, refuse_unsettled},
        delivery::repositories::repository_of_app,
    },
    kinds::{
        commerce::{checkouts::Checkouts, subscriptions::Subscriptions},
        delivery::{
            artifacts::Artifacts, builds::Builds, credentials::Credentials, releases::Releases,
        },
        hosting::{
            backups::Backups,
            deployments::Deployments,
            instances::{Instances, instance_of_app},
        },
        people::{
            apps::{App, Apps, Command},
            projects::Projects,
            tokens::Tokens,
        },
        world::World,
    },
    runtime::{
        entries::Under,
        pagination::{self, is_meant},
    },
};
use contract::{
    AppId, BoundedSet, Fault, InstanceId, Page, Serves,
    apps::{
        self as wire, ChannelPolicy, Contents, CreateApp, DeleteApp, DeletedApp, GetApp, ListApps,
        Platform as Mobile, SetChannelPolicy, UpdateApp,
    },
    instances::InstanceKind,
    text::StoreIdentifier,
};
use std::ops::ControlFlow;
use store::Snapshot;

/// An app as its members see it.
fn view(world: &World, id: AppId, app: &App) -> Result<wire::App, Fault> {
    let store = &world.store;
    Ok(wire::App {
        id,
        project_id: app.project_id,
        name: app.name.clone(),
        platforms: app.platforms.clone(),
        bundle_id: app.ios.identifier.clone(),
        package_name: app.android.identifier.clone(),
        repository: repository_of_app(world, id)?,
        channel_policies: app.channel_policies.clone(),
        backend_instance_id: instance_of_app(store, id, InstanceKind::Backend)?,
        market_instance_id: instance_of_app(store, id, InstanceKind::Market)?,
        created_at: app.created_at,
        updated_at: app.updated_at,
    })
}

/// Adds what is deleted with an app, and the instances whose volumes are kept.
pub(crate) async fn add_contents(
    world: &World,
    app: AppId,
    sum: &mut Contents,
    kept: &mut Vec<InstanceId>,
) -> Result<(), Fault> {
    let (store, entry) = (&world.store, Under::<Apps>(app));
    sum.apps += 1;
    let mut instances = store.oldest::<Instances>(&entry, None);
    while let Some(page) = instances.next_keys().await? {
        for id in page {
            let Some(seen) = store.get::<Instances>(&id)? else { continue };
            sum.instances += u64::from(!seen.is_deleted());
            kept.extend((!seen.delete_data).then_some(id));
        }
    }
    sum.backups += store.count_all::<Backups>(&entry).await?;
    sum.deployments += store.count_all::<Deployments>(&entry).await?;
    sum.builds += store.count_all::<Builds>(&entry).await?;
    sum.artifacts += store.count_all::<Artifacts>(&entry).await?;
    sum.releases += store.count_all::<Releases>(&entry).await?;
    sum.credentials += store.count_all::<Credentials>(&entry).await?;
    sum.deploy_tokens += store.count_all::<Tokens>(&entry).await?;
    sum.checkouts += store.count_all::<Checkouts>(&entry).await?;
    sum.subscriptions += store.count_all::<Subscriptions>(&entry).await?;
    Ok(())
}

async fn change_app(cx: &Call, id: AppId, command: Command) -> Result<wire::App, Fault> {
    let world = cx.world.clone();
    let show = move |app: &App| view(&world, id, app);
    cx.to::<Apps>(id).change(command, show).await
}

/// The platforms in the order in which replies show them.
fn sorted(platforms: BoundedSet<Mobile, 1, 2>) -> Vec<Mobile> {
    let mut platforms = platforms.into_vec();
    platforms.sort();
    platforms
}

impl Serves<CreateApp> for Platform {
    async fn serve(&self, cx: &Call, p: CreateApp) -> Result<wire::App, Fault> {
        let id: AppId = self.world.ports.random.id(cx.now);
        let mut app = App::new(p.project_id, p.name.into(), cx.now);
        app.platforms = p.platforms.map_or(app.platforms, sorted);
        app.ios.identifier = p.bundle_id;
        app.android.identifier = p.package_name;
        let world = self.world.clone();
        let show = move |app: &App| view(&world, id, app);
        cx.to::<Apps>(id).create(app, show).await
    }
}

impl Serves<GetApp> for Platform {
    async fn serve(&self, cx: &Call, _: GetApp) -> Result<wire::App, Fault> {
        let (id, app) = cx.ancestry.app()?;
        view(&self.world, id, &app.state)
    }
}

impl Serves<UpdateApp> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateApp) -> Result<wire::App, Fault> {
        let id = p.app_id;
        let command = Command::Update {
            name: p.name.map(Into::into),
            platforms: p.platforms.map(sorted),
            bundle_id: p.bundle_id,
            package_name: p.package_name,
        };
        change_app(cx, id, command).await
    }
}

impl Serves<SetChannelPolicy> for Platform {
    async fn serve(&self, cx: &Call, p: SetChannelPolicy) -> Result<wire::App, Fault> {
        let SetChannelPolicy { app_id, channel, minimum_trust, signer, attested_by } = p;
        let policy = ChannelPolicy { channel, minimum_trust, signer, attested_by };
        change_app(cx, app_id, Command::SetChannelPolicy(policy)).await
    }
}

impl Serves<DeleteApp> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteApp) -> Result<DeletedApp, Fault> {
        refuse_unsettled(&self.world, Whole::App(p.app_id)).await?;
        let (mut deleted, mut kept_instances) = (Contents::default(), Vec::new());
        add_contents(&self.world, p.app_id, &mut deleted, &mut kept_instances).await?;
        let reply = DeletedApp { deleted, kept_instances };
        cx.to::<Apps>(p.app_id).change(Command::Delete, move |_| Ok(reply.clone())).await
    }
}

impl Serves<ListApps> for Platform {
    async fn serve(&self, _: &Call, p: ListApps) -> Result<Page<wire::App>, Fault> {
        let (world, entry) = (&self.world, Under::<Projects>(p.project_id));
        let store = &world.store;
        let (is_first, is_search) = (p.cursor.is_none(), p.query.is_some());
        let show = |id: AppId, seen: &Snapshot<Apps>| {
            let identifiers = [&seen.ios.identifier, &seen.android.identifier];
            let identifiers = identifiers.into_iter().flatten().map(StoreIdentifier::as_str);
            let texts: Vec<_> = identifiers.chain([seen.name.as_str()]).collect();
            let is_shown =
                !seen.is_deleted() && is_meant(p.query.as_ref(), &id.to_string(), &texts);
            let shown = is_shown.then(|| view(world, id, seen)).transpose()?;
            Ok(ControlFlow::Continue(shown))
        };
        let list = |after: Option<&AppId>| store.newest::<Apps>(&entry, after);
        let page = pagination::search(list, (p.limit, p.cursor), show)?;
        pagination::with_total(page, is_first, |most| {
            (!is_search).then(|| list(None).count_up_to(most)).transpose()
        })
    }
}
