//! The install page of a release that was published to `ota`: a QR code for phones, install
//! buttons, and the manifest that iOS fetches through `itms-services`.
//!
//! The URL contains the release's id, which nobody can guess. Everyone with the URL may install.

use super::{
    Edge,
    html::{self, escape},
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
    artifacts::{Artifact, ArtifactKind},
    releases::{Publication, PublicationState, Release, ReleaseState, Target},
};

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

fn refuse(req: &HttpRequest, edge: &Edge, fault: &Fault) -> HttpResponse {
    Heading::uncounted(req.head(), edge).fault(fault)
}

pub(super) async fn page(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if let Some(refused) = reply::too_many(req.head(), &edge) {
        return refused;
    }
    let (release, name) = match find(&edge, &req) {
        Ok(found) => found,
        Err(fault) => return refuse(&req, &edge, &fault),
    };
    let artifact = |platform| artifact_for(&edge.platform.world, &release, platform).ok().flatten();
    let html = render(&edge, &release, &name, artifact(Mobile::Ios), artifact(Mobile::Android));
    html::answer(html)
}

fn render(
    edge: &Edge,
    release: &Release,
    name: &str,
    ios: Option<Artifact>,
    android: Option<Artifact>,
) -> String {
    let now = edge.platform.world.ports.clock.now();
    let api_url = &edge.platform.settings.api_url;
    let here = format!("{api_url}/install/{}", release.id);
    let mut actions = String::new();
    if !is_offered(release) {
        actions.push_str(
            "<p class=\"note\">This release was taken back and cannot be installed any more.</p>",
        );
    } else {
        if let Some(ios) = &ios {
            let manifest =
                url::form_urlencoded::byte_serialize(format!("{here}/manifest.plist").as_bytes())
                    .collect::<String>();
            let link = format!("itms-services://?action=download-manifest&amp;url={manifest}");
            actions.push_str(&button(&link, "Install on iPhone or iPad", ios));
            if !api_url.starts_with("https://") {
                actions.push_str("<p class=\"note\">iOS installs only from an https address; this service has none.</p>");
            }
        }
        if let Some(android) = &android {
            let url = escape(&download_url(&edge.platform, android.id, now).url);
            let label = if android.kind == ArtifactKind::Aab {
                "Download the app bundle"
            } else {
                "Install on Android"
            };
            actions.push_str(&button(&url, label, android));
        }
    }
    let notes = release
        .notes
        .as_ref()
        .map(|notes| format!("<pre>{}</pre>", escape(notes.as_str())))
        .unwrap_or_default();
    let (name, version, channel) =
        (escape(name), escape(release.version.as_str()), escape(release.channel.as_str()));
    let code = qr(&here);
    html::page(
        &format!("{name} {version}"),
        None,
        &format!(
            "<h1>{name}</h1><p class=\"version\">{version} <span>{channel}</span></p>{actions}{notes}\
             <figure>{code}<figcaption>Open this page on your phone</figcaption></figure>"
        ),
    )
}

fn button(link: &str, label: &str, artifact: &Artifact) -> String {
    let size = size(artifact.size.unwrap_or(0));
    let sha256 = artifact.sha256.as_ref().map(ToString::to_string).unwrap_or_default();
    format!(
        "<a class=\"button\" href=\"{link}\">{label}</a><p class=\"facts\">{} · {size} · SHA-256 {sha256}</p>",
        escape(artifact.file_name.as_str())
    )
}

fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1_048_576.0 => format!("{:.0} KiB", (bytes / 1024.0).ceil()),
        bytes => format!("{:.1} MiB", bytes / 1_048_576.0),
    }
}

/// The URL as a QR code, in SVG.
fn qr(address: &str) -> String {
    let code = fast_qr::QRBuilder::new(address).build();
    code.map(|code| fast_qr::convert::svg::SvgBuilder::default().to_str(&code)).unwrap_or_default()
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
        Err(fault) => refuse(&req, &edge, &fault),
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
