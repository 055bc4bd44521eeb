//! The install page of a release that was published to `ota`: a QR code for phones, install
//! buttons, and the manifest that iOS fetches through `itms-services`.
//!
//! The URL contains the release's id, which nobody can guess. Everyone with the URL may install.

use super::{
    Edge, html,
    reply::{self, Heading},
};
use actix_web::{HttpRequest, HttpResponse, http::header, web};
use actors::{
    call::lookup::check_reachable,
    functions::delivery::{artifacts::download_url, releases::artifact_for},
    kinds::{delivery::releases::Releases, people::apps::Apps},
};
use contract::{
    AppId, Fault, ReleaseId,
    apps::Platform as Mobile,
    artifacts::Artifact,
    releases::{Publication, PublicationState, Release, ReleaseState, Target},
};
use dashboard::public::{InstallFile, InstallPage, messages_of, qr_code};
use messages::Messages;

/// Finds a release that was published to `ota`, and the name of its app.
fn find(edge: &Edge, req: &HttpRequest) -> Result<(Release, String), Fault> {
    let none = || Fault::NotFound("release to install");
    let id = req.match_info().get("releaseId").and_then(|id| id.parse().ok());
    let id: ReleaseId = id.ok_or_else(none)?;
    let store = &edge.platform.world.store;
    let seen = store.get::<Releases>(&id).ok().flatten().ok_or_else(none)?;
    let release = seen.state.release.clone();
    let offered = |p: &Publication| {
        p.target == Target::Ota
            && matches!(p.state, PublicationState::Live | PublicationState::Halted)
    };
    if !release.publications.iter().any(offered) {
        return Err(none());
    }
    check_reachable(&edge.platform.world, release.app_id).map_err(|_| none())?;
    Ok((release.clone(), app_name(edge, release.app_id)))
}

fn app_name(edge: &Edge, id: AppId) -> String {
    let app = edge.platform.world.store.get::<Apps>(&id).ok().flatten();
    app.map(|app| app.state.name.to_string()).unwrap_or_default()
}

/// Whether people may still install the release.
fn is_offered(release: &Release) -> bool {
    matches!(
        release.state,
        ReleaseState::Published
            | ReleaseState::PartiallyPublished
            | ReleaseState::Publishing
            | ReleaseState::Superseded
    )
}

pub(super) async fn page(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if let Some(refused) = reply::too_many(req.head(), &edge) {
        return refused;
    }
    let (release, name) = match find(&edge, &req) {
        Ok(found) => found,
        Err(fault) => return html::refuse(&req, &edge, &fault),
    };
    let artifact = |platform| artifact_for(&edge.platform.world, &release, platform).ok().flatten();
    html::answer(&render(
        &edge,
        messages_of(req.headers()),
        &release,
        name,
        [Mobile::Ios, Mobile::Android].into_iter().filter_map(artifact),
    ))
}

fn render(
    edge: &Edge,
    messages: Messages,
    release: &Release,
    name: String,
    artifacts: impl Iterator<Item = Artifact>,
) -> InstallPage {
    let now = edge.platform.world.ports.clock.now();
    let api_url = &edge.platform.settings.api_url;
    let here = format!("{api_url}/install/{}", release.id);
    let address = |artifact: &Artifact| match artifact.platform {
        Mobile::Ios => {
            let manifest = format!("{here}/manifest.plist");
            let manifest: String =
                url::form_urlencoded::byte_serialize(manifest.as_bytes()).collect();
            format!("itms-services://?action=download-manifest&url={manifest}")
        }
        Mobile::Android => download_url(&edge.platform, artifact.id, now).url,
    };
    let file = |artifact: Artifact| InstallFile {
        kind: artifact.kind,
        address: address(&artifact),
        name: artifact.file_name.to_string(),
        size: artifact.size.unwrap_or_default(),
        sha256: artifact.sha256.map(|hash| hash.to_string()).unwrap_or_default(),
        profile: artifact.profile,
    };
    InstallPage {
        messages,
        title: format!("{name} {}", release.version),
        name,
        version: release.version.to_string(),
        now,
        channel: release.channel.to_string(),
        published_at: release.published_at,
        notes: release.notes.as_ref().map(ToString::to_string),
        files: artifacts.filter(|_| is_offered(release)).map(file).collect(),
        needs_https: !api_url.starts_with("https://"),
        code: qr_code(&here),
    }
}

/// The manifest that iOS fetches before it installs.
pub(super) async fn manifest(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if let Some(refused) = reply::too_many(req.head(), &edge) {
        return refused;
    }
    let made = find(&edge, &req).and_then(|(release, name)| {
        let ios = artifact_for(&edge.platform.world, &release, Mobile::Ios)?;
        let ios =
            ios.filter(|_| is_offered(&release)).ok_or(Fault::NotFound("release to install"))?;
        manifest_of(&edge, &release, &name, &ios)
    });
    match made {
        Ok(xml) => HttpResponse::Ok()
            .content_type("text/xml")
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body(xml),
        Err(fault) => Heading::uncounted(req.head(), &edge).fault(&fault),
    }
}

fn manifest_of(
    edge: &Edge,
    release: &Release,
    name: &str,
    ios: &Artifact,
) -> Result<Vec<u8>, Fault> {
    use plist::{Dictionary, Value};
    let text = |s: &str| Value::String(s.to_owned());
    let dictionary = |entries: Vec<(&str, Value)>| {
        Value::Dictionary(
            entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Dictionary>(),
        )
    };
    let url = download_url(&edge.platform, ios.id, edge.platform.world.ports.clock.now()).url;
    let identifier = ios.identifier.as_ref().map(ToString::to_string).unwrap_or_default();
    let asset = dictionary(vec![("kind", text("software-package")), ("url", text(&url))]);
    let metadata = dictionary(vec![
        ("bundle-identifier", text(&identifier)),
        ("bundle-version", text(release.version.as_str())),
        ("kind", text("software")),
        ("title", text(name)),
    ]);
    let item = dictionary(vec![("assets", Value::Array(vec![asset])), ("metadata", metadata)]);
    let manifest = dictionary(vec![("items", Value::Array(vec![item]))]);
    let mut xml = Vec::new();
    manifest.to_writer_xml(&mut xml).map_err(|_| Fault::Internal)?;
    Ok(xml)
}
