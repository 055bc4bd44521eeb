//! Deployments of folders: where their archives are sent, which folders a service takes, and what
//! cloud code is built upon.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::artifacts::address::{self, Use},
        hosting::instances::Service,
        world::World,
    },
};
use contract::{
    AppId, Fault, Serves, Sha256,
    deployments::{DeploymentSource, FolderSource},
    endpoint::sources::{CreateSourceUrl, MAX_ARCHIVE, SourceUrl},
    env::Env,
};
use repository::folder::FolderKind;
use std::time::Duration;

/// How long an archive may be sent to its address.
const OPEN_FOR: Duration = Duration::from_secs(3600);
/// Every Parse Server has this variable.
const PARSE_SERVER: &str = "PARSE_SERVER_APPLICATION_ID";
/// The variable that names the cloud code. Images that are built here set it.
const CLOUD_CODE: &str = "PARSE_SERVER_CLOUD";

/// What a signed address says of an archive.
pub fn signed_object(app: AppId, sha256: &Sha256) -> String {
    format!("{app}/{sha256}")
}

impl Serves<CreateSourceUrl> for Platform {
    async fn serve(&self, cx: &Call, p: CreateSourceUrl) -> Result<SourceUrl, Fault> {
        if p.body.size > MAX_ARCHIVE {
            return Err(Fault::TooLarge { limit: MAX_ARCHIVE });
        }
        let (app, sha256, expires_at) = (p.app_id, &p.body.sha256, cx.now + OPEN_FOR);
        if folder_kind(&self.world, app, sha256).await?.is_some() {
            return Ok(SourceUrl { upload_url: None, expires_at });
        }
        let (key, api_url) = (&self.settings.signing_key, &self.settings.api_url);
        let object = signed_object(app, sha256);
        let url = address::sign(key, api_url, Use::Source, object, expires_at);
        Ok(SourceUrl { upload_url: Some(url), expires_at })
    }
}

async fn folder_kind(
    world: &World,
    app: AppId,
    sha256: &Sha256,
) -> Result<Option<FolderKind>, Fault> {
    let found = world.ports.folders.renew(app, sha256).await;
    found.map_err(|e| {
        tracing::error!(error = %e, "the archives of folders cannot be read");
        Fault::Unavailable("the disk of sent folders")
    })
}

/// Refuses a folder that was not sent, or that this service cannot run.
pub(super) async fn check_folder(
    world: &World,
    app: AppId,
    (folder, source): (&FolderSource, &DeploymentSource),
    service: &Service,
    env: Option<&Env>,
) -> Result<(), Fault> {
    let kind = folder_kind(world, app, &folder.sha256).await?.ok_or_else(|| {
        Fault::NotNow(
            "this folder is not here: send it first (POST /api/v1/apps/{appId}/sources), or run \
             `svc deploy`"
                .into(),
        )
    })?;
    if kind == FolderKind::Dockerfile {
        return Ok(());
    }
    if let Some(field) = source.of_a_dockerfile() {
        return Err(Fault::invalid(field, "needs a Dockerfile in the folder, which reads it"));
    }
    let template = service.live.template();
    let of_template = template.env.keys().chain(template.default_env.keys());
    let of_template: Vec<&str> = of_template.map(|name| name.as_str()).collect();
    if !of_template.contains(&PARSE_SERVER) {
        return Err(Fault::NotNow(format!(
            "cloud code needs a Parse Server, and the template of this service sets no \
             {PARSE_SERVER}; put a Dockerfile into the folder"
        )));
    }
    let is_set = match env {
        Some(env) => env.keys().any(|name| name.as_str() == CLOUD_CODE),
        None => service.live.env.keys().any(|name| name.as_str() == CLOUD_CODE),
    };
    if is_set || of_template.contains(&CLOUD_CODE) {
        return Err(Fault::NotNow(format!(
            "the variable {CLOUD_CODE} of this service names other cloud code, so that of the \
             folder would not run; remove the variable"
        )));
    }
    Ok(())
}
