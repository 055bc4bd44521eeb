//! What a key may do.

use super::{
    api::{Request, Session},
    step::resource,
    upload::find_app,
};
use crate::StoreError;
use serde_json::json;

/// An id that no resource of Apple's has.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Checks that a key sees an app, and that its role may change what a publication changes: `builds`
/// or `appStoreVersionPhasedReleases`. Returns what was found.
///
/// Apple tells the role of a key to administrators only. So this asks for a change of a resource that
/// does not exist: Apple answers 403 to a role that may not, and 404 to one that may.
pub(crate) async fn shown_to(
    session: Session<'_>,
    bundle_id: &str,
    changed: &'static str,
) -> Result<String, StoreError> {
    let app = find_app(session, bundle_id).await?;
    let path = format!("/v1/{changed}/{NOBODY}");
    let request = Request::patch(path, resource(changed, Some(NOBODY), json!({})));
    // Any refusal but that of the role is one of the resource, which does not exist.
    let _ = session.ask(request).await?;
    let what = match changed {
        "builds" => "builds",
        _ => "releases",
    };
    Ok(format!("The key opens {} ({bundle_id}) and may change its {what}.", app.name))
}
