//! The handlers of the group Container images.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        hosting::images::{Command, ImageClaim, ImageIndex, Images, has_version},
        world::World,
    },
    runtime::{pagination, ref_count::RefCount},
};
use container_engine::EngineError;
use contract::{
    Fault, ImageId, Page, Serves,
    images::{
        AddDockerImageVersion, DeleteDockerImage, DeletedDockerImage, DeprecateDockerImageVersion,
        DockerImage, DockerImageVersion, GetDockerImage, ImageVersionState, RegisterDockerImage,
        SearchDockerImages, UpdateDockerImage,
    },
    text::ImageDigest,
};
use store::Snapshot;

/// The fault for a reference that the registry could not resolve.
fn unresolved(field: &str, reference: &str, e: EngineError) -> Fault {
    match e {
        EngineError::NoImage { why, .. }
        | EngineError::Refused(why)
        | EngineError::Missing(why) => {
            Fault::invalid(field, format!("the registry has no {reference}: {why}"))
        }
        e @ (EngineError::Unreachable(_) | EngineError::Exposed(_) | EngineError::Conflict(_)) => {
            tracing::warn!(reference, error = %e, "a reference was not resolved");
            Fault::Unavailable("the container engine or the registry")
        }
    }
}

fn image(world: &World, id: ImageId) -> Result<Snapshot<Images>, Fault> {
    let found = world.store.get::<Images>(&id)?;
    found.ok_or(Fault::NotFound("image"))
}

async fn change_image(cx: &Call, id: ImageId, command: Command) -> Result<DockerImage, Fault> {
    let advisories = cx.world.ports.advisories.clone();
    cx.to::<Images>(id).change(command, move |image| Ok(advisories.show(image))).await
}

impl Serves<SearchDockerImages> for Platform {
    async fn serve(&self, _: &Call, p: SearchDockerImages) -> Result<Page<DockerImage>, Fault> {
        let query = p.query.map(|query| query.as_str().to_lowercase());
        let (store, list, is_filtered) = (&self.world.store, (p.limit, p.cursor), query.is_some());
        pagination::counted::<Images, _>(store, &ImageIndex::All, list, is_filtered, |_, seen| {
            let image = &seen.state;
            let described = image.description.as_ref().map_or("", |text| text.as_str());
            let texts = [image.name.as_str(), image.repository.as_str(), described];
            let wanted = query.as_ref().is_none_or(|query| {
                texts.iter().any(|text| text.to_lowercase().contains(query.as_str()))
            });
            Ok(wanted.then(|| self.world.ports.advisories.show(image)))
        })
    }
}

impl Serves<GetDockerImage> for Platform {
    async fn serve(&self, _: &Call, p: GetDockerImage) -> Result<DockerImage, Fault> {
        let id = match (p.image_id, p.name) {
            (Some(id), None) => id,
            (None, Some(name)) => {
                let id = self.world.store.holder(&ImageClaim::Name { name })?;
                id.ok_or(Fault::NotFound("image"))?
            }
            _ => return Err(Fault::invalid("imageId", "give exactly one of imageId and name")),
        };
        Ok(self.world.ports.advisories.show(&image(&self.world, id)?.state))
    }
}

impl Serves<RegisterDockerImage> for Platform {
    async fn serve(&self, cx: &Call, p: RegisterDockerImage) -> Result<DockerImage, Fault> {
        let id: ImageId = self.world.ports.random.id(cx.now);
        let image = DockerImage {
            id,
            name: p.name,
            repository: p.repository,
            description: p.description,
            versions: Vec::new(),
            created_at: cx.now,
            updated_at: cx.now,
        };
        cx.to::<Images>(id).create(image, |image| Ok(image.clone())).await
    }
}

impl Serves<UpdateDockerImage> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateDockerImage) -> Result<DockerImage, Fault> {
        let command =
            Command::Update { name: p.name, repository: p.repository, description: p.description };
        change_image(cx, p.image_id, command).await
    }
}

impl Serves<DeleteDockerImage> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteDockerImage) -> Result<DeletedDockerImage, Fault> {
        let id = p.image_id;
        image(&self.world, id)?;
        if self.world.store.get::<RefCount>(&id.to_string())?.is_some() {
            return Err(Fault::NotNow(
                "template versions use this image; delete their templates first, or deprecate its versions".into(),
            ));
        }
        let reply = DeletedDockerImage { deleted: id };
        cx.to::<Images>(id).change(Command::Delete, move |_| Ok(reply.clone())).await
    }
}

impl Serves<AddDockerImageVersion> for Platform {
    async fn serve(&self, cx: &Call, p: AddDockerImageVersion) -> Result<DockerImage, Fault> {
        let seen = image(&self.world, p.image_id)?;
        let image = &seen.state;
        if image.versions.iter().any(|known| known.version == p.version) {
            return Err(has_version(image, &p.version));
        }
        let registries = &self.world.ports.registries;
        let (tag, asked) = match (p.tag, &p.digest) {
            (None, Some(digest)) => (None, registries.by_digest(&image.repository, digest)),
            (tag, _) => {
                let of_version = || p.version.as_str().parse();
                let tag = tag.map_or_else(of_version, Ok).map_err(|problem: String| {
                    let why = "the version is no tag, so give one, or a digest";
                    Fault::invalid("tag", format!("{why}; a tag {problem}"))
                })?;
                let asked = registries.by_tag(&image.repository, &tag);
                (Some(tag), asked)
            }
        };
        let login = registries.login(&asked);
        let found = self.world.hosts.own().engine.resolve(&asked, login).await;
        let field = if tag.is_some() { "tag" } else { "digest" };
        let found = found.map_err(|e| unresolved(field, &asked, e))?;
        let digest: ImageDigest = found.parse().map_err(|_| Fault::Internal)?;
        if let Some(declared) = p.digest.filter(|declared| *declared != digest) {
            return Err(Fault::invalid(
                "digest",
                format!("{asked} points at {digest}, not at {declared}"),
            ));
        }
        let version = DockerImageVersion {
            version: p.version,
            tag,
            digest: Some(digest),
            recipe: None,
            state: ImageVersionState::Active,
            deprecation_reason: None,
            advisories: Vec::new(),
            created_at: cx.now,
        };
        change_image(cx, p.image_id, Command::AddVersion(Box::new(version))).await
    }
}

impl Serves<DeprecateDockerImageVersion> for Platform {
    async fn serve(&self, cx: &Call, p: DeprecateDockerImageVersion) -> Result<DockerImage, Fault> {
        change_image(cx, p.image_id, Command::Deprecate(p.version, p.reason)).await
    }
}
