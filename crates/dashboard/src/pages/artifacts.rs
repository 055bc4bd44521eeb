//! The artifacts of an app, and uploads.

use super::{ListQuery, apps::AppTab, releases::new::Offer, start};
use crate::{
    arriving::in_time,
    form::{Form, value},
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_multipart::Multipart;
use actix_web::{HttpResponse, http::header, web};
use askama::Template;
use bytes::Bytes;
use contract::{
    AppId, ArtifactId, Fault, Limit, Operation, Sha256,
    artifacts::{
        Artifact, ArtifactKind, ArtifactState, DeleteArtifact, GetArtifact, GetArtifactDownloadUrl,
        GetArtifacts, ProvenancePath,
    },
    endpoint::{
        CreateUploadUrl, DeclaredProvenance, FinalizeArtifact, FinalizeRequest, UploadUrl,
        UploadUrlRequest,
    },
};
use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use messages::Messages;
use serde_json::json;
use sha2::Digest;
use std::{cell::RefCell, rc::Rc};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/artifacts", web::get().to(list))
        .route("/apps/{id}/artifacts", web::post().to(upload))
        .route("/apps/{id}/artifacts/open", web::post().to(open))
        .route("/artifacts/{id}", web::get().to(show))
        .route("/artifacts/{id}/finalize", web::post().to(finalize))
        .route("/artifacts/{id}/download", web::get().to(download))
        .route("/artifacts/{id}/delete", web::post().to(delete));
}

#[derive(Template)]
#[template(path = "artifacts.html")]
struct ArtifactsPage {
    frame: Frame,
    tab: AppTab,
    list: ListPart<Artifact>,
    form: Form,
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    let app_id = super::id(path, "app")?;
    list_with(&visitor, app_id, &query, Form::default()).await
}

async fn list_with(visitor: &Visitor, app_id: AppId, query: &ListQuery, form: Form) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/artifacts").await?;
    let at = format!("/apps/{app_id}/artifacts");
    let list = ListPart::read(visitor, &at, query.form(), |form| {
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(GetArtifacts { app_id, platform: None, version: None, state: None, limit, cursor })
    })
    .await?;
    form_page(&form.clone(), &ArtifactsPage { frame, tab, list, form })
}

/// The app that a file is for.
#[derive(Clone, Copy)]
pub enum Destination {
    App(AppId),
    /// One that is made for the file, and is called like it.
    New,
}

impl Destination {
    async fn app(self, visitor: &Visitor, file_name: &str, form: &Form) -> Result<AppId, Fault> {
        kind_of(file_name)?;
        match self {
            Destination::App(app_id) => Ok(app_id),
            Destination::New => start::app_for(visitor, file_name, form.key()).await,
        }
    }

    /// The page with the form, which was refused.
    async fn again(self, visitor: &Visitor, form: Form) -> PageResult {
        match self {
            Destination::App(app_id) => {
                list_with(visitor, app_id, &ListQuery::default(), form).await
            }
            Destination::New => start::again(visitor, form).await,
        }
    }
}

async fn upload(visitor: Visitor, path: web::Path<String>, parts: Multipart) -> PageResult {
    take(visitor, Destination::App(super::id(path, "app")?), parts).await
}

/// Takes a file from a form, without scripts. Its bytes go on to the service while they come, and are
/// hashed on their way.
pub async fn take(visitor: Visitor, to: Destination, mut parts: Multipart) -> PageResult {
    visitor.user().await?;
    let mut form = Form::default();
    let mut left = MOST_TEXT;
    let malformed = |_| Refused(Fault::Malformed("this is not a form with a file".into()));
    while let Some(part) = in_time(visitor.request(), async { Ok(parts.next().await) }).await? {
        let mut part = part.map_err(malformed)?;
        let name = part.name().unwrap_or_default().to_owned();
        if name != "file" {
            let value = in_time(visitor.request(), async { Ok(part.bytes(left).await) }).await?;
            let value = value.map_err(|_| too_long())?.map_err(malformed)?;
            left = left.checked_sub(value.len() + name.len()).ok_or_else(too_long)?;
            form.push(name, String::from_utf8_lossy(&value).into_owned());
            continue;
        }
        form.check(visitor.request())?;
        let disposition = part.content_disposition();
        let file_name = disposition.and_then(|d| d.get_filename()).unwrap_or_default().to_owned();
        let file = part.map(|bytes| {
            bytes.map_err(|_| Fault::Malformed("the file did not arrive whole".into()))
        });
        let app_id = match to.app(&visitor, &file_name, &form).await {
            Ok(app_id) => app_id,
            Err(fault) => return to.again(&visitor, form.refused(fault)).await,
        };
        return match receive(&visitor, app_id, &file_name, file).await {
            Ok(artifact) => done(
                &format!("/artifacts/{}", artifact.id),
                visitor.say().the_artifact_is_verified(),
            ),
            Err(fault) => {
                list_with(&visitor, app_id, &ListQuery::default(), form.refused(fault)).await
            }
        };
    }
    Err(Refused(Fault::Malformed("the form has no file: choose one".into())))
}

/// The most bytes of all fields beside the file, with their names.
const MOST_TEXT: usize = 4096;

fn too_long() -> Refused {
    Refused(Fault::Malformed("the fields of this form are too long".into()))
}

