//! The functions of the group Apps.

use super::{App, Apps, Command, machine::Identity};
use crate::{
    artifacts::Artifacts, authority::unread, call::Call, listing, platform::Platform,
    releases::Releases, runtime::resource::Kept,
};
use contract::{
    AppId, Fault, Few, Page, Serves,
    apps::{
        self as wire, AppContents, CreateApp, DeleteApp, DeletedApp, GetApp, ListApps,
        Platform as Mobile, UpdateApp,
    },
};

/// An app as its members see it.
fn view(id: AppId, app: &App) -> wire::App {
    wire::App {
        id,
        project_id: app.project_id,
        name: app.name.clone(),
        platforms: app.platforms.clone(),
        bundle_id: app.ios.identifier.clone(),
        package_name: app.android.identifier.clone(),
        backend_instance_id: None,
        market_instance_id: None,
        created_at: app.created_at,
        updated_at: app.updated_at,
    }
}

/// The platforms in the order in which they are shown.
fn sorted(platforms: Few<Mobile, 1, 2>) -> Vec<Mobile> {
    let mut platforms = platforms.into_vec();
    platforms.sort();
    platforms
}

impl Serves<CreateApp> for Platform {
    async fn serve(&self, cx: &Call, p: CreateApp) -> Result<wire::App, Fault> {
        let id: AppId = self.world.ports.random.id(cx.now);
        let app = App {
            project_id: p.project_id,
            name: p.name,
            platforms: p.platforms.map_or_else(|| vec![Mobile::Ios, Mobile::Android], sorted),
            ios: Identity { identifier: p.bundle_id, signer: None },
            android: Identity { identifier: p.package_name, signer: None },
            deleting: false,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let command = Command::Create(Box::new(app));
        cx.change(&self.world, &self.owners()?.apps, id, command, move |app| Ok(view(id, app)))
            .await
    }
}

impl Serves<GetApp> for Platform {
    async fn serve(&self, cx: &Call, _: GetApp) -> Result<wire::App, Fault> {
        let (id, app) = cx.place.app()?;
        Ok(view(id, &app.record.state))
    }
}

impl Serves<UpdateApp> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateApp) -> Result<wire::App, Fault> {
        let id = p.app_id;
        let command = Command::Update {
            name: p.name,
            platforms: p.platforms.map(sorted),
            bundle_id: p.bundle_id,
            package_name: p.package_name,
        };
        cx.change(&self.world, &self.owners()?.apps, id, command, move |app| Ok(view(id, app)))
            .await
    }
}

impl Serves<DeleteApp> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteApp) -> Result<DeletedApp, Fault> {
        let (store, entry) = (&self.world.store, format!("app/{}", p.app_id));
        let artifacts = store.count::<Kept<Artifacts>>(&entry).map_err(unread)?;
        let releases = store.count::<Kept<Releases>>(&entry).map_err(unread)?;
        let reply = DeletedApp { deleted: AppContents { artifacts, releases } };
        let owners = &self.owners()?.apps;
        cx.change(&self.world, owners, p.app_id, Command::Delete, move |_| Ok(reply.clone())).await
    }
}

impl Serves<ListApps> for Platform {
    async fn serve(&self, _: &Call, p: ListApps) -> Result<Page<wire::App>, Fault> {
        let entry = format!("project/{}", p.project_id);
        listing::page::<Apps, _>(&self.world.store, &entry, (p.limit, p.cursor), |id, seen| {
            let app = &seen.record.state;
            Ok((!app.deleting).then(|| view(id, app)))
        })
    }
}
