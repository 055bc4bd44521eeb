//! The container images of templates and deployments, for superadmins. [`builds`] has their builds.

mod builds;

use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{PageResult, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    ImageId, Limit, Page,
    image_builds::{BuildJob, BuildRepository, BuildSource, ListBuildJobs, TriggerDockerBuild},
    images::{
        AddDockerImageVersion, DeleteDockerImage, DeprecateDockerImageVersion, DockerImage,
        DockerImageVersion, GetDockerImage, ImageVersionState, RegisterDockerImage,
        SearchDockerImages, UpdateDockerImage,
    },
};
use messages::Messages;
use serde::Deserialize;

const HERE: &str = "/operations/images";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(list))
        .route(HERE, web::post().to(register))
        .route("/operations/images/{id}", web::get().to(show))
        .route("/operations/images/{id}", web::post().to(change))
        .route("/operations/images/{id}/versions", web::post().to(add_version))
        .route("/operations/images/{id}/deprecate", web::post().to(deprecate))
        .route("/operations/images/{id}/build", web::post().to(build))
        .route("/operations/images/{id}/delete", web::post().to(delete));
    builds::configure(app);
}

fn at(image: ImageId) -> String {
    format!("{HERE}/{image}")
}

/// The images that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ImagesQuery {
    query: String,
    cursor: String,
}

#[derive(Template)]
#[template(path = "images.html")]
struct ImagesPage {
    frame: Frame,
    list: ListPart<DockerImage>,
    form: Form,
}

async fn list(visitor: Visitor, query: web::Query<ImagesQuery>) -> PageResult {
    list_with(&visitor, query.into_inner(), Form::default()).await
}

async fn list_with(visitor: &Visitor, query: ImagesQuery, form: Form) -> PageResult {
    let search = Form::search([("query", &query.query), (CURSOR, &query.cursor)]);
    let list = ListPart::read(visitor, HERE, search, |form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(SearchDockerImages { query, limit: Limit::default(), cursor })
    })
    .await?;
    let frame = super::operations::tab(visitor, "/images").await?;
    let shown = if form.fault().is_some() { &form } else { &list.form };
    form_page(&shown.clone(), &ImagesPage { frame, list, form })
}

async fn register(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(RegisterDockerImage {
            name: form.get("name")?,
            repository: form.get("repository")?,
            description: form.get("description")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(image) => done(&at(image.id), visitor.say().image_is_registered()),
        Err(fault) => list_with(&visitor, ImagesQuery::default(), form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "image.html")]
struct ImagePage {
    frame: Frame,
    image: DockerImage,
    builds: Page<BuildJob>,
    form: Form,
}

impl ImagePage {
    /// The versions that something new may use.
    fn active(&self) -> impl Iterator<Item = &DockerImageVersion> {
        let is_active = |version: &&DockerImageVersion| version.state == ImageVersionState::Active;
        self.image.versions.iter().filter(is_active)
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::id(path, "image")?, Form::default()).await
}

/// Shows an image with a form that was refused, or an empty one. The other forms have what is set
/// now.
async fn show_with(visitor: &Visitor, image_id: ImageId, form: Form) -> PageResult {
    let image = visitor.read(&GetDockerImage { image_id: Some(image_id), name: None }).await?;
    let builds = ListBuildJobs {
        image_id: Some(image_id),
        state: None,
        limit: Limit::default(),
        cursor: None,
    };
    let builds = visitor.read(&builds).await?;
    let frame = Frame::of(visitor, |_| image.name.to_string()).await?;
    let frame = frame
        .below_page(Messages::menu_operations, "/operations")
        .below_page(Messages::images, HERE);
    let form = form.beside(filled(&image));
    form_page(&form.clone(), &ImagePage { frame, image, builds, form })
}

/// The forms of an image with what is set now.
fn filled(image: &DockerImage) -> Form {
    Form::filled([
        ("name", image.name.to_string()),
        ("repository", image.repository.to_string()),
        ("description", image.description.as_ref().map(ToString::to_string).unwrap_or_default()),
    ])
}

/// The fields of a build as the service names them, and as the page does. Another form of the page has
/// a version too.
const OF_A_BUILD: [(&str, &str); 5] = [
    ("version", "newVersion"),
    ("source.git.url", "url"),
    ("source.git.ref", "ref"),
    ("source.dockerfile", "dockerfile"),
    ("source.buildArgs", "buildArgs"),
];

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let image_id: ImageId = super::id(path, "image")?;
    let params = |form: &Form| {
        Ok(UpdateDockerImage {
            image_id,
            name: form.get("name")?,
            repository: form.get("repository")?,
            description: form.get("description")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(image_id), visitor.say().the_image_is_changed()),
        Err(fault) => show_with(&visitor, image_id, form.refused(fault)).await,
    }
}

async fn add_version(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let image_id: ImageId = super::id(path, "image")?;
    let params = |form: &Form| {
        Ok(AddDockerImageVersion {
            image_id,
            version: form.get("version")?,
            tag: form.get("tag")?,
            digest: form.get("digest")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(image_id), visitor.say().version_has_its_digest()),
        Err(fault) => show_with(&visitor, image_id, form.refused(fault)).await,
    }
}

async fn deprecate(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let image_id: ImageId = super::id(path, "image")?;
    let params = |form: &Form| {
        let (version, reason) = (form.get("deprecated")?, form.get("reason")?);
        Ok(DeprecateDockerImageVersion { image_id, version, reason })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(image_id), visitor.say().nothing_new_gets_this()),
        Err(fault) => {
            let form = form.refused_as(fault, &[("version", "deprecated")]);
            show_with(&visitor, image_id, form).await
        }
    }
}

async fn build(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let image_id: ImageId = super::id(path, "image")?;
    let params = |form: &Form| {
        let git =
            BuildRepository { url: form.get("url")?, git_ref: form.get("ref")?, dockerfile: None };
        let (dockerfile, build_args) = (form.get("dockerfile")?, form.get("buildArgs")?);
        let source = BuildSource { git, dockerfile, build_args };
        Ok(TriggerDockerBuild { image_id, version: form.get("newVersion")?, source })
    };
    match visitor.send(&form, params).await {
        Ok(job) => done(
            &format!("/operations/image-builds/{}", job.id),
            visitor.say().the_build_is_queued(),
        ),
        Err(fault) => show_with(&visitor, image_id, form.refused_as(fault, &OF_A_BUILD)).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let image_id: ImageId = super::id(path, "image")?;
    let image = visitor.read(&GetDockerImage { image_id: Some(image_id), name: None }).await?;
    let params = |form: &Form| {
        form.confirm(image.name.as_str(), "the name of the image")?;
        Ok(DeleteDockerImage { image_id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(HERE, visitor.say().the_image_is_deleted()),
        Err(fault) => show_with(&visitor, image_id, form.refused(fault)).await,
    }
}