async fn receive(
    visitor: &Visitor,
    app_id: AppId,
    file_name: &str,
    file: impl futures_util::Stream<Item = Result<Bytes, Fault>> + 'static,
) -> Result<Artifact, Fault> {
    let opened = open_upload(visitor, app_id, file_name, None).await?;
    let Some(address) = opened.upload_url else { return Err(Fault::Internal) };
    let hashed = Rc::new(RefCell::new((sha2::Sha256::new(), 0_u64)));
    let counted = {
        let hashed = hashed.clone();
        file.inspect(move |bytes| {
            if let Ok(bytes) = bytes {
                let mut hashed = hashed.borrow_mut();
                hashed.0.update(bytes);
                hashed.1 += bytes.len() as u64;
            }
        })
    };
    visitor.upload(&address, counted.boxed_local()).await?;
    let (hasher, size) = hashed.replace((sha2::Sha256::new(), 0));
    let hash: Sha256 = HEXLOWER.encode(&hasher.finalize()).parse().map_err(|_| Fault::Internal)?;
    verify(visitor, opened.artifact_id, FinalizeRequest::of(hash, Some(size))).await
}

fn kind_of(file_name: &str) -> Result<ArtifactKind, Fault> {
    let kind = ArtifactKind::of_file_name(file_name);
    kind.ok_or_else(|| Fault::invalid("file", "choose an .apk, .aab or .ipa"))
}

/// Opens an upload. With size and hash, the service goes on with an open one of the same bytes.
async fn open_upload(
    visitor: &Visitor,
    app_id: AppId,
    file_name: &str,
    known: Option<(u64, Sha256)>,
) -> Result<UploadUrl, Fault> {
    let kind = kind_of(file_name)?;
    let (size, sha256) = known.unzip();
    let request = UploadUrlRequest {
        app_id,
        platform: kind.platform(),
        file_name: value::read("fileName", [file_name])?,
        version: None,
        size,
        sha256,
        build_number: None,
        profile: None,
        provenance: Some(DeclaredProvenance {
            path: ProvenancePath::ManualUpload,
            repository: None,
            commit: None,
            git_ref: None,
            run_url: None,
        }),
        build: None,
    };
    visitor.call_endpoint(CreateUploadUrl::NAME, Vec::new(), &request).await
}

async fn verify(
    visitor: &Visitor,
    id: ArtifactId,
    request: FinalizeRequest,
) -> Result<Artifact, Fault> {
    visitor.call_endpoint(FinalizeArtifact::NAME, vec![id.to_string()], &request).await
}

/// Opens an upload of a file whose size and hash a form has.
async fn open_known(visitor: &Visitor, app_id: AppId, form: &Form) -> Result<UploadUrl, Fault> {
    let known = (form.get("size")?, form.get("sha256")?);
    open_upload(visitor, app_id, form.value("fileName"), Some(known)).await
}

/// Opens an upload for a script, which sends the bytes in parts itself. The response is JSON.
async fn open(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    open_at(&visitor, Destination::App(super::id(path, "app")?), form).await
}

/// See [`open`].
pub async fn open_at(visitor: &Visitor, to: Destination, form: Form) -> PageResult {
    let opened = match to.app(visitor, form.value("fileName"), &form).await {
        Ok(app_id) => open_known(visitor, app_id, &form).await,
        Err(fault) => Err(fault),
    };
    Ok(match opened {
        Ok(opened) => HttpResponse::Ok().json(opened),
        Err(fault) => failure(&fault),
    })
}

/// Verifies what a script sent. The response is JSON.
async fn finalize(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let id: ArtifactId = super::id(path, "artifact")?;
    let hash = form.get("sha256")?;
    Ok(match verify(&visitor, id, FinalizeRequest::of(hash, None)).await {
        Ok(artifact) => HttpResponse::Ok().json(artifact),
        Err(fault) => failure(&fault),
    })
}

fn failure(fault: &Fault) -> HttpResponse {
    let status = actix_web::http::StatusCode::from_u16(fault.status()).unwrap_or_default();
    HttpResponse::build(status).json(json!({"error": fault.to_string()}))
}

#[derive(Template)]
#[template(path = "artifact.html")]
struct ArtifactPage {
    frame: Frame,
    artifact: Artifact,
    /// How it is released. `None`: it is not verified.
    offer: Option<Offer>,
    form: Form,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::id(path, "artifact")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, artifact_id: ArtifactId, form: Form) -> PageResult {
    let artifact = visitor.read(&GetArtifact { artifact_id }).await?;
    let (frame, app) =
        Frame::in_app(visitor, |_| artifact.file_name.to_string(), artifact.app_id).await?;
    let frame = frame.below_page(Messages::artifacts, format!("/apps/{}/artifacts", app.id));
    let offer = match artifact.state {
        ArtifactState::Verified => Offer::of(visitor, &artifact).await?,
        _ => None,
    };
    form_page(&form.clone(), &ArtifactPage { frame, artifact, offer, form })
}

async fn download(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let artifact_id = super::id(path, "artifact")?;
    let found = visitor.read(&GetArtifactDownloadUrl { artifact_id }).await?;
    Ok(HttpResponse::SeeOther().insert_header((header::LOCATION, found.url)).finish())
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let artifact_id: ArtifactId = super::id(path, "artifact")?;
    let artifact = visitor.read(&GetArtifact { artifact_id }).await?;
    let params = |form: &Form| {
        form.confirm(artifact.file_name.as_str(), "the name of the file")?;
        Ok(DeleteArtifact { artifact_id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(
            &format!("/apps/{}/artifacts", artifact.app_id),
            visitor.say().the_artifact_is_deleted(),
        ),
        Err(fault) => show_with(&visitor, artifact_id, form.refused(fault)).await,
    }
}

/// The verified artifacts of an app, newest first, to make releases of.
pub async fn verified(visitor: &Visitor, app_id: AppId) -> Result<Vec<Artifact>, Refused> {
    let all = GetArtifacts {
        app_id,
        platform: None,
        version: None,
        state: Some(ArtifactState::Verified),
        limit: Limit::default(),
        cursor: None,
    };
    Ok(visitor.read(&all).await?.items)
}
