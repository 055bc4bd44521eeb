//! What a key sees and may do.

use super::{
    api::{AppleRequest, KeyedApi},
    documents::{self, Many, Resource},
    step::resource,
    upload::AppRecord,
};
use crate::RemoteError;
use serde_json::json;

/// An id that no resource of Apple's has.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Checks that a key sees an app, and that its role may change what a publication changes: `builds`
/// or `appStoreVersionPhasedReleases`. Returns what was found.
///
/// Apple tells the role of a key to administrators only. So this asks for a change of a resource that
/// does not exist: Apple answers 403 to a role that may not, and 404 to one that may.
pub(crate) async fn shown_to(
    api: KeyedApi<'_>,
    bundle_id: &str,
    changed: &'static str,
) -> Result<String, RemoteError> {
    let app = find_app(api, bundle_id).await?;
    let path = format!("/v1/{changed}/{NOBODY}");
    let request = AppleRequest::patch(path, resource(changed, Some(NOBODY), json!({})));
    // Any refusal but that of the role is one of the resource, which does not exist.
    let _ = api.ask(request).await?;
    let what = match changed {
        "builds" => "builds",
        _ => "releases",
    };
    Ok(format!("The key opens {} ({bundle_id}) and may change its {what}.", app.name))
}

/// Finds an app by its bundle identifier, or says why it cannot be seen.
pub(crate) async fn find_app(api: KeyedApi<'_>, bundle_id: &str) -> Result<AppRecord, RemoteError> {
    let request =
        AppleRequest::get("/v1/apps").with("filter[bundleId]", bundle_id).with("limit", "10");
    let apps: Many<documents::AppAttributes> = api.read(request).await?;
    let is_it = |app: &Resource<documents::AppAttributes>| {
        app.attributes.bundle_id.as_deref() == Some(bundle_id)
    };
    let app = apps.data.into_iter().find(is_it).ok_or_else(|| {
        RemoteError::Refused(format!(
            "App Store Connect shows this key no app {bundle_id}: create the app there, under Apps, \
             or give the key access to it."
        ))
    })?;
    Ok(AppRecord {
        id: app.id,
        name: app.attributes.name.unwrap_or_else(|| bundle_id.to_owned()),
        language: app.attributes.primary_locale.unwrap_or_else(|| "en-US".to_owned()),
    })
}
