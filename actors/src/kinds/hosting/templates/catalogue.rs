//! The images and templates that come with the service. The service registers each of them once,
//! when it starts, and leaves later changes of an administrator alone. A template version never
//! changes: the catalogue adds another one, which becomes current unless an administrator chose one.

use super::{Command, TemplateClaim, Templates};
use crate::{
    kinds::{
        hosting::images::{self, ImageClaim, Images},
        world::World,
    },
    ports::{
        advisories::{Advisories, KnownAdvisory},
        recipes,
    },
    runtime::side_record::{End, SideRecord},
};
use contract::{
    Description, Fault, ImageId, Name, TemplateId, VersionName,
    images::{DockerImage, DockerImageVersion, ImageVersionState},
    instances::InstanceKind,
    templates::{
        Pricing, SemanticVersion, Template, TemplateService, TemplateStatus, TemplateVersion,
    },
    text::{ImageDigest, ImageRepository, ImageTag, Slug},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use store::Change;

/// The catalogue file. Services name their image by `image` instead of `imageId`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    images: Vec<ShippedImage>,
    templates: Vec<ShippedTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShippedImage {
    name: Slug,
    source: ImageSource,
    description: Description,
    versions: Vec<ShippedVersion>,
    #[serde(default)]
    advisories: Vec<KnownAdvisory>,
}

/// Where the versions of an image come from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ImageSource {
    /// They are pulled from this repository.
    Repository(ImageRepository),
    /// They are built from this recipe.
    Recipe(Slug),
}

impl ImageSource {
    fn repository(&self) -> Result<ImageRepository, Fault> {
        match self {
            ImageSource::Repository(repository) => Ok(repository.clone()),
            ImageSource::Recipe(recipe) => {
                recipes::repository(recipe).parse().map_err(|_| Fault::Internal)
            }
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShippedVersion {
    version: VersionName,
    tag: ImageTag,
    /// The digest of the tag when the catalogue was written. Then the version is pulled by it,
    /// wherever the tag points.
    #[serde(default)]
    digest: Option<ImageDigest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShippedTemplate {
    slug: Slug,
    name: Name,
    kind: InstanceKind,
    description: Description,
    category: Slug,
    tags: Vec<Slug>,
    featured: bool,
    versions: Vec<ShippedTemplateVersion>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShippedTemplateVersion {
    version: SemanticVersion,
    /// The versions that earlier catalogues had in its place.
    #[serde(default)]
    replaces: Vec<SemanticVersion>,
    services: Vec<Value>,
}

/// Marks an image or template as registered, so that a deleted one is not registered again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shipped {}

impl SideRecord for Shipped {
    fn end(&self) -> End {
        End::Never
    }
}

/// Marks `name` as registered.
async fn mark(world: &World, name: &str) -> Result<(), Fault> {
    let name = name.to_owned();
    if world.store.get::<Shipped>(&name)?.is_some() {
        return Ok(());
    }
    world.store.commit(Change::new().create::<Shipped>(&name, Shipped {})).await
}

impl Catalogue {
    pub fn read(json: &str) -> Result<Catalogue, String> {
        serde_json::from_str(json).map_err(|e| format!("the catalogue cannot be read: {e}"))
    }

    /// The advisories of the images.
    pub fn advisories(&self) -> Advisories {
        let of_image = |image: &ShippedImage| {
            let repository = image.source.repository().ok()?;
            (!image.advisories.is_empty()).then(|| (repository, image.advisories.clone()))
        };
        Advisories::new(self.images.iter().filter_map(of_image))
    }

    /// Registers images, templates and versions that are missing and were not deleted.
    pub async fn register(&self, world: &World) -> Result<(), String> {
        let mut ids = BTreeMap::new();
        for image in &self.images {
            let id = image.register(world).await.map_err(|e| format!("{}: {e}", image.name))?;
            ids.extend(id.map(|id| (image.name.as_str(), id)));
        }
        for template in &self.templates {
            template.register(world, &ids).await.map_err(|e| format!("{}: {e}", template.slug))?;
        }
        Ok(())
    }
}

impl ShippedImage {
    /// Registers the image. `None`: an administrator deleted it.
    async fn register(&self, world: &World) -> Result<Option<ImageId>, Fault> {
        let now = world.ports.clock.now();
        let known = world.store.holder(&ImageClaim::Name { name: self.name.clone() })?;
        let id = match known {
            Some(id) => id,
            None if world.store.get::<Shipped>(&self.name.to_string())?.is_some() => {
                return Ok(None);
            }
            None => {
                let id: ImageId = world.ports.random.id(now);
                let repository = self.source.repository()?;
                let image = DockerImage {
                    id,
                    name: self.name.clone(),
                    repository,
                    description: Some(self.description.clone()),
                    versions: Vec::new(),
                    created_at: now,
                    updated_at: now,
                };
                world.to::<Images>(id).create(image).await?;
                id
            }
        };
        let recipe = match &self.source {
            ImageSource::Repository(_) => None,
            ImageSource::Recipe(recipe) => Some(recipe.clone()),
        };
        for shipped in &self.versions {
            let version = DockerImageVersion {
                recipe: recipe.clone(),
                version: shipped.version.clone(),
                tag: Some(shipped.tag.clone()),
                digest: shipped.digest.clone(),
                state: ImageVersionState::Active,
                deprecation_reason: None,
                advisories: Vec::new(),
                created_at: now,
            };
            match world.to::<Images>(id).ask(images::Command::AddVersion(Box::new(version))).await {
                Ok(_) | Err(Fault::Exists(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        mark(world, self.name.as_str()).await?;
        Ok(Some(id))
    }
}

impl ShippedTemplate {
    async fn register(
        &self,
        world: &World,
        images: &BTreeMap<&str, ImageId>,
    ) -> Result<(), String> {
        let fault = |fault: Fault| fault.to_string();
        let now = world.ports.clock.now();
        let known = world.store.holder(&TemplateClaim::Slug { slug: self.slug.clone() });
        let known = known.map_err(fault)?;
        let marked = format!("template:{}", self.slug);
        let was = world.store.get::<Shipped>(&marked).map_err(|e| e.to_string())?.is_some();
        let id: TemplateId = match known {
            Some(id) => id,
            None if was => return Ok(()),
            None => {
                let id = world.ports.random.id(now);
                world.to::<Templates>(id).create(self.first(id, now)).await.map_err(fault)?;
                id
            }
        };
        for shipped in &self.versions {
            let services = shipped.services.iter().map(|service| read_service(service, images));
            let services = services.collect::<Result<Option<Vec<TemplateService>>, String>>()?;
            // An image of this version was deleted.
            let Some(services) = services else { continue };
            let mut seen = BTreeMap::new();
            for image in services.iter().map(|service| service.image_id) {
                let found = world.store.get::<Images>(&image);
                seen.extend(found.map_err(|e| e.to_string())?.map(|found| (image, found)));
            }
            let version = Box::new(TemplateVersion {
                version: shipped.version.clone(),
                services,
                notes: None,
                created_at: now,
            });
            let replaces = shipped.replaces.clone();
            let command = Command::AddVersion { version, images: seen, replaces };
            match world.to::<Templates>(id).ask(command).await {
                Ok(_) | Err(Fault::Exists(_)) => {}
                Err(other) => return Err(fault(other)),
            }
        }
        mark(world, &marked).await.map_err(fault)?;
        Ok(())
    }

    fn first(&self, id: TemplateId, now: contract::Timestamp) -> Template {
        Template {
            id,
            name: self.name.clone(),
            slug: self.slug.clone(),
            kind: self.kind,
            description: Some(self.description.clone()),
            category: self.category.clone(),
            tags: self.tags.clone(),
            status: TemplateStatus::Published,
            featured: self.featured,
            pricing: Pricing::default(),
            current_version: None,
            versions: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }
}

/// Reads a service, and replaces the name of its image by the id. `None`: the image was deleted.
fn read_service(
    service: &Value,
    images: &BTreeMap<&str, ImageId>,
) -> Result<Option<TemplateService>, String> {
    let mut service = service.clone();
    let fields = service.as_object_mut().ok_or("a service must be an object")?;
    let name = fields.remove("image").ok_or("a service must name its image")?;
    let Some(id) = name.as_str().and_then(|name| images.get(name)) else { return Ok(None) };
    fields.insert("imageId".into(), id.to_string().into());
    serde_json::from_value(service).map(Some).map_err(|e| e.to_string())
}
